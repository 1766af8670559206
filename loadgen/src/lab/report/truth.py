"""docs/truth.md: how often the verdict named what was planted, counted, failures included.

Shares have exact intervals of 95 % (C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lab.model import NONE, UNKNOWN, Row, goodput, p95_of
from lab.report.blocks import Bullets, Paragraph, Section, Table
from lab.report.markdown import document
from lab.report.words import host, times
from lab.store.manifest import Manifest

NO_VERDICT = "no verdict"
# From this severity on a limit is to be found: below it a trial is at the knee.
CLEAR = 1.2
LEAST_RECALL = 0.9
NOVEL, NOTHING = "novel", "nothing"
LEGEND = (
    "*Right*: the verdict is one that the case allows. *Strong*: it came with strong evidence. "
    "Recall: of the trials in which a resource was planted so that it limits, how many named "
    "it. Precision: of the trials that named it, how many were right to. *unknown* lowers "
    "recall. Intervals are exact, of 95 %. Trials of one run share a machine and an hour, so "
    "they are less independent than the intervals assume."
)
ABOUT_SEVERITY = (
    "Severity is what the load asks of the resource, as a multiple of all it can give. Below 1 "
    f"it is not the limit. From {CLEAR:g} on it is clearly."
)
SHOWS = (
    "One machine, one downstream, short windows. Rates of another machine are not known.",
    "Nulls and novel faults are those somebody thought of. A real fault may be another.",
    "A case says what is right. Where two answers are, both count as right, which makes recall "
    "look better.",
)
ABOUT_ORACLES = (
    "These are tests (`make test SUITE=full`, parts truth and queueing). `make truth` makes this "
    "page only where they pass:"
)
# What the tests in loadgen/tests/truth and loadgen/tests/smoke/test_queueing.py demand.
_ORACLES = (
    (
        "comparisons of two servers",
        "10,000 simulated ones in each of 5 worlds: equal, unequal and bimodal launches, a machine "
        "that drifts or wanders",
        "intervals hold the ratio in at least 94.5 %; a ratio at the margin is called faster in at "
        "most 2.5 %; a family of 10 answers has a false one in at most 5 %",
    ),
    (
        "load engines (wrk2 and oha only where they are installed)",
        "a server that logs its own latencies",
        "p50, p95 and p99 within 1 % or 2 ms, plus waits for a CPU",
    ),
    (
        "corrected tails of pacer (and of oha and wrk2 where they are installed)",
        "the same server, stopped for 1 and 3 s",
        "p50, p95 and p99 within 2 % or 2 ms, plus waits for a CPU",
    ),
    (
        "`/block` on a pool of 40, open and closed",
        "a simulated queue, which itself is held against mean value analysis and Erlang's formula",
        "rate within 2 %, p95 within 10 %, where the CPUs are less than 90 % busy",
    ),
)


@dataclass(frozen=True, slots=True)
class Planted:
    """A trial of a planted case: what was planted (`resource`, with its `severity`), which verdicts
    are right, and what its row says. `strong`: the verdict came with strong evidence."""

    resource: str
    severity: float | None
    mode: str
    setting: str
    expected: tuple[str, ...]
    row: Row
    strong: bool

    @property
    def named(self) -> str:
        """The verdict."""
        return self.row.bottleneck or NO_VERDICT

    @property
    def right(self) -> bool:
        """Whether the verdict is one of the right ones."""
        return self.named in self.expected

    @property
    def wrong_and_strong(self) -> bool:
        """Whether it names something else with strong evidence."""
        return self.strong and not self.right and self.named not in (UNKNOWN, NO_VERDICT)

    @property
    def limiting(self) -> bool:
        """Whether a known resource was planted so that it limits."""
        return not set(self.expected) & {NONE, UNKNOWN}

    @property
    def null(self) -> bool:
        """Whether nothing was planted that limits, or what no rule knows."""
        return self.resource == NOTHING or NOVEL in self.resource


def text(of: Manifest, trials: Sequence[Planted]) -> str:
    """The page. The same run gives the same text."""
    wrong = [one for one in trials if one.wrong_and_strong]
    others = [one for one in trials if not one.right and not one.wrong_and_strong]
    by_resource = ("resource", "recall", "strong and right", "precision", "precision where strong")
    by_severity = ("planted", "severity", "load", "right", "strong", "else")
    named = ("expected", "named", "strong", "weak")
    above = (
        Paragraph("<!-- Written by `make truth`, down to the end of the marks. -->"),
        Paragraph(_made(of, trials)),
        Table(("what", "wanted", "measured"), tuple(_targets(trials)), legend=LEGEND),
    )
    severities = Table(by_severity, tuple(_by_severity(trials)))
    oracles = Table(("what", "beside", "limit"), _ORACLES)
    sections = (
        Section("Wrong with strong evidence", [_listed(wrong)], none=f"None of {len(trials)}."),
        Section("By resource", [Table(by_resource, tuple(_by_resource(trials)))]),
        Section("By severity", [Paragraph(ABOUT_SEVERITY), severities]),
        Section("Expected and named", [Table(named, tuple(_confusion(trials)))]),
        Section("Every other trial that was not right", [_listed(others)], none="None."),
        Section("What this shows, and what not", [Bullets(SHOWS)]),
        Section("The oracles", [Paragraph(ABOUT_ORACLES), oracles]),
    )
    return document("How often the verdict is right", above, sections)


def share(count: int, of: int) -> str:
    """A count with its share and the interval of that, as "9 of 10: 90 % [55, 100]"."""
    if not of:
        return "0 of 0"
    # Imported here: it takes most of a second.
    from scipy.stats import binomtest

    interval = binomtest(count, of).proportion_ci(confidence_level=0.95, method="exact")
    return f"{count} of {of}: {count / of:.0%} [{interval.low:.0%}, {interval.high:.0%}]"


def made(of: Manifest) -> str:
    """Which run it was, when, of which code, on which machine."""
    commit = of.versions.get("commit") or "not recorded"
    dirty = ", with changes" if of.versions.get("commit_dirty") else ""
    return (
        f"Run `{of.run}` ({of.status}), {times(of)}, commit {commit}{dirty}. Machine: "
        f"{host(of.host)}."
    )


def _made(of: Manifest, trials: Sequence[Planted]) -> str:
    valid = sum(one.row.valid for one in trials)
    nulls = sum(one.null for one in trials)
    return (
        f"{made(of)} {len(trials)} planted trials ([cases](../experiments/truth.toml)), "
        f"{valid} of them valid; {nulls} ({nulls / max(1, len(trials)):.0%}) plant nothing, or "
        "what no rule knows. An invalid trial still has a verdict, and counts."
    )


def _targets(trials: Sequence[Planted]) -> Iterator[tuple[str, str, str]]:
    strong = [one for one in trials if one.strong]
    limiting = [one for one in trials if one.limiting]
    # A pair of faults has no severity.
    known = [one for one in limiting if one.severity is not None]
    clear = [one for one in known if (one.severity or 0) >= CLEAR]
    novel = [one for one in trials if NOVEL in one.resource and one.expected != (NONE,)]
    wrong = share(sum(one.wrong_and_strong for one in trials), len(trials))
    yield "wrong with strong evidence", "0", wrong
    yield f"recall from a severity of {CLEAR:g} on", f"≥ {LEAST_RECALL:.0%}", _right(clear)
    for what, among in (
        ("recall at every severity above 1", known),
        ("recall without a severity", [one for one in limiting if one.severity is None]),
        ("right of the strong names", [one for one in strong if one.named != NONE]),
        ("right of the strong *none*", [one for one in strong if one.named == NONE]),
        ("nothing planted: *none*", [one for one in trials if one.resource == NOTHING]),
        ("novel fault: *unknown*, or another right answer", novel),
        ("resource below its limit: *none*", [one for one in trials if (one.severity or 2) < 1]),
    ):
        yield what, "no target", _right(among)


def _right(of: Sequence[Planted]) -> str:
    return share(sum(one.right for one in of), len(of))


def _by_resource(trials: Sequence[Planted]) -> Iterator[tuple[str, ...]]:
    planted = [one.expected[0] for one in trials if one.limiting]
    named = [one.named for one in trials if one.named not in (NONE, UNKNOWN, NO_VERDICT)]
    for resource in dict.fromkeys((*planted, *named)):
        mine = [one for one in trials if one.limiting and one.expected[0] == resource]
        called = [one for one in trials if one.named == resource]
        found = str(sum(one.right and one.strong for one in mine))
        yield resource, _right(mine), found, _right(called), _right([o for o in called if o.strong])


def _by_severity(trials: Sequence[Planted]) -> Iterator[tuple[str, ...]]:
    cells = dict.fromkeys((one.resource, one.severity, one.mode) for one in trials)
    for resource, severity, mode in sorted(cells, key=lambda of: (of[0], of[1] or 0, of[2])):
        mine = [
            one
            for one in trials
            if (one.resource, one.severity, one.mode) == (resource, severity, mode)
        ]
        others = Counter(one.named for one in mine if not one.right)
        yield (
            resource,
            "" if severity is None else f"{severity:g}",
            mode,
            f"{sum(one.right for one in mine)} of {len(mine)}",
            str(sum(one.right and one.strong for one in mine)),
            ", ".join(f"{name} {count}×" for name, count in sorted(others.items())),
        )


def _confusion(trials: Sequence[Planted]) -> Iterator[tuple[str, ...]]:
    counted = Counter((" or ".join(one.expected), one.named, one.strong) for one in trials)
    for expected, named in sorted({key[:2] for key in counted}):
        strong, weak = counted[expected, named, True], counted[expected, named, False]
        yield expected, named, str(strong or ""), str(weak or "")


def _listed(trials: Sequence[Planted]) -> Table:
    header = ("trial", "load", "expected", "named", "req/s", "p95 ms", "why invalid")
    rows = [
        (
            one.row.trial,
            one.setting,
            " or ".join(one.expected),
            f"{one.named}{', strong' if one.strong else ''}",
            _number(goodput(one.row)),
            _number(p95_of(one.row)),
            one.row.invalid_reasons,
        )
        for one in trials
    ]
    return Table(header, rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
