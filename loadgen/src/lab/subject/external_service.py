"""A service of the user's own: only its clients see it, and its JVM if the user lets them.

The lab's servers count their requests. Here the generator does: its lines, one a second, are what
was answered.
"""

from __future__ import annotations

import copy
import math
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx

from lab.errors import LabUnreachable
from lab.judge.checks import data
from lab.model import Demand, Remark, Snapshot, TrialPlan, Warmth
from lab.model.routes import EXPORTER_PORT, RECORDER_PORT, THIS_MACHINE
from lab.subject import jvm, subject
from lab.subject.jvm import Answered, Counters, Edges
from lab.subject.subject import Subject
from lab.system.exporter import Exporter
from lab.system.host import Clock
from lab.system.host_changes import FRESH, HostChanges
from lab.system.http import NoAnswer, Part
from lab.system.management import Recorder
from lab.system.stack import Stack

if TYPE_CHECKING:
    from lab.load.bench import Bench, EngineRun

FORBIDDEN = 403
# Without compile times: most JVMs are warm by then (docs/method.md).
FIXED_WARM_S = 10.0
# How long a single connection measures R0, and for how long at most if it has fewer answers than
# LEAST_ALONE by then: a mean of these says little.
ALONE_S = 3.0
LEAST_ALONE = 20
MOST_ALONE_S = 15.0
# No request is quicker among others than alone. If it was, the mean alone is not R0.
QUICKER = 0.95


class ExternalService(Subject):
    """See Subject. Its `url` is scheme, host and port, and the path `ready` answers when it is.

    Whether a JMX exporter answers on its host is checked once, here: a host may run other JVMs
    beside the service, so it counts only if the user has listed the host for Prometheus."""

    process = "container"
    rests = uses_toxiproxy = has_identity = False

    def __init__(self, name: str, url: str, ready: str, stack: Stack, host: HostChanges) -> None:
        super().__init__(name, Part(stack.http, name, url), _exporter(name, stack))
        self._ready = ready
        self._stack = stack
        self._host = host
        self.recorder = Recorder(stack.http, name, f"http://{name}:{RECORDER_PORT}")

    def check(self) -> None:
        """Any answer may be its own: `check_route` judges it."""

    def check_answer(self, answer: httpx.Response) -> None:
        """It does not name its service."""

    def _check_started(self) -> None:
        """An answer of 5xx is that of one that still starts."""
        status = self._traffic.beginning(self._ready, subject.ROUTE_DEADLINE_S).status_code
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
        try:
            return super().check_route(route)
        except NoAnswer as failure:
            if self.name != THIS_MACHINE:
                raise
            hint = "on this machine it must listen on an address that containers can reach "
            hint += "(0.0.0.0, or that of docker0), not only on 127.0.0.1"
            raise LabUnreachable(f"{failure.problem}; {hint}", self.name) from None

    def snapshot(self) -> Snapshot:
        delay_ms, spread = self._stack.downstream.delay()
        exported = self._exporter.exported() if self._exporter else None
        settings = {"url": self._traffic.url}
        return Snapshot(None, settings, self._stack.toxics(), delay_ms, exported, spread)

    def settled(self, clock: Clock) -> bool:
        """It does not show what it works on, so it is sent one more request: if it takes requests
        in turn, its answer shows that those before are done."""
        try:
            self._traffic.beginning(self._ready, subject.SETTLE_S)
        except NoAnswer as failure:
            return not failure.late
        return True

    def renew(self, clock: Clock) -> None:
        self._host.change(self.name, {FRESH: "yes"}, clock)
        self.await_another(None, clock)

    def await_another(self, before_ms: int | None, clock: Clock) -> None:
        subject.await_answer(self._check_started, clock)

    def light(self, plan: TrialPlan, most: int) -> int:
        """It may wait or not, so the load has no more connections than the trial."""
        return min(plan.concurrency, jvm.LIGHT_CONNECTIONS, most)

    def warm(self, bench: Bench, connections: int) -> tuple[Warmth, Edges | None]:
        """Without JIT compile time nothing can be proven: it is loaded for FIXED_WARM_S."""
        bench = bench.counted
        if self.compiled(bench.system) is not None:
            return super().warm(bench, connections)
        with bench.watched(connections, 2 * FIXED_WARM_S) as run:
            for _ in run.steps(FIXED_WARM_S):
                bench.progress()
            failed = {"problem": run.words} if run.ended else {}
        self.settled(bench.system)
        problem = data.warmth_unproven.remark(server=self.name, port=EXPORTER_PORT, **failed)
        return Warmth(False, (), problem, provable=False), None

    def demand(
        self, bench: Bench, connections: int, cores: int | None, edges: Edges | None
    ) -> Demand | None:
        """Before the light load a single connection, which waits for no other, measures R0, and the
        generator's think time Z: means, as N = X·(R + Z) holds for means."""
        bench = bench.counted
        alone = self._alone(bench)
        self.settled(bench.system)
        if not alone.good:
            return None
        cost = self._cost(bench, connections, cores, edges)
        demand, light = cost or (Demand(1, round(alone.count), None, None), None)
        problem = _r0_problem(alone, light, connections)
        return copy.replace(
            demand,
            r0_ms=None if problem else alone.mean_ms,
            light_rps=light.rps if light else None,
            r0_problem=problem,
            think_ms=alone.think_ms,
        )

    def _alone(self, bench: Bench) -> Answered:
        """Of a single connection."""
        with bench.watched(1, 2 * MOST_ALONE_S) as run:
            for elapsed_s in run.steps(MOST_ALONE_S + subject.OPENING_S):
                bench.progress()
                run.hear(keep=True)
                answers = sum(line.answers for line in run.seconds[1:])
                if elapsed_s >= ALONE_S + subject.OPENING_S and answers >= LEAST_ALONE:
                    break
            return run.answered(1)

    def work(self, bench: Bench, run: EngineRun | None) -> tuple[EngineRun | None, int]:
        if run is None:
            return None, 0
        run.hear(keep=True)
        return run, len(run.seconds)

    def answered(self, before: Counters, after: Counters) -> Answered | None:
        """But for the first second of the load, in which its connections open."""
        run: EngineRun = after.work[0]
        until: int = after.work[1]
        return run.answered(max(1, before.work[1]), until)

    def most_rps(self, plan: TrialPlan, demand: Demand | None) -> float | None:
        """What it did under its light load, at most what is offered. The probe speaks no TLS."""
        if plan.url.startswith("https:"):
            return 0.0
        light_rps = (demand.light_rps if demand else None) or 0.0
        return min(light_rps, plan.offered_rps or math.inf)


def _exporter(name: str, stack: Stack) -> Exporter | None:
    """Its JMX exporter, if Prometheus lists that and it answers."""
    with suppress(LabUnreachable):
        listed = ("jvm", f"{name}:{EXPORTER_PORT}")
        if listed in {(each.job, each.instance) for each in stack.prometheus.targets()}:
            exporter = Exporter(stack.http, name)
            exporter.started_s()
            return exporter
    return None


def _r0_problem(alone: Answered, light: Answered | None, connections: int) -> str | None:
    """Why the mean of a single connection is not R0."""
    if alone.count < LEAST_ALONE:
        answers = f"a single connection got {alone.count:.0f} answers before the load"
        return f"{answers}, and a mean needs {LEAST_ALONE}"
    if alone.mean_ms is None or light is None or light.mean_ms is None:
        return None
    if light.mean_ms >= QUICKER * alone.mean_ms:
        return None
    took = f"{connections} connections were answered in {light.mean_ms:.3g} ms on average"
    return f"{took}, sooner than a single one in {alone.mean_ms:.3g} ms"
