"""What happened in a trial, apart from the engine's own output, and what was read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from lab.model.experiment import Json, TrialPlan
from lab.model.verdict import Bound, Demand


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
class Exported:
    """What the JMX exporter of a service that is not the lab's tells of its JVM.

    `pool_size`: worker threads of its one pool; None where it tells of none, or of several.
    `scraped`: Prometheus has it in its list, so there are series of it."""

    start_time_ms: int
    jdk: str | None
    max_heap_bytes: int | None
    pool_size: int | None
    scraped: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was read back from the lab about one server, before or after its trial.

    `identity` None: a service that is not the lab's (foreign), which has no management port; its
    only setting is its `url`, and `exported` what a JMX exporter tells, None without one.
    """

    identity: Identity | None
    settings: Mapping[str, Json]
    toxics: ToxicState
    downstream_delay_ms: float
    exported: Exported | None = None

    @property
    def foreign(self) -> bool:
        """Whether it is a service that is not the lab's."""
        return self.identity is None

    @property
    def own_identity(self) -> Identity:
        """The identity of a server of the lab. Raises ValueError for a foreign service."""
        if self.identity is None:
            raise ValueError("a service that is not the lab's has no identity")
        return self.identity

    @property
    def jvm_started_ms(self) -> int | None:
        """The start time of its JVM, ms since 1970; None where nothing tells."""
        if self.identity is not None:
            return self.identity.start_time_ms
        return self.exported.start_time_ms if self.exported else None

    @property
    def scraped(self) -> bool:
        """Whether Prometheus reads the JVM of a foreign service."""
        return self.exported is not None and self.exported.scraped

    @property
    def cpus(self) -> int | None:
        """The CPUs its JVM sees; None of a foreign service."""
        return self.identity.cpus if self.identity else None

    @property
    def cpu_quota(self) -> float | None:
        """The CPU limit of the server's container, in CPUs; None without one, or where nothing
        tells. A JVM rounds it up to whole CPUs."""
        value = self.settings.get("cpu_quota")
        return float(value) if isinstance(value, int | float) and value > 0 else None

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

    `window_…` covers the measured window only; the shares of the host too. `window_wait_s` is
    how long the engine's threads were ready to run and had no CPU, summed, in
    `window_slices` turns (/proc/<pid>/task/*/schedstat); `window_throttled_s` how long the
    CPU quota of its container stopped it (cgroup cpu.stat).
    """

    run_cpu_s: float
    window_cpu_s: float | None
    host_busy: float | None
    host_steal: float | None
    window_wait_s: float | None = None
    window_slices: int | None = None
    window_throttled_s: float | None = None


@dataclass(frozen=True, slots=True)
class WarmCycle:
    """One cycle of warm-up load, as the server itself saw it (of a foreign service: as the engine
    did): it ended `at_s` seconds after the
    load began, and lasted `length_s`; `jit_share` is JIT compile time per second (can exceed 1,
    as several compiler threads work at once)."""

    at_s: float
    length_s: float
    rps: float
    p50_ms: float | None
    jit_share: float


@dataclass(frozen=True, slots=True)
class Warmth:
    """Whether the JVM was proven warm on a route before a trial, with the whole curve.

    `provable` False: nothing tells (a foreign service without a JMX exporter). It was loaded for
    a fixed time, which proves nothing; `problem` says why.
    """

    steady: bool
    cycles: tuple[WarmCycle, ...]
    problem: str | None = None
    provable: bool = True

    @property
    def cold(self) -> bool:
        """It should have been proven warm and was not."""
        return self.provable and not self.steady


@dataclass(frozen=True, slots=True)
class Peak:
    """A spike as it really was, in seconds from the start of the measured run."""

    started_s: float
    ended_s: float


@dataclass(frozen=True, slots=True)
class ScriptedToxic:
    """A step of the script of toxics as it really was, in seconds from the start of the
    measured run: when it was begun, and when the toxics read back as wanted. `clear`: nothing
    is left that the script brought. `problem`: why it was not done, or what else was found
    changed."""

    started_s: float
    ended_s: float
    change: str
    clear: bool
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Unwatched:
    """A time of the load in which nobody watched the toxics: the agent was away, or Toxiproxy did
    not answer it."""

    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """Everything known of a trial that is not in the engine's own output.

    `toxic_changes` are those seen while the load ran, also those undone before its end, but
    not those of the plan's own script: they are in `script`; `unwatched` is when nobody could
    have seen any, beyond the second between two looks;
    `unequal` is why the servers it is compared with had other limits, if they had. `jit_share`
    is JIT compile time per second of the measured window. `bounds` are those predicted before
    the trial, the tightest first, `expected_p95_ms` what follows from the tightest, and `demand`
    the light load that some of them come from.
    `starts` counts how often the engine was started until its start was a good one. `problem` is
    why what the engine left is not the output of a whole run. What is None is not known.
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
    warmth: Warmth | None = None
    jit_share: float | None = None
    peaks: tuple[Peak, ...] = ()
    starts: int = 1
    script: tuple[ScriptedToxic, ...] = ()
    bounds: tuple[Bound, ...] = ()
    demand: Demand | None = None
    expected_p95_ms: float | None = None
    unwatched: tuple[Unwatched, ...] = ()
    problem: str | None = None

    def window(self, window_s: float) -> tuple[datetime, datetime]:
        """Start and end of the measured window."""
        start = self.run_started_at + timedelta(seconds=self.window_offset_s)
        return start, start + timedelta(seconds=window_s)
