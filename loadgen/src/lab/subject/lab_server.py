"""A server of the lab: it publishes who it is, what it is set to, and what it counted."""

from __future__ import annotations

from contextlib import suppress
from copy import replace
from typing import TYPE_CHECKING

import httpx

from lab.errors import LabUnreachable
from lab.judge.checks import state
from lab.model import Demand, Remark, Snapshot, ToxicState, TrialPlan, WarmCycle, Warmth
from lab.model.routes import parse
from lab.subject import jvm, subject
from lab.subject.changes import Knobs
from lab.subject.subject import Edges, Memory
from lab.system.exporter import Exporter
from lab.system.host import Clock, System
from lab.system.http import Part
from lab.system.management import Management, Recorder
from lab.system.stack import Stack

if TYPE_CHECKING:
    from lab.load.bench import Bench, EngineRun

PORT = 8080
MODEL_HEADER = "Lab-Model"
# A JVM that is just being restarted comes back in this time.
BACK_S = 30.0
# The engine opens its connections before the first cycle: what rises meanwhile is its load.
OPENING_S = 1.0
# A server that answered nothing in so many cycles will not answer.
HOPELESS_CYCLES = 6
# The engine opens its connections before a light load: wrk2 those of each of two threads 5 ms
# apart.
LEAD_S = 1.0
LEAD_EACH_S = 0.0025
# A request costs less under more load, because work is done in larger batches (docs/method.md).
MOST_CONNECTIONS = 1000


class LabServer:
    """See Subject."""

    process = "JVM"
    rests = uses_toxiproxy = has_identity = True

    def __init__(self, name: str, stack: Stack) -> None:
        self.name = name
        self._stack = stack
        self._traffic = Part(stack.http, name, f"http://{name}:{PORT}")
        self._exporter = Exporter(stack.http, name)
        self._management = Management(stack.http, name)
        self.recorder: Recorder = self._management
        self.knobs: Knobs | None = Knobs(self._management)

    def check(self) -> None:
        self._require_model(self._traffic.call("GET", "/health"))

    def check_recorder(self) -> None:
        """The server itself records."""

    def check_route(self, route: str) -> Remark | None:
        answer = self._traffic.ask("GET", route, deadline_s=subject.ROUTE_DEADLINE_S)
        self._require_model(answer)
        status = answer.status_code
        if status in subject.NOT_SERVED:
            raise LabUnreachable(f"{route} answers {status}: not served", self.name)
        return None if status == 200 else Remark("answers", {"route": route, "status": status})

    def routes(self) -> tuple[str, ...]:
        return self._management.routes()

    def url(self, route: str) -> str:
        return f"{self._traffic.url}{route}"

    def snapshot(self) -> Snapshot:
        identity, settings = self._management.identity(), self._management.settings()
        delay_ms, spread = self._stack.downstream.delay()
        toxics, ways = self._stack.toxics(), self._stack.ways(self.name)
        snapshot = Snapshot(identity, settings, toxics, delay_ms, spread=spread, ways=ways)
        return replace(snapshot, toxics=ToxicState()) if snapshot.direct else snapshot

    def settled(self, clock: Clock) -> bool:
        until = clock.monotonic() + subject.SETTLE_S
        with suppress(LabUnreachable):
            # The live probe may have one request under way; a queue has many. On an event loop a
            # request ends when its client leaves, but its downstream call goes on.
            while self._management.in_flight() > 1 or self._exporter.leased() > 1:
                if clock.monotonic() >= until:
                    return False
                clock.sleep(subject.POLL_S)
        return True

    def renew(self, clock: Clock) -> None:
        subject.await_answer(self._management.identity, clock, BACK_S)
        before_ms = self._management.identity().start_time_ms
        self._management.restart()
        self.await_another(before_ms, clock)

    def started_ms(self) -> int | None:
        with suppress(LabUnreachable):
            return self._management.identity().start_time_ms
        return None  # It died of its condition.

    def await_another(self, before_ms: int | None, clock: Clock) -> None:
        def check() -> None:
            if self._management.identity().start_time_ms == before_ms:
                raise LabUnreachable("its JVM did not end when told to", self.name)
            self.check()

        subject.await_answer(check, clock)

    def to_warm(self, plan: TrialPlan, most: int) -> int:
        return max(min(most, subject.WARM_CONNECTIONS), self.light(plan, most))

    def light(self, plan: TrialPlan, most: int) -> int:
        if parse(plan.route).wait_ms == 0:
            # A request that only computes keeps a CPU busy: use no more connections than the trial.
            return min(plan.concurrency, jvm.LIGHT_CONNECTIONS)
        return max(jvm.LIGHT_CONNECTIONS, min(most, MOST_CONNECTIONS))

    def warm(self, bench: Bench, connections: int) -> tuple[Warmth, Edges | None]:
        """One long load, whose cycles the server itself counts."""
        cycles: list[WarmCycle] = []
        edges: list[jvm.Counters] = []
        with bench.watched(connections, 2 * jvm.MAX_WARM_S) as run:
            problem = self._until_steady(bench, run, cycles, edges)
            if run.ended:
                problem = state.cold_engine.remark(words=run.words)
        self.settled(bench.system)
        light = None
        if problem is None and len(edges) > jvm.LIGHT_CYCLES:
            light = edges[-1 - jvm.LIGHT_CYCLES], edges[-1]
        return Warmth(problem is None, tuple(cycles), problem), light

    def _until_steady(
        self, bench: Bench, run: EngineRun, cycles: list[WarmCycle], edges: list[jvm.Counters]
    ) -> Remark | None:
        """Watch the load, adding to `cycles` and `edges`. None once it is steady, else why it never
        was."""
        drawn_sd_ms = self._drawn_sd_ms(bench.plan)
        began_s, due_s = bench.system.monotonic(), OPENING_S
        for elapsed_s in run.steps():
            bench.progress()
            if elapsed_s < due_s:
                continue
            due_s = elapsed_s + jvm.CYCLE_S
            with suppress(LabUnreachable):  # If it comes back, that cycle is longer.
                edges.append(self._counters(bench))
                if len(edges) > 1:
                    cycle = jvm.cycle_between(edges[-2], edges[-1], began_s)
                    if cycle is None:
                        return state.cold_restarted.remark()
                    cycles.append(cycle)
                    if jvm.steady(cycles, bench.plan.concurrency, drawn_sd_ms):
                        return None
                    if len(cycles) >= HOPELESS_CYCLES and not any(each.rps for each in cycles):
                        return state.cold_silent.remark(elapsed_s=elapsed_s)
            if elapsed_s >= jvm.MAX_WARM_S:
                return jvm.not_steady(cycles)
        return None

    def demand(
        self, bench: Bench, connections: int, cores: int | None, edges: Edges | None
    ) -> Demand | None:
        try:
            first = self._counters(bench)
            bench.system.sleep(jvm.IDLE_S)
            idle = first, self._counters(bench)
            edges = edges or self._light_load(bench, connections)
        except LabUnreachable:
            edges = None
        self.settled(bench.system)
        if edges is None:
            return None
        opened, closed = edges
        answered = closed.work.requests - opened.work.requests
        failed = closed.work.failed - opened.work.failed
        if answered < jvm.LEAST_REQUESTS or not 0 <= failed <= jvm.MOST_FAILED * answered:
            return None
        return jvm.cost(connections, answered, idle, edges, cores)

    def _light_load(self, bench: Bench, connections: int) -> Edges | None:
        """The counters at both edges of LIGHT_S under the load; None if it ended early."""
        with bench.watched(connections, 10 * jvm.LIGHT_S) as run:
            bench.system.sleep(LEAD_S + LEAD_EACH_S * connections)
            opened = self._counters(bench)
            bench.system.sleep(jvm.LIGHT_S)
            closed = self._counters(bench)
            return None if run.ended else (opened, closed)

    def most_rps(self, plan: TrialPlan, demand: Demand | None) -> float | None:
        return plan.predicted_rps

    def compilation_s(self) -> float:
        return self._exporter.compilation_s()

    def jit(self, system: System) -> jvm.JitReading | None:
        at_s = system.monotonic()
        with suppress(LabUnreachable):
            return (at_s, *self._management.jit())
        return None

    def live_heap(self) -> int:
        """A second full collection frees what the first one released. Both stop the JVM."""
        self._management.collect_garbage()
        return self._management.collect_garbage()

    def memory(self) -> Memory:
        heap_bytes, resident_bytes = self.live_heap(), self._exporter.resident_bytes()
        return Memory(heap_bytes, resident_bytes, self._management.in_flight())

    def _counters(self, bench: Bench) -> jvm.Counters:
        at_s, host = bench.system.monotonic(), bench.system.host_cpu()
        cpu_s, compilation_s = self._exporter.times()
        work, jit = self._management.work(bench.plan.route), self.jit(bench.system)
        return jvm.Counters(at_s, host, cpu_s, compilation_s, work, jit)

    def _drawn_sd_ms(self, plan: TrialPlan) -> float:
        """The standard deviation of the delays that the plan's route waits for; 0 if unknown."""
        with suppress(LabUnreachable):
            spread = self._stack.downstream.delay()[1]
            if spread is not None and parse(plan.route).route.calls_downstream:
                return spread.sd_ms
        return 0.0

    def _require_model(self, answer: httpx.Response) -> None:
        model = answer.headers.get(MODEL_HEADER)
        if model != self.name:
            problem = f"{answer.url} is answered by {model or 'something without a name'}"
            raise LabUnreachable(problem, self.name)
