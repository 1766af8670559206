"""The record of a trial: everything known about it, apart from the engine's own output."""

from datetime import datetime, timedelta
from typing import Self

from lab.model.experiment import TrialPlan
from lab.model.record import Record
from lab.model.remark import Remark
from lab.model.snapshot import Snapshot
from lab.model.verdict import Bound, Demand

# What a second of CPU time buys on a machine: columns of a Row.
FIGURES = ("ref_compute", "ref_compute_all", "ref_wake", "ref_net")


class Usage(Record):
    """The CPU that the engine (`run_…`, `window_…`) and the host used: seconds, and shares of the
    window.

    * `window_wait_s`: how long the engine's threads were ready to run without a CPU, summed, in
      `window_slices` turns (/proc/<pid>/task/*/schedstat)
    * `window_throttled_s`: how long the CPU quota of its container stopped it (cgroup cpu.stat)
    * `spun`: what a spinner took of the machine's CPUs; None without one
    * `window_resent`: segments that TCP sent again in the driver's network namespace, attempts to
      connect left out (/proc/net)
    * `host_pressure`: when at least one thread of the machine waited for a CPU (PSI: `some` of
      /proc/pressure/cpu); None without PSI
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
    """What a compiler's threads did, if that is all of the elapsed time of their compilations per
    second; else None."""
    return threads if threads and threads.busy >= JIT_SEEN * (elapsed or 0.0) else None


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
    """Whether the JVM was proven warm on a route before a trial, with every cycle. Not `provable`:
    a foreign service without a JMX exporter, which was loaded for a fixed time. `run`: the earlier
    run that proved it, on the same JVM; None: the trial's own run did."""

    steady: bool
    cycles: tuple[WarmCycle, ...]
    problem: Remark | None = None
    provable: bool = True
    run: str | None = None

    @property
    def cold(self) -> bool:
        """True if the JVM should have been proven warm and was not."""
        return self.provable and not self.steady


class Peak(Record):
    """The real times of a peak, in seconds from the start of the measured run. And the figures of
    its own engine: the most connections that were open at a time, how many it had not tried to open
    yet (on average over the peak), its requests (`due` in an open load), and the p95 of its
    lateness. `problems`: why less was put on by the engine's own fault, or why that is not
    known."""

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


class Ref(Record):
    """Counts for each second of CPU time. `program` names source, compiler, architecture and how
    many CPUs the program had: only figures of one program are comparable.

    `ref_compute` and `ref_compute_all` are steps of a generator of random numbers, by one thread
    and by one for each CPU; `ref_wake` hand-overs between two threads on two CPUs; `ref_net`
    requests over loopback.
    """

    program: str
    ref_compute: float
    ref_compute_all: float
    ref_wake: float
    ref_net: float


class ClockOffset(Record):
    """How far the clock `of` a part of the lab was ahead of the driver's, in seconds, by an answer
    that took 2 × `uncertainty_s`: the offset is within that of `offset_s`, wherever on the way the
    time went (Cristian, Probabilistic clock synchronization, 1989)."""

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
      compiler's threads did meanwhile; None of a service that is not the lab's
    * `bounds` are the bounds predicted before the trial, the tightest first; `expected_p95_ms`
      follows from the tightest, and `demand` is the light load that some of them come from
    * `starts` counts the starts of the engine up to the good one
    * `clocks` are the clocks just before and just after the load, of the parts that told theirs
    * `wall_s` is what the wall clock says that `run_s` took, which is by a clock that never jumps
    * `problem` is why the engine's output is not that of a whole run
    * `lost`: nothing is known of the trial but its plan, and `problem` says why. It could not
      begin, or its record cannot be read. `before` is then the server as the run began
    * `live_heap_bytes` is what full collections left once the load was over, if the plan
      `asks_live`, or while it was held; `resident_bytes` is the process's memory in RAM, and
      `in_flight` how many requests it worked on, right after that while the load was held
    * `ref` is what this machine's CPUs were worth just before the load
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
    def of_lost(cls, plan: TrialPlan, problem: Remark, at: datetime, before: Snapshot) -> Self:
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
