"""The control page's API on fakes: a Toxiproxy in memory, servers and a Prometheus that answer as
the test says."""

import dataclasses
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import BaseRoute

from lab.live.control.api import Control, Now
from lab.live.control.guard import Guard, page_hosts
from lab.live.control.knobs import Servers
from lab.live.control.live import Live
from lab.model.toxic_words import parse_toxic
from lab.model.toxics import Proxy
from lab.system.http import Http
from lab.system.prometheus import Prometheus
from lab.system.toxiproxy import Toxiproxy
from live.agent.conftest import FakeClock
from support.toxiproxy import FakeToxiproxy

NAMES = ("fixed-pool", "event-loop")
PAGE = "http://127.0.0.1:9464"
CHANGE = {"Lab-Control": "1", "Origin": PAGE}
START = 1_763_700_000.0
# The agent looks at Toxiproxy so often.
LATE_S = 1.0


class StandingClock(FakeClock):
    """Moves only when the test says."""

    def wall(self) -> float:
        return START + self.now


@dataclasses.dataclass
class FakeLab:
    """What the parts answer."""

    toxiproxy: FakeToxiproxy = dataclasses.field(default_factory=FakeToxiproxy)
    settings: dict[str, dict[str, Any]] = dataclasses.field(
        default_factory=lambda: {
            "fixed-pool": {"pool_size": 200, "queue_bound": 0, "downstream_url": "http://x/"},
            "event-loop": {"pool_size": None, "queue_bound": None, "downstream_connections": 20000},
        }
    )
    numbers: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    queries: int = 0
    down: set[str] = dataclasses.field(default_factory=set)
    trial: Mapping[str, object] | None = None
    changes: list[dict[str, str]] = dataclasses.field(default_factory=list)
    history: list[dict[str, str]] = dataclasses.field(default_factory=list)
    # How long Prometheus thinks.
    thinks_s: float = 0.0
    _seen: tuple[Proxy, ...] | None = None
    _next: tuple[Proxy, ...] | None = None
    _looked_at: float | None = None

    def answer(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        if host in self.down:
            raise httpx.ConnectError("refused", request=request)
        if host == "prometheus":
            time.sleep(self.thinks_s)
            self.queries += 1
            result = [
                {"metric": {"server": server, "is": name}, "value": [0, value]}
                for (server, name), value in self.numbers.items()
            ]
            return httpx.Response(200, json={"data": {"result": result}})
        settings = self.settings[host]
        if request.method == "PATCH":
            for name, value in json.loads(request.content).items():
                if settings.get(name) is None:
                    return httpx.Response(400, json={"error": f"'{name}' cannot be changed"})
                settings[name] = value
        return httpx.Response(200, json={"model": host, "settings": settings})

    def now(self) -> Now:
        """As the agent tells it: what it saw a second ago or before, unless it looked at once."""
        if self._looked_at is None:
            self._seen = self._next = self._in_force()
            self._looked_at = time.monotonic()
        elif time.monotonic() - self._looked_at >= LATE_S:
            self._seen, self._next = self._next, self._in_force()
            self._looked_at = time.monotonic()
        told = {"changes": self.changes, "history": self.history, "first_look": None}
        return Now(self.trial, self._seen, told)

    async def look(self) -> None:
        self._seen = self._next = self._in_force()
        self._looked_at = time.monotonic()

    def in_the_shell(self, **words: str) -> None:
        """`make toxic …` of somebody else."""
        self._client.apply(parse_toxic(words))

    def _in_force(self) -> tuple[Proxy, ...] | None:
        return None if "toxiproxy" in self.down else self._client.in_force().proxies

    @property
    def _client(self) -> Toxiproxy:
        return Toxiproxy(Http(self.toxiproxy), "http://toxiproxy:8474")


class Scene:
    """The page's application, behind its guard, in front of the fake lab."""

    def __init__(self) -> None:
        self.lab = FakeLab()
        self.clock = StandingClock(now=0.0)

    @property
    def routes(self) -> list[BaseRoute]:
        http = Http(httpx.MockTransport(self.lab.answer))
        return Control(
            {"grafana": 3000},
            self.lab.now,
            self.lab.look,
            Toxiproxy(Http(self.lab.toxiproxy), "http://toxiproxy:8474"),
            Live(Prometheus(http, "http://prometheus:9090"), self.clock),
            Servers(NAMES, http),
            self.clock,
        ).routes

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """While the application runs, `client` asks it."""
        guard = Guard(
            Starlette(routes=self.routes),
            page_hosts({9464}),
            {"loadgen:9464"},
            page_token="page",
            agent_token="agent",
        )
        transport = httpx.ASGITransport(guard)
        # As the front in front of it asks (go/downstream/service/front.go).
        front = {"Lab-Token": "page"}
        client = httpx.AsyncClient(transport=transport, base_url=PAGE, headers=front)
        async with client as self.client:
            yield

    async def json(self, path: str) -> Any:
        """The JSON that it answers."""
        return (await self.client.get(path)).json()

    async def change(self, method: str, path: str, body: object) -> httpx.Response:
        """As the page itself asks for a change."""
        return await self.client.request(method, path, json=body, headers=CHANGE)

    async def toxic(self, **words: str) -> httpx.Response:
        """The page asks for a toxic in these words."""
        return await self.change("POST", "/api/toxics", {"words": words})

    async def refusal(self, method: str, path: str, body: object) -> str:
        """Why a change is refused."""
        answer = await self.change(method, path, body)
        assert answer.status_code == 400
        return str(answer.json()["error"])


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    found = Scene()
    async with found.opened():
        yield found
