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
from lab.system.toxiproxy import Toxiproxy
from live.conftest import value_of
from support.fakes import toxic
from support.toxiproxy import FakeToxiproxy

SLOW, SLOWER = toxic(latency=300), toxic(latency=400)


class Scene:
    """A Toxiproxy that the test changes between looks. It gives the `wrong` answer if there is
    one."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.real = FakeToxiproxy()
        self.wrong: httpx.Response | None = None
        self.before = lambda: None
        transport = httpx.MockTransport(self._answer)
        self.watch = ToxicsWatch(Toxiproxy(Http(transport)), clock)
        self.metrics = AgentMetrics(clock, lambda: None, self.watch)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        found = self.wrong or self.real.handle_request(request)
        self.before()
        return found

    def look(self, *toxics: dict[str, Any], enabled: bool = True) -> datetime:
        """A look a second later, with these toxics; its time."""
        self.real.toxics = {toxic["name"]: toxic for toxic in toxics}
        self.real.enabled = enabled
        self.clock.now += 1
        asyncio.run(self.watch.look())
        return datetime.fromtimestamp(self.clock.now, UTC)

    @property
    def changes(self) -> dict[str, datetime]:
        return self.watch.seen.last_changes("downstream")

    def exported(self, name: str) -> float | None:
        return value_of(self.metrics, name, proxy="downstream")


@pytest.fixture
def scene(clock: Any) -> Scene:
    return Scene(clock)


def test_nothing_is_claimed_about_what_was_there_before_the_agent(scene: Scene) -> None:
    assert scene.watch.seen.watched is None
    first, last = scene.look(SLOW), scene.look(SLOW)
    assert scene.changes == {}
    assert scene.watch.seen.watched == (first, last)
    assert scene.exported("lab_toxics_changed_timestamp_seconds") == 0.0
    assert scene.exported("lab_toxics_in_force") == 1
    assert scene.exported("lab_toxics_added_latency_seconds") == 0.3
    # On half of the connections it is unknown (tests/system/test_toxiproxy.py has the others).
    scene.look(SLOW, toxic("c", toxicity=0.5))
    assert scene.exported("lab_toxics_added_latency_seconds") is None


def test_every_change_is_dated_also_those_that_were_changed_again(scene: Scene) -> None:
    scene.look()
    added = scene.look(SLOW)
    scene.look(SLOW)
    assert scene.changes == {"latency": added}
    changed = scene.look(SLOWER)
    assert scene.changes == {"latency": changed}
    down = scene.look(SLOWER, enabled=False)
    removed = scene.look(enabled=False)
    assert scene.changes == {"latency": removed, WHOLE_PROXY: down}
    assert scene.exported("lab_toxics_changed_timestamp_seconds") == removed.timestamp()
    assert scene.exported("lab_toxiproxy_proxy_enabled") == 0
    history = [(at, name) for at, _, name in scene.watch.seen.history]
    assert history[:2] == [(added, "latency"), (changed, "latency")]
    assert history[2:] == [(down, WHOLE_PROXY), (removed, "latency")]


@pytest.mark.parametrize(
    ("status", "content"),
    [(500, b"{}"), (302, b"{}"), (200, b"["), (200, b'{"a":{"name":1}}')],
)
def test_what_is_not_known_is_not_shown_and_what_was_seen_is_kept(
    scene: Scene, status: int, content: bytes
) -> None:
    first, last = scene.look(), scene.look(SLOW)
    scene.wrong = httpx.Response(status, headers={"Location": "localhost:80/x"}, content=content)
    scene.look(SLOW)
    assert scene.exported("lab_toxics_in_force") is None
    assert not scene.watch.seen.answers
    assert scene.watch.seen.watched == (first, last)
    assert scene.changes == {"latency": last}
    scene.wrong = None
    changed = scene.look(SLOWER)
    assert scene.changes == {"latency": changed}
    assert scene.watch.seen.answers


def test_of_two_looks_the_later_one_counts(scene: Scene) -> None:
    asked, answers = threading.Event(), threading.Event()
    scene.before = lambda: asked.set() or answers.wait(60)

    async def run() -> None:
        older = asyncio.create_task(scene.watch.look())
        await asyncio.to_thread(asked.wait, 60)
        # The first look has its answer, and has not got it yet, when a toxic is put in force.
        scene.real.toxics[SLOW["name"]] = SLOW
        newer = asyncio.create_task(scene.watch.look())
        await asyncio.sleep(0)
        answers.set()
        await asyncio.gather(older, newer)

    asyncio.run(run())
    assert scene.watch.in_force.added_latency_ms == 300
    assert [*scene.changes] == ["latency"]


def test_looks_that_failed_are_a_gap_and_one_that_came_late_is_too(scene: Scene) -> None:
    before = scene.look()
    scene.wrong = httpx.Response(500)
    scene.look()
    scene.look()
    scene.wrong = None
    after, last = scene.look(), scene.look()
    scene.clock.now += 4
    late = scene.look()
    assert scene.watch.seen.gaps == ((before, after), (last, late))
