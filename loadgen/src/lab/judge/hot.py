"""The methods that a recording saw most, and what they cost in two recordings of the same load.

The cost of a method is its share of its recording times what an answer cost in all: CPU time of the
server's container, bytes allocated, or time spent waiting for locks. So a side that does the same
work in less time does not look as if all of its methods had changed. Pure.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Literal

from lab.judge.intervals import CONFIDENCE
from lab.model import ALLOC, CPU, LOCK, Recording, Row

# Below, nothing is named: a share of one half of so many samples is known to ± 10 points.
LEAST_SAMPLES = 100
# A method that hands so much of its share on to one other is only the way to that one.
NEARLY_ALL = 0.95
# A difference below this share of the greater whole is not named: nobody would act on it.
LEAST = 0.01
# What an answer costs, by the kind of recording.
COSTS = {CPU: "µs of CPU", ALLOC: "bytes", LOCK: "µs of waiting"}
_OF_THE_JDK = ("java.", "javax.", "jdk.", "sun.", "com.sun.")
# A method and a line of it.
_Frame = tuple[str, int | None]
# Why a recorded trial is no side: it outgrew its room, has too few samples, or what an answer cost
# in all is unknown. Why two are not compared: they are of other kinds, or by other events.
NoSide = Literal["outgrown", "few", "cost"]
Unlike = Literal["", "kinds", "events"]


@dataclass(frozen=True, slots=True)
class Hot:
    """A method's shares of a recording's weight, 0..1: `alone` as the innermost frame, `total`
    anywhere in the stack. `line` is its line with the largest share alone (in total if it was never
    innermost), and `line_share` that share. None: no line is known."""

    method: str
    alone: float
    total: float
    line: int | None
    line_share: float


def named(recording: Recording) -> bool:
    """True if there is enough to name a method by. Waits for locks are all recorded that take long
    enough, so any number of them is the whole truth about these."""
    return recording.total > 0 and (recording.kind == LOCK or recording.samples >= LEAST_SAMPLES)


def hot(recording: Recording) -> tuple[Hot, ...]:
    """Every method, the largest share alone first; one that calls itself counts once a stack."""
    alone: Counter[_Frame] = Counter()
    total: Counter[_Frame] = Counter()
    methods: Counter[str] = Counter()
    innermost: Counter[str] = Counter()
    for stack, weight in recording.stacks.items():
        frames = [_parted(frame) for frame in stack.split(";")]
        alone[frames[-1]] += weight
        innermost[frames[-1][0]] += weight
        total.update(dict.fromkeys(set(frames), weight))
        methods.update(dict.fromkeys({method for method, _ in frames}, weight))
    whole = recording.total or 1
    lines = {**_hottest(total), **_hottest(alone)}
    shares = []
    for method, weight in methods.items():
        line, line_weight = lines[method]
        if not method.startswith("["):
            alone_share = innermost[method] / whole
            shares.append(Hot(method, alone_share, weight / whole, line, line_weight / whole))
    return tuple(sorted(shares, key=lambda method: (-method.alone, -method.total, method.method)))


def _hottest(frames: Mapping[_Frame, int]) -> dict[str, tuple[int | None, int]]:
    """The line of each method that weighs most, and its weight; of equal ones the first."""
    lines: dict[str, tuple[int | None, int]] = {}
    for (method, line), weight in sorted(frames.items(), key=lambda at: (-at[1], at[0][1] or 0)):
        lines.setdefault(method, (line, weight))
    return lines


def callers(recording: Recording) -> list[Hot]:
    """The methods outside the JDK by what they take with all that they call, the largest first.
    Left out are those that call nothing, and those that hand nearly all on to one such method."""
    through: Counter[tuple[str, str]] = Counter()
    for stack, weight in recording.stacks.items():
        methods = dict.fromkeys(_parted(frame)[0] for frame in stack.split(";"))
        for edge in pairwise(method for method in methods if _is_code(method)):
            through[edge] += weight
    most: Counter[str] = Counter()
    for (caller, _), weight in through.items():
        most[caller] = max(weight, most[caller])
    whole = recording.total or 1
    callers = [
        caller
        for caller in hot(recording)
        if _is_code(caller.method)
        and caller.alone < caller.total
        and most[caller.method] / whole < NEARLY_ALL * caller.total
    ]
    return sorted(callers, key=lambda caller: (-caller.total, caller.method))


def _is_code(method: str) -> bool:
    """True if it is code, and not the JDK's."""
    return not method.startswith(("[", *_OF_THE_JDK))


def waits(recording: Recording) -> dict[str, float]:
    """Of a recording of locks: the share of each kind of wait (monitor, lock, pinned)."""
    kinds: Counter[str] = Counter()
    for stack, weight in recording.stacks.items():
        kinds[stack.partition(";")[0].strip("[]")] += weight
    return {name: weight / (recording.total or 1) for name, weight in kinds.most_common()}


def interval(
    share: float, recording: Recording, confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """The interval of a share of CPU samples, which all weigh the same (E. B. Wilson, JASA 22
    (1927) 209). None for other recordings, and without a sample."""
    n, z = recording.samples, NormalDist().inv_cdf((1 + confidence) / 2)
    if recording.kind != CPU or not n:
        return None
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def _parted(frame: str) -> _Frame:
    method, _, line = frame.rpartition(":")
    return (method, int(line)) if method and line.isdecimal() else (frame, None)


@dataclass(frozen=True, slots=True)
class Side:
    """A recorded trial: `cost` is what an answer cost in all, in the unit of COSTS."""

    row: Row
    recording: Recording
    cost: float


@dataclass(frozen=True, slots=True)
class Change:
    """What a method itself, without what it calls, costs for each answer on both sides.
    `interval` is that of b - a by the number of samples; None for recordings without such samples.
    It says nothing of other JVMs."""

    method: str
    a: float
    b: float
    interval: tuple[float, float] | None

    @property
    def more(self) -> float:
        """How much more it costs in b; less than 0: how much less."""
        return self.b - self.a


def answers_of(row: Row) -> float:
    """All answers of the window, errors too: an answer that is an error has waited as well."""
    return (row.achieved_rps or 0.0) * (row.window_s or 0.0)


def side_of(row: Row, recording: Recording) -> Side | NoSide:
    """The side, or why it is none."""
    if not recording.whole:
        return "outgrown"
    if not named(recording):
        return "few"
    answers, cost = answers_of(row), row.cpu_server_us
    if recording.kind != CPU:
        unit = 1000 if recording.kind == LOCK else 1
        cost = recording.total / unit / answers if answers else None
    return Side(row, recording, cost) if cost else "cost"


def why_not(a: Side, b: Side) -> Unlike:
    """Why two recordings cannot be compared; empty where they can."""
    if a.recording.kind != b.recording.kind:
        return "kinds"
    return "" if {*a.recording.events} == {*b.recording.events} else "events"


def changes(a: Side, b: Side) -> tuple[Change, ...]:
    """The methods that cost more or less in b, as far as samples show that, the greatest difference
    first. Each of all that cost enough to be told has so much confidence that in 95 % of
    comparisons none is named by the chance of samples (Bonferroni)."""
    shares_a, shares_b = (
        defaultdict(float, {method.method: method.alone for method in hot(side.recording)})
        for side in (a, b)
    )
    least = LEAST * max(a.cost, b.cost)
    family = [
        method
        for method in {**shares_a, **shares_b}
        if max(shares_a[method] * a.cost, shares_b[method] * b.cost) >= least
    ]
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(family))
    sure = []
    for method in family:
        share_a, share_b = shares_a[method], shares_b[method]
        ends = _difference(a, share_a, b, share_b, confidence)
        change = Change(method, share_a * a.cost, share_b * b.cost, ends)
        if abs(change.more) >= least and not (ends and ends[0] <= 0 <= ends[1]):
            sure.append(change)
    return tuple(sorted(sure, key=lambda change: (-abs(change.more), change.method)))


def _difference(
    a: Side, share_a: float, b: Side, share_b: float, confidence: float
) -> tuple[float, float] | None:
    """The interval of the difference follows from those of the two shares (G. Y. Zou, A. Donner,
    Statistics in Medicine 27 (2008) 1693), with what an answer costs in all taken as exact."""
    ends_a = interval(share_a, a.recording, confidence)
    ends_b = interval(share_b, b.recording, confidence)
    if ends_a is None or ends_b is None:
        return None
    cost_a, (low_a, high_a) = share_a * a.cost, (end * a.cost for end in ends_a)
    cost_b, (low_b, high_b) = share_b * b.cost, (end * b.cost for end in ends_b)
    below = math.hypot(cost_b - low_b, high_a - cost_a)
    above = math.hypot(high_b - cost_b, cost_a - low_a)
    return cost_b - cost_a - below, cost_b - cost_a + above
