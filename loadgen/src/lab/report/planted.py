"""How often the verdict named what was planted, counted, failures included: from the findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from lab.judge.compare import MARGIN
from lab.judge.intervals import share_interval
from lab.model import Dosed, Finding, Named
from lab.report.blocks import Block, Bullets, Paragraph, Section, Table
from lab.report.table import NOTHING

NO_VERDICT = "no verdict"
UNTOLD, WORSE, SAME = "cannot tell", "worse", "within"
LEGEND = (
    "right: the verdict is one that the case allows; strong: of these, with strong evidence; else: "
    "what the others named. Intervals are exact, of 95 %. Trials of one run share a machine and an "
    "hour, so they are less independent than the intervals assume. A severity is what the load "
    "asks of the resource, as a multiple of all it can give: below 1 the resource is no limit."
)
DOSES_LEGEND = (
    "dose: latency that makes each answer so much slower; 0% is the same arm once more. Ratios are "
    "medians over rounds. Each answer compares six rounds, as two servers are compared."
)


def lines(found: Sequence[Finding]) -> Iterator[str]:
    """A sentence for all trials, one for those that clearly limit, and one for each dose."""
    for one in found:
        match one:
            case Named(planted=None):
                what = "" if one.name == "planted" else " that clearly limit"
                yield (
                    f"{one.trials} planted trials{what}: {share(one.right, one.trials)} verdicts "
                    f"are right, {one.strong} of them with strong evidence; "
                    f"{len(one.sure)} are wrong with strong evidence"
                )
            case Dosed():
                yield f"{one.load}, a dose of {one.dose:.0%}: {_counted(one.answers)}"


def section(found: Sequence[Finding]) -> Section:
    """By resource, by dose, and every trial that was not right."""
    named = [one for one in found if isinstance(one, Named)]
    dosed = [one for one in found if isinstance(one, Dosed)]
    resources = [one for one in named if one.planted and one.mode is None]
    severities = [one for one in named if one.mode is not None]
    blocks: list[Block] = [
        Table(
            ("planted", "right", "strong", "else"),
            [(one.planted or "", *_cells(one)) for one in resources],
            "By resource",
            LEGEND,
            wide=(3,),
        ),
        Table(
            ("planted", "severity", "load", "right", "strong", "else"),
            [
                (one.planted or "", f"{one.severity or ''}", one.mode or "", *_cells(one))
                for one in severities
            ],
            "By severity",
            names=3,
            wide=(5,),
            folds=True,
        ),
        *_missed(named),
    ]
    if dosed:
        blocks.append(_doses(dosed))
    return Section("Planted and named", blocks if named else [], "planted")


def share(count: int, trials: int) -> str:
    """A count with its share and the interval of that, as "9 of 10 (90% [55%, 100%])"."""
    interval = share_interval(count, trials)
    if interval is None:
        return "0 of 0"
    return f"{count} of {trials} ({count / trials:.0%} [{interval.low:.0%}, {interval.high:.0%}])"


def _cells(of: Named) -> tuple[str, str, str]:
    return share(of.right, of.trials), str(of.strong), _counted(Counter(of.missed.values()))


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or NO_VERDICT} {n}×" for name, n in sorted(counts.items()))


def _missed(named: Sequence[Named]) -> Iterator[Block]:
    rows = [
        (trial, one.planted or "", verdict or NO_VERDICT, "strong" if trial in one.sure else "")
        for one in named
        if one.planted and one.mode is None
        for trial, verdict in one.missed.items()
    ]
    rows.sort(key=lambda row: (not row[3], row[0]))
    if rows:
        yield Table(("not right", "planted", "named", "evidence"), rows, "Not right", folds=True)


def _doses(dosed: Sequence[Dosed]) -> Section:
    table = Table(
        ("load", "dose", "median ratio of goodput", "of p95", "answers"),
        [
            (
                one.load,
                f"{one.dose:.0%}",
                _ratio(one.goodput_ratio),
                _ratio(one.p95_ratio),
                _counted(one.answers),
            )
            for one in dosed
        ],
        "Doses",
        DOSES_LEGEND,
        names=2,
    )
    same = [one for one in dosed if not one.dose]
    large = [one for one in dosed if one.dose >= 2 * MARGIN]
    told = sum(_told(one) for one in same)
    false = told - sum(one.answers.get(SAME, 0) for one in same)
    every = sum(sum(one.answers.values()) for one in dosed)
    worse = sum(one.answers.get(WORSE, 0) for one in large)
    untold = sum(one.answers.get(UNTOLD, 0) for one in dosed)
    bullets = Bullets(
        (
            f"A difference where there is none: {share(false, told)}.",
            f"A dose of {2 * MARGIN:.0%} or more called worse: "
            f"{share(worse, sum(sum(one.answers.values()) for one in large))}.",
            f"Cannot tell: {share(untold, every)}, left out in the first line.",
        )
    )
    return Section("Doses", [Paragraph("Is a difference found that is there?"), table, bullets])


def _told(of: Dosed) -> int:
    return sum(of.answers.values()) - of.answers.get(UNTOLD, 0)


def _ratio(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"
