"""What the agent's looks at Toxiproxy find."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from lab.live.agent.metrics import ToxicsCollector
from lab.live.agent.watch import ToxicsWatch, told_of
from lab.model.toxic_script import REMOVED, WHOLE_PROXY
from lab.system.http import MOST_BYTES
from support.fakes import toxic


class Scene:
    """A Toxiproxy whose state the test sets between looks."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.enabled = True
        self.toxics: list[dict[str, Any]] = []
        self.status = 200
        self.watch = ToxicsWatch("http://toxiproxy:8474/", clock)

    def answer(self, request: httpx.Request) -> httpx.Response:
        assert str(request.url) == "http://toxiproxy:8474/proxies"
        proxy = {"name": "downstream", "listen": ":8666", "upstream": "downstream:8080"}
        state = proxy | {"enabled": self.enabled, "toxics": self.toxics}
        return httpx.Response(self.status, json={"downstream": state})

    def look(self, **changes: object) -> float:
        """A look a second later, with these changes; its time."""
        for name, value in changes.items():
            setattr(self, name, value)
        self.clock.now += 1
        self.look_at(self.answer)
        return self.clock.wall()

    def look_at(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        """A look at another Toxiproxy."""

        async def look() -> None:
            async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
                await self.watch.look(client)

        asyncio.run(look())

    @property
    def changes(self) -> dict[tuple[str, str], float]:
        return dict(self.watch.seen.changes)


@pytest.fixture
def scene(clock: Any) -> Scene:
    return Scene(clock)


def test_nothing_is_claimed_about_what_was_there_before_the_agent(scene: Scene) -> None:
    scene.look(toxics=[toxic(latency=300)])
    scene.look()
    assert scene.changes == {}
    assert scene.watch.seen.last_change("downstream") == 0.0
    assert scene.watch.seen.in_force.added_latency_ms == 300


def test_the_latency_that_toxics_add_is_exported_if_it_is_known(scene: Scene) -> None:
    def added(*toxics: dict[str, Any]) -> float | None:
        scene.look(toxics=list(toxics))
        registry = CollectorRegistry()
        registry.register(ToxicsCollector(lambda: scene.watch.seen))
        proxy = {"proxy": "downstream"}
        assert registry.get_sample_value("lab_toxics_in_force", proxy) == len(toxics)
        return registry.get_sample_value("lab_toxics_added_latency_seconds", proxy)

    both = (toxic("a", latency=300), toxic("b", latency=100))
    assert (added(), added(*both)) == (0.0, 0.4)
    # On half of the connections, and of a type whose delay depends on the traffic.
    assert added(*both, toxic("c", toxicity=0.5)) is None
    assert added(*both, toxic("c") | {"type": "bandwidth", "attributes": {"rate": 9}}) is None
    assert added(*both, toxic("c", toxicity=0.0)) == 0.4


def test_an_added_a_changed_and_a_removed_toxic_are_dated(scene: Scene) -> None:
    scene.look()
    added = scene.look(toxics=[toxic(latency=300)])
    scene.look()
    assert scene.changes == {("downstream", "latency"): added}
    changed = scene.look(toxics=[toxic(latency=400)])
    assert scene.changes == {("downstream", "latency"): changed}
    removed = scene.look(toxics=[])
    assert scene.changes == {("downstream", REMOVED): removed}
    assert scene.watch.seen.last_change("downstream") == removed


def test_a_proxy_going_down_is_dated_whatever_toxic_is_then_removed(scene: Scene) -> None:
    scene.look(toxics=[toxic(latency=300)])
    down = scene.look(enabled=False)
    assert scene.changes == {("downstream", WHOLE_PROXY): down}
    removed = scene.look(toxics=[])
    changes = {("downstream", WHOLE_PROXY): down, ("downstream", REMOVED): removed}
    assert scene.changes == changes


def test_what_is_not_known_is_not_shown(scene: Scene) -> None:
    scene.look(toxics=[toxic(latency=300)])
    scene.look(status=500)
    assert scene.watch.seen is None
    changed = scene.look(status=200, toxics=[toxic(latency=400)])
    assert scene.changes == {("downstream", "latency"): changed}


def test_it_looks_once_a_second(clock: Any) -> None:
    looks: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        looks.append(clock.now)
        raise httpx.ConnectError("not there yet")

    async def run() -> None:
        clock.stop_after = 3
        watch = ToxicsWatch("http://toxiproxy:8474", clock, httpx.MockTransport(answer))
        task = asyncio.create_task(watch.run())
        while clock.waits <= 3:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert looks == [1000.0, 1001.0, 1002.0, 1003.0]


def test_a_change_made_here_is_seen_at_once_and_by_no_older_look(clock: Any) -> None:
    toxics: list[dict[str, Any]] = []
    asked = asyncio.Event()
    answers = asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        proxy = {"name": "downstream", "listen": ":8666", "upstream": "x", "enabled": True}
        told = httpx.Response(200, json={"downstream": {**proxy, "toxics": [*toxics]}})
        asked.set()
        await answers.wait()
        return told

    async def run() -> None:
        clock.stop_after = 0
        watch = ToxicsWatch("http://toxiproxy:8474", clock, httpx.MockTransport(answer))
        await watch.look_now()
        assert watch.seen is None
        task = asyncio.create_task(watch.run())
        await asked.wait()
        # The first look has its answer, and has not got it yet, when a toxic is put in force.
        toxics.append(toxic(latency=300))
        look = asyncio.create_task(watch.look_now())
        await asyncio.sleep(0)
        answers.set()
        await look
        assert watch.seen.in_force.added_latency_ms == 300
        assert list(watch.seen.changes) == [("downstream", "latency")]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await watch.look_now()

    asyncio.run(run())


def test_every_change_is_kept_also_those_that_were_changed_again(scene: Scene) -> None:
    first = scene.look()
    scene.look(toxics=[toxic(latency=300)])
    scene.look(toxics=[])
    scene.look(enabled=False)
    seen = scene.watch.seen
    assert seen.since == first
    assert seen.history == (
        (first + 1, "downstream", "latency"),
        (first + 2, "downstream", "latency"),
        (first + 3, "downstream", WHOLE_PROXY),
    )
    told = told_of(seen)
    assert [one["toxic"] for one in told["history"]] == ["latency", "latency", ""]
    assert [one["toxic"] for one in told["changes"]] == ["", REMOVED]
    nothing = {"changes": [], "history": [], "first_look": None, "watched": None}
    assert told_of(None) == nothing


def utc(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def test_a_toxiproxy_that_does_not_answer_leaves_what_was_seen(scene: Scene) -> None:
    first = scene.look()
    last = scene.look(toxics=[toxic(latency=300)])
    scene.look(status=500)
    told = scene.watch.told
    assert (told["changes"], told["first_look"]) == ([], None)
    assert [one["toxic"] for one in told["history"]] == ["latency"]
    assert told["watched"] == {"from": utc(first), "to": utc(last), "gaps": []}


def test_looks_that_failed_are_a_gap_and_one_that_came_late_is_too(scene: Scene) -> None:
    before = scene.look()
    scene.look(status=500)
    scene.look()
    after = scene.look(status=200)
    scene.look()
    scene.clock.now += 4
    late = scene.look()
    gaps = scene.watch.told["watched"]["gaps"]
    assert gaps == [
        {"from": utc(before), "to": utc(after)},
        {"from": utc(after + 1), "to": utc(late)},
    ]


class Body(httpx.AsyncByteStream):
    """Sends the content; without one 256 MiB of blanks, before anything else."""

    def __init__(self, content: bytes) -> None:
        self.content, self.taken = content, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(0 if self.content else 1 << 8):
            self.taken += 1 << 20
            yield b" " * (1 << 20)
        yield self.content or b"{}"


@pytest.mark.parametrize(
    ("status", "content"),
    [(200, b""), (200, b"[" * 100_000 + b"]" * 100_000), (200, b'{"a":NaN}'), (302, b"{}")],
    ids=["long", "nested", "no number", "redirect"],
)
def test_a_wrong_answer_does_not_end_the_watch(scene: Scene, status: int, content: bytes) -> None:
    body = Body(content)
    scene.look()
    headers = {"Location": "localhost:8080/x"}
    scene.look_at(lambda _: httpx.Response(status, headers=headers, stream=body))
    assert scene.watch.seen is None
    assert body.taken <= MOST_BYTES + (1 << 20)
    scene.look()
    assert scene.watch.seen is not None
