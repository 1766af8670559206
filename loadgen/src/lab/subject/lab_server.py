"""A server of the lab: it publishes who it is, what it is set to, and what it counted."""

from __future__ import annotations

from contextlib import suppress
from copy import replace
from typing import TYPE_CHECKING

import httpx

from lab.errors import LabUnreachable
from lab.model import Demand, Snapshot, ToxicState, TrialPlan, bucket_quantile
from lab.model.routes import parse
from lab.subject import jvm, subject
from lab.subject.changes import Knobs
from lab.subject.jvm import Answered, Counters
from lab.subject.subject import Memory, Subject
from lab.system.exporter import Exporter
from lab.system.host import Clock, System
from lab.system.http import Part
from lab.system.management import Management, RouteWork
from lab.system.stack import Stack

if TYPE_CHECKING:
    from lab.load.bench import Bench, EngineRun

PORT = 8080
MODEL_HEADER = "Lab-Model"
# A JVM that is just being restarted comes back in this time.
BACK_S = 30.0
# A request costs less under more load, because work is done in larger batches (docs/method.md).
MOST_CONNECTIONS = 1000


class LabServer(Subject):
    """See Subject."""

    process = "JVM"
    rests = uses_toxiproxy = has_identity = True
    _exporter: Exporter

    def __init__(self, name: str, stack: Stack) -> None:
        traffic = Part(stack.http, name, f"http://{name}:{PORT}")
        super().__init__(name, traffic, Exporter(stack.http, name))
        self._stack = stack
        self.recorder = self._management = Management(stack.http, name)
        self.knobs = Knobs(self._management)

    def check(self) -> None:
        self.check_answer(self._traffic.call("GET", "/health"))

    def check_recorder(self) -> None:
        """The server itself records."""

    def routes(self) -> tuple[str, ...]:
        return self._management.routes()

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
        before_ms = subject.await_answer(self._management.identity, clock, BACK_S).start_time_ms
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

    def light(self, plan: TrialPlan, most: int) -> int:
        if parse(plan.route).wait_ms == 0:
            # A request that only computes keeps a CPU busy: use no more connections than the trial.
            return min(plan.concurrency, jvm.LIGHT_CONNECTIONS)
        return max(jvm.LIGHT_CONNECTIONS, min(most, MOST_CONNECTIONS))

    def most_rps(self, plan: TrialPlan, demand: Demand | None) -> float | None:
        return plan.predicted_rps

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

    def work(self, bench: Bench, run: EngineRun | None) -> RouteWork:
        return self._management.work(bench.plan.route)

    def answered(self, before: Counters, after: Counters) -> Answered | None:
        """Of the plan's route, by the server's own counters."""
        earlier: RouteWork = before.work
        later: RouteWork = after.work
        count, failed = later.requests - earlier.requests, later.failed - earlier.failed
        if count < 0:
            return None
        # A route has no buckets until its first request.
        known = dict(earlier.buckets)
        buckets = [(le, seen - known.get(le, 0.0)) for le, seen in later.buckets]
        p50_s = bucket_quantile(buckets, 0.5)
        p50_ms = None if p50_s is None else p50_s * 1000
        return Answered(count, failed, after.at_s - before.at_s, p50_ms)

    def drawn_sd_ms(self, plan: TrialPlan) -> float:
        with suppress(LabUnreachable):
            spread = self._stack.downstream.delay()[1]
            if spread is not None and parse(plan.route).route.calls_downstream:
                return spread.sd_ms
        return 0.0

    def check_answer(self, answer: httpx.Response) -> None:
        model = answer.headers.get(MODEL_HEADER)
        if model != self.name:
            problem = f"{answer.url} is answered by {model or 'something without a name'}"
            raise LabUnreachable(problem, self.name)
