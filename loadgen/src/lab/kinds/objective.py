"""A service level objective as people write it, and how far a trial is from it."""

import math
import re
from collections.abc import Iterator

from lab.judge.checks import lab_differed, server_failures
from lab.judge.checks.data import window_short
from lab.judge.checks.generator import generator_late, generator_starved
from lab.judge.checks.load import backlog
from lab.judge.checks.state import compiling, server_not_back
from lab.judge.checks.steady import goodput_drift, latency_drift
from lab.judge.predict import MORE, SPARE, rate_with_spare
from lab.judge.slo import judged_ms
from lab.model import Record, Remark, Row, error_share

# The latencies that an objective may limit, from the lowest on.
LATENCIES = ("p50", "p95", "p99", "max")
DEFAULT_ERRORS = 0.01
ALLOWED = (
    "p50, p95, p99 or max < N ms or s, and errors < N %, each once, with commas between them and "
    "at least one latency; several objectives with semicolons between them"
)
_PART = re.compile(
    r"(?P<latency>p50|p95|p99|max)\s*<\s*(?P<time>\d{1,7}(?:\.\d{1,3})?)\s*(?P<unit>ms|s)"
    r"|errors\s*<\s*(?P<errors>\d{1,2}(?:\.\d{1,3})?)\s*%"
)
_MS = {"ms": 1, "s": 1000}
LEAST_CONNECTIONS = 10
CONNECTIONS = "connections of the load"
# No logarithm of a latency is known better than this, nor one without a standard error.
LEAST_ERROR, UNKNOWN_ERROR = 0.02, 0.1
# The ends of a margin lie so many standard errors from it: a uniform distribution between them has
# the same variance.
ENDS = math.sqrt(3)
# With one of these a trial may only be slower than the server is: requests of its warm-up still
# waited, its JVM compiled.
SLOWED = frozenset({backlog.code, compiling.code})
# With this one it may only be quicker than the server would be in a longer window.
CUT = frozenset({window_short.code})
# How late the generator itself was is in each margin.
LATE = frozenset({generator_late.code, generator_starved.code})
# What these say differs between the halves of a window, and whether it rises as a queue grows.
DRIFTING = {goodput_drift.code: ("rps", False), latency_drift.code: ("ms", True)}
# The least and the most that a margin may be.
Ends = tuple[float, float]
MISSED: Ends = (0.0, math.inf)
ANYTHING: Ends = (-math.inf, math.inf)


class Objective(Record):
    """What a load must keep: latencies in ms (None: not limited), counted from when a request was
    due, of answers without an error and of requests without any (`slo`), and the share of HTTP
    errors, socket errors and timeouts among all requests that ended."""

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
        every = ((name, getattr(self, f"{name}_ms")) for name in LATENCIES)
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
    def text(self) -> str:
        """For people. The errors that are allowed by default go without saying."""
        parts = [f"{name} ≤ {limit:g} ms" for name, limit in self.limits]
        if self.error_share != DEFAULT_ERRORS:
            parts.append(f"errors ≤ {100 * self.error_share:g} %")
        return ", ".join(parts)


def parse(text: str) -> tuple[Objective, ...]:
    """Objectives as people write them. Raises ValueError, whose message begins with the text."""
    try:
        objectives = tuple(map(_objective, text.split(";")))
    except ValueError:
        objectives = ()
    if not objectives or len({*objectives}) < len(objectives):
        raise ValueError(f"{text} is not allowed; allowed: {ALLOWED}")
    return objectives


def _objective(text: str) -> Objective:
    limits: dict[str, float] = {}
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        name = match and ("error_share" if match["errors"] else f"{match['latency']}_ms")
        if match is None or name in limits:
            raise ValueError
        value = float(match["errors"] or match["time"])
        limits[str(name)] = value / 100 if match["errors"] else value * _MS[match["unit"]]
    return Objective(**limits)


def margin(objective: Objective, row: Row) -> Ends | None:
    """How far a trial is from the objective: the ends of the logarithm of what was measured over
    its limit, of the limit that is exceeded most. Above 0 it is missed. None where the trial says
    nothing of the server.

    What was slower than the server is has no lower end: a queue of the warm-up that drained, a cold
    JVM, others on its CPUs. What grew until the end of the window has no upper end: a backlog, and
    a load that was not answered in full. A burst of slow answers, wherever it falls, is neither.
    """
    if lab_differed(row.reasons) or server_not_back.code in row.codes:
        return None
    if server_failures(row.reasons):
        return MISSED
    needed = objective.connections(row.offered_rps or 0)
    if row.bottleneck == CONNECTIONS and row.concurrency < needed:
        return None
    if row.codes - SLOWED - CUT - LATE - DRIFTING.keys():
        return None
    grows = [_grew(reason) for reason in row.reasons if reason.code in DRIFTING]
    grew = bool(row.overloaded or row.codes & CUT) or any(grows)
    slowed = bool(row.codes & SLOWED) or row.others_cpu is not None or not all(grows)
    low, high = _ends(objective, row)
    if _unanswered_s(row) > objective.longest_s:
        low = max(low, 0.0)
    ends = (-math.inf if slowed else low), (math.inf if grew else high)
    return None if ends == ANYTHING else ends


def gave_way(row: Row) -> str | None:
    """The code of why an invalid trial shows that the server did not hold its load; None where it
    does not. A server that was away before the load was sent shows nothing of it."""
    if server_not_back.code in row.codes or lab_differed(row.reasons):
        return None
    return next((reason.code for reason in server_failures(row.reasons)), None)


def _ends(objective: Objective, row: Row) -> Ends:
    each = [*_latencies(objective, row)]
    share, allowed = error_share(row, row.offered_rps), objective.error_share
    if share and not allowed:
        each.append(MISSED)
    elif share:
        # As many errors as they are scatter by their root, where each comes by itself.
        errors = share * (row.offered_rps or row.achieved_rps or 0) * (row.window_s or 0)
        error = ENDS * max(LEAST_ERROR, 1 / math.sqrt(max(errors, 1.0)))
        each.append((math.log(share / allowed) - error, math.log(share / allowed) + error))
    lows, highs = zip(*each, strict=True)
    return max(lows), max(highs)


def _latencies(objective: Objective, row: Row) -> Iterator[Ends]:
    """The generator itself may have been late by its own p99, and the slowest request by its own
    maximum: it is not known how late the requests of a percentile were."""
    for name, limit in objective.limits:
        took_ms = judged_ms(row, name)
        if took_ms == math.inf:
            yield MISSED
        elif took_ms is None:
            # There were too few answers for it: those of lower percentiles are quicker.
            lower = (judged_ms(row, known) for known in LATENCIES[: LATENCIES.index(name)])
            least, most = max(filter(None, lower), default=0.0), judged_ms(row, "max")
            yield _log(least / limit), math.inf if most is None else _log(most / limit)
        else:
            own_error = getattr(row, f"{name}_error", None)
            error = ENDS * max(LEAST_ERROR, UNKNOWN_ERROR if own_error is None else own_error)
            late_ms = (row.late_max_ms if name == "max" else row.late_p99_ms) or 0.0
            yield _log((took_ms - late_ms) / limit) - error, _log(took_ms / limit) + error


def _unanswered_s(row: Row) -> float:
    """How many seconds of an open load were not answered in the window. A load that meets a limit
    has at most as many in flight."""
    if not row.overloaded or row.achieved_rps is None or not row.offered_rps:
        return 0.0
    return (1 - row.achieved_rps / row.offered_rps) * (row.window_s or 0.0)


def _log(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else -math.inf


def _grew(reason: Remark) -> bool:
    """True if a queue grew in the window: else one of the warm-up drained."""
    name, up = DRIFTING[reason.code]
    rose = float(reason.values[f"second_{name}"]) > float(reason.values[f"first_{name}"])
    return rose == up
