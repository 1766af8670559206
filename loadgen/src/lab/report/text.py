"""Numbers, counts and loads as text, the same on the console and in every report."""

from collections.abc import Sequence

from lab.judge.grouping import Cell, lane_of
from lab.judge.intervals import MedianOf
from lab.model import Row, TrialPlan, three

NOTHING = "–"
# How a load is named where others differ in this.
MORE = {
    "route": "{}",
    "engine": "by {}",
    "duration_s": "for {} s",
    "warmup_s": "warmed up for {} s",
}
BINARY = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def number(value: float | None) -> str:
    return NOTHING if value is None else three(value)


def share(value: float | None) -> str:
    return f"{value:.0%}" if value else NOTHING


def data(value: float) -> str:
    """Bytes: 512 B, 64 MiB, 1.5 GiB."""
    for unit, name in BINARY:
        if abs(value) >= unit:
            return f"{three(value / unit)} {name}"
    return f"{three(value)} B" if value else "0"


def counted(count: int, noun: str, plural: str = "s") -> str:
    """1 trial, 2,000 trials."""
    return f"{count:,} {noun}{'' if count == 1 else plural}"


def estimate(value: float | None, low: float | None, high: float | None) -> str:
    """A value with its interval, if it has both ends: 950 [917, 1,000]."""
    ends = "" if low is None or high is None else f" [{three(low)}, {three(high)}]"
    return f"{number(value)}{ends}"


def median(value: MedianOf | None, unit: float = 1.0) -> str:
    """A median in this unit, with its interval if it has one."""
    if value is None:
        return NOTHING
    if value.interval is None:
        return number(value.median / unit)
    return estimate(*(x / unit for x in (value.median, value.interval.low, value.interval.high)))


def load_of(trial: Cell | Row | TrialPlan) -> str:
    rate = "" if trial.offered_rps is None else f" at {trial.offered_rps:,}/s"
    return f"{trial.mode} {trial.concurrency:,}{rate}"


def place(trial: Row | TrialPlan) -> str:
    """The lane of a trial, its JVM and its load: netty #2 open 2,000 at 9,000/s."""
    launch = f" #{trial.launch}" if trial.launch else ""
    return f"{lane_of(trial)}{launch} {load_of(trial)}"


def cell_names(cells: Sequence[Cell]) -> dict[Cell, str]:
    """Each load in a few words; route, engine and times only if they differ among these."""
    names = {cell: load_of(cell) for cell in cells}
    for field, text in MORE.items():
        if len({getattr(cell, field) for cell in cells}) > 1:
            for cell in cells:
                if (value := getattr(cell, field)) is not None:
                    names[cell] += f" {text.format(value)}"
    return names
