"""How often the verdict named what was planted, counted, failures included."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lab.judge.compare import MARGIN
from lab.judge.intervals import share_interval
from lab.model import Dosed, Named
from lab.report.blocks import Block, Bullets, Section, Table
from lab.report.remarks import say
from lab.report.result import Result
from lab.report.text import NOTHING

UNTOLD, WORSE, SAME = "cannot tell", "worse", "within"
NAMED = ("planted", "severity", "load", "right", "strong", "else")
DOSED = ("load", "dose", "median ratio of goodput", "of p95", "answers")


def section(result: Result) -> Section:
    """By resource, by severity, and by dose."""
    named = [
        finding for finding in result.findings if isinstance(finding, Named) and finding.planted
    ]
    dosed = [finding for finding in result.findings if isinstance(finding, Dosed)]
    parts = sorted(named, key=lambda finding: finding.mode is not None)
    blocks = (
        Table(NAMED, [*map(_cells, parts)], "Named", say("legend", "planted")),
        *_doses(dosed),
    )
    return Section("Planted and named", blocks, "planted")


def line(finding: Named | Dosed) -> str:
    """All trials together, all that clearly limit, or one dose; nothing of a part of them."""
    if isinstance(finding, Dosed):
        return say("planted", "dose", of=finding, answers=counted(finding.answers))
    right, wrong = share(finding.right, finding.trials), len(finding.sure)
    return (
        ""
        if finding.planted
        else say("planted", finding.name, of=finding, right=right, wrong=wrong)
    )


def share(count: int, trials: int) -> str:
    """A count with its share and the interval of that, as "9 of 10 (90% [55%, 100%])"."""
    interval = share_interval(count, trials)
    if interval is None:
        return "0 of 0"
    return f"{count} of {trials} ({count / trials:.0%} [{interval.low:.0%}, {interval.high:.0%}])"


def counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or 'no verdict'} {n}×" for name, n in sorted(counts.items()))


def _cells(finding: Named) -> tuple[str, ...]:
    place = finding.planted or "", f"{finding.severity or NOTHING}", finding.mode or NOTHING
    missed = counted(Counter(finding.missed.values()))
    return (*place, share(finding.right, finding.trials), f"{finding.strong}", missed)


def _doses(dosed: Sequence[Dosed]) -> Sequence[Block]:
    if not dosed:
        return ()
    rows = [
        (dose.load, f"{dose.dose:.0%}", *map(_ratio, (dose.goodput_ratio, dose.p95_ratio)),
         counted(dose.answers))
        for dose in dosed
    ]  # fmt: skip
    same = _sum(dose for dose in dosed if not dose.dose)
    large = _sum(dose for dose in dosed if dose.dose >= 2 * MARGIN)
    every = _sum(dosed)
    answered = same.total() - same[UNTOLD]
    lines = (
        say("planted", "false", share=share(answered - same[SAME], answered)),
        say("planted", "caught", dose=2 * MARGIN, share=share(large[WORSE], large.total())),
        say("planted", "untold", share=share(every[UNTOLD], every.total())),
    )
    return Table(DOSED, rows, "Doses", say("legend", "doses")), Bullets(lines)


def _sum(dosed: Iterable[Dosed]) -> Counter[str]:
    return sum((Counter(dose.answers) for dose in dosed), Counter())


def _ratio(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"
