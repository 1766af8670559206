"""What must not grow while a load goes on, and by how much it did in an hour. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lab.judge.heap import heap_after_collections, summed
from lab.judge.intervals import slope_of
from lab.model import Observation

LIVE = "growth of the live heap"
HEAP = "growth of the heap that collections leave"
RESIDENT = "growth of resident memory"
FILES = "growth of open files"
THREADS = "growth of threads"
# Samples a second apart depend on each other. So they are cut into this many parts, and the least
# of each part is one value: what grows for good raises it, and a burst does not. These depend
# less on each other, and the interval of the slope is wider for what is left (`slope_of`).
PARTS = 10
# Of the time, in which a heap's pages are touched for the first time, and pools fill: no part of
# the slope.
SETTLING = 1 / 3
MIB = 2**20
HOUR_S = 3600
# Samples: seconds, and what was there then.
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """What must not grow: the `name` of its finding, the `unit` of its growth, which is `scale` of
    its samples' unit, and its samples in a window: none where Prometheus does not see it."""

    name: str
    unit: str
    scale: float
    points: Callable[[Observation], Points] = lambda _: ()


@dataclass(frozen=True, slots=True)
class Growth:
    """How much a figure grows in an hour, once it has settled. `low` and `high` are its 95 %
    interval, None where there are too few samples for one. `levels` are what there was in the first
    part of all, then, and in the last part."""

    per_h: float
    low: float | None
    high: float | None
    levels: tuple[float, float, float]


def _series(metric: str, **labels: str) -> Callable[[Observation], Points]:
    """The one series with these labels; no points where there is none, or another one."""

    def points(seen: Observation) -> Points:
        series = seen.series(metric, **labels)
        return summed(series) if len(series) == 1 else ()

    return points


def of_container(service: str) -> Figure:
    """Resident memory of the one container of a service, in bytes."""
    memory = _series("container_memory_rss", service=service)
    return Figure(RESIDENT, "MiB/h", MIB, memory)


# What full collections left after each leg, in bytes.
LIVE_HEAP = Figure(LIVE, "MiB/h", MIB)
# Of the measured server's process, in bytes.
OF_JVM = Figure(RESIDENT, "MiB/h", MIB, _series("process_resident_memory_bytes", job="jvm"))
OF_SERVER: tuple[Figure, ...] = (
    Figure(HEAP, "MiB/h", MIB, heap_after_collections),
    OF_JVM,
    Figure(FILES, "files/h", 1, _series("process_open_fds", job="jvm")),
    Figure(THREADS, "threads/h", 1, _series("jvm_threads_current", job="jvm")),
)


def growth(points: Sequence[tuple[float, float]], scale: float) -> Growth | None:
    """How many `scale` a figure grows in an hour: the slope of the least values of equal parts of
    its samples, without those in which it settles; None where there are too few."""
    begins = points[0][0] + SETTLING * (points[-1][0] - points[0][0]) if points else 0.0
    parts = in_parts([(at, value) for at, value in points if at >= begins])
    if len(parts) < 2:
        return None
    slope = slope_of([at for at, _ in parts], [value for _, value in parts])
    per_h = HOUR_S / scale
    ends = (slope.interval.low, slope.interval.high) if slope.interval else (None, None)
    low, high = (None if end is None else end * per_h for end in ends)
    (_, at_first), (_, settled), (_, at_last) = in_parts(points)[0], parts[0], parts[-1]
    levels = at_first / scale, settled / scale, at_last / scale
    return Growth(slope.per_s * per_h, low, high, levels)


def in_parts(points: Sequence[tuple[float, float]]) -> Points:
    """The median time and the least value of each of the parts. They have as many samples each, one
    behind the other: what a leg that is left out lacks falls between two. Not the time of the least
    value: two of them may be seconds apart, and a slope over seconds is no growth."""
    cuts = [len(points) * part // PARTS for part in range(PARTS + 1)]
    parts = (points[begin:end] for begin, end in pairwise(cuts))
    return tuple(
        (statistics.median(at for at, _ in part), min(value for _, value in part))
        for part in parts
        if part
    )


def in_window(seen: Observation, figure: Figure) -> Points:
    opens, closes = seen.window
    return tuple((at, value) for at, value in figure.points(seen) if opens <= at <= closes)
