"""The methods that a recording saw most: each with its share, alone and with what it calls."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

from lab.judge.intervals import CONFIDENCE
from lab.model import CPU, LOCK, Recording

# Below, nothing is named: a share of one half of so many samples is known to ± 10 points.
LEAST_SAMPLES = 100
# A method that hands so much of its share on to one other is only the way to that one.
NEARLY_ALL = 0.95
_OF_THE_JDK = ("java.", "javax.", "jdk.", "sun.", "com.sun.")
# A method and a line of it.
_Frame = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Hot:
    """A method's shares of a recording's weight, 0..1: `alone` where it was the innermost frame,
    `total` where it was in the stack at all. `line` is the line with the largest of its `alone`,
    or of its `total` where it was never innermost, and `line_share` that line's share of the whole
    recording. None: no line is known."""

    method: str
    alone: float
    total: float
    line: int | None
    line_share: float


def named(recording: Recording) -> bool:
    """Whether there is enough to name a method by. Waits for locks are all recorded that take
    long enough, so any number of them is the whole truth about these."""
    return recording.total > 0 and (recording.kind == LOCK or recording.samples >= LEAST_SAMPLES)


def hot(recording: Recording) -> tuple[Hot, ...]:
    """Every method, the largest share alone first; one that calls itself counts once a stack."""
    alone: Counter[_Frame] = Counter()
    total: Counter[_Frame] = Counter()
    methods: Counter[str] = Counter()
    for stack, weight in recording.stacks.items():
        frames = [parted(frame) for frame in stack.split(";")]
        alone[frames[-1]] += weight
        for frame in set(frames):
            total[frame] += weight
        for method in {method for method, _ in frames}:
            methods[method] += weight
    whole = recording.total or 1
    own, of_alone, of_total = Counter[str](), _hottest(alone), _hottest(total)
    for (method, _), weight in alone.items():
        own[method] += weight

    def of(method: str) -> Hot:
        line, weight = of_alone.get(method) or of_total[method]
        return Hot(method, own[method] / whole, methods[method] / whole, line, weight / whole)

    found = (of(method) for method in methods if not method.startswith("["))
    return tuple(sorted(found, key=lambda one: (-one.alone, -one.total, one.method)))


def _hottest(of: Mapping[_Frame, int]) -> dict[str, tuple[int | None, int]]:
    """The line of each method that weighs most, and its weight; of equal ones the first."""
    found: dict[str, tuple[int | None, int]] = {}
    for (method, line), weight in sorted(of.items(), key=lambda one: (-one[1], one[0][1] or 0)):
        found.setdefault(method, (line, weight))
    return found


def callers(recording: Recording) -> list[Hot]:
    """The methods outside the JDK by what they take with all that they call, the largest first.
    Without those that call nothing, and those through which nearly all goes to one other such
    method: that one tells more."""
    through: Counter[tuple[str, str]] = Counter()
    for stack, weight in recording.stacks.items():
        methods = dict.fromkeys(parted(frame)[0] for frame in stack.split(";"))
        for edge in pairwise(method for method in methods if _is_own(method)):
            through[edge] += weight
    most: dict[str, int] = {}
    for (caller, _), weight in through.items():
        most[caller] = max(weight, most.get(caller, 0))
    whole = recording.total or 1
    own = [
        one
        for one in hot(recording)
        if _is_own(one.method)
        and one.alone < one.total
        and most.get(one.method, 0) / whole < NEARLY_ALL * one.total
    ]
    return sorted(own, key=lambda one: (-one.total, one.method))


def _is_own(method: str) -> bool:
    """Whether it is code, and not the JDK's."""
    return not method.startswith(("[", *_OF_THE_JDK))


def waits(recording: Recording) -> dict[str, float]:
    """Of a recording of locks: the share of each kind of wait (monitor, lock, pinned)."""
    found: Counter[str] = Counter()
    for stack, weight in recording.stacks.items():
        found[stack.partition(";")[0].strip("[]")] += weight
    return {name: weight / (recording.total or 1) for name, weight in found.most_common()}


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


def parted(frame: str) -> _Frame:
    method, _, line = frame.rpartition(":")
    return (method, int(line)) if method and line.isdecimal() else (frame, None)
