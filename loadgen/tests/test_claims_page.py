"""docs/claims.md is what docs/claims.toml says, and claims.toml says what the pages it cites say.

`python3 .ci/claims.py` writes the page anew.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from support.cited import CPU, intervals, numbers, page, taken_by_make
from support.pages import sections
from support.repo import script

claims = script("claims")

ALL = [one for group in claims.read(claims.CLAIMS.read_text()) for one in group.claims]
MEASURED = [(one.title, of) for one in ALL for of in one.measured]
UNSAID = ("the page names no machine", "the page does not date it")


def test_the_page_is_what_the_file_says() -> None:
    whole = claims.PAGE.read_text()
    assert claims.with_claims(whole) == whole, "python3 .ci/claims.py writes it anew"


@pytest.mark.parametrize(("title", "of"), MEASURED)
def test_what_was_measured_is_in_the_section_that_is_cited(title: str, of: Any) -> None:
    name, _, anchor = of.page.partition("#")
    section = sections(page(name)).get(anchor)
    assert section is not None, f"{title}: {of.page} is not there"
    gone = numbers(of.says) - numbers(section)
    assert not gone, f"{title}: {of.page} does not say {gone}: is the verdict still right?"
    changed = intervals(of.says) - intervals(section)
    assert not changed, f"{title}: {of.page} has other intervals than {changed}"
    assert numbers(f"{of.launches} {of.date}") <= numbers(page(name)), (title, of)
    # A page may have figures of several machines; then the section says of which.
    words = " ".join((section if CPU.search(section) else page(name)).split())
    assert of.machine in (*UNSAID, "no machine matters") or of.machine in words, title
    assert of.date in (*UNSAID, "as of this commit") or numbers(of.date), title


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.title)
def test_a_claim_is_a_line_and_plain_and_has_no_figure_of_its_own(one: Any) -> None:
    cited = [page(of.page.partition("#")[0]) for of in one.measured]
    known = numbers(" ".join((one.claim, one.bound, *cited)))
    assert numbers(one.short) <= known, numbers(one.short) - known
    for text in (one.title, one.by, one.claim, one.bound, one.short, one.why, one.missing):
        assert not {"\n", "|"} & {*text}
    assert one.by in ("others", "users", "this lab")


@pytest.mark.parametrize(
    ("title", "command"),
    [(one.title, line) for one in ALL for line in one.command.split("\n") if line],
)
def test_every_command_is_one_that_make_takes(
    title: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert taken_by_make(command, tmp_path), (title, capsys.readouterr().err)


def claim(**other: Any) -> str:
    """claims.toml with one claim, whose keys are these."""
    plain = dict.fromkeys(("title", "by", "claim", "bound", "short", "why", "command"), "text")
    keys = {**plain, "verdict": "holds", **other}
    lines = [f'{key} = "{value}"' for key, value in keys.items() if value is not None]
    return "\n".join(('[[group]]\ntitle = "g"\n[[group.claim]]', *lines))


MEASURED_ONCE = "\n[[group.claim.measured]]\n" + "\n".join(
    f'{key} = "x"' for key in ("says", "launches", "machine", "date", "page")
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (claim(verdict="mostly holds") + MEASURED_ONCE, "'mostly holds' is not a verdict"),
        (claim(verdict="holds within reason") + MEASURED_ONCE, "'holds within reason' is not a"),
        (claim(verdict="holds within 34 %") + MEASURED_ONCE, "'holds within 34 %' is not a"),
        (claim(why=" ") + MEASURED_ONCE, "text: empty or unknown: why"),
        (claim(bound=None) + MEASURED_ONCE, "text: empty or unknown: bound"),
        (claim(colour="red") + MEASURED_ONCE, "text: empty or unknown: colour"),
        (claim() + MEASURED_ONCE.replace('date = "x"', ""), "text: empty or unknown: date"),
        (claim(), "text: nothing is measured"),
        (claim(missing="a run") + MEASURED_ONCE, "what is missing belongs to"),
        (claim(verdict="not measured yet"), "what is missing belongs to"),
        (claim(title="g") + MEASURED_ONCE, "g: there are two of it"),
    ],
)
def test_a_line_that_the_page_cannot_show_is_refused(text: str, said: str) -> None:
    with pytest.raises(claims.ClaimError, match=re.escape(said)):
        claims.read(text)


@pytest.mark.parametrize("verdict", ["holds within 8 %", "holds within 33 %"])
def test_a_verdict_may_have_a_distance(verdict: str) -> None:
    [group] = claims.read(claim(verdict=verdict) + MEASURED_ONCE)
    assert [one.verdict for one in group.claims] == [verdict]


def test_figures_and_sections_are_read() -> None:
    read = numbers("of 4,143 [93, 97] at p95, ×2.00, 5030–5044; 2026-11-21. 7.0")
    assert read == {"4143", "93", "97", "2.00", "5030", "5044", "2026-11-21", "7.0"}
    text = "# A page\n## One, two\n1\n### In it\n2\n```\n# 3\n```\n## Next\n4\n"
    found = {name: numbers(of.partition("\n")[2]) for name, of in sections(text).items()}
    within = {"a-page": "1234", "one-two": "123", "in-it": "23", "next": "4"}
    assert found == {name: {*digits} for name, digits in within.items()}
