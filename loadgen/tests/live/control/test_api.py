"""The API of the control page."""

import pytest

from lab.live.control.api import MOST_CHANGES, STATIC
from lab.live.control.guard import SECURITY
from live.control.conftest import CHANGE, START, Scene
from support.repo import REPO

pytestmark = pytest.mark.anyio


def words(**given: str) -> dict[str, dict[str, str]]:
    return {"words": given}


async def test_the_page_and_its_parts_are_served_with_their_types(scene: Scene) -> None:
    page = await scene.client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-security-policy"] == SECURITY["content-security-policy"]
    folder = REPO / "loadgen/src/lab/live/control/static"
    assert {path.name for path in folder.iterdir()} == set(STATIC)
    for name, kind in STATIC.items():
        answer = await scene.client.get(f"/static/{name}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind), name
    for name in ("nosuch.js", "..%2fapi.py", "%2e%2e/api.py", "../api.py"):
        assert (await scene.client.get(f"/static/{name}")).status_code in (403, 404), name


async def test_info_says_what_there_is(scene: Scene) -> None:
    info = await scene.json("/api/info")
    assert info["servers"] == ["fixed-pool", "event-loop"]
    assert info["links"] == {"grafana": 3000}
    assert info["toxics"]["latency"][1]["default"] == 0
    assert {"name": "timeout", "unit": "ms"}.items() <= info["toxics"]["timeout"][0].items()
    assert info["knobs"][0]["name"] == "pool_size"


async def test_a_toxic_is_put_in_force_changed_and_taken_away(scene: Scene) -> None:
    # The agent has just looked, and yet nothing older than the change is told after it.
    await scene.json("/api/live")
    put = await scene.toxic(TYPE="latency", LATENCY="300")
    (proxy,) = put.json()["proxies"]
    assert proxy["toxics"][0]["attributes"] == {"jitter": 0, "latency": 300}
    await scene.toxic(NAME="latency", LATENCY="50")
    live = await scene.json("/api/live")
    assert live["proxies"][0]["toxics"][0]["attributes"]["latency"] == 50
    await scene.toxic(TYPE="down")
    assert not scene.lab.toxiproxy.enabled
    reset = await scene.change("POST", "/api/toxics/reset", {})
    assert reset.json()["proxies"][0]["toxics"] == []
    assert scene.lab.toxiproxy.enabled


async def test_the_page_is_told_of_changes_that_were_changed_again(scene: Scene) -> None:
    change = {"proxy": "downstream", "toxic": "latency", "since": "2026-01-31T12:00:00+00:00"}
    scene.lab.history += [change] * (MOST_CHANGES + 1)
    assert len((await scene.json("/api/live"))["history"]) == MOST_CHANGES


async def test_a_change_that_failed_half_way_is_seen_at_once(scene: Scene) -> None:
    await scene.toxic(TYPE="latency", LATENCY="300")
    scene.lab.toxiproxy.keeps_toxics = True
    await scene.toxic(TYPE="down")
    assert not (await scene.json("/api/live"))["proxies"][0]["enabled"]
    reset = await scene.change("POST", "/api/toxics/reset", {})
    assert reset.status_code == 502
    assert (await scene.json("/api/live"))["proxies"][0]["enabled"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (words(TYPE="lag"), "toxic: TYPE=lag is not allowed; allowed: latency"),
        (words(TYPE="latency", LATENCY="-1"), "LATENCY=-1 is not allowed"),
        ({"words": {"TYPE": 5}}, "TYPE: allowed one line of text"),
        ({"words": {"TYPE": "a\nb"}}, "TYPE: allowed one line of text"),
        ({"words": {"TYPE": "x" * 201}}, "TYPE: allowed one line of text"),
        ({"words": []}, "the body must be"),
        ({"words": {}, "more": 1}, "the body must be"),
        ([], "the body is not a JSON object"),
        (words(TYPE="latency", LATENCY="9" * 10_000), "the body is too long; allowed: 10000 bytes"),
    ],
)
async def test_wrong_words_are_refused_in_one_line(scene: Scene, body: object, says: str) -> None:
    assert says in await scene.refusal("POST", "/api/toxics", body)
    assert scene.lab.toxiproxy.changes == []


async def test_what_is_not_json_is_refused(scene: Scene) -> None:
    headers = {**CHANGE, "Content-Type": "application/json"}
    for body in (b"{", b"", b"\xff", b"[" * 9000):
        answer = await scene.client.post("/api/toxics", content=body, headers=headers)
        assert answer.status_code == 400, body[:10]


async def test_knobs_are_shown_and_turned(scene: Scene) -> None:
    servers = (await scene.json("/api/servers"))["servers"]
    assert servers[0]["values"] == {"pool_size": 200, "queue_bound": 0}
    assert servers[1]["values"] == {"downstream_connections": 20000}
    answer = await scene.change("PATCH", "/api/servers/fixed-pool", {"pool_size": 50})
    assert answer.json()["values"]["pool_size"] == 50
    assert scene.lab.settings["fixed-pool"]["pool_size"] == 50
    scene.lab.down.add("event-loop")
    servers = (await scene.json("/api/servers"))["servers"]
    assert servers[0]["problem"] is None
    assert servers[1]["problem"] == "http://event-loop:8081/settings does not answer: refused"
    answer = await scene.change("PATCH", "/api/servers/event-loop", {"pool_size": 5})
    assert answer.status_code == 502


@pytest.mark.parametrize(
    ("server", "body", "says"),
    [
        ("fixed-pool", {"pool_size": 0}, "pool_size=0: allowed 1..20000 (threads)"),
        ("fixed-pool", {"pool_size": True}, "pool_size=True: allowed"),
        ("fixed-pool", {"pool_size": "5"}, "pool_size=5: allowed"),
        ("fixed-pool", {"http_port": 5}, "http_port is not a knob; allowed: pool_size"),
        ("fixed-pool", {}, "nothing to change"),
        ("event-loop", {"pool_size": 5}, "event-loop: 'pool_size' cannot be changed"),
        ("prometheus", {"pool_size": 5}, "'prometheus' is not a server; allowed: fixed-pool"),
    ],
)
async def test_a_wrong_knob_is_refused(scene: Scene, server: str, body: object, says: str) -> None:
    assert says in await scene.refusal("PATCH", f"/api/servers/{server}", body)


async def test_live_numbers_are_of_each_server_and_asked_once_a_second(scene: Scene) -> None:
    scene.lab.numbers = {
        ("fixed-pool", "rps"): "500.5",
        ("fixed-pool", "client_p95_s"): "NaN",
        ("event-loop", "in_flight"): "3",
    }
    for _ in range(3):
        live = await scene.json("/api/live")
    assert live["numbers"] == {"fixed-pool": {"rps": 500.5}, "event-loop": {"in_flight": 3.0}}
    assert live["at"] == START
    assert scene.lab.queries == 1
    scene.clock.now = 1.0
    await scene.json("/api/live")
    assert scene.lab.queries == 2


async def test_without_prometheus_or_toxiproxy_the_page_still_answers(scene: Scene) -> None:
    scene.lab.down |= {"prometheus", "toxiproxy"}
    live = await scene.json("/api/live")
    problem = "prometheus: http://prometheus:9090/api/v1/query does not answer: refused"
    assert (live["problem"], live["proxies"]) == (problem, None)


@pytest.mark.parametrize(
    "call",
    [
        "GET /api/runs",
        "POST /api/bench",
        "DELETE /api/bench",
        "GET /results/20250601T120000Z-sweep/manifest.json",
    ],
)
async def test_the_page_starts_no_load_and_serves_no_run(scene: Scene, call: str) -> None:
    assert (await scene.change(*call.split(), words(CONC="50"))).status_code == 404
