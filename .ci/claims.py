"""Writes what docs/claims.md has of docs/claims.toml: `python3 .ci/claims.py`."""

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pages import anchor, between

ROOT = Path(__file__).resolve().parent.parent
CLAIMS = ROOT / "docs/claims.toml"
PAGE = ROOT / "docs/claims.md"
# All verdicts there are. A distance is a number, and has an end: what is further off does not hold.
NOT_MEASURED = "not measured yet"
PLAIN = ("holds", "does not hold", "impossible", NOT_MEASURED)
WITHIN = re.compile(r"holds within (\d+) %")
FURTHEST_PERCENT = 33


class ClaimError(ValueError):
    """A line of claims.toml that the page cannot show."""


class Measured(NamedTuple):
    """What a page below docs/ publishes; `launches` says how often it was measured."""

    says: str
    launches: str
    machine: str
    date: str
    page: str


class Claim(NamedTuple):
    """What others, users or the lab itself said (`by`), and what is known of it. `short` is its
    line in the table. `missing` would decide what is not measured yet; `measured` comes near."""

    title: str
    by: str
    claim: str
    bound: str
    verdict: str
    short: str
    measured: tuple[Measured, ...]
    why: str
    missing: str
    command: str


class Group(NamedTuple):
    """Claims under one heading."""

    title: str
    claims: tuple[Claim, ...]


def read(text: str) -> list[Group]:
    """The groups of the file, in its order. Raises ClaimError."""
    groups = [
        Group(group.get("title", ""), tuple(map(_claim, group.get("claim", ()))))
        for group in tomllib.loads(text).get("group", ())
    ]
    titles = [each.title for group in groups for each in (group, *group.claims)]
    for title, times in Counter(map(anchor, titles)).items():
        if times > 1:
            raise ClaimError(f"{title}: there are two of it")
    return groups


def _claim(given: dict[str, Any]) -> Claim:
    title, verdict = given.get("title", "a claim without a title"), given.get("verdict", "")
    within = WITHIN.fullmatch(verdict)
    if verdict not in PLAIN and not (within and int(within[1]) <= FURTHEST_PERCENT):
        raise ClaimError(f"{title}: {verdict!r} is not a verdict")
    if (verdict == NOT_MEASURED) != ("missing" in given):
        raise ClaimError(f"{title}: what is missing belongs to what is {NOT_MEASURED}")
    measured = tuple(_record(Measured, title, each) for each in given.get("measured", ()))
    if verdict != NOT_MEASURED and not measured:
        raise ClaimError(f"{title}: nothing is measured")
    found: Claim = _record(Claim, title, {"missing": "nothing", **given, "measured": measured})
    return found


def _record(kind: Any, title: str, given: dict[str, Any]) -> Any:
    """A table of the file, which has every key of its record and no other; no text is empty."""
    empty = {name for name in kind._fields if not str(given.get(name, "")).strip()}
    if wrong := sorted(empty | (set(given) - set(kind._fields))):
        raise ClaimError(f"{title}: empty or unknown: {', '.join(wrong)}")
    return kind(**given)


def _table(groups: Sequence[Group]) -> Iterator[str]:
    claims = [claim for group in groups for claim in group.claims]
    kinds = Counter(claim.verdict.partition(" within")[0] for claim in claims)
    counted = ", ".join(f"{kinds[kind]} *{kind}*" for kind in PLAIN)
    yield f"Of {len(claims)} claims: {counted}. *Holds within …* is counted with *holds*."
    yield from ("", "| claim | verdict | in one line |", "|---|---|---|")
    for claim in claims:
        yield f"| [{claim.title}](#{anchor(claim.title)}) | *{claim.verdict}* | {claim.short} |"


def _section(claim: Claim) -> Iterator[str]:
    yield from (f"### {claim.title}", "", f"- **Claimed** ({claim.by}): {claim.claim}")
    yield f"- **Bound**: {claim.bound}"
    nothing = " nothing that decides it." if claim.verdict == NOT_MEASURED else ""
    near = " What comes near:" if nothing and claim.measured else ""
    yield f"- **Measured**:{nothing}{near}"
    for says, launches, machine, date, page in claim.measured:
        yield f"  - {says} ({launches}; {machine}; {date}; [{page}]({page}))"
    yield f"- **Verdict**: *{claim.verdict}*. {claim.why}"
    if nothing:
        yield f"- **Missing**: {claim.missing}"
    yield from ("", "```", *claim.command.strip().splitlines(), "```", "")


def with_claims(page: str) -> str:
    """The page with the claims of the file: a table, then a section for each. Raises ValueError."""
    groups = read(CLAIMS.read_text())
    lines = [*_table(groups), ""]
    for group in groups:
        lines += [f"## {group.title}", ""]
        lines += [line for claim in group.claims for line in _section(claim)]
    return between(page, "claims", "\n".join(lines))


if __name__ == "__main__":
    try:
        PAGE.write_text(with_claims(PAGE.read_text()))
    except ValueError as failure:
        sys.exit(f"docs/claims.toml: {failure}")
