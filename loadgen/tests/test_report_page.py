"""docs/report.md says what the sections say that it links: each number belongs to the first link
behind it in its row or paragraph.

`python3 .ci/figures.py` draws its figure anew.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cited import CPU, intervals, numbers, page, taken_by_make
from support.pages import sections
from support.repo import REPO, script

figures = script("figures")

NAME = "report.md"
LINK = re.compile(r"\[([^\[\]]*)\]\(([^)]+)\)")
COMMANDS = sorted(set(re.findall(r"`(make [^`]+)`", page(NAME))))
DATE = re.compile(r"\d{4}-\d\d-\d\d")
# What a row says where the section names no machine or date.
UNSAID = ("no machine named", "counted:")


def units(text: str) -> list[str]:
    """The rows, list items and paragraphs of a page, without comments and code."""
    bare = re.sub(r"(?s)<!--.*?-->|`[^`]*`", "", text)
    return [one for one in re.split(r"\n\n|\n(?=[|-])", bare) if one]


def citations(unit: str) -> Iterator[tuple[str, str]]:
    """Each link's target behind the words that it is for, then the words without a link."""
    start = 0
    for link in LINK.finditer(unit):
        yield unit[start : link.start()] + link[1], link[2]
        start = link.end()
    yield unit[start:], ""


def said(target: str) -> str:
    """What the section of a link says, with the begin of each that it is in; or a hypothesis."""
    name, _, anchor = target.partition("#")
    if name.endswith(".toml"):
        return str(tomllib.loads(page(name))["hypothesis"])
    found = sections(page(name))
    of = found.get(anchor, "")
    around = (one.partition("\n#")[0] for one in found.values() if of in one and one != of)
    return "\n".join((*around, of)) if of else ""


def problems(text: str) -> Iterator[str]:
    """What a text says that its links do not."""
    for unit in units(text):
        for words, target in citations(unit):
            if not numbers(words):
                continue
            section = said(target) if "#" in target or target.endswith(".toml") else ""
            if gone := numbers(words) - numbers(section):
                yield f"{target or unit} does not say {', '.join(sorted(gone))}"
            ends = {of[1:] for of in intervals(words)}
            if changed := ends - set(re.findall(r"\[([\d.]+),? ([\d.]+)\]", plain(section))):
                yield f"{target} has other intervals than {changed}"
            known = CPU.search(section) or re.search(r"\b2 cores\b", section)
            told = target.endswith(".toml") or (known and DATE.search(section))
            if not told and not any(one in unit for one in UNSAID):
                yield f"{target} names no machine, or no date"


def plain(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3})", "", text)


GOOD = (
    "| the pool | 978 ([sweep](sweep.md#result)) "
    "| ×2.00 [1.98, 2.02] ([proof](next-bottleneck.md#result)) |"
)


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("978", "979", "sweep.md#result does not say 979"),
        ("#result)) | ×", "#no-such)) | ×", "sweep.md#no-such does not say 978"),
        ("sweep.md#result", "sweep.md", "sweep.md does not say 978"),
        ("2.02", "2.03", "next-bottleneck.md#result does not say 2.03"),
        ("[1.98", "[2.00", "next-bottleneck.md#result has other intervals than"),
        ("sweep.md#result", "sweep.md#how-to-run", "does not say 978"),
        ("978 (", "not known (", ""),
        ("([proof](next-bottleneck.md#result))", "", "does not say"),
        ("sweep.md#result", "../experiments/sweep.toml", "sweep.toml does not say 978"),
        (
            "978 ([sweep](sweep.md#result))",
            "38 ([models](models.md#how-much-code-it-is))",
            "models.md#how-much-code-it-is names no machine",
        ),
    ],
)
def test_a_number_that_its_section_does_not_hold_is_found(old: str, new: str, wrong: str) -> None:
    assert [*problems(GOOD)] == []
    assert old in GOOD
    found = [*problems(GOOD.replace(old, new))]
    assert wrong in " ".join(found) if wrong else not found


def strangers(text: str) -> Iterator[str]:
    """The cells of the figure's table whose value and interval no line of the linked section has
    together with the name of the row's model."""
    for line in sections(text)["the-figures-numbers"].splitlines():
        model, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for words, target in (one for cell in cells for one in citations(cell)):
            value = figures.VALUE.search(words)
            if value is None:
                continue
            wanted = numbers(value[0])
            lines = said(target).splitlines()
            # As a whole word: netty is no netty-virtual.
            named = [one for one in lines if re.search(rf"(?<![\w-]){model}(?![\w-])", one)]
            if not any(wanted <= numbers(one) for one in named):
                yield f"{model}: {value[0]}"


def test_a_bar_belongs_to_its_model() -> None:
    text = page(NAME)
    assert [*strangers(text)] == []
    for one, other in (
        ("1,439 [1,247, 1,489]", "4,338 [4,294, 4,474]"),
        ("10,602 [10,519, 10,811]", "34,141 [33,312, 34,934]"),
    ):
        swapped = text.replace(one, "@").replace(other, one).replace("@", other)
        assert len([*strangers(swapped)]) == 2, (one, other)


def test_what_is_held_is_the_same_in_both_tables() -> None:
    whole = sections(page(NAME))
    figure = {of[1:] for of in intervals(whole["the-figures-numbers"])}
    for unit in units(whole["which-model"]):
        for words, target in citations(unit):
            if target.startswith("capacity.md"):
                assert {of[1:] for of in intervals(words)} <= figure, unit


def test_numbers_hypotheses_and_commands_of_the_page_are_there() -> None:
    assert [*problems(page(NAME))] == []
    rows = [line for line in page(NAME).splitlines() if "not measured yet" in line]
    assert rows
    assert [row for row in rows if "`make " not in row] == []
    linked = re.findall(r"\(\.\./experiments/([\w-]+)\.toml\)", page(NAME))
    assert sorted(linked) == sorted(path.stem for path in (REPO / "experiments").glob("*.toml"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_one_that_make_takes(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert taken_by_make(command, tmp_path), (command, capsys.readouterr().err)
