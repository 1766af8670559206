"""Who may ask the agent for what."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lab.live.control.guard import SECURITY, Guard, page_hosts

Headers = dict[str, str]
JSON = {"lab-control": "1", "content-type": "application/json"}
# What the host asks through the front, a container that says it is the host, and the driver.
HOST = {"host": "localhost:9464", "lab-token": "of the page", **JSON}
DRIVER = {"host": "loadgen:9464", "lab-token": "of the agent", **JSON}
OF_THE_TRIAL = ("GET /trial", "PUT /trial", "DELETE /trial", "PUT /load")
OF_THE_DRIVER = (*OF_THE_TRIAL, "GET /toxics", "PUT /attention")
OPEN = ("GET /health", "GET /metrics", "GET /targets/servers", "GET /targets/cadvisor")
CALLS = ("GET /", "GET /api/live", "GET /api/servers", "POST /api/toxics", "DELETE /api/bench")


def ask(call: str, headers: Headers, **tokens: str) -> httpx.Response:
    """What a guard with these tokens answers."""

    async def served(_: Request) -> Response:
        return Response("served")

    every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    app = Starlette(routes=[Route("/{path:path}", served, methods=every)])
    right = {"page_token": "of the page", "agent_token": "of the agent"}
    guard = Guard(app, page_hosts({9464, 29464}), {"loadgen:9464"}, **right | tokens)

    async def go() -> httpx.Response:
        transport: Any = httpx.ASGITransport(guard)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.request(*call.split(" "), headers=headers)

    return asyncio.run(go())


def refusal(call: str, headers: Headers, **tokens: str) -> str | None:
    """Why it is refused; None if it is served."""
    answer = ask(call, headers, **tokens)
    assert answer.status_code in (200, 403)
    return None if answer.status_code == 200 else str(answer.json()["error"])


def test_the_page_is_served_under_the_names_of_this_machine() -> None:
    for host in ("127.0.0.1:9464", "localhost:9464", "LOCALHOST:29464", "[::1]:29464"):
        assert refusal("GET /", HOST | {"host": host}) is None, host
    # The health check needs no name.
    assert refusal("GET /health", {"host": "lab"}) is None
    assert "Host" in str(refusal("POST /health", {"host": "lab", **JSON}))


REBOUND = ("rebound.example:9464", "127.0.0.1.example:9464", "localhost:9464.example")


@pytest.mark.parametrize("host", [*REBOUND, "127.0.0.1", "127.0.0.1:80", ""])
@pytest.mark.parametrize("call", [*CALLS, "GET /metrics"])
def test_a_name_that_was_made_to_point_here_gets_nothing(host: str, call: str) -> None:
    assert "Host" in str(refusal(call, HOST | {"host": host}))


def test_inside_the_lab_there_is_the_agent_and_no_page() -> None:
    for call in (*OF_THE_DRIVER, *OPEN):
        assert refusal(call, DRIVER) is None, call
    for call in CALLS:
        assert "is not served under this name" in str(refusal(call, DRIVER)), call


@pytest.mark.parametrize("given", ["", "of the page", "of the agents"])
def test_without_the_agents_token_everyone_reads_what_prometheus_needs(given: str) -> None:
    container = DRIVER | {"lab-token": given}
    for call in OPEN:
        assert refusal(call, container) is None
        assert refusal(call.replace("GET", "POST"), container)
    for call in OF_THE_DRIVER:
        needs = f"{call} is for the driver, which has the agent's token"
        assert refusal(call, container) == needs


@pytest.mark.parametrize("given", ["", "of the agent", "of the pages"])
@pytest.mark.parametrize("call", CALLS)
def test_a_container_that_says_it_is_the_host_gets_no_page(given: str, call: str) -> None:
    container = HOST | {"lab-token": given, "origin": "http://localhost:9464"}
    assert "not for the lab's network" in str(refusal(call, container))


def test_an_empty_token_is_none_and_a_trial_is_announced_inside_the_lab_only() -> None:
    no_token = HOST | {"lab-token": ""}
    assert refusal("GET /", no_token, page_token="") == "only `make up` gives a lab its tokens"
    assert refusal("PUT /trial", DRIVER | {"lab-token": ""}, agent_token="")
    assert refusal("PUT /trial", HOST) == "PUT /trial is for the driver, inside the lab"


LINK = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
IMAGE = {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("path", "more", "is_served"),
    [
        ("/", LINK, True),
        ("/", LINK | {"sec-fetch-dest": "iframe"}, False),
        ("/", IMAGE, False),
        ("/api/servers", IMAGE, False),
        ("/api/servers", LINK, False),
        ("/metrics", LINK, False),
        ("/trial", LINK, False),
    ],
)
def test_another_site_may_link_to_the_page_and_nothing_else(
    site: str, path: str, more: Headers, is_served: bool
) -> None:
    headers = HOST | more
    assert (refusal(f"GET {path}", headers | {"sec-fetch-site": site}) is None) == is_served
    for page in ("same-origin", "none"):
        assert refusal(f"GET {path}", headers | {"sec-fetch-site": page}) is None


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, None),
        ({"origin": "http://localhost:9464"}, None),
        ({"origin": "http://localhost:9464", "sec-fetch-site": "same-origin"}, None),
        ({"origin": "http://evil.example"}, "Origin"),
        ({"origin": "null"}, "Origin"),
        ({"origin": "http://localhost:3000"}, "Origin"),
        ({"origin": "https://localhost:9464"}, "Origin"),
        ({"sec-fetch-site": "cross-site"}, "another site"),
        ({"sec-fetch-site": "same-site"}, "another site"),
        ({"lab-control": "0"}, "lab-control"),
        ({"lab-control": ""}, "lab-control"),
        ({"content-type": "text/plain"}, "application/json"),
        ({"content-type": "application/x-www-form-urlencoded"}, "application/json"),
    ],
)
def test_the_page_may_change_things_and_no_other_site(
    method: str, more: Headers, says: str | None
) -> None:
    found = refusal(f"{method} /api/toxics", HOST | more)
    assert found is None if says is None else says in str(found)


def test_no_other_site_is_told_that_it_may() -> None:
    preflight = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = ask("OPTIONS /api/toxics", HOST | preflight)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_every_answer_tells_the_browser_to_be_careful() -> None:
    for host in ("localhost:9464", "evil.example"):
        answer = ask("GET /", HOST | {"host": host})
        assert {name: answer.headers[name] for name in SECURITY} == SECURITY
    assert "unsafe" not in SECURITY["content-security-policy"]
