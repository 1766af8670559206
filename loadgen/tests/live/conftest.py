"""The agent with its page on fakes: a Toxiproxy in memory, servers and a Prometheus that answer as
the test says, and time that passes only when something waits for it or the test says."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from lab.live.agent.agent import Agent
from lab.live.agent.metrics import AgentMetrics
from lab.live.agent.service import new_app
from lab.live.agent.watch import ToxicsWatch
from lab.live.control.api import Control
from lab.live.control.guard import Guard, page_hosts
from lab.model.toxics import parse_toxic
from lab.system.agent import Trial
from lab.system.http import Http
from lab.system.stack import Stack
from lab.system.toxiproxy import Toxiproxy
from support.toxiproxy import FakeToxiproxy

PAGE = "http://127.0.0.1:9464"
CHANGE = {"Lab-Control": "1", "Origin": PAGE}
ANNOUNCED: dict[str, Any] = {
    "run": "20250601T120000Z-bench",
    "trial": "t1",
    "server": "fixed-pool",
    "route": "/downstream",
    "engine": "wrk2",
    "mode": "open",
    "concurrency": 200,
    "offered_rps": 900,
    "phase": "warmup",
    "url": "http://fixed-pool:8080/downstream",
    "probe_rps": None,
    "expires_s": 900,
}
TRIAL = Trial(**ANNOUNCED)


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, as the agent does."""
    return "asyncio"


class FakeClock:
    """Waiting advances the time at once; ``stop_after`` of those, it waits for ever."""

    def __init__(self, now: float = 1000.0, stop_after: int = 1_000_000) -> None:
        self.now = now
        self.waits = 0
        self.stop_after = stop_after

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now

    async def sleep_until(self, monotonic: float) -> None:
        self.waits += 1
        if self.waits > self.stop_after:
            await asyncio.Event().wait()
        self.now = max(self.now, monotonic)
        await asyncio.sleep(0)


class StandingClock(FakeClock):
    """Moves only when the test says."""

    async def sleep_until(self, monotonic: float) -> None:
        await asyncio.sleep(0)
        while self.now < monotonic:
            await asyncio.sleep(0.001)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def metrics_of(clock: Any) -> AgentMetrics:
    """Those of an agent without a trial, whose Toxiproxy was never looked at."""
    return AgentMetrics(clock, lambda: None, ToxicsWatch(Stack().toxiproxy, clock))


def value_of(metrics: AgentMetrics, name: str, **labels: str) -> float | None:
    """The one sample with these labels."""
    samples = [sample for family in metrics.collect() for sample in family.samples]
    found = [s.value for s in samples if s.name == name and labels.items() <= s.labels.items()]
    assert len(found) < 2
    return found[0] if found else None


class FakeLab:
    """What the parts answer."""

    # How long Prometheus thinks.
    thinks_s = 0.0

    def __init__(self) -> None:
        self.up = ("fixed-pool", "event-loop")
        self.toxiproxy = FakeToxiproxy()
        self.settings: dict[str, dict[str, Any]] = {
            "fixed-pool": {"pool_size": 200, "queue_bound": 0, "downstream_url": "http://x/"},
            "event-loop": {"pool_size": None, "queue_bound": None, "downstream_connections": 20000},
        }
        self.down: set[str] = set()
        self.numbers: dict[tuple[str, str], str] = {}

    def answer(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        if host in self.down:
            raise httpx.ConnectError("refused", request=request)
        if host == "toxiproxy":
            return self.toxiproxy.handle_request(request)
        if host == "prometheus":
            time.sleep(self.thinks_s)
            result = [
                {"metric": {"server": server, "is": name}, "value": [0, value]}
                for (server, name), value in self.numbers.items()
            ]
            return httpx.Response(200, json={"data": {"result": result}})
        settings = self.settings[host]
        for name, value in json.loads(request.read() or b"{}").items():
            if settings.get(name) is None:
                return httpx.Response(400, json={"error": f"'{name}' cannot be changed"})
            settings[name] = value
        return httpx.Response(200, json={"model": host, "settings": settings})

    def in_the_shell(self, **words: str) -> None:
        """`make toxic …` of somebody else."""
        Toxiproxy(Http(self.toxiproxy)).apply(parse_toxic(words))


class Scene:
    """An agent with its page, behind their guard, in front of the fake lab. While it is opened,
    `page` asks as the host does, and `driver` from inside the lab."""

    def __init__(self, lab: FakeLab, clock: Any, machines: Sequence[str] = ()) -> None:
        self.lab, self.clock = lab, clock
        stack = Stack("", httpx.MockTransport(lab.answer))
        self.watch = ToxicsWatch(stack.toxiproxy, clock)
        self.agent = Agent(clock, self.watch, lambda: lab.up, "other-lab", machines)
        self.trial: Callable[[], Trial | None] = lambda: self.agent.trial
        control = Control(
            links={"grafana": 3000},
            servers=lab.up,
            trial=lambda: self.trial(),
            watch=self.watch,
            stack=stack,
        )
        self.app = new_app(self.agent, control.routes)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        hosts = page_hosts({9464}), {"loadgen:9464"}
        to = httpx.ASGITransport(Guard(self.app, *hosts, page_token="page", agent_token="agent"))

        def client(url: str, token: str) -> httpx.AsyncClient:
            return httpx.AsyncClient(transport=to, base_url=url, headers={"Lab-Token": token})

        async with (
            self.agent.running(),
            client(PAGE, "page") as self.page,
            client("http://loadgen:9464", "agent") as self.driver,
        ):
            yield

    async def change(self, call: str, body: object) -> httpx.Response:
        """As the page itself asks for a change."""
        method, path = call.split()
        return await self.page.request(method, path, json=body, headers=CHANGE)

    async def toxic(self, **words: str) -> httpx.Response:
        """The page asks for a toxic in these words."""
        return await self.change("POST /api/toxics", {"words": words})


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    found = Scene(FakeLab(), StandingClock(now=0.0))
    async with found.opened():
        yield found
