"""What the agent answers, on a fake clock, in front of fake servers."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from lab.errors import WordError
from lab.live.agent.load import LoadLines
from lab.live.agent.metrics import ClientMetrics, ToxicsCollector, TrialCollector
from lab.live.agent.probe import Probe, ProbeSettings
from lab.live.agent.service import Agent, new_app, probe_settings
from lab.live.agent.trial import parse_announcement
from lab.live.agent.watch import ToxicsWatch
from live.agent.conftest import ANNOUNCED, FakeClock
from support.pacer import second, text

pytestmark = pytest.mark.anyio


class Scene:
    """The whole agent on a fake clock, in front of fake servers."""

    def __init__(self, machines: Sequence[str] = ()) -> None:
        self.clock = FakeClock(now=0.0, stop_after=0)
        registry = CollectorRegistry()
        down = httpx.MockTransport(lambda _: httpx.Response(200, json={}))
        watch = ToxicsWatch("http://toxiproxy:8474", self.clock, down)
        load = LoadLines(self.clock)
        clients = ClientMetrics(self.clock, lambda: self.agent.trial, load.due)
        registry.register(clients)
        self.probe = Probe(ProbeSettings(20), self.clock, clients)
        self.agent = Agent(self.clock, self.probe, watch)
        registry.register(TrialCollector(lambda: self.agent.trial))
        registry.register(ToxicsCollector(lambda: watch.seen))
        self.up = ("fixed-pool", "netty")
        self.app = new_app(
            self.agent, load, watch, registry, "other-lab", lambda: self.up, machines=machines
        )

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """While the agent runs, `client` asks it."""
        to = httpx.ASGITransport(self.app)
        async with (
            self.agent.running(),
            httpx.AsyncClient(transport=to, base_url="http://loadgen:9464") as self.client,
        ):
            yield

    async def announce(self, **changes: object) -> httpx.Response:
        """What it answers to this trial."""
        return await self.client.put("/trial", json=ANNOUNCED | changes)

    async def load(self, *lines: bytes) -> httpx.Response:
        """What it answers to these lines of a load."""
        return await self.client.put("/load", content=b"\n".join(lines))

    async def attend(self, *servers: str, **more: object) -> httpx.Response:
        return await self.client.put("/attention", json={"servers": servers, **more})

    async def status(self, path: str) -> int:
        return (await self.client.get(path)).status_code

    async def metrics(self) -> str:
        return (await self.client.get("/metrics")).text

    async def json(self, path: str) -> Any:
        return (await self.client.get(path)).json()


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    found = Scene()
    async with found.opened():
        yield found


async def test_a_trial_is_marked_and_probed_until_it_is_deleted(scene: Scene) -> None:
    assert (await scene.announce()).status_code == 204
    assert scene.probe.running
    metrics = await scene.metrics()
    mark = (
        'lab_trial_info{concurrency="200",engine="wrk2",mode="open",phase="warmup",'
        'route="/downstream",run="20250601T120000Z-bench",server="fixed-pool",trial="t1"} 1.0'
    )
    assert mark in metrics
    where = '{route="/downstream",server="fixed-pool"}'
    assert f"lab_trial_offered_rps{where} 900.0" in metrics
    assert f"lab_trial_concurrency{where} 200.0" in metrics
    assert (await scene.json("/trial"))["trial"] == "t1"
    # A closed one offers nothing.
    await scene.announce(mode="closed", offered_rps=None)
    assert "lab_trial_offered_rps{" not in await scene.metrics()

    assert (await scene.client.delete("/trial")).status_code == 204
    assert not scene.probe.running
    assert "lab_trial_info{" not in await scene.metrics()
    assert await scene.status("/trial") == 404


async def test_counters_start_at_zero_so_that_the_first_rate_is_right(scene: Scene) -> None:
    await scene.announce()
    metrics = await scene.metrics()
    for outcome in ("ok", "http_error", "timeout", "error"):
        labels = f'mode="open",outcome="{outcome}",route="/downstream",server="fixed-pool"'
        assert f'lab_client_requests_total{{{labels},source="probe"}} 0.0' in metrics


def told(at: int, **figures: Any) -> bytes:
    """A line of an engine."""
    return json.dumps(second(at, [], **figures)).encode()


END = text([]).splitlines()[-1].encode()
HEADER = b'{"pacer": "1.0.0", "format": 1, "load": {"warmup_s": 2, "connections": 200}}'


async def test_a_load_that_tells_what_it_sees_is_not_probed(scene: Scene) -> None:
    await scene.announce(probe_rps=0)
    scene.clock.now = 1
    assert (await scene.load(HEADER, b"pacer: words", told(0, ok=400), END)).status_code == 204
    scene.clock.now = 2
    metrics = await scene.metrics()
    labels = 'mode="open",outcome="ok",route="/downstream",server="fixed-pool"'
    assert f'lab_client_requests_total{{{labels},source="load"}} 400.0' in metrics
    assert 'source="probe"' not in metrics
    # No request is sent, and yet the agent is well.
    assert await scene.status("/health") == 200


async def test_a_load_without_a_trial_or_a_beginning_is_refused(scene: Scene) -> None:
    assert (await scene.load(HEADER, told(0))).status_code == 409
    await scene.announce()
    refused = await scene.load(told(0))
    assert refused.status_code == 400
    assert refused.json()["error"] == "the first line of this load is missing"
    assert (await scene.load(HEADER, told(0))).status_code == 204
    await scene.announce(trial="t2")
    nested, long = b'{"x": ' + b"[" * 100_000, b"{" * 4_000_001
    for wrong in (told(1), b'{"second": "one"}', b'{"second": "\xff"}', nested, long):
        assert (await scene.load(wrong)).status_code == 400


async def test_only_what_is_not_probed_may_be_asked_for_with_tls(scene: Scene) -> None:
    url = "https://shop.example/items"
    assert (await scene.announce(url=url)).status_code == 400
    assert (await scene.announce(url=url, probe_rps=0)).status_code == 204


async def test_another_phase_keeps_the_stream_and_another_route_restarts_it(scene: Scene) -> None:
    starts: list[str] = []
    start = scene.probe.start

    async def note(trial: Any) -> None:
        starts.append(trial.url)
        await start(trial)

    scene.probe.start = note
    await scene.announce()
    await scene.announce(phase="measure")
    assert len(starts) == 1
    assert 'phase="measure"' in await scene.metrics()
    await scene.announce(url="http://fixed-pool:8080/")
    assert starts[1:] == ["http://fixed-pool:8080/"]


async def test_a_trial_that_is_not_refreshed_expires(scene: Scene) -> None:
    assert parse_announcement(ANNOUNCED)[1] == 900
    await scene.announce(expires_s=30)
    scene.clock.now = 29.9
    await scene.announce(expires_s=30)
    scene.clock.now = 59.8
    await scene.agent.expire()
    assert scene.probe.running
    scene.clock.now = 59.9
    assert "lab_trial_info{" not in await scene.metrics()
    await scene.agent.expire()
    assert not scene.probe.running


async def test_prometheus_learns_the_project_and_every_machine_s_cadvisor(scene: Scene) -> None:
    answer = await scene.client.get("/targets/cadvisor")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == [{"targets": ["cadvisor:8080"], "labels": {"project": "other-lab"}}]
    several = Scene(machines=("load", "tested"))
    async with several.opened():
        await several.announce()
        assert await several.json("/targets/cadvisor") == [
            {
                "targets": [f"cadvisor-{name}:8080"],
                "labels": {"project": "other-lab", "machine": name},
            }
            for name in ("load", "tested")
        ]
    # An agent that stops ends its probe.
    assert not several.probe.running


async def test_health_tells_when_a_background_task_has_died(scene: Scene) -> None:
    assert await scene.status("/health") == 200
    await scene.announce()
    assert await scene.status("/health") == 200
    await scene.probe.stop()
    assert await scene.status("/health") == 503


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "half"}, "'half' - at `$.mode`"),
        ({"phase": "rest"}, "'rest' - at `$.phase`"),
        ({"concurrency": 0}, "`int` >= 1 - at `$.concurrency`"),
        ({"concurrency": True}, "`int`, got `bool` - at `$.concurrency`"),
        ({"offered_rps": -1}, "`float` > 0.0 - at `$.offered_rps`"),
        ({"probe_rps": -1}, "`float` >= 0.0 - at `$.probe_rps`"),
        ({"server": ""}, "length >= 1 - at `$.server`"),
        ({"url": "ftp://x"}, "url=ftp://x is not an address; allowed: http(s)://host"),
        ({"expires_s": 0}, "`float` > 0.0 - at `$.expires_s`"),
        ({"speed": 3}, "Trial has no field speed"),
    ],
)
async def test_a_wrong_trial_is_refused(scene: Scene, change: dict[str, Any], message: str) -> None:
    answer = await scene.announce(**change)
    assert answer.status_code == 400
    assert message in answer.json()["error"]
    assert not scene.probe.running


async def test_a_missing_field_and_nonsense_are_refused(scene: Scene) -> None:
    missing = {name: value for name, value in ANNOUNCED.items() if name != "url"}
    answer = await scene.client.put("/trial", json=missing)
    assert answer.json()["error"] == "Trial: Object missing required field `url`"
    for body in (b"{", b"[]", b" " * 10_001):
        assert (await scene.client.put("/trial", content=body)).status_code == 400


async def test_who_asks_for_the_toxics_is_told_of_now(scene: Scene) -> None:
    async with asyncio.timeout(60):
        while (await scene.json("/toxics"))["watched"] is None:
            await asyncio.sleep(0)  # its first look
    for at in (5, 6):
        scene.clock.now = at
        assert (await scene.json("/toxics"))["watched"]["to"] == f"1970-01-01T00:00:0{at}+00:00"


async def idle(scene: Scene) -> list[str]:
    """The servers that Prometheus is to look at rarely; every server is in its list."""
    told = await scene.json("/targets/servers")
    assert [one["targets"] for one in told] == [["fixed-pool"], ["netty"]]
    assert all(one["labels"] in ({}, {"__idle": "yes"}) for one in told)
    return [one["targets"][0] for one in told if one["labels"]]


async def test_prometheus_looks_rarely_at_servers_that_are_not_measured(scene: Scene) -> None:
    assert await idle(scene) == []
    assert (await scene.attend("netty", expires_s=300)).status_code == 204
    assert await idle(scene) == ["fixed-pool"]
    # The trial itself says more than what was said before it, for as long as it lasts.
    await scene.announce()
    assert await idle(scene) == ["netty"]
    await scene.client.delete("/trial")
    assert await idle(scene) == ["fixed-pool"]
    # Between two trials it is the servers of both.
    await scene.attend("netty", "fixed-pool", expires_s=300)
    assert await idle(scene) == []
    await scene.attend("netty", expires_s=300)
    for now, servers in ((0, ["fixed-pool"]), (300, []), (0, ["fixed-pool"])):
        scene.clock.now = now
        assert await idle(scene) == servers
    await scene.attend()
    assert await idle(scene) == []
    # Attention to something else leaves every server idle.
    await scene.attend("tomcat.example")
    assert await idle(scene) == ["fixed-pool", "netty"]
    # A server that is new needs no new agent.
    scene.up = ("netty", "thread-per-request")
    told = await scene.json("/targets/servers")
    assert [one["targets"] for one in told] == [["netty"], ["thread-per-request"]]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"servers": ["netty"], "closely": 1},
        {"servers": "netty"},
        {"servers": [""]},
        {"servers": [1]},
        {"servers": ["netty"] * 101},
        {"servers": ["netty"], "expires_s": 0},
    ],
)
async def test_attention_to_nothing_is_refused(scene: Scene, wrong: dict[str, Any]) -> None:
    assert (await scene.client.put("/attention", json=wrong)).status_code == 400
    assert await idle(scene) == []


@pytest.mark.parametrize("given", ["0", "fast", "1001", "nan", ""])
def test_a_wrong_probe_rate_stops_the_agent_with_one_line(given: str) -> None:
    with pytest.raises(WordError, match=f"LAB_PROBE_RPS={given}; allowed: above 0 to 1000"):
        probe_settings({"LAB_PROBE_RPS": given})
