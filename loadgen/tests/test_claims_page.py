"""docs/claims.md says what the pages that it cites say, and each of its commands is one of make."""

import re
from collections import Counter
from pathlib import Path

import pytest

from support.cited import CPU, intervals, numbers, page, taken_by_make
from support.pages import sections
from support.repo import script

anchor = script("pages").anchor
PART = page("claims.md").partition("\n## The claims\n")[2].partition("\n## What is no claim\n")[0]
# All verdicts there are. A distance is a number, and has an end: what is further off does not hold.
NOT_MEASURED = "not measured yet"
VERDICTS = ("holds", "does not hold", "impossible", NOT_MEASURED)
FURTHEST_PERCENT = 33
CLAIM = re.compile(
    r"""### (?P<title>.+)

- \*\*Claimed\*\* \((?:others|users|this lab)\): (?P<claim>.+)
- \*\*Bound\*\*: (?P<bound>.+)
- \*\*Measured\*\*:(?P<nothing> nothing that decides it\.(?: What comes near:)?)?
(?P<measured>(?:  - .+\n)*)- \*\*Verdict\*\*: \*(?P<verdict>[^*]+)\*\. .+
(?:- \*\*Missing\*\*: (?P<missing>.+)\n)?
```\n(?P<commands>(?:.+\n)+)```\n"""
)
MEASURED = re.compile(
    r"  - (?P<says>.*?) \((?P<launches>[^;)]*); (?P<machine>.*); (?P<date>[^;]*); "
    r"\[(?P<page>[^\]]*)\]\((?P=page)\)\)"
)
CLAIMS = list(CLAIM.finditer(PART))
CITED = [
    (claim["title"], MEASURED.fullmatch(line))
    for claim in CLAIMS
    for line in claim["measured"].splitlines()
]
UNSAID = ("the page names no machine", "the page does not date it")


def test_every_claim_has_its_parts_and_its_line_in_the_table() -> None:
    titles = [claim["title"] for claim in CLAIMS]
    assert re.findall(r"(?m)^### (.+)$", PART) == titles
    headings = re.findall(r"(?m)^###? (.+)$", PART)
    assert len({*map(anchor, headings)}) == len(headings) > len(titles)
    lines = [(f"[{c['title']}](#{anchor(c['title'])})", f"*{c['verdict']}*") for c in CLAIMS]
    assert re.findall(r"(?m)^\| (\[.+?\]\(#.+?\)) \| (\*.+?\*) \| .+ \|$", PART) == lines
    kinds = Counter(claim["verdict"].partition(" within")[0] for claim in CLAIMS)
    counted = ", ".join(f"{kinds[kind]} *{kind}*" for kind in VERDICTS)
    assert f"Of {len(CLAIMS)} claims: {counted}." in PART


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["title"])
def test_a_verdict_follows_from_what_is_measured(claim: re.Match[str]) -> None:
    verdict = claim["verdict"]
    within = re.fullmatch(r"holds within (\d+) %", verdict)
    assert verdict in VERDICTS or (within and int(within[1]) <= FURTHEST_PERCENT)
    is_open = verdict == NOT_MEASURED
    assert (claim["nothing"] is not None, claim["missing"] is not None) == (is_open, is_open)
    assert claim["measured"] or is_open


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["title"])
def test_a_line_of_the_table_has_no_figure_of_its_own(claim: re.Match[str]) -> None:
    (short,) = re.findall(rf"(?m)^\| \[{re.escape(claim['title'])}\]\(.*?\| .*? \| (.+) \|$", PART)
    cited = [page(found["page"].partition("#")[0]) for title, found in CITED
             if title == claim["title"]]  # fmt: skip
    assert numbers(short) <= numbers(" ".join((claim["claim"], claim["bound"], *cited)))


@pytest.mark.parametrize(("title", "found"), CITED)
def test_what_was_measured_is_in_the_section_that_is_cited(
    title: str, found: re.Match[str]
) -> None:
    name, _, heading = found["page"].partition("#")
    section = sections(page(name)).get(heading)
    assert section is not None, f"{title}: {found['page']} is not there"
    gone = numbers(found["says"]) - numbers(section)
    assert not gone, f"{title}: {found['page']} does not say {gone}: is the verdict still right?"
    changed = intervals(found["says"]) - intervals(section)
    assert not changed, f"{title}: {found['page']} has other intervals than {changed}"
    assert numbers(f"{found['launches']} {found['date']}") <= numbers(page(name)), title
    # A page may have figures of several machines; then the section says of which.
    words = " ".join((section if CPU.search(section) else page(name)).split())
    assert found["machine"] in (*UNSAID, "no machine matters") or found["machine"] in words, title
    assert found["date"] in (*UNSAID, "as of this commit") or numbers(found["date"]), title


@pytest.mark.parametrize(
    ("title", "command"),
    [(claim["title"], line) for claim in CLAIMS for line in claim["commands"].splitlines()],
)
def test_every_command_is_one_that_make_takes(
    title: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert taken_by_make(command, tmp_path), (title, capsys.readouterr().err)


def test_figures_and_sections_are_read() -> None:
    read = numbers("of 4,143 [93, 97] at p95, ×2.00, 5030–5044; 2026-11-21. 7.0")
    assert read == {"4143", "93", "97", "2.00", "5030", "5044", "2026-11-21", "7.0"}
    text = "# A page\n## One, two\n1\n### In it\n2\n```\n# 3\n```\n## Next\n4\n"
    found = {name: numbers(of.partition("\n")[2]) for name, of in sections(text).items()}
    within = {"a-page": "1234", "one-two": "123", "in-it": "23", "next": "4"}
    assert found == {name: {*digits} for name, digits in within.items()}
