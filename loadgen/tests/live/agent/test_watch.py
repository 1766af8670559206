"""What the agent's looks at Toxiproxy find."""

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from lab.live.agent.metrics import AgentMetrics
from lab.live.agent.watch import ToxicsWatch
from lab.model.toxics import WHOLE_PROXY
from lab.system.http import Http
from live.conftest import value_of
from support.fakes import toxic

PROXY = {"name": "downstream", "listen": ":8666", "upstream": "downstream:8080", "enabled": True}


def utc(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


class Scene:
    """A Toxiproxy whose state the test sets between looks."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.enabled = True
        self.toxics: list[dict[str, Any]] = []
        self.answer: httpx.Response | None = None
        http = Http(httpx.MockTransport(self._answer))
        self.watch = ToxicsWatch(http, "http://toxiproxy:8475", clock)
        self.metrics = AgentMetrics(clock, lambda: None, self.watch)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        assert str(request.url) == "http://toxiproxy:8475/proxies"
        state = PROXY | {"enabled": self.enabled, "toxics": self.toxics}
        return self.answer or httpx.Response(200, json={"downstream": state})

    def look(self, **changes: object) -> datetime:
        """A look a second later, with these changes; its time."""
        for name, value in changes.items():
            setattr(self, name, value)
        self.clock.now += 1
        asyncio.run(self.watch.look())
        return utc(self.clock.now)

    @property
    def changes(self) -> dict[str, datetime]:
        """When each toxic of the proxy last changed."""
        assert all(proxy == "downstream" for _, proxy, _ in self.watch.seen.changes)
        return {name: at for at, _, name in self.watch.seen.changes}

    def exported(self, name: str) -> float | None:
        return value_of(self.metrics, name, proxy="downstream")


@pytest.fixture
def scene(clock: Any) -> Scene:
    return Scene(clock)


def test_nothing_is_claimed_about_what_was_there_before_the_agent(scene: Scene) -> None:
    assert scene.watch.seen.watched is None
    first = scene.look(toxics=[toxic(latency=300)])
    last = scene.look()
    assert scene.changes == {}
    assert scene.watch.seen.watched == (first, last)
    assert scene.exported("lab_toxics_changed_timestamp_seconds") == 0.0
    assert scene.exported("lab_toxics_added_latency_seconds") == 0.3


def test_the_latency_that_toxics_add_is_exported_if_it_is_known(scene: Scene) -> None:
    def added(*toxics: dict[str, Any]) -> float | None:
        scene.look(toxics=list(toxics))
        assert scene.exported("lab_toxics_in_force") == len(toxics)
        return scene.exported("lab_toxics_added_latency_seconds")

    both = (toxic("a", latency=300), toxic("b", latency=100))
    assert (added(), added(*both)) == (0.0, 0.4)
    # On half of the connections, and of a type whose delay depends on the traffic.
    assert added(*both, toxic("c", toxicity=0.5)) is None
    assert added(*both, toxic("c") | {"type": "bandwidth", "attributes": {"rate": 9}}) is None
    assert added(*both, toxic("c", toxicity=0.0)) == 0.4


def test_every_change_is_dated_also_those_that_were_changed_again(scene: Scene) -> None:
    scene.look()
    added = scene.look(toxics=[toxic(latency=300)])
    scene.look()
    assert scene.changes == {"latency": added}
    changed = scene.look(toxics=[toxic(latency=400)])
    assert scene.changes == {"latency": changed}
    down = scene.look(enabled=False)
    removed = scene.look(toxics=[])
    assert scene.changes == {"latency": removed, WHOLE_PROXY: down}
    assert scene.exported("lab_toxics_changed_timestamp_seconds") == removed.timestamp()
    assert scene.exported("lab_toxiproxy_proxy_enabled") == 0
    history = [(at, name) for at, _, name in scene.watch.seen.history]
    assert history[:2] == [(added, "latency"), (changed, "latency")]
    assert history[2:] == [(down, WHOLE_PROXY), (removed, "latency")]


@pytest.mark.parametrize(
    ("status", "content"),
    [(500, b"{}"), (302, b"{}"), (200, b"["), (200, b'{"a":NaN}'), (200, b'{"a":{"name":1}}')],
)
def test_what_is_not_known_is_not_shown_and_what_was_seen_is_kept(
    scene: Scene, status: int, content: bytes
) -> None:
    first = scene.look()
    last = scene.look(toxics=[toxic(latency=300)])
    wrong = httpx.Response(status, headers={"Location": "localhost:8080/x"}, content=content)
    scene.look(answer=wrong)
    assert scene.exported("lab_toxics_in_force") is None
    assert not scene.watch.seen.answers
    assert scene.watch.seen.watched == (first, last)
    assert scene.changes == {"latency": last}
    changed = scene.look(answer=None, toxics=[toxic(latency=400)])
    assert scene.changes == {"latency": changed}
    assert scene.watch.seen.answers


def test_of_two_looks_the_later_one_counts(clock: Any) -> None:
    toxics: list[dict[str, Any]] = []
    asked, answers = threading.Event(), threading.Event()

    def answer(_: httpx.Request) -> httpx.Response:
        found = httpx.Response(200, json={"downstream": PROXY | {"toxics": toxics}})
        asked.set()
        answers.wait(60)
        return found

    async def run() -> None:
        watch = ToxicsWatch(Http(httpx.MockTransport(answer)), "http://toxiproxy:8475", clock)
        older = asyncio.create_task(watch.look())
        await asyncio.to_thread(asked.wait, 60)
        # The first look has its answer, and has not got it yet, when a toxic is put in force.
        toxics.append(toxic(latency=300))
        newer = asyncio.create_task(watch.look())
        await asyncio.sleep(0)
        answers.set()
        await asyncio.gather(older, newer)
        assert watch.in_force is not None
        assert watch.in_force.added_latency_ms == 300
        assert [name for *_, name in watch.seen.changes] == ["latency"]

    asyncio.run(run())


def test_looks_that_failed_are_a_gap_and_one_that_came_late_is_too(scene: Scene) -> None:
    before = scene.look()
    scene.look(answer=httpx.Response(500))
    scene.look()
    after = scene.look(answer=None)
    last = scene.look()
    scene.clock.now += 4
    late = scene.look()
    assert scene.watch.seen.gaps == ((before, after), (last, late))
