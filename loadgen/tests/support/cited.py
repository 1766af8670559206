"""What the sections of a page of docs/ say, to which a page that cites them is held."""

import re
import shlex
from functools import cache
from pathlib import Path

from lab.cli import do
from support.repo import REPO

# A date, or a number with or without commas; no part of a word (p95).
NUMBER = re.compile(r"(?<![\w.])(?:\d{4}-\d\d-\d\d|\d+(?:,\d{3}(?!\d))*(?:\.\d+)?)")
# A value with its interval, of one section.
INTERVAL = re.compile(
    rf"({NUMBER.pattern})[^\[\]()|\d]{{0,8}}\[({NUMBER.pattern}),? ({NUMBER.pattern})\]"
)
CPU = re.compile("AMD EPYC|Intel Xeon|CPU model")


def numbers(text: str) -> set[str]:
    """The numbers and dates of a text, without commas."""
    return {found.replace(",", "") for found in NUMBER.findall(text)}


def intervals(text: str) -> set[tuple[str, ...]]:
    """The values with intervals of a text, and these, without commas."""
    found = INTERVAL.findall(text)
    return {tuple(number.replace(",", "") for number in interval) for interval in found}


@cache
def page(name: str) -> str:
    """A page by its path from docs/."""
    return (REPO / "docs" / name).read_text()


def taken_by_make(command: str, folder: Path) -> bool:
    """Whether make has this verb and takes these words; the driver's folder is made in `folder`."""
    make, verb, *words = shlex.split(command)
    row = re.search(rf"(?m)^\| `{verb}` \|.*$", (REPO / "docs/verbs.md").read_text())
    if make != "make" or not row:
        return False
    if verb == "test":
        return all(f"`{word.partition('=')[0]}=" in row[0] for word in words)
    if verb in ("sweep", "density"):
        verb, words = "run", [f"EXP={verb}", *words]
    # This repository's own lists and files.
    for path in ("prometheus/servers", "experiments"):
        (folder / Path(path).name).symlink_to(REPO / path)
    settings = re.findall(r"(?m)^([A-Z][A-Z0-9_]*)=", (REPO / ".env").read_text())
    settings += re.findall(r"LAB_SETTING_NAMES := ([^\\]*)", (REPO / "Makefile").read_text())
    home = {"LAB_HOME": str(folder), "LAB_SETTING_NAMES": " ".join(settings)}
    return do(["plan", verb], {**home, "LAB_WORDS": shlex.join(words)}) == 0
