"""The agent: its HTTP routes and its state.

* GET /metrics     Prometheus text
* GET /health      503 when a background task has died
* PUT /trial       announce or refresh a trial (lab.system.agent.Trial); GET shows it, or 404
* DELETE /trial    the trial is over: the probe stops, the marks go
* PUT /load        lines of the load's engine; 409 while no trial runs
* PUT /attention   a driver measures these servers (lab.system.agent.Attention)
* GET /toxics      looks at Toxiproxy, then answers (lab.system.agent.ToxicsSeen)
* GET /targets/servers    for Prometheus (http_sd): the servers that are up; `__idle` if another
                   one is measured
* GET /targets/cadvisor   the same of cAdvisor, on each of several machines
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from lab.live.agent.load import LoadLines
from lab.live.agent.metrics import AgentMetrics
from lab.live.agent.probe import Probe
from lab.live.agent.watch import ToxicsWatch
from lab.live.clock import Clock
from lab.live.http import Json, body_of, decoded
from lab.system.agent import Attention, Trial

# A toxic must show within seconds, and a small request per second costs nothing.
INTERVAL_S = 1.0
# A line has a few hundred buckets, some thousand under overload. After a stall several come.
LARGEST_LINES = 4_000_000


class Agent:
    """Lives in one event loop. ``servers`` gives those that are up now; ``machines`` are those of a
    lab on several."""

    def __init__(
        self,
        clock: Clock,
        watch: ToxicsWatch,
        servers: Callable[[], Sequence[str]],
        project: str,
        machines: Sequence[str] = (),
    ) -> None:
        self._clock = clock
        self._watch = watch
        self._servers = servers
        self._project = project
        self._machines = machines
        self._metrics = AgentMetrics(clock, lambda: self.trial, watch)
        self._load = LoadLines(clock, self._metrics)
        self._probe = Probe(clock, self._metrics)
        self._trial: Trial | None = None
        self._trial_until = -math.inf
        self._attended: tuple[str, ...] = ()
        self._attended_until = -math.inf
        self._task: asyncio.Task[None] | None = None

    @property
    def trial(self) -> Trial | None:
        """The trial that runs now; None between trials and after one has expired."""
        return self._trial if self._clock.monotonic() < self._trial_until else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The background task, from start to end."""
        self._task = asyncio.create_task(self._run(), name="agent")
        try:
            yield
        finally:
            self._probe.stop()
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        """Each second, look at the toxics, and stop the probe of an expired trial, whose driver is
        gone."""
        due = self._clock.monotonic()
        while True:
            if self.trial is None:
                self._probe.stop()
            await self._watch.look()
            due = max(due + INTERVAL_S, self._clock.monotonic())
            await self._clock.sleep_until(due)

    @property
    def routes(self) -> list[BaseRoute]:
        return [
            Route("/metrics", self._show_metrics),
            Route("/health", self._show_health),
            Route("/trial", self._show_trial, methods=["GET"]),
            Route("/trial", self._announce_trial, methods=["PUT"]),
            Route("/trial", self._end_trial, methods=["DELETE"]),
            Route("/load", self._take_lines, methods=["PUT"]),
            Route("/attention", self._attend, methods=["PUT"]),
            Route("/toxics", self._show_toxics),
            Route("/targets/servers", self._show_servers),
            Route("/targets/cadvisor", self._show_cadvisor),
        ]

    async def _show_metrics(self, _: Request) -> Response:
        self._load.count()
        return Response(generate_latest(self._metrics), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def _show_health(self, _: Request) -> Response:
        if self._task is None or self._task.done() or self._probe.is_broken:
            return Json({"status": "down", "reason": "a background task ended"}, 503)
        return Json({"status": "up"})

    async def _show_trial(self, _: Request) -> Response:
        trial = self.trial
        return Response(status_code=404) if trial is None else Json(trial)

    async def _announce_trial(self, request: Request) -> Response:
        trial = await decoded(request, Trial)
        # A change of phase alone keeps the probe's stream.
        if not trial.is_probed_as(self.trial):
            self._probe.start(trial)
        self._trial = trial
        self._trial_until = self._clock.monotonic() + trial.expires_s
        return Response(status_code=204)

    async def _end_trial(self, _: Request) -> Response:
        self._trial = None
        self._probe.stop()
        return Response(status_code=204)

    async def _take_lines(self, request: Request) -> Response:
        body = await body_of(request, LARGEST_LINES)
        trial = self.trial
        if trial is None:
            return Json({"error": "no trial runs"}, 409)
        self._load.take(trial, body)
        return Response(status_code=204)

    async def _attend(self, request: Request) -> Response:
        attention = await decoded(request, Attention)
        self._attended = attention.servers
        self._attended_until = self._clock.monotonic() + attention.expires_s
        return Response(status_code=204)

    async def _show_toxics(self, _: Request) -> Response:
        await self._watch.look()
        return Json(self._watch.seen)

    async def _show_servers(self, _: Request) -> Response:
        """Servers are idle while another one is measured. Without a measurement none is: a user
        may load one by hand."""
        measured: tuple[str, ...] = ()
        if self.trial is not None:
            measured = (self.trial.server,)
        elif self._clock.monotonic() < self._attended_until:
            measured = self._attended
        servers = self._servers()
        idle = {*servers} - {*measured} if measured else set()
        return _targets({name: {"__idle": "yes"} if name in idle else {} for name in servers})

    async def _show_cadvisor(self, _: Request) -> Response:
        machines = {f"cadvisor-{name}:8080": {"machine": name} for name in self._machines}
        targets = machines or {"cadvisor:8080": {}}
        return _targets({at: {"project": self._project, **more} for at, more in targets.items()})


def _targets(labels: Mapping[str, Mapping[str, str]]) -> Response:
    """For http_sd: the labels of each address."""
    return Json([{"targets": [at], "labels": more} for at, more in labels.items()])
