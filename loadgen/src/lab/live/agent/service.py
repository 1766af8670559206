"""The agent as a service: all parts, wired from the environment.

On the same port it serves the control page (`lab.live.control`) to the host.
`lab.live.control.guard` decides who may ask for what.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from lab.errors import LabError, WordError
from lab.kinds.reading import read_servers
from lab.live.agent.agent import Agent
from lab.live.agent.watch import ToxicsWatch
from lab.live.clock import Clock
from lab.live.control.api import Control
from lab.live.control.guard import Guard, page_hosts
from lab.live.http import refuse
from lab.model.host_facts import MACHINES
from lab.system.http import Http
from lab.system.prometheus import Prometheus
from lab.system.stack import Urls, project_of
from lab.system.tokens import PAGE, token
from lab.system.toxiproxy import Toxiproxy

PORT = 9464
# After SIGTERM, requests (a scrape, a PUT) have this many seconds before connections are cut.
GRACE_S = 1


def probe_rps(environ: Mapping[str, str]) -> float:
    """The probe's rate, from LAB_PROBE_RPS. Raises WordError."""
    given = environ.get("LAB_PROBE_RPS", "20")
    try:
        if 0 < float(given) <= 1000:
            return float(given)
    except ValueError:
        pass
    raise WordError(f"agent: LAB_PROBE_RPS={given}; allowed: above 0 to 1000 requests per second")


def published_ports(environ: Mapping[str, str]) -> dict[str, int]:
    """The ports on the host that Compose has published: of this page, of Prometheus, and of Grafana
    if LAB_PROFILES has it."""
    has_grafana = "grafana" in environ.get("LAB_PROFILES", "").split(",")
    names = ("control", "grafana", "prometheus") if has_grafana else ("control", "prometheus")
    given = {name: environ.get(f"LAB_{name.upper()}_PORT", "") for name in names}
    return {name: int(port) for name, port in given.items() if port}


def new_app(agent: Agent, routes: Sequence[BaseRoute]) -> Starlette:
    """While the application runs, the agent does."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with agent.running():
            yield

    routes = [*agent.routes, *routes]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={LabError: refuse})


def build(environ: Mapping[str, str], clock: Clock) -> ASGIApp:
    """All parts, wired. Raises LabError for a bad setting."""
    urls, ports = Urls.read(environ), published_ports(environ)
    http = Http(secret=urls.secret)
    watch = ToxicsWatch(http, urls.toxiproxy, clock)
    # Read each time: a new model is scraped without a new agent.
    servers = partial(read_servers, Path(environ.get("LAB_HOME", "/lab")) / "servers", environ)
    machines = environ.get(MACHINES, "").split()
    agent = Agent(clock, watch, probe_rps(environ), servers, project_of(environ), machines)
    control = Control(
        links={name: port for name, port in ports.items() if name != "control"},
        servers=servers(),
        trial=lambda: agent.trial,
        watch=watch,
        toxiproxy=Toxiproxy(http, urls.toxiproxy),
        http=http,
        prometheus=Prometheus(http, urls.prometheus),
    )
    inside = urlsplit(urls.agent)
    return Guard(
        new_app(agent, control.routes),
        page_hosts({PORT, ports.get("control", PORT)}),
        {inside.netloc},
        page_token=urls.secret and token(urls.secret, PAGE),
        agent_token=urls.secret and token(urls.secret, str(inside.hostname)),
    )


def run(environ: Mapping[str, str]) -> None:
    """Serve until SIGTERM or SIGINT, then stop within two seconds with exit status 0.

    Listens on every interface of its container, which publishes no port: the host asks by the
    front (go/downstream/service/front.go).
    Raises LabError for a bad setting.
    """
    config = uvicorn.Config(
        build(environ, Clock()),
        host="0.0.0.0",  # noqa: S104
        port=PORT,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    # uvicorn raises the signal that stopped it once more when it is done; a stop on request
    # is not a failure.
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: sys.exit(0))
    uvicorn.Server(config).run()
