"""A service level objective as people write it (p99<500ms,errors<1%), and if it was kept."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lab.experiments.reading.rules import TEXT, Rule
from lab.judge.checks import lab_differed, server_failures
from lab.judge.checks.data import window_short
from lab.judge.checks.load import BOUND_SLACK, backlog
from lab.judge.checks.state import compiling, server_not_back
from lab.judge.checks.steady import goodput_drift, latency_drift
from lab.judge.predict import MORE, SPARE, rate_with_spare
from lab.judge.quantities import allowed_ms
from lab.judge.slo import judged_ms, lost_in
from lab.model import STRONG, Remark, Row, error_share, goodput, needed_samples
from lab.report.remarks import FAILURES, text, text_of

# The latencies that an objective may limit, and the share of the answers that each leaves above it.
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": None}
DEFAULT_ERRORS = 0.01
ALLOWED = (
    "p50, p95, p99 or max < N ms or s, and errors < N %, separated by commas, with at least one "
    "latency"
)
_PART = re.compile(
    r"(?P<latency>p50|p95|p99|max)\s*<\s*(?P<time>\d{1,7}(?:\.\d{1,3})?)\s*(?P<unit>ms|s)"
    r"|errors\s*<\s*(?P<errors>\d{1,2}(?:\.\d{1,3})?)\s*%"
)
LEAST_CONNECTIONS = 10
CONNECTIONS = "connections of the load"
# They bind however busy the CPUs are.
OWN_LIMITS = ("worker pool", "downstream connections")
Outcome = Literal["held", "broke", "untold"]


@dataclass(frozen=True, slots=True)
class Objective:
    """What a load must keep to count as held: latencies in ms (None: not limited), counted from
    when a request was due, of answers without an error and of requests without any (`slo`), and the
    share of HTTP errors, socket errors and timeouts among all requests that ended."""

    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    error_share: float = DEFAULT_ERRORS

    def __post_init__(self) -> None:
        limits = [limit for _, limit in self.limits]
        if not limits or min(limits) <= 0 or not 0 <= self.error_share < 1:
            raise ValueError("a latency above 0, and error_share from 0 to below 1")

    @property
    def limits(self) -> tuple[tuple[str, float], ...]:
        """The latencies that are limited, by name, in ms."""
        every = ((name, getattr(self, f"{name}_ms")) for name in PERCENTILES)
        return tuple((name, limit) for name, limit in every if limit is not None)

    @property
    def longest_s(self) -> float:
        return max(limit for _, limit in self.limits) / 1000

    def connections(self, rate: float) -> int:
        """The connections that a rate takes, so that they do not limit it, also where requests come
        at random: then the number that is busy varies as a Poisson distribution."""
        busy = rate * self.longest_s
        return max(LEAST_CONNECTIONS, math.ceil(max(MORE * busy, busy + SPARE * math.sqrt(busy))))

    def rate(self, connections: int) -> int:
        """The highest rate that takes at most so many connections, but at least 1."""
        return rate_with_spare(connections, self.longest_s)

    @property
    def samples(self) -> int:
        """How many answers tell all its percentiles."""
        shares = (PERCENTILES[name] for name, _ in self.limits)
        return max(needed_samples(share or 0.95) for share in shares)

    @property
    def text(self) -> str:
        """For people. The errors that are allowed by default go without saying."""
        parts = [f"{name} ≤ {limit:g} ms" for name, limit in self.limits]
        if self.error_share != DEFAULT_ERRORS:
            parts.append(f"errors ≤ {100 * self.error_share:g} %")
        return ", ".join(parts)


def parse(text: str) -> Objective:
    """The rule of the word. Raises ValueError as the rules of `rules` do."""
    found: dict[str, float] = {}
    for part in text.split(","):
        word = _PART.fullmatch(part.strip())
        if word is None:
            raise ValueError(f"{text}: '{part.strip()}' is not allowed; allowed: {ALLOWED}")
        if word["errors"] is not None:
            name, value = "error_share", float(word["errors"]) / 100
        else:
            name = f"{word['latency']}_ms"
            value = float(word["time"]) * (1000 if word["unit"] == "s" else 1)
        if name in found:
            raise ValueError(f"{text} limits the same twice; allowed: {ALLOWED}")
        found[name] = value
    try:
        return Objective(**found)
    except ValueError:
        raise ValueError(f"{text} limits no latency above 0; allowed: {ALLOWED}") from None


RULE = Rule(TEXT, parse)


def judged(objective: Objective, row: Row, *, after_break: bool = False) -> tuple[Outcome, str]:
    """Whether a trial kept the objective, and why not, with the numbers.

    An overloaded trial is valid and broke. An invalid one says nothing of the server, unless it
    shows that the server gave way, that a backlog grew in its window, or that the objective was
    kept though one from the warm-up drained in it, or the JVM was cold. Nor does one that was
    limited by connections of which its rate takes more, or that others may have broken
    (`by_others`), or the generator (`by_generator`). `after_break`: as of `gave_way`.
    """
    outcome, why = _judged(objective, row, after_break=after_break)
    if outcome == "broke" and (other := by_others(row) or by_generator(objective, row)):
        return "untold", f"{other} ({why})"
    return outcome, why


def by_others(row: Row) -> str | None:
    """Why it is no fault of the server that a trial was not held: others used CPUs that the lab
    lacked. None where they did not, and where a pool gave all that its size allows, which shows by
    itself what the limit was (`_at_its_bound`)."""
    if row.others_cpu is None:
        return None
    if row.bottleneck in OWN_LIMITS and row.strength == STRONG and _at_its_bound(row):
        return None
    return f"work outside the lab used {row.others_cpu:.0%} of the CPUs"


def by_generator(objective: Objective, row: Row) -> str | None:
    """Why it may be no fault of the server that a valid trial was too slow: without the time by
    which the generator itself sent late it may have kept the objective. Percentiles do not add up,
    so nobody can tell. None where it was not late by more than the gates allow. They ask for the
    mean and the p95; a stall of half a second in 15 s is in neither, and is the p99."""
    if not row.valid or row.overloaded or error_share(row, row.offered_rps) > objective.error_share:
        return None
    late, own = [], {"p99": row.late_p99_ms, "max": row.late_max_ms}
    for name, limit in objective.limits:
        took_ms, own_ms = judged_ms(row, name), own.get(name)
        if took_ms is not None and took_ms <= limit:
            continue
        if took_ms is None or own_ms is None or own_ms <= allowed_ms(took_ms):
            return None
        if took_ms - own_ms > limit:
            return None
        late.append(f"{name} by {own_ms:,.0f} ms")
    return f"the generator itself sent late, {' and '.join(late)}" if late else None


def _at_its_bound(row: Row) -> bool:
    """Whether the load asked for more than the bound that was predicted, or a closed one got that
    bound. With less a pool is full only as each request held its worker for longer, and others may
    be why. Where the rate offered is the bound (no more is answered than is offered), or none was
    predicted, nobody can tell."""
    if row.predicted_rps is None:
        return False
    if row.offered_rps is None:
        return (goodput(row) or 0.0) >= row.predicted_rps * (1 - BOUND_SLACK)
    return row.offered_rps > row.predicted_rps


def _judged(objective: Objective, row: Row, *, after_break: bool) -> tuple[Outcome, str]:
    gone = None if row.valid else gave_way(row, after_miss=after_break)
    if gone:
        return "broke", gone
    whys = [*_problems(objective, row)] if row.valid else [_backlog(objective, row)]
    why = " and ".join(filter(None, whys))
    takes = objective.connections(row.offered_rps or 0)
    if why and row.concurrency < takes and row.bottleneck == CONNECTIONS:
        return "untold", f"{CONNECTIONS}, {row.concurrency:,} of the {takes:,} that it takes"
    if why:
        return "broke", why
    if not row.valid:
        return ("held", "") if _held_though_slowed(objective, row) else ("untold", text_of(row))
    unknown = [name for name, limit in objective.limits if _unknown(row, name, limit)]
    if unknown:
        return "untold", f"not known: {', '.join(unknown)}"
    return "held", ""


def gave_way(row: Row, *, after_miss: bool) -> str | None:
    """The reason why an invalid trial shows that the server did not hold the load, else None. A
    server that was away before the load was sent shows that of the trial before (`after_miss`: it
    had this load, and did not hold it), and else nothing."""
    if server_not_back.code in row.codes and not after_miss:
        return None
    failures = () if lab_differed(row.reasons) else server_failures(row.reasons)
    return FAILURES[failures[0].code] if failures else None


def ms_text(ms: float, row: Row) -> str:
    if ms == math.inf:
        return f"is one of the {lost_in(row):,.0f} requests without an answer"
    return f"{ms:,.0f} ms"


def _problems(objective: Objective, row: Row) -> Iterator[str]:
    if row.overloaded:
        yield f"overloaded, {goodput(row) or 0:,.0f} of {row.offered_rps or 0:,} req/s"
    yield from _too_slow(objective, row)
    share = error_share(row, row.offered_rps)
    if share > objective.error_share:
        yield f"{share:.2%} errors, above {objective.error_share:.2%}"


def _too_slow(objective: Objective, row: Row) -> Iterator[str]:
    """The latencies above the objective. Where there were too few answers for one, the highest
    percentile below it that is known tells, if that is above its limit."""
    names = list(PERCENTILES)
    for name, limit in objective.limits:
        below = reversed(names[: names.index(name) + 1])
        known = ((one, judged_ms(row, one)) for one in below)
        told = next((one for one in known if one[1] is not None), None)
        if told is not None and told[1] is not None and told[1] > limit:
            yield f"{told[0]} {ms_text(told[1], row)}"


def _unknown(row: Row, name: str, limit: float) -> bool:
    """Whether nobody knows that latency: there were too few answers, and not all were in time, or
    some requests had none."""
    most = judged_ms(row, "max")
    return judged_ms(row, name) is None and (most is None or most > limit)


def _backlog(objective: Objective, row: Row) -> str | None:
    """The sign that requests queued more and more in a trial that is invalid for nothing else: in
    an open load, latency that rises or goodput that falls within the window, or latencies above the
    objective that are too long for the window. Else None."""
    if not all(reason.code == window_short.code or _grew(reason) for reason in row.reasons):
        return None
    grew = [text(reason) for reason in row.reasons if _grew(reason)]
    return " and ".join(grew or _too_slow(objective, row)) or None


def _grew(reason: Remark) -> bool:
    """Whether it says that a queue grew in the window."""
    values = reason.values
    if reason.code == goodput_drift.code:
        return float(values["second_rps"]) < float(values["first_rps"])
    if reason.code == latency_drift.code:
        return float(values["second_ms"]) > float(values["first_ms"])
    return False


def _held_though_slowed(objective: Objective, row: Row) -> bool:
    """Whether a trial kept the objective that is invalid only for what slowed it: requests of its
    warm-up still waited when its window began, or its JVM still compiled. Then its latencies are
    too high, if anything."""
    slowing = {latency_drift.code, backlog.code, compiling.code}
    slowed = row.codes <= slowing and not any(map(_grew, row.reasons))
    limits = [judged_ms(row, name) for name, _ in objective.limits]
    return slowed and None not in limits and not list(_problems(objective, row))
