"""What the agent answers to the driver and to Prometheus."""

import asyncio
import json
from typing import Any

import pytest

from live.conftest import ANNOUNCED, FakeLab, Scene, StandingClock
from support.pacer import second

pytestmark = pytest.mark.anyio


def tasks(name: str) -> list[asyncio.Task[Any]]:
    found = (task for task in asyncio.all_tasks() if task.get_name() == name)
    return [task for task in found if not task.cancelling()]


async def announce(scene: Scene, **changes: object) -> None:
    answer = await scene.driver.put("/trial", json=ANNOUNCED | changes)
    assert answer.status_code == 204


async def metrics(scene: Scene) -> str:
    return (await scene.driver.get("/metrics")).text


async def health(scene: Scene) -> int:
    return (await scene.driver.get("/health")).status_code


async def test_a_trial_is_marked_and_probed_until_it_is_deleted(scene: Scene) -> None:
    await announce(scene)
    assert tasks("probe")
    where = 'route="/downstream",server="fixed-pool"'
    found = await metrics(scene)
    mark = (
        'lab_trial_info{concurrency="200",engine="wrk2",mode="open",phase="warmup",'
        'route="/downstream",run="20250601T120000Z-bench",server="fixed-pool",trial="t1"} 1.0'
    )
    assert mark in found
    assert f"lab_trial_offered_rps{{{where}}} 900.0" in found
    assert f"lab_trial_concurrency{{{where}}} 200.0" in found
    # Counters begin at zero, so that their first rate is right.
    for outcome in ("ok", "http_error", "timeout", "error"):
        labels = f'mode="open",outcome="{outcome}",{where},source="probe"'
        assert f"lab_client_requests_total{{{labels}}} 0.0" in found
    assert (await scene.driver.get("/trial")).json()["trial"] == "t1"
    # A closed one offers nothing.
    await announce(scene, mode="closed", offered_rps=None)
    assert "lab_trial_offered_rps{" not in await metrics(scene)

    assert (await scene.driver.delete("/trial")).status_code == 204
    assert not tasks("probe")
    assert "lab_trial_info{" not in await metrics(scene)
    assert (await scene.driver.get("/trial")).status_code == 404


HEADER = b'{"pacer": "1.0.0", "format": 1, "load": {"warmup_s": 2, "connections": 200}}'
LINE = json.dumps(second(0, [], ok=400)).encode()


async def test_a_load_of_a_trial_is_taken_from_its_beginning_on(scene: Scene) -> None:
    async def load(*lines: bytes) -> int:
        return (await scene.driver.put("/load", content=b"\n".join(lines))).status_code

    assert await load(HEADER, LINE) == 409
    await announce(scene, probe_rps=0)
    assert await load(LINE) == 400
    assert await load(HEADER, b"pacer: words", LINE) == 204
    scene.clock.now = 1
    labels = 'mode="open",outcome="ok",route="/downstream",server="fixed-pool",source="load"'
    assert f"lab_client_requests_total{{{labels}}} 400.0" in await metrics(scene)
    # It is not probed, and yet the agent is well.
    assert (tasks("probe"), await health(scene)) == ([], 200)
    await announce(scene, trial="t2")
    nested, long = b'{"x": ' + b"[" * 100_000, b"{" * 4_000_001
    for wrong in (LINE, b'{"second": "one"}', b'{"second": "\xff"}', nested, long):
        assert await load(wrong) == 400


async def test_another_phase_keeps_the_stream_and_another_route_restarts_it(scene: Scene) -> None:
    await announce(scene)
    (before,) = tasks("probe")
    await announce(scene, phase="measure")
    assert tasks("probe") == [before]
    assert 'phase="measure"' in await metrics(scene)
    await announce(scene, url="http://fixed-pool:8080/")
    (after,) = tasks("probe")
    assert after is not before


async def test_a_trial_that_is_not_refreshed_expires(scene: Scene) -> None:
    for now in (0.0, 29.9):
        scene.clock.now = now
        await announce(scene, expires_s=30, probe_rps=0.001)
    scene.clock.now = 59.8
    assert "lab_trial_info{" in await metrics(scene)
    scene.clock.now = 59.9
    assert "lab_trial_info{" not in await metrics(scene)
    scene.clock.now = 61
    async with asyncio.timeout(60):
        while tasks("probe"):
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("task", ["agent", "probe"])
async def test_health_shows_when_a_background_task_has_died(scene: Scene, task: str) -> None:
    await announce(scene)
    assert await health(scene) == 200
    tasks(task)[0].cancel()
    await asyncio.sleep(0.01)
    assert await health(scene) == 503


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/trial", ANNOUNCED | {"mode": "half"}, "'half' - at `$.mode`"),
        ("/trial", ANNOUNCED | {"speed": 3}, "unknown field `speed`"),
        ("/attention", {}, "missing required field `servers`"),
    ],
)
async def test_a_wrong_body_is_refused(scene: Scene, path: str, body: object, message: str) -> None:
    answer = await scene.driver.put(path, json=body)
    assert answer.status_code == 400
    assert message in answer.json()["error"]
    assert (tasks("probe"), await idle(scene)) == ([], [])


async def test_toxics_are_looked_at_once_a_second_and_when_asked_for(scene: Scene) -> None:
    looks: list[float] = []
    look = scene.watch.look

    async def note() -> None:
        looks.append(scene.clock.now)
        await look()

    async def until_looked(count: int) -> None:
        async with asyncio.timeout(60):
            while len(looks) < count or scene.watch.seen.watched is None:
                await asyncio.sleep(0.001)

    await look()
    scene.watch.look = note
    for second_s in (1, 2, 3):
        scene.clock.now = second_s - 0.01
        await asyncio.sleep(0.01)
        assert len(looks) < second_s
        scene.clock.now = second_s
        await until_looked(second_s)
    assert looks == [1, 2, 3]
    scene.clock.now = 3.5
    answer = (await scene.driver.get("/toxics")).json()
    assert answer["watched"] == ["1970-01-01T00:00:00Z", "1970-01-01T00:00:03.500000Z"]


async def targets(scene: Scene, of: str) -> list[tuple[str, dict[str, str]]]:
    answer = await scene.driver.get(f"/targets/{of}")
    assert answer.headers["content-type"] == "application/json"
    return [(*target["targets"], target["labels"]) for target in answer.json()]


async def test_prometheus_learns_the_project_and_every_machine_s_cadvisor(scene: Scene) -> None:
    project = {"project": "other-lab"}
    assert await targets(scene, "cadvisor") == [("cadvisor:8080", project)]
    several = Scene(FakeLab(), StandingClock(now=0.0), machines=("load", "tested"))
    async with several.opened():
        assert await targets(several, "cadvisor") == [
            ("cadvisor-load:8080", project | {"machine": "load"}),
            ("cadvisor-tested:8080", project | {"machine": "tested"}),
        ]


async def idle(scene: Scene) -> list[str]:
    """The servers that Prometheus is to look at rarely; every server is in its list."""
    found = await targets(scene, "servers")
    assert tuple(server for server, _ in found) == scene.lab.up
    assert all(labels in ({}, {"__idle": "yes"}) for _, labels in found)
    return [server for server, labels in found if labels]


async def test_prometheus_looks_rarely_at_servers_that_are_not_measured(scene: Scene) -> None:
    async def attend(*servers: str) -> list[str]:
        body = {"servers": servers, "expires_s": 300}
        assert (await scene.driver.put("/attention", json=body)).status_code == 204
        return await idle(scene)

    assert await idle(scene) == []
    assert await attend("event-loop") == ["fixed-pool"]
    # The trial itself says more than what was said before it, for as long as it lasts.
    await announce(scene)
    assert await idle(scene) == ["event-loop"]
    await scene.driver.delete("/trial")
    assert await idle(scene) == ["fixed-pool"]
    # Between two trials it is the servers of both.
    assert await attend("event-loop", "fixed-pool") == []
    assert await attend("event-loop") == ["fixed-pool"]
    scene.clock.now = 300
    assert await idle(scene) == []
    assert await attend() == []
    # Attention to something else leaves every server idle.
    assert await attend("tomcat.example") == ["fixed-pool", "event-loop"]
    # A server that is new needs no new agent.
    scene.lab.up = ("event-loop", "netty")
    assert await idle(scene) == ["event-loop", "netty"]
