"""Writes what docs/claims.md has of docs/claims.toml: `python3 .ci/claims.py`."""

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class Measured:
    """What a page below docs/ publishes; `launches` says how often it was measured."""

    says: str
    launches: str
    machine: str
    date: str
    page: str


@dataclass(frozen=True)
class Claim:
    """What others, users or the lab itself said (`by`), and what is known of it.

    `short` is its line in the table. Of what is not measured yet, `measured` comes near, and
    `missing` would decide it.
    """

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


@dataclass(frozen=True)
class Group:
    """Claims under one heading."""

    title: str
    claims: tuple[Claim, ...]


def read(text: str) -> list[Group]:
    """The groups of the file, in its order. Raises ClaimError."""
    groups = [
        Group(group.get("title", ""), tuple(_claim(one) for one in group.get("claim", ())))
        for group in tomllib.loads(text).get("group", ())
    ]
    titles = [one.title for one in groups] + [c.title for one in groups for c in one.claims]
    for title, times in Counter(map(anchor, titles)).items():
        if times > 1:
            raise ClaimError(f"{title}: there are two of it")
    return groups


def _claim(given: dict[str, Any]) -> Claim:
    title = given.get("title", "a claim without a title")
    verdict = given.get("verdict", "")
    within = WITHIN.fullmatch(verdict)
    if verdict not in PLAIN and not (within and int(within[1]) <= FURTHEST_PERCENT):
        raise ClaimError(f"{title}: {verdict!r} is not a verdict")
    unmeasured = verdict == NOT_MEASURED
    if unmeasured != ("missing" in given):
        raise ClaimError(f"{title}: what is missing belongs to what is {NOT_MEASURED}")
    if not unmeasured and not given.get("measured"):
        raise ClaimError(f"{title}: nothing is measured")
    measured = tuple(Measured(**_whole(Measured, title, one)) for one in given.get("measured", ()))
    return Claim(**_whole(Claim, title, {"missing": "nothing", **given, "measured": measured}))


def _whole(kind: type[Measured | Claim], title: str, given: dict[str, Any]) -> dict[str, Any]:
    """A table of the file that has every key of its record, and no other, and none is empty."""
    names = {field.name for field in fields(kind)}
    empty = {name for name in names - {"measured"} if not str(given.get(name, "")).strip()}
    if wrong := sorted(empty | (set(given) - names)):
        raise ClaimError(f"{title}: empty or unknown: {', '.join(wrong)}")
    return given


def _table(groups: Sequence[Group]) -> Iterator[str]:
    claims = [one for group in groups for one in group.claims]
    kinds = Counter(one.verdict.partition(" within")[0] for one in claims)
    counted = ", ".join(f"{kinds[kind]} *{kind}*" for kind in PLAIN)
    yield f"Of {len(claims)} claims: {counted}. *Holds within …* is counted with *holds*."
    yield from ("", "| claim | verdict | in one line |", "|---|---|---|")
    for one in claims:
        yield f"| [{one.title}](#{anchor(one.title)}) | *{one.verdict}* | {one.short} |"


def _sections(groups: Sequence[Group]) -> Iterator[str]:
    for group in groups:
        yield from (f"## {group.title}", "")
        for one in group.claims:
            yield from _section(one)


def _section(one: Claim) -> Iterator[str]:
    yield from (f"### {one.title}", "", f"- **Claimed** ({one.by}): {one.claim}")
    yield f"- **Bound**: {one.bound}"
    nothing = " nothing that decides it." if one.verdict == NOT_MEASURED else ""
    near = " What comes near:" if nothing and one.measured else ""
    yield f"- **Measured**:{nothing}{near}"
    for of in one.measured:
        yield f"  - {of.says} ({of.launches}; {of.machine}; {of.date}; [{of.page}]({of.page}))"
    yield f"- **Verdict**: *{one.verdict}*. {one.why}"
    if one.verdict == NOT_MEASURED:
        yield f"- **Missing**: {one.missing}"
    yield from ("", "```", *one.command.strip().splitlines(), "```", "")


def with_claims(page: str) -> str:
    """The page with the claims of the file: a table, then a section for each. Raises ValueError."""
    groups = read(CLAIMS.read_text())
    return between(page, "claims", "\n".join((*_table(groups), "", *_sections(groups))))


if __name__ == "__main__":
    try:
        PAGE.write_text(with_claims(PAGE.read_text()))
    except ValueError as failure:
        sys.exit(f"docs/claims.toml: {failure}")
