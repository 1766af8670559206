"""The agent as a service, wired from the environment. The same port serves the control page
(`lab.live.control`) to the host; `lab.live.control.guard` checks every request."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from lab.errors import LabError
from lab.kinds.reading import read_servers
from lab.live.agent.agent import Agent
from lab.live.agent.watch import ToxicsWatch
from lab.live.clock import Clock
from lab.live.control.api import Control
from lab.live.control.guard import Guard, page_hosts
from lab.live.http import refuse
from lab.model.host_facts import MACHINES
from lab.system.agent import HOST, PORT
from lab.system.stack import Stack, project_of
from lab.system.tokens import PAGE, token

# After SIGTERM, requests have this many seconds.
GRACE_S = 1


def published_ports(environ: Mapping[str, str]) -> dict[str, int]:
    """The ports on the host: of this page, of Prometheus, and of Grafana if LAB_PROFILES has it."""
    has_grafana = "grafana" in environ.get("LAB_PROFILES", "").split(",")
    names = ("control", "grafana", "prometheus") if has_grafana else ("control", "prometheus")
    given = {name: environ.get(f"LAB_{name.upper()}_PORT", "") for name in names}
    return {name: int(port) for name, port in given.items() if port}


def new_app(agent: Agent, routes: Sequence[BaseRoute]) -> Starlette:
    """The agent runs while the application does."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with agent.running():
            yield

    routes = [*agent.routes, *routes]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={LabError: refuse})


def build(environ: Mapping[str, str], clock: Clock) -> ASGIApp:
    """Raises LabError for a bad setting."""
    secret, ports = environ.get("LAB_SECRET", ""), published_ports(environ)
    stack = Stack(secret)
    watch = ToxicsWatch(stack.toxiproxy, clock)
    # Read each time: a new model is scraped without a new agent.
    servers = partial(read_servers, Path(environ.get("LAB_HOME", "/lab")) / "servers", environ)
    machines = environ.get(MACHINES, "").split()
    agent = Agent(clock, watch, servers, project_of(environ), machines)
    control = Control(
        links={name: port for name, port in ports.items() if name != "control"},
        servers=servers(),
        trial=lambda: agent.trial,
        watch=watch,
        stack=stack,
    )
    return Guard(
        new_app(agent, control.routes),
        page_hosts({PORT, ports.get("control", PORT)}),
        {f"{HOST}:{PORT}"},
        page_token=secret and token(secret, PAGE),
        agent_token=secret and token(secret, HOST),
    )


def run(environ: Mapping[str, str]) -> None:
    """Serve until SIGTERM or SIGINT, then stop within two seconds with exit status 0.

    Listens on every interface of its container, which publishes no port: the host's requests come
    through the front (go/downstream/service/front.go).
    """
    config = uvicorn.Config(
        build(environ, Clock()),
        host="0.0.0.0",  # noqa: S104
        port=PORT,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    # uvicorn raises the signal again when it is done; a stop on request is no failure.
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: sys.exit(0))
    uvicorn.Server(config).run()
