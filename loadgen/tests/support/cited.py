"""What the sections of a page of docs/ say, to which a page that cites them is held."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from lab.cli import do
from support.repo import REPO, program

_anchor = program("claims").anchor
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
    return {tuple(one.replace(",", "") for one in of) for of in INTERVAL.findall(text)}


@cache
def page(name: str) -> str:
    """A page by its path from docs/."""
    return (REPO / "docs" / name).read_text()


def sections(text: str) -> dict[str, str]:
    """Each heading's anchor, and its text up to the next heading that is no deeper."""
    found = [*re.finditer(r"(?m)^(#+) (.+)$", re.sub(r"(?ms)^```.*?^```$", _blank, text))]
    ends = [
        next((one.start() for one in found[at + 1 :] if len(one[1]) <= len(of[1])), len(text))
        for at, of in enumerate(found)
    ]
    return {_anchor(of[2]): text[of.start() : end] for of, end in zip(found, ends, strict=True)}


def _blank(block: re.Match[str]) -> str:
    """As long as a block of code, whose lines are no headings."""
    return " " * len(block[0])


def dead_links(name: str) -> Iterator[tuple[str, str]]:
    """The links of a page that lead to no file, or to no section of a page."""
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page(name)):
        if "://" in target:
            continue
        path = REPO / "docs" / (target or name)
        if not path.is_file() or (anchor and anchor not in sections(path.read_text())):
            yield target, anchor


def taken_by_make(command: str, folder: Path) -> bool:
    """Whether make has this verb and takes these words; the driver's folder is made in `folder`."""
    make, verb, *words = shlex.split(command)
    helped = re.search(rf"(?m)^{verb}: .*## (.*)$", (REPO / "Makefile").read_text())
    if make != "make" or not helped:
        return False
    if verb == "test":
        return all(f"{word.partition('=')[0]}=" in helped[1] for word in words)
    if verb == "sweep":
        verb, words = "run", ["EXP=sweep", *words]
    # This repository's own lists and files.
    for name, of in (("servers", "prometheus/servers"), ("experiments", "experiments")):
        (folder / name).symlink_to(REPO / of)
    settings = re.findall(r"(?m)^([A-Z][A-Z0-9_]*)=", (REPO / ".env").read_text())
    home = {"LAB_HOME": str(folder), "LAB_SETTING_NAMES": " ".join(settings)}
    return do(["plan", verb], {**home, "LAB_WORDS": shlex.join(words)}) == 0
