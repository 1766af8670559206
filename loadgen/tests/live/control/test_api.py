"""The API of the control page."""

from typing import Any

import pytest

from lab.live.control.api import STATIC
from lab.live.control.guard import SECURITY
from live.conftest import Scene

pytestmark = pytest.mark.anyio
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


async def refusal(scene: Scene, call: str, body: object) -> str:
    """Why a change is refused."""
    answer = await scene.change(call, body)
    assert answer.status_code == 400
    return str(answer.json()["error"])


def words(**given: str) -> dict[str, dict[str, str]]:
    return {"words": given}


async def test_the_page_and_its_parts_are_served_with_their_types(scene: Scene) -> None:
    page = await scene.page.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert SECURITY.items() <= dict(page.headers).items()
    for path in STATIC.iterdir():
        answer = await scene.page.get(f"/static/{path.name}")
        assert (answer.status_code, answer.content) == (200, path.read_bytes()), path
        assert answer.headers["content-type"].startswith(TYPES[path.suffix]), path
    for name in ("nosuch.js", "..%2fapi.py", "%2e%2e/api.py", "../api.py", "..%2f..%2fhttp.py"):
        assert (await scene.page.get(f"/static/{name}")).status_code in (403, 404), name


async def test_the_page_starts_no_load_and_serves_no_run(scene: Scene) -> None:
    for path in ("/api/runs", "/results/a-run/report.html", "/results/a-run/manifest.json"):
        assert (await scene.page.get(path)).status_code == 404, path
    assert (await scene.change("POST /api/bench", {})).status_code == 404


async def live_of(scene: Scene) -> Any:
    return (await scene.page.get("/api/live")).json()


async def test_info_says_what_there_is(scene: Scene) -> None:
    info = (await scene.page.get("/api/info")).json()
    assert info["servers"] == ["fixed-pool", "event-loop"]
    assert info["links"] == {"grafana": 3000}
    assert info["toxics"]["latency"][1]["default"] == 0
    assert {"name": "timeout", "unit": "ms"}.items() <= info["toxics"]["timeout"][0].items()
    assert info["knobs"][0]["name"] == "pool_size"


async def test_a_toxic_is_put_in_force_changed_and_taken_away(scene: Scene) -> None:
    # The agent has just looked, and yet nothing older than the change is told after it.
    await live_of(scene)
    put = await scene.toxic(TYPE="latency", LATENCY="300")
    (proxy,) = put.json()["proxies"]
    assert proxy["toxics"][0]["attributes"] == {"jitter": 0, "latency": 300}
    await scene.toxic(NAME="latency", LATENCY="50")
    live = await live_of(scene)
    assert live["proxies"][0]["toxics"][0]["attributes"]["latency"] == 50
    # Also a change that was changed again.
    assert [change[1:] for change in live["history"]] == [["downstream", "latency"]] * 2
    await scene.toxic(TYPE="down")
    assert not scene.lab.toxiproxy.enabled
    reset = await scene.change("POST /api/toxics/reset", {})
    assert reset.json()["proxies"][0]["toxics"] == []
    assert scene.lab.toxiproxy.enabled


async def test_a_change_that_failed_half_way_is_seen_at_once(scene: Scene) -> None:
    await scene.toxic(TYPE="latency", LATENCY="300")
    scene.lab.toxiproxy.keeps_toxics = True
    await scene.toxic(TYPE="down")
    assert not (await live_of(scene))["proxies"][0]["enabled"]
    reset = await scene.change("POST /api/toxics/reset", {})
    assert reset.status_code == 502
    assert (await live_of(scene))["proxies"][0]["enabled"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (words(TYPE="lag"), "toxic: TYPE=lag is not allowed; allowed: latency"),
        (words(TYPE="latency", LATENCY="-1"), "LATENCY=-1 is not allowed"),
        (words(TYPE="a\nb"), "TYPE=a\\nb is not allowed"),
        ({"words": {"TYPE": 5}}, "Expected `str`, got `int`"),
        ({"words": {}, "more": 1}, "unknown field `more`"),
    ],
)
async def test_wrong_words_are_refused_in_one_line(scene: Scene, body: object, says: str) -> None:
    assert says in await refusal(scene, "POST /api/toxics", body)
    assert scene.lab.toxiproxy.changes == []


async def test_knobs_are_shown_and_turned(scene: Scene) -> None:
    servers = (await scene.page.get("/api/servers")).json()["servers"]
    assert servers[0]["values"] == {"pool_size": 200, "queue_bound": 0}
    assert servers[1]["values"] == {"downstream_connections": 20000}
    answer = await scene.change("PATCH /api/servers/fixed-pool", {"pool_size": 50})
    assert answer.json()["values"]["pool_size"] == 50
    assert scene.lab.settings["fixed-pool"]["pool_size"] == 50
    scene.lab.down.add("event-loop")
    servers = (await scene.page.get("/api/servers")).json()["servers"]
    assert servers[0]["problem"] is None
    assert servers[1]["problem"] == "http://event-loop:8081/settings does not answer: refused"
    answer = await scene.change("PATCH /api/servers/event-loop", {"pool_size": 5})
    assert answer.status_code == 502


@pytest.mark.parametrize(
    ("server", "body", "says"),
    [
        ("fixed-pool", {"pool_size": 0}, "pool_size=0: allowed 1..20000 (threads)"),
        ("fixed-pool", {"pool_size": True}, "pool_size=True: allowed"),
        ("fixed-pool", {"pool_size": "5"}, "pool_size=5: allowed"),
        ("fixed-pool", {"http_port": 5}, "http_port is not a knob; allowed: pool_size"),
        ("event-loop", {"pool_size": 5}, "event-loop: 'pool_size' cannot be changed"),
        ("prometheus", {"pool_size": 5}, "'prometheus' is not a server; allowed: fixed-pool"),
    ],
)
async def test_a_wrong_knob_is_refused(scene: Scene, server: str, body: object, says: str) -> None:
    assert says in await refusal(scene, f"PATCH /api/servers/{server}", body)


async def test_live_numbers_are_of_each_server(scene: Scene) -> None:
    scene.lab.numbers = {
        ("fixed-pool", "rps"): "500.5",
        ("fixed-pool", "client_p95_s"): "NaN",
        ("event-loop", "in_flight"): "3",
    }
    live = await live_of(scene)
    assert live["numbers"] == {"fixed-pool": {"rps": 500.5}, "event-loop": {"in_flight": 3.0}}


async def test_without_prometheus_or_toxiproxy_the_page_still_answers(scene: Scene) -> None:
    scene.lab.down |= {"prometheus", "toxiproxy"}
    await scene.watch.look()
    live = await live_of(scene)
    problem = "prometheus: http://prometheus:9090/api/v1/query does not answer: refused"
    assert (live["problem"], live["proxies"]) == (problem, None)
