"""The lab's vocabulary: frozen dataclasses that validate themselves. No I/O.

Units are in the names: `_rps` requests per second, `_ms` milliseconds, `_s` seconds.
`None` always means "cannot be told", never zero. Times are aware and in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

Json: TypeAlias = (
    "bool | int | float | str | list[Json] | tuple[Json, ...] | Mapping[str, Json] | None"
)
Mode = Literal["open", "closed"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Experiment:
    """What to measure: every combination of concurrency, mode and server is one trial.

    `rate_rps` None means auto: a share of the predicted bound, the same for every server.
    `warmup_s` None means what the engine needs. `words` are kept as the user gave them.
    """

    name: str
    servers: tuple[str, ...]
    route: str
    concurrencies: tuple[int, ...]
    modes: tuple[Mode, ...]
    rate_rps: int | None
    duration_s: int
    warmup_s: int | None
    engine: str | None
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("servers", "concurrencies", "modes"):
            values = getattr(self, name)
            if not values or len(set(values)) != len(values):
                raise ValueError(f"{name} must be given, each once: {values}")
        if min(self.concurrencies) < 1 or self.duration_s < 1:
            raise ValueError("concurrency and duration start at 1")

    @property
    def trials(self) -> int:
        """How many trials that makes."""
        return len(self.servers) * len(self.concurrencies) * len(self.modes)


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """One trial as it will be run: one server, one load, one engine.

    open: `offered_rps` requests per second in all. closed: `offered_rps` is None, every
    connection sends again as soon as it is answered.
    """

    trial: str
    server: str
    url: str
    route: str
    engine: str
    mode: Mode
    concurrency: int
    offered_rps: int | None
    predicted_rps: float | None
    duration_s: int
    warmup_s: int | None
    cores: int

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode is one of {', '.join(MODES)}, not {self.mode}")
        if (self.mode == "open") != (self.offered_rps is not None):
            raise ValueError("an open trial offers a rate, a closed one does not")
        if self.concurrency < 1 or self.duration_s < 1 or self.cores < 1:
            raise ValueError("concurrency, duration and cores start at 1")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who answers on a server's management port. `start_time_ms` changes with every JVM."""

    model: str
    version: str
    jdk: str
    pid: int
    start_time_ms: int
    cpus: int
    max_heap_bytes: int
    gc: tuple[str, ...]
    jvm_flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToxicState:
    """The toxics in force at one moment, as far as a trial depends on them.

    `in_force` names each with its values; `added_latency_ms` is what they add to the mean
    round trip; `unpredicted` names those whose effect no bound covers (a proxy that is down,
    lost or cut answers, bandwidth).
    """

    in_force: tuple[str, ...] = ()
    added_latency_ms: float = 0.0
    unpredicted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was read back from the lab about one server, before or after its trial."""

    identity: Identity
    settings: Mapping[str, Json]
    toxics: ToxicState
    downstream_delay_ms: float

    def setting(self, name: str) -> int | None:
        """A numeric setting; None where this model has none, or none of that name."""
        value = self.settings.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class Fairness:
    """What the servers of one comparison have in common, by name of setting or of identity.

    `own` are the settings that make the models what they are (None: the model has no such
    thing); `unequal` are limits that must be the same and are not. Both by name, then server.
    """

    equal: Mapping[str, Json]
    own: Mapping[str, Mapping[str, Json]]
    unequal: Mapping[str, Mapping[str, Json]]


@dataclass(frozen=True, slots=True)
class Usage:
    """What the engine and the host used of the CPU. Seconds of CPU, and shares 0..1.

    `window_cpu_s` covers the measured window only; the shares of the host too.
    """

    run_cpu_s: float
    window_cpu_s: float | None
    host_busy: float | None
    host_steal: float | None


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """Everything known of a trial that is not in the engine's own output.

    `toxic_changes` are those seen while the load ran, also those undone before its end;
    `unequal` is why the servers it is compared with had other limits, if they had.
    """

    plan: TrialPlan
    engine_version: str
    argv: tuple[str, ...]
    status: int
    run_started_at: datetime
    run_s: float
    window_offset_s: float
    before: Snapshot
    after: Snapshot | None
    after_problem: str | None
    usage: Usage
    toxic_changes: tuple[str, ...] = ()
    unequal: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def window(self, window_s: float) -> tuple[datetime, datetime]:
        """Start and end of the measured window."""
        start = self.run_started_at + timedelta(seconds=self.window_offset_s)
        return start, start + timedelta(seconds=window_s)


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles in milliseconds; None where there were too few samples for one."""

    mean_ms: float
    p50_ms: float
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float

    def __post_init__(self) -> None:
        known = [v for v in (self.p50_ms, self.p95_ms, self.p99_ms, self.max_ms) if v is not None]
        # Engines round a percentile up to the end of its bucket, the maximum not: 0.1 % slack.
        if any(a > b * 1.002 + 0.002 for a, b in pairwise(known)):
            raise ValueError(f"percentiles must not fall: {known}")
        if min(self.mean_ms, *known) < 0:
            raise ValueError("a latency is never negative")


@dataclass(frozen=True, slots=True)
class Counts:
    """Accounting of requests: sent = ok + http_errors + socket_errors + timeouts + unfinished.

    `accounted_s` is how many seconds of load the counts cover (engines count their whole
    run, warm-up included).
    """

    sent: int | None
    ok: int | None
    http_errors: int | None
    socket_errors: int | None
    timeouts: int | None
    unfinished: int | None
    accounted_s: float | None

    def __post_init__(self) -> None:
        parts = (self.ok, self.http_errors, self.socket_errors, self.timeouts, self.unfinished)
        known = [part for part in parts if part is not None]
        if any(part < 0 for part in known):
            raise ValueError(f"a count is never negative: {self}")
        if self.sent is not None and (len(known) < len(parts) or self.sent != sum(known)):
            raise ValueError(f"sent must be the sum of its five parts: {self}")


@dataclass(frozen=True, slots=True)
class Reading:
    """What an engine's raw output says about its measured window.

    Latencies cover every answer in the window, HTTP errors included, since engines do.
    `corrected` counts from when a request should have been sent (open only); `raw` from when
    it was sent. `lag_ms` is how late the generator itself was on average, where it can be told.
    `pause_s` is the longest time in which the generator sends nothing by its own schedule: a
    window's count may be off by that much of its rate.
    `problems` make the trial invalid, `notes` only explain.
    """

    window_s: float
    samples: int
    achieved_rps: float
    corrected: Latency | None
    raw: Latency | None
    counts: Counts
    lag_ms: float | None = None
    pause_s: float = 0.0
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.window_s <= 0 or self.samples < 0:
            raise ValueError("a window is longer than zero, a count never negative")


@dataclass(frozen=True, slots=True)
class Measurement:
    """A trial with its reading; `reading` None means its raw data could not be read."""

    record: TrialRecord
    reading: Reading | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a measurement may be believed; notes say what a reader must know of it."""

    reasons: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Nothing speaks against the measurement."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Row:
    """One row of trials.csv; the fields are its columns, in this order.

    * offered_rps: what was offered (open); predicted_rps: the tightest bound before the run
    * achieved_rps: answers per second in the measured window, HTTP errors included
    * p50_ms … max_ms: from when a request was due (open); raw_…: from when it was sent
    * sent = ok + http_errors + socket_errors + timeouts + unfinished, of accounted_s seconds:
      engines count their whole run, warm-up included
    * http_errors: answers above 399; socket_errors: connections refused, reset or closed
    * valid, invalid_reasons (separated by "; "); bottleneck, confidence: empty until judged
    * started_at, ended_at, window_s: the measured window
    """

    run: str
    trial: str
    server: str
    route: str
    engine: str
    mode: str
    concurrency: int
    offered_rps: int | None
    predicted_rps: float | None
    achieved_rps: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    raw_p50_ms: float | None
    raw_p95_ms: float | None
    raw_p99_ms: float | None
    raw_max_ms: float | None
    sent: int | None
    ok: int | None
    http_errors: int | None
    socket_errors: int | None
    timeouts: int | None
    unfinished: int | None
    valid: bool
    invalid_reasons: str
    bottleneck: str | None
    confidence: float | None
    started_at: datetime | None
    ended_at: datetime | None
    window_s: float | None
    accounted_s: float | None

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The column names."""
        return tuple(field.name for field in fields(cls))
