"""The agent as a service: HTTP on top, the load's lines, the probe and the toxics watch beneath.

* GET /metrics   Prometheus text
* GET /health    200 {"status": "up"}: answered by the event loop that everything else runs in;
                 503 when a background task has died
* GET /trial     the trial that runs, or 404
* PUT /trial     announce or refresh a trial (see trial.parse_announcement)
* DELETE /trial  the trial is over: the probe stops, the marks go
* PUT /load      lines of the load's engine, as they are (see load.LoadLines.take); 409 while no
                 trial runs
* PUT /attention  {"servers", "expires_s"}: a driver has turned to these (see Agent.idle)
* GET /toxics    looks at Toxiproxy, then answers
                 {"changes": [{"proxy", "toxic" ("" = down or up, "(removed)" = a toxic is gone),
                 "since"}], "first_look": when the agent began to look; these are empty and null
                 while Toxiproxy does not answer; "history": every change ever seen, with the
                 toxic's own name; "watched": {"from", "to", "gaps": [{"from", "to"}]}, null
                 before the first look}
* GET /targets/servers   for Prometheus (http_sd): every server that is up, with the label `__idle`
                 where it is not the one that is measured
* GET /targets/cadvisor  the same of cAdvisor, labelled with this lab's project; on several machines
                 of the one on each, labelled with the machine

On the same port the agent serves the control page (`lab.live.control`) to the host.
`lab.live.control.guard` decides who may ask for what.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lab.errors import WordError
from lab.experiments.reading import read_servers
from lab.live.agent.load import LoadLines
from lab.live.agent.metrics import ClientMetrics, ToxicsCollector, TrialCollector
from lab.live.agent.probe import Probe, ProbeSettings
from lab.live.agent.trial import Trial, parse_announcement, parse_attention
from lab.live.agent.watch import ToxicsWatch
from lab.live.clock import Clock
from lab.live.control.api import Control, Now
from lab.live.control.guard import Guard, page_hosts
from lab.live.control.knobs import Servers
from lab.live.control.live import Live
from lab.live.http import body_of, json_object
from lab.model.machines import MACHINES
from lab.system.http import Http
from lab.system.prometheus import Prometheus
from lab.system.stack import Urls, project_of
from lab.system.tokens import PAGE, token
from lab.system.toxiproxy import Toxiproxy

PORT = 9464
# After SIGTERM, requests (a scrape, a PUT) have this many seconds before connections are cut.
GRACE_S = 1
# A line has a few hundred buckets, some thousand under overload; several come after a stall.
LARGEST_LINES = 4_000_000


def probe_settings(environ: Mapping[str, str]) -> ProbeSettings:
    """The probe's rate, from LAB_PROBE_RPS. Raises WordError."""
    given = environ.get("LAB_PROBE_RPS", "20")
    try:
        return ProbeSettings(float(given))
    except ValueError as failure:
        allowed = "above 0 to 1000 requests per second"
        raise WordError(f"agent: LAB_PROBE_RPS={given}; allowed: {allowed}") from failure


def published_ports(environ: Mapping[str, str]) -> dict[str, int]:
    """The ports on the host, from Compose: LAB_CONTROL_PORT of this page, LAB_PROMETHEUS_PORT, and
    LAB_GRAFANA_PORT where LAB_PROFILES has Grafana. Raises WordError."""
    ports = {}
    for name in ("control", "grafana", "prometheus"):
        variable = f"LAB_{name.upper()}_PORT"
        given = environ.get(variable, "")
        if given and not (given.isdecimal() and 0 < int(given) < 65536):
            raise WordError(f"agent: {variable}={given}; allowed: a port, 1..65535")
        absent = name == "grafana" and "grafana" not in environ.get("LAB_PROFILES", "").split(",")
        if given and not absent:
            ports[name] = int(given)
    return ports


class Agent:
    """The state of the service. Lives in one event loop. ``clock`` tells the times."""

    def __init__(self, clock: Clock, probe: Probe, watch: ToxicsWatch) -> None:
        self._clock = clock
        self._probe = probe
        self._watch = watch
        self._trial: Trial | None = None
        self._until = 0.0
        self._attended: frozenset[str] = frozenset()
        self._attended_until = 0.0
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        # Announcements are applied one by one: each waits for the probe to stop.
        self._order = asyncio.Lock()

    @property
    def trial(self) -> Trial | None:
        """The trial that runs now; None between trials and after one has expired."""
        if self._trial is not None and self._clock.monotonic() >= self._until:
            return None
        return self._trial

    def attend(self, servers: frozenset[str], expires_s: float) -> None:
        """A driver has turned to these servers, and says so again or is done after so long."""
        self._attended = servers
        self._attended_until = self._clock.monotonic() + expires_s

    def idle(self, server: str) -> bool:
        """Whether another server is being measured, so that this one need not be looked at closely.
        While nobody measures none is idle: whoever loads one by hand wants to see it."""
        attended: frozenset[str] = frozenset()
        if self._clock.monotonic() < self._attended_until:
            attended = self._attended
        if (trial := self.trial) is not None:
            attended = frozenset([trial.server])
        return bool(attended) and server not in attended

    @property
    def healthy(self) -> bool:
        """Whether the background tasks are alive, and the probe's while a trial runs."""
        alive = bool(self._tasks) and not any(task.done() for task in self._tasks)
        return alive and (self.trial is None or self._probe.running)

    async def announce(self, trial: Trial, expires_s: float) -> None:
        """Start or refresh a trial. A change of phase alone keeps the probe's stream."""
        async with self._order:
            if not (self._probe.running and trial.same_probe(self.trial)):
                self._trial = None
                await self._probe.start(trial)
            self._trial = trial
            self._until = self._clock.monotonic() + expires_s

    async def end(self) -> None:
        async with self._order:
            await self._end()

    async def expire(self) -> None:
        """Stop the probe of a trial that nobody refreshed, because its driver is gone."""
        async with self._order:
            if self._trial is not None and self.trial is None:
                await self._end()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The background tasks, from start to end."""
        self._tasks = (
            asyncio.create_task(self._watch.run(), name="toxics-watch"),
            asyncio.create_task(self._expire(), name="expiry"),
        )
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
            await self.end()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _expire(self) -> None:
        while True:
            await self._clock.sleep_until(self._clock.monotonic() + 1.0)
            await self.expire()

    async def _end(self) -> None:
        self._trial = None
        await self._probe.stop()


def new_app(
    agent: Agent,
    load: LoadLines,
    watch: ToxicsWatch,
    registry: CollectorRegistry,
    project: str,
    up: Callable[[], Sequence[str]],
    control: Control | None = None,
    machines: Sequence[str] = (),
) -> Starlette:
    """The HTTP side of an agent, and its control page. `up` tells the servers that are up now;
    `machines` are those of the lab, where it is on several."""

    async def refuse(_: Request, refusal: Exception) -> Response:
        return JSONResponse({"error": str(refusal)}, 400)

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def health(_: Request) -> Response:
        if agent.healthy:
            return JSONResponse({"status": "up"})
        return JSONResponse({"status": "down", "reason": "a background task ended"}, 503)

    async def show(_: Request) -> Response:
        trial = agent.trial
        return Response(status_code=404) if trial is None else JSONResponse(asdict(trial))

    async def announce(request: Request) -> Response:
        await agent.announce(*parse_announcement(await json_object(request)))
        return Response(status_code=204)

    async def end(_: Request) -> Response:
        await agent.end()
        return Response(status_code=204)

    async def tell(request: Request) -> Response:
        body = await body_of(request, LARGEST_LINES)
        trial = agent.trial
        if trial is None:
            return JSONResponse({"error": "no trial runs"}, 409)
        load.take(trial, body)
        return Response(status_code=204)

    async def toxics(_: Request) -> Response:
        await watch.look_now()
        return JSONResponse(watch.told)

    async def attend(request: Request) -> Response:
        agent.attend(*parse_attention(await json_object(request)))
        return Response(status_code=204)

    async def servers(_: Request) -> Response:
        return JSONResponse(
            [
                {"targets": [name], "labels": {"__idle": "yes"} if agent.idle(name) else {}}
                for name in up()
            ]
        )

    async def cadvisor(_: Request) -> Response:
        labels = {f"cadvisor-{one}:8080": {"machine": one} for one in machines}
        labels = labels or {"cadvisor:8080": {}}
        return JSONResponse(
            [{"targets": [one], "labels": {"project": project, **of}} for one, of in labels.items()]
        )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with agent.running():
            yield

    routes = [
        Route("/metrics", metrics),
        Route("/health", health),
        Route("/trial", show, methods=["GET"]),
        Route("/trial", announce, methods=["PUT"]),
        Route("/trial", end, methods=["DELETE"]),
        Route("/load", tell, methods=["PUT"]),
        Route("/toxics", toxics),
        Route("/attention", attend, methods=["PUT"]),
        Route("/targets/servers", servers),
        Route("/targets/cadvisor", cadvisor),
        *(control.routes if control is not None else ()),
    ]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={WordError: refuse})


def build(environ: Mapping[str, str], clock: Clock) -> ASGIApp:
    """All parts, wired. Raises LabError for a bad setting."""
    urls, ports = Urls.read(environ), published_ports(environ)
    http, registry = Http(secret=urls.secret), CollectorRegistry()
    watch = ToxicsWatch(urls.toxiproxy, clock, secret=urls.secret)
    load = LoadLines(clock)
    clients = ClientMetrics(clock, lambda: agent.trial, load.due)
    registry.register(clients)
    agent = Agent(clock, Probe(probe_settings(environ), clock, clients), watch)
    registry.register(TrialCollector(lambda: agent.trial))
    registry.register(ToxicsCollector(lambda: watch.seen))

    def now() -> Now:
        trial, seen = agent.trial, watch.seen
        return Now(
            trial=None if trial is None else asdict(trial),
            proxies=None if seen is None else seen.in_force.proxies,
            told=watch.told,
        )

    home = Path(environ.get("LAB_HOME", "/lab"))

    def up() -> tuple[str, ...]:
        # A new model is scraped without a new agent.
        return read_servers(home / "servers", environ)

    control = Control(
        {name: port for name, port in ports.items() if name != "control"},
        now,
        watch.look_now,
        Toxiproxy(http, urls.toxiproxy),
        Live(Prometheus(http, urls.prometheus), clock),
        Servers(up(), http),
        clock,
    )
    project = project_of(environ)
    machines = environ.get(MACHINES, "").split()
    app = new_app(agent, load, watch, registry, project, up, control, machines)
    return Guard(
        app,
        page_hosts({PORT, ports.get("control", PORT)}),
        {urlsplit(urls.agent).netloc},
        page_token=urls.secret and token(urls.secret, PAGE),
        agent_token=urls.secret and token(urls.secret, str(urlsplit(urls.agent).hostname)),
    )


def run(environ: Mapping[str, str], host: str = "0.0.0.0", port: int = PORT) -> None:  # noqa: S104
    """Serve until SIGTERM or SIGINT, then stop within two seconds with exit status 0.

    Listens on every interface of its container, which publishes no port: the host asks by the
    front (go/downstream/service/front.go).
    Raises LabError for a bad setting.
    """
    app = build(environ, Clock())
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    # uvicorn raises the signal that stopped it once more when it is done; a stop on request
    # is not a failure.
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, _leave)
    uvicorn.Server(config).run()


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)
