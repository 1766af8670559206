"""The thing under test, as a run needs it: a server of the lab, or a service of the user's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from lab.errors import LabUnreachable
from lab.judge.checks import state
from lab.model import Demand, Remark, Snapshot, TrialPlan, WarmCycle, Warmth
from lab.subject import jvm
from lab.subject.changes import Knobs
from lab.subject.jvm import Answered, Counters, Edges, JitReading
from lab.system.exporter import Exporter
from lab.system.host import Clock, System
from lab.system.http import Part
from lab.system.management import Recorder

if TYPE_CHECKING:
    from lab.load.bench import Bench, EngineRun

POLL_S = 0.2
# A JVM ends and starts in seconds; Docker waits longer each time one ended soon.
RESTART_S = 120.0
# A queue left behind by an overload must not be where the next load starts.
SETTLE_S = 30.0
# A route's first answer on a cold JVM, through a delay and toxics.
ROUTE_DEADLINE_S = 30.0
# The statuses of a service that has no such route for GET.
NOT_SERVED = (404, 405)
# A JVM is warmed up with the load it will have, but with at most this many connections.
WARM_CONNECTIONS = 1000
# The engine opens its connections first: what rises meanwhile is its load. wrk2 opens those of each
# of two threads 5 ms apart.
OPENING_S = 1.0
OPENING_EACH_S = 0.0025
# A server that answered nothing in so many cycles will not answer.
HOPELESS_CYCLES = 6


@dataclass(frozen=True, slots=True)
class Memory:
    """The live heap, the process's memory in RAM, and the requests that it works on."""

    live_heap_bytes: int
    resident_bytes: int
    in_flight: int


class Subject(ABC):
    """Every method may raise LabUnreachable. One thread.

    * `process` is what a launch replaces: a JVM, a container
    * `rests`: Prometheus scrapes it rarely while it is not measured
    * `uses_toxiproxy`: its calls go through the lab's Toxiproxy
    * `has_identity`: its JVM has a start time that tells it from another
    """

    process: str
    rests: bool
    uses_toxiproxy: bool
    has_identity: bool
    knobs: Knobs | None = None
    recorder: Recorder

    def __init__(self, name: str, traffic: Part, exporter: Exporter | None) -> None:
        self.name = name
        self._traffic = traffic
        self._exporter = exporter

    @abstractmethod
    def check(self) -> None:
        """Raises LabUnreachable unless it answers, as itself."""

    @abstractmethod
    def check_recorder(self) -> None:
        """Raises LabUnreachable, with what to do, if nothing can record its JVM."""

    def check_route(self, route: str) -> Remark | None:
        """What is wrong with its answer on a route, if toxics may be why. Raises LabUnreachable if
        the route is not served."""
        answer = self._traffic.beginning(route, ROUTE_DEADLINE_S)
        self.check_answer(answer)
        status = answer.status_code
        if status in NOT_SERVED:
            raise LabUnreachable(f"{self.url(route)} answers {status}: not served", self.name)
        code = "answers-redirect" if answer.is_redirect else "answers"
        return None if answer.is_success else Remark(code, {"route": route, "status": status})

    @abstractmethod
    def check_answer(self, answer: httpx.Response) -> None:
        """Raises LabUnreachable if another server gave this answer."""

    def routes(self) -> tuple[str, ...] | None:
        """The paths that it serves; None: any."""
        return None

    def url(self, route: str) -> str:
        return f"{self._traffic.url}{route}"

    @abstractmethod
    def snapshot(self) -> Snapshot: ...

    @abstractmethod
    def settled(self, clock: Clock) -> bool:
        """Wait until it has answered what it was sent; False after SETTLE_S. One that does not
        answer counts as settled: whoever reads it back next will see that."""

    @abstractmethod
    def renew(self, clock: Clock) -> None:
        """Put another process in the place of the one that runs. Raises LabError."""

    def started_ms(self) -> int | None:
        """None if unknown, or if no JVM runs."""
        return None

    @abstractmethod
    def await_another(self, before_ms: int | None, clock: Clock) -> None:
        """Wait until a process with another start time answers."""

    def to_warm(self, plan: TrialPlan, most: int) -> int:
        """With how many connections it is warmed up, for loads of up to `most`."""
        return max(min(most, WARM_CONNECTIONS), self.light(plan, most))

    @abstractmethod
    def light(self, plan: TrialPlan, most: int) -> int:
        """How many connections measure the cost of a request, for loads of up to `most`."""

    @abstractmethod
    def most_rps(self, plan: TrialPlan, demand: Demand | None) -> float | None:
        """The most that it can do under the plan, of which a probe may use a part."""

    def compiled(self, clock: Clock) -> tuple[float, float] | None:
        """When it was read, and the JIT compile time so far; None if unknown. Raises nothing."""
        with suppress(LabUnreachable):
            if self._exporter:
                return clock.monotonic(), self._exporter.compilation_s()
        return None

    def jit(self, system: System) -> JitReading | None:
        """What its JIT compiler's threads used so far; None if unknown. Raises nothing."""
        return None

    def live_heap(self) -> int | None:
        """The bytes of heap that live after full collections; None if it cannot be asked."""
        return None

    def memory(self) -> Memory:
        """After full collections."""
        raise LabUnreachable("it has no call for its live heap", self.name)

    def counters(self, bench: Bench, run: EngineRun | None) -> Counters:
        """What was counted until now, with the load `run` on it."""
        at_s, host = bench.system.monotonic(), bench.system.host_cpu()
        cpu_s, compilation_s = self._exporter.times() if self._exporter else (None, None)
        work = self.work(bench, run)
        return Counters(at_s, host, cpu_s, compilation_s, work, self.jit(bench.system))

    @abstractmethod
    def work(self, bench: Bench, run: EngineRun | None) -> object:
        """What `answered` needs of one moment."""

    @abstractmethod
    def answered(self, before: Counters, after: Counters) -> Answered | None:
        """What was answered between them; None if a counter started again from 0."""

    def drawn_sd_ms(self, plan: TrialPlan) -> float:
        """The standard deviation of the delays that the plan's route waits for; 0 if unknown."""
        return 0.0

    def warm(self, bench: Bench, connections: int) -> tuple[Warmth, Edges | None]:
        """Load it until it is steady (lab.subject.jvm), at most MAX_WARM_S. The end of that may be
        a light load: its edges."""
        cycles: list[WarmCycle] = []
        edges: list[Counters] = []
        with bench.watched(connections, 2 * jvm.MAX_WARM_S) as run:
            problem = self._until_steady(bench, run, connections, cycles, edges)
            if run.ended:
                problem = state.cold_engine.remark(words=run.words)
        self.settled(bench.system)
        light = None
        if problem is None and len(edges) > jvm.LIGHT_CYCLES:
            light = edges[-1 - jvm.LIGHT_CYCLES], edges[-1]
        return Warmth(problem is None, tuple(cycles), problem), light

    def _until_steady(
        self,
        bench: Bench,
        run: EngineRun,
        connections: int,
        cycles: list[WarmCycle],
        edges: list[Counters],
    ) -> Remark | None:
        """Watch the load, adding to `cycles` and `edges`. None once it is steady, else why it never
        was."""
        drawn_sd_ms = self.drawn_sd_ms(bench.plan)
        began_s, due_s = bench.system.monotonic(), OPENING_S
        for elapsed_s in run.steps():
            bench.progress()
            if elapsed_s < due_s:
                continue
            due_s = elapsed_s + jvm.CYCLE_S
            with suppress(LabUnreachable):  # If it comes back, that cycle is longer.
                edges.append(self.counters(bench, run))
                if len(edges) > 1:
                    before, after = edges[-2:]
                    answered = self.answered(before, after)
                    cycle = jvm.cycle_between(before, after, answered, began_s)
                    if cycle is None:
                        return state.cold_restarted.remark()
                    cycles.append(cycle)
                    if jvm.steady(cycles, connections, drawn_sd_ms):
                        return None
                    if len(cycles) >= HOPELESS_CYCLES and not any(each.rps for each in cycles):
                        return state.cold_silent.remark(elapsed_s=elapsed_s)
            if elapsed_s >= jvm.MAX_WARM_S:
                return jvm.not_steady(cycles)
        return None

    def demand(
        self, bench: Bench, connections: int, cores: int | None, edges: Edges | None
    ) -> Demand | None:
        """The cost of a request under the light load with these edges, None: under one that is made
        here. `cores` are the machine's CPUs if known. None if the load showed too little."""
        cost = self._cost(bench, connections, cores, edges)
        return cost[0] if cost else None

    def _cost(
        self, bench: Bench, connections: int, cores: int | None, edges: Edges | None
    ) -> tuple[Demand, Answered] | None:
        """As `demand`, with what was answered under the light load."""
        try:
            first = self.counters(bench, None)
            bench.system.sleep(jvm.IDLE_S)
            idle = first, self.counters(bench, None)
            edges = edges or self._light_load(bench, connections)
        except LabUnreachable:
            edges = None
        self.settled(bench.system)
        answered = self.answered(*edges) if edges else None
        if not (edges and answered and answered.good and answered.count >= jvm.LEAST_REQUESTS):
            return None
        return jvm.cost(connections, answered, idle, edges, cores), answered

    def _light_load(self, bench: Bench, connections: int) -> Edges | None:
        """The counters at both edges of LIGHT_S under the load; None if it ended early."""
        with bench.watched(connections, 10 * jvm.LIGHT_S) as run:
            bench.system.sleep(OPENING_S + OPENING_EACH_S * connections)
            opened = self.counters(bench, run)
            bench.system.sleep(jvm.LIGHT_S)
            closed = self.counters(bench, run)
            return None if run.ended else (opened, closed)


Subjects = Mapping[str, Subject]


def await_answer[T](
    call: Callable[[], T], clock: Clock, most_s: float = RESTART_S, poll_s: float = POLL_S
) -> T:
    """Try for `most_s`. Raises the last LabUnreachable."""
    until = clock.monotonic() + most_s
    while True:
        try:
            return call()
        except LabUnreachable:
            if clock.monotonic() >= until:
                raise
        clock.sleep(poll_s)
