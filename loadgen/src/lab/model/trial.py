"""The record of a trial: everything known about it, apart from the engine's own output."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from lab.model.cpu_sets import cpus_of
from lab.model.experiment import Json, TrialPlan
from lab.model.knobs import DIRECT
from lab.model.record import Record
from lab.model.ref import Ref
from lab.model.remark import Remark
from lab.model.verdict import Bound, Demand


class Identity(Record, forbid_unknown_fields=False):
    """The JVM that answers on a server's management port. Each has its own `start_time_ms`."""

    model: str
    version: str
    jdk: str
    pid: int
    start_time_ms: int
    cpus: int
    max_heap_bytes: int
    gc: tuple[str, ...]
    jvm_flags: tuple[str, ...]


class ToxicState(Record):
    """The toxics in force at one moment, as far as a trial depends on them.

    `in_force` names each toxic with its values. `added_latency_ms` is how much they add to the mean
    round trip, and to each one unless it is `jittered`. `unpredicted` names the toxics whose effect
    no bound covers (a proxy that is down, lost or cut answers, bandwidth).
    """

    in_force: tuple[str, ...] = ()
    added_latency_ms: float = 0.0
    unpredicted: tuple[str, ...] = ()
    jittered: bool = False


class Spread(Record, forbid_unknown_fields=False):
    """How the downstream's delay spreads, which it draws for each call anew: as it tells itself
    (go/downstream/service/delay.go). The mean is `Snapshot.downstream_delay_ms`.

    `words` set it, as DOWNSTREAM_DELAY_MS takes them; `sd_ms` is the standard deviation."""

    words: str
    sd_ms: float
    median_ms: float
    p95_ms: float
    p99_ms: float
    longest_ms: float


class Exported(Record):
    """The JVM of a service that is not the lab's, as its JMX exporter tells.

    `pool_size`: worker threads of its one pool; None where it tells of no pool, or of several.
    `scraped`: Prometheus has the exporter in its list, so there are series of it. `lock_watch_ms`
    is what the lab's recorder in that JVM was told, None without a recorder; `carriers` are its
    carrier threads, None where it does not tell of them.
    """

    start_time_ms: int
    jdk: str | None
    max_heap_bytes: int | None
    pool_size: int | None
    scraped: bool
    lock_watch_ms: int | None = None
    carriers: int | None = None


# Between which parts of a lab on several machines a way is.
TO_SERVER = "generator and server"
TO_CALLED = "server and downstream"


class Way(Record):
    """The network `between` two parts of the lab (TO_SERVER, TO_CALLED): one round trip in ms, and
    the largest packet it takes, in bytes. None: nobody told."""

    between: str
    ms: float | None = None
    mtu: int | None = None


class Snapshot(Record):
    """The state of one server as it was read back, before or after its trial. Of one that is
    `direct` there are no toxics: none reaches it.

    `identity` None: a service that is not the lab's (foreign), which has no management port. Its
    only setting is its `url`. `exported` is what its JMX exporter tells, None without one.

    `downstream_delay_ms` is the delay of every call, or its mean where the delay has a `spread`.
    `ways` are those between the machines of a lab on several; they differ a little each time.
    """

    identity: Identity | None
    settings: Mapping[str, Json]
    toxics: ToxicState
    downstream_delay_ms: float
    exported: Exported | None = None
    spread: Spread | None = None
    ways: tuple[Way, ...] = ()

    def way_ms(self, between: str) -> float:
        """One round trip between two parts of the lab; 0.0 on one machine or if unknown."""
        return sum(way.ms or 0.0 for way in self.ways if way.between == between)

    @property
    def foreign(self) -> bool:
        """Whether this is a service that is not the lab's."""
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
        """The number of CPUs its JVM sees; None for a foreign service."""
        return self.identity.cpus if self.identity else None

    @property
    def jdk(self) -> str | None:
        """The version of its JDK; None where nothing tells."""
        if self.identity is not None:
            return self.identity.jdk
        return self.exported.jdk if self.exported else None

    @property
    def pool_size(self) -> int | None:
        """Worker threads of its pool; None where it has no pool, or nothing tells."""
        return self.exported.pool_size if self.exported else self.setting("pool_size")

    @property
    def carriers(self) -> int | None:
        """Carrier threads of its virtual threads; None where nothing tells."""
        if self.exported:
            return self.exported.carriers
        return self.setting("virtual_thread_parallelism")

    @property
    def lock_watch_ms(self) -> int | None:
        """How long a wait for a lock must last to be counted, 0 where none is; None where its JVM
        has nothing that could count."""
        return self.exported.lock_watch_ms if self.exported else self.setting("lock_watch_ms")

    @property
    def cpu_set(self) -> int | None:
        """How many CPUs are in the CPU set of the server's container; None where nothing tells."""
        value = self.settings.get("cpuset")
        return len(cpus_of(value)) or None if isinstance(value, str) else None

    @property
    def cpu_quota(self) -> float | None:
        """The CPU limit of the server's container, in CPUs; None without a limit, or where nothing
        tells it. A JVM rounds it up to whole CPUs."""
        value = self.settings.get("cpu_quota")
        return float(value) if isinstance(value, int | float) and value > 0 else None

    @property
    def local_ports(self) -> int | None:
        """How many local ports its container has for its own connections; None if unknown."""
        first, _, last = str(self.settings.get("local_ports", "")).partition(" ")
        return int(last) - int(first) + 1 if first.isdecimal() and last.isdecimal() else None

    @property
    def direct(self) -> bool:
        """Whether the server says that it calls the downstream without Toxiproxy."""
        return self.settings.get("downstream_url") == DIRECT

    @property
    def delay_words(self) -> str:
        """The downstream's delay as DOWNSTREAM_DELAY_MS takes it."""
        return self.spread.words if self.spread else f"{self.downstream_delay_ms:g}"

    @property
    def delay_text(self) -> str:
        if self.spread is None:
            return f"{self.downstream_delay_ms:g} ms"
        return (
            f"{self.spread.words} (mean {self.downstream_delay_ms:.4g} ms, "
            f"p95 {self.spread.p95_ms:.4g}, p99 {self.spread.p99_ms:.4g})"
        )

    def setting(self, name: str) -> int | None:
        """A numeric setting; None where this model has no such setting, or no value for it."""
        value = self.settings.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


class Fairness(Record):
    """The settings and identities that the servers of one comparison share, by name.

    `own` are the settings in which the models differ by nature (None: the model has no such
    setting). `unequal` are limits that must be the same and are not. Both by name, then server.
    """

    equal: Mapping[str, Json]
    own: Mapping[str, Mapping[str, Json]]
    unequal: Mapping[str, Mapping[str, Json]]


class Usage(Record):
    """The CPU that the engine and the host used: seconds of CPU, and shares 0..1.

    `window_…` and the shares of the host cover the measured window only. `window_wait_s` is how
    long the engine's threads were ready to run without a CPU, summed, in `window_slices` turns
    (/proc/<pid>/task/*/schedstat). `window_throttled_s` is how long the CPU quota of its container
    stopped it (cgroup cpu.stat). `spun` is the share of the machine's CPUs that the spinner of the
    trial's condition took in the window; None without one. `window_resent` is how many segments TCP
    sent again in the driver's network namespace, attempts to connect left out (/proc/net).
    `host_pressure` is the share of the window in which at least one thread of the machine waited
    for a CPU (PSI: `some` of /proc/pressure/cpu); None where the kernel has no PSI.
    """

    run_cpu_s: float
    window_cpu_s: float | None
    host_busy: float | None
    host_steal: float | None
    window_wait_s: float | None = None
    window_slices: int | None = None
    window_throttled_s: float | None = None
    spun: float | None = None
    window_resent: float | None = None
    host_pressure: float | None = None

    @property
    def host_taken(self) -> float | None:
        """The share of the CPUs' time that was not idle: busy, or taken by other machines."""
        busy, stolen = self.host_busy, self.host_steal or 0.0
        return None if busy is None else min(1.0, busy + stolen)


# On a full machine a compiler waits for CPUs, and lasts far longer than it computes. That still
# tells of a queue: where one compiler is busy for more than half of the time, a method waits longer
# for it than it takes (M/M/1: ρ / (1 - ρ)), and runs slowly meanwhile. Many compilers may be busy
# for longer without one: then this is too strict.
JIT_BUSY = 0.5
# HotSpot ends compilers that have nothing to do, where it has many (4 CPUs or more). What one did
# after the last look at it is not in the sum. Where less than this share of the elapsed time is,
# elapsed time is all that is known.
JIT_SEEN = 0.5


class JitCpu(Record):
    """Per second: the CPU seconds of the threads of a JIT compiler, and the seconds in which they
    waited for a CPU, summed over these threads."""

    used: float
    waited: float

    @property
    def busy(self) -> float:
        """How long they had something to compile, which may exceed 1."""
        return self.used + self.waited


def all_of(threads: JitCpu | None, elapsed: float | None) -> JitCpu | None:
    """What a compiler's threads did, where that is all, by the elapsed time of their compilations
    per second; None where it is not, or not known."""
    if threads is None or threads.busy < JIT_SEEN * (elapsed or 0.0):
        return None
    return threads


class WarmCycle(Record):
    """One cycle of warm-up load, measured by the server itself (for a foreign service: by the
    engine). It ended `at_s` seconds after the load began, and lasted `length_s`. Per second:
    `jit_share` is the CPU time of the JIT compiler, where that is told, else elapsed compile time,
    and `jit_busy` how long it worked or waited for a CPU. Both can exceed 1, as several compiler
    threads work at once."""

    at_s: float
    length_s: float
    rps: float
    p50_ms: float | None
    jit_share: float
    jit_busy: float | None = None


class Warmth(Record):
    """Whether the JVM was proven warm on a route before a trial, with every cycle.

    `provable` False: nothing tells (a foreign service without a JMX exporter). The service was
    loaded for a fixed time, which proves nothing, and `problem` says why. `run`: the earlier run
    that proved it, on the same JVM; None: the trial's own run did.
    """

    steady: bool
    cycles: tuple[WarmCycle, ...]
    problem: Remark | None = None
    provable: bool = True
    run: str | None = None

    @property
    def cold(self) -> bool:
        """Whether the JVM should have been proven warm and was not."""
        return self.provable and not self.steady


class Peak(Record):
    """The real times of a peak, in seconds from the start of the measured run. And what its own
    engine told of it, None where that told nothing: the most connections that were open at a time,
    how many it had not tried to open yet (on average over the peak), its requests (`due`: None in a
    closed load), and the p95 of its lateness. `problems`: why less was put on by the engine's own
    fault, or why it is not known."""

    started_s: float
    ended_s: float
    connections: int | None = None
    untried: float | None = None
    due: int | None = None
    sent: int | None = None
    late_p95_ms: float | None = None
    problems: tuple[Remark, ...] = ()


class ScriptedToxic(Record):
    """A step of the script of toxics, with its real times in seconds from the start of the measured
    run: when it began, and when the toxics read back as wanted. `clear`: no change of the script is
    left in force. `problem`: why the step was not made, or what else had changed."""

    started_s: float
    ended_s: float
    change: str
    clear: bool
    problem: str | None = None


class Unwatched(Record):
    """A time under load when nobody watched the toxics: the agent was away, or Toxiproxy did not
    answer it."""

    started_at: datetime
    ended_at: datetime


class ClockOffset(Record):
    """How far the clock `of` a part of the lab was ahead of the driver's, in seconds. It told its
    time in an answer that took 2 × `uncertainty_s`: the offset is within that of `offset_s`,
    wherever on the way the time went (Cristian, Probabilistic clock synchronization, 1989)."""

    offset_s: float
    uncertainty_s: float
    of: str = "Prometheus"


class TrialRecord(Record, kw_only=True):
    """Everything known about a trial that is not in the engine's own output.

    * `toxic_changes` were seen while the load ran, also where they were undone before its end. The
      steps of the plan's own script are not among them, but in `script`
    * `unwatched` is when nobody could have seen a change, beyond the second between two looks
    * `unequal` is why the servers it is compared with had other limits, if they had
    * `jit_share` is JIT compile time per second of the measured window, and `jit_cpu` what the
      compiler's threads did meanwhile: None where nobody told, as of a service that is not the
      lab's
    * `bounds` are the bounds predicted before the trial, the tightest first; `expected_p95_ms`
      follows from the tightest, and `demand` is the light load that some of them come from
    * `starts` counts the starts of the engine up to the good one
    * `clocks` are the clocks just before and just after the load, of the parts that told theirs
    * `wall_s` is what the wall clock says that `run_s` took, which is by a clock that never jumps
    * `problem` is why the engine's output is not that of a whole run
    * `lost`: nothing is known of the trial but its plan, and `problem` says why. It could not
      begin, or its record cannot be read. `before` is then the server as the run began
    * `live_heap_bytes` is what full collections left once the load was over, where the plan
      `asks_live`, or while the load was held; None where the JVM does not tell
    * `resident_bytes` is the process's memory in RAM, and `in_flight` how many requests it worked
      on, right after that while the load was held; None of any other load
    * `ref` is what this machine's CPUs were worth just before the load; None where it did not run
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
    after_problem: Remark | None
    usage: Usage
    toxic_changes: tuple[str, ...] = ()
    unequal: tuple[Remark, ...] = ()
    notes: tuple[Remark, ...] = ()
    warmth: Warmth
    jit_share: float | None = None
    jit_cpu: JitCpu | None = None
    peaks: tuple[Peak, ...] = ()
    starts: int = 1
    script: tuple[ScriptedToxic, ...] = ()
    bounds: tuple[Bound, ...] = ()
    demand: Demand | None = None
    expected_p95_ms: float | None = None
    unwatched: tuple[Unwatched, ...] = ()
    problem: Remark | None = None
    wall_s: float | None = None
    lost: bool = False
    live_heap_bytes: int | None = None
    resident_bytes: int | None = None
    in_flight: int | None = None
    clocks: tuple[ClockOffset, ...] = ()
    ref: Ref | None = None

    @classmethod
    def of_lost(
        cls, plan: TrialPlan, problem: Remark, at: datetime, before: Snapshot
    ) -> TrialRecord:
        """The record of a trial with only a plan; `before` is the server as the run began."""
        return cls(
            plan=plan,
            engine_version="",
            argv=(),
            status=0,
            run_started_at=at,
            run_s=0.0,
            window_offset_s=0.0,
            before=before,
            after=None,
            after_problem=problem,
            usage=Usage(0.0, None, None, None),
            warmth=Warmth(steady=False, cycles=(), provable=False),
            problem=problem,
            lost=True,
        )

    def window(self, window_s: float) -> tuple[datetime, datetime]:
        start = self.run_started_at + timedelta(seconds=self.window_offset_s)
        return start, start + timedelta(seconds=window_s)
