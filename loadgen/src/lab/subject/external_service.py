"""A service of the user's own: only its clients see it, and its JVM if the user lets them.

The lab's servers count their requests, so one long load can be watched from outside. Here the
engine's own figures count, and it has these when a load has ended: a warm-up is a row of short
loads.
"""

from __future__ import annotations

import copy
import math
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx

from lab.errors import LabUnreachable, NoFigures
from lab.judge.checks import data, state
from lab.judge.trial import think_ms
from lab.model import (
    Demand,
    Reading,
    Remark,
    Snapshot,
    TrialPlan,
    WarmCycle,
    Warmth,
    error_share,
    goodput,
)
from lab.model.routes import EXPORTER_PORT, RECORDER_PORT, THIS_MACHINE
from lab.subject import jvm, subject
from lab.subject.changes import Knobs
from lab.subject.subject import Edges, Memory
from lab.system.exporter import Exporter
from lab.system.host import Clock, System
from lab.system.host_changes import FRESH, HostChanges
from lab.system.http import NoAnswer, Part
from lab.system.management import Recorder
from lab.system.stack import Stack

if TYPE_CHECKING:
    from lab.load.bench import Bench

FORBIDDEN = 403
# Without compile times: most JVMs are warm by then (docs/method.md).
FIXED_WARM_S = 10.0
# How long a single connection measures R0. A mean of fewer answers than LEAST_ALONE says little.
# Then it measures once more, for as long as so many answers should take.
ALONE_S = 3.0
LEAST_ALONE = 20
MOST_ALONE_S = 15.0
# No request is quicker among others than alone. If it was, the mean alone is not R0.
QUICKER = 0.95


class ExternalService:
    """See Subject. Its `url` is scheme, host and port, and the path `ready` answers when it is.

    Whether a JMX exporter answers on its host is checked once, here: a host may run other JVMs
    beside the service, so it counts only if the user has listed the host for Prometheus."""

    process = "container"
    rests = uses_toxiproxy = has_identity = False
    knobs: Knobs | None = None

    def __init__(self, name: str, url: str, ready: str, stack: Stack, host: HostChanges) -> None:
        self.name = name
        self._ready = ready
        self._stack = stack
        self._host = host
        self._traffic = Part(stack.http, name, url)
        self.recorder = Recorder(stack.http, name, f"http://{name}:{RECORDER_PORT}")
        self._exporter: Exporter | None = None
        with suppress(LabUnreachable):
            listed = ("jvm", f"{name}:{EXPORTER_PORT}")
            if listed in {(each.job, each.instance) for each in stack.prometheus.targets()}:
                exporter = Exporter(stack.http, name)
                exporter.started_s()
                self._exporter = exporter

    def check(self) -> None:
        """Any answer may be its own: `check_route` judges it."""

    def _check_started(self) -> None:
        """An answer of 5xx is that of one that still starts."""
        status = self._get(self._ready).status_code
        if status in subject.NOT_SERVED or status >= 500:
            raise LabUnreachable(f"{self.url(self._ready)} answers {status}", self.name)
        if self._exporter:
            self._exporter.started_s()

    def check_recorder(self) -> None:
        """It knows this lab's token only if its jar is that of the folder that `make up` fills."""
        known = False
        with suppress(LabUnreachable):
            self.recorder.call("GET", "/health")
            # There is no such call: whoever has the token gets a 404.
            known = self.recorder.ask("GET", "/").status_code != FORBIDDEN
        if not known:
            problem = f"no recorder with this lab's token answers on port {RECORDER_PORT}; its JVM"
            agent = f"-javaagent:/jmx/lab-recorder.jar={RECORDER_PORT}"
            problem += f" needs {agent} (docs/your-own-service.md)"
            raise LabUnreachable(problem, self.name)

    def check_route(self, route: str) -> Remark | None:
        """Any success counts: the answer does not name its service."""
        try:
            answer = self._get(route)
        except LabUnreachable as failure:
            if self.name != THIS_MACHINE:
                raise
            hint = "on this machine it must listen on an address that containers can reach "
            hint += "(0.0.0.0, or that of docker0), not only on 127.0.0.1"
            raise LabUnreachable(f"{failure.problem}; {hint}", self.name) from None
        status = answer.status_code
        if status in subject.NOT_SERVED:
            raise LabUnreachable(f"{self.url(route)} answers {status}: not served", self.name)
        code = "answers-redirect" if answer.is_redirect else "answers"
        return None if answer.is_success else Remark(code, {"route": route, "status": status})

    def _get(self, path: str, deadline_s: float = subject.ROUTE_DEADLINE_S) -> httpx.Response:
        return self._traffic.ask("GET", path, deadline_s=deadline_s)

    def routes(self) -> None:
        """Any."""

    def url(self, route: str) -> str:
        return f"{self._traffic.url}{route}"

    def snapshot(self) -> Snapshot:
        delay_ms, spread = self._stack.downstream.delay()
        exported = self._exporter.exported() if self._exporter else None
        settings = {"url": self._traffic.url}
        return Snapshot(None, settings, self._stack.toxics(), delay_ms, exported, spread)

    def settled(self, clock: Clock) -> bool:
        """It does not show what it works on, so it is sent one more request: if it takes requests
        in turn, its answer shows that those before are done."""
        try:
            self._get(self._ready, subject.SETTLE_S)
        except NoAnswer as failure:
            return not failure.late
        return True

    def renew(self, clock: Clock) -> None:
        self._host.change(self.name, {FRESH: "yes"}, clock)
        self.await_another(None, clock)

    def started_ms(self) -> None:
        """It is another container anyway."""

    def await_another(self, before_ms: int | None, clock: Clock) -> None:
        subject.await_answer(self._check_started, clock)

    def to_warm(self, plan: TrialPlan, most: int) -> int:
        return min(most, subject.WARM_CONNECTIONS)

    def light(self, plan: TrialPlan, most: int) -> int:
        """It may wait or not, so the load has no more connections than the trial."""
        return min(plan.concurrency, jvm.LIGHT_CONNECTIONS, most)

    def warm(self, bench: Bench, connections: int) -> tuple[Warmth, Edges | None]:
        """Each cycle is a load of its own, and its rate and median come from the engine. Without a
        JMX exporter nothing can be proven: the service is loaded for FIXED_WARM_S."""
        cycles: list[WarmCycle] = []
        if provable := self._compiled_s() is not None:
            problem = self._until_steady(bench, connections, cycles)
        else:
            failed = {}
            try:
                bench.short(connections, FIXED_WARM_S, bench.system.monotonic)
            except NoFigures as failure:
                failed = {"problem": str(failure)}
            problem = data.warmth_unproven.remark(server=self.name, port=EXPORTER_PORT, **failed)
        self.settled(bench.system)
        return Warmth(problem is None, tuple(cycles), problem, provable=provable), None

    def _until_steady(
        self, bench: Bench, connections: int, cycles: list[WarmCycle]
    ) -> Remark | None:
        """Load in cycles, adding to `cycles`. None once they are steady, else why they never
        were."""
        monotonic = bench.system.monotonic
        began_s = monotonic()
        while True:
            try:
                done = bench.short(
                    connections, jvm.CYCLE_S, lambda: (monotonic(), self._compiled_s())
                )
            except NoFigures as failure:
                return state.cold_load.remark(problem=str(failure))
            (from_s, before), (until_s, after) = done.opened, done.closed
            if before is None or after is None:
                return state.cold_exporter.remark()
            if after < before:
                return state.cold_restarted.remark()
            reading = done.reading
            p50_ms, rps = reading.raw.p50_ms if reading.raw else None, reading.achieved_rps
            if not goodput(reading):
                p50_ms, rps = None, 0.0
            edges_s = from_s - began_s, until_s - began_s
            cycles.append(jvm.cycle_of(edges_s, rps, p50_ms, after - before))
            if jvm.steady(cycles, connections):
                return None
            if edges_s[1] >= jvm.MAX_WARM_S:
                return jvm.not_steady(cycles)

    def demand(
        self,
        bench: Bench,
        connections: int,
        cores: int | None,
        edges: Edges | None,
    ) -> Demand | None:
        """The engine counts the answers. Before that, a single connection, which waits for no
        other, measures R0, and the generator's think time Z: means, as N = X·(R + Z) holds for
        means."""
        system = bench.system
        alone = self._alone(bench)
        if alone is None or alone.raw is None or _mostly_failed(alone):
            self.settled(system)
            return None
        first = self._times(system)
        system.sleep(jvm.IDLE_S)
        idle = first, self._times(system)
        light: Reading | None = None
        demand = Demand(1, alone.samples, None, None)
        with suppress(NoFigures):
            done = bench.short(connections, jvm.LIGHT_S, lambda: self._times(system))
            if done.reading.samples >= jvm.LEAST_REQUESTS and not _mostly_failed(done.reading):
                light = done.reading
                # The load may have ended before the second edge.
                passed_s = done.closed.at_s - done.opened.at_s
                answered = min(light.achieved_rps * passed_s, light.samples)
                demand = jvm.cost(connections, answered, idle, (done.opened, done.closed), cores)
        self.settled(system)
        problem = _r0_problem(alone, light, connections)
        return copy.replace(
            demand,
            r0_ms=None if problem else alone.raw.mean_ms,
            light_rps=light.achieved_rps if light else None,
            r0_problem=problem,
            think_ms=think_ms(alone),
        )

    def _alone(self, bench: Bench) -> Reading | None:
        """The figures of a single connection; None if there are none."""
        monotonic = bench.system.monotonic
        try:
            first = bench.short(1, ALONE_S, monotonic).reading
        except NoFigures:
            return None
        if first.raw is None or _mostly_failed(first) or first.samples >= LEAST_ALONE:
            return first
        # A quarter more than LEAST_ALONE answers should take.
        needed_s = math.ceil(1.25 * LEAST_ALONE * first.raw.mean_ms / 1000)
        if ALONE_S < needed_s <= MOST_ALONE_S:
            with suppress(NoFigures):
                return bench.short(1, needed_s, monotonic).reading
        return first

    def most_rps(self, plan: TrialPlan, demand: Demand | None) -> float | None:
        """What it did under its light load, at most what is offered. The probe speaks no TLS."""
        if plan.url.startswith("https:"):
            return 0.0
        light_rps = (demand.light_rps if demand else None) or 0.0
        return min(light_rps, plan.offered_rps or math.inf)

    def compilation_s(self) -> float:
        return self._jvm().compilation_s()

    def jit(self, system: System) -> jvm.JitReading | None:
        return None

    def live_heap(self) -> None:
        """It has no call for that."""

    def memory(self) -> Memory:
        raise LabUnreachable("it has no call for its live heap", self.name)

    def _jvm(self) -> Exporter:
        """Raises LabUnreachable at once if no exporter answered, without the wait for one."""
        if self._exporter is None:
            problem = f"no JMX exporter on port {EXPORTER_PORT} that prometheus/own.json lists"
            raise LabUnreachable(problem, self.name)
        return self._exporter

    def _compiled_s(self) -> float | None:
        with suppress(LabUnreachable):
            return self.compilation_s()
        return None

    def _times(self, system: System) -> jvm.CpuTimes:
        at_s, host, cpu_s = system.monotonic(), system.host_cpu(), None
        with suppress(LabUnreachable):
            cpu_s = self._jvm().cpu_s()
        return jvm.CpuTimes(at_s, host, cpu_s)


def _mostly_failed(reading: Reading) -> bool:
    return error_share(reading, None) > jvm.MOST_FAILED  # The light loads are closed.


def _r0_problem(alone: Reading, light: Reading | None, connections: int) -> str | None:
    """Why the mean of a single connection is not R0."""
    if alone.samples < LEAST_ALONE:
        answers = f"a single connection got {alone.samples} answers before the load"
        return f"{answers}, and a mean needs {LEAST_ALONE}"
    if alone.raw is None or light is None or light.raw is None:
        return None
    alone_ms, among_ms = alone.raw.mean_ms, light.raw.mean_ms
    if among_ms >= QUICKER * alone_ms:
        return None
    took = f"{connections} connections were answered in {among_ms:.3g} ms on average"
    return f"{took}, sooner than a single one in {alone_ms:.3g} ms"
