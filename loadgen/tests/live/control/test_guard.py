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
# What the host asks through the front, and what the driver does.
HOST = {"host": "localhost:9464", "lab-token": "of the page", **JSON}
DRIVER = {"host": "loadgen:9464", "lab-token": "of the agent", **JSON}
OF_THE_TRIAL = ("PUT /trial", "DELETE /trial", "PUT /load")
OF_THE_DRIVER = (*OF_THE_TRIAL, "GET /toxics", "PUT /attention")
OPEN = ("GET /health", "GET /metrics", "GET /targets/servers", "GET /targets/cadvisor")
POSTED = tuple(call.replace("GET", "POST") for call in OPEN)
CALLS = ("GET /", "GET /api/live", "GET /api/servers", "POST /api/toxics", "DELETE /api/bench")
CHANGES = ("POST /api/toxics", "PATCH /api/toxics", "DELETE /api/toxics")
# Names that were made to point to this machine, and its own without the port.
REBOUND = ("rebound.example:9464", "127.0.0.1.example:9464", "localhost:9464.example")
REBOUND = (*REBOUND, "127.0.0.1", "127.0.0.1:80", "")
SELF = {"origin": "http://localhost:9464"}
LINK = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
FRAME = LINK | {"sec-fetch-dest": "iframe"}
IMAGE = {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
AWAY = ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"})
HERE = ({"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}, {})


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


def hosts(*names: str) -> tuple[Headers, ...]:
    return tuple({"host": name} for name in names)


def tokens(*given: str) -> tuple[Headers, ...]:
    return tuple({"lab-token": token} for token in given)


# Calls, and headers of which each comes on top of the first; what the refusal says, None: served.
CASES: dict[str, tuple[tuple[str, ...], Headers, tuple[Headers, ...], str | None]] = {
    "the names of this machine": (
        ("GET /",),
        HOST,
        hosts("127.0.0.1:9464", "localhost:9464", "LOCALHOST:29464", "[::1]:29464"),
        None,
    ),
    "the health check needs no name": (("GET /health",), {"host": "lab"}, ({},), None),
    "and changes nothing": (("POST /health",), {"host": "lab", **JSON}, ({},), "Host"),
    "a name that points here": ((*CALLS, "GET /metrics"), HOST, hosts(*REBOUND), "Host"),
    "the driver": ((*OF_THE_DRIVER, *OPEN), DRIVER, ({},), None),
    "no page inside the lab": (CALLS, DRIVER, ({},), "is not served under this name"),
    "Prometheus": (OPEN, DRIVER, tokens("", "of the page", "of the agents"), None),
    "changes as Prometheus": (POSTED, DRIVER, tokens("", "of the page", "of the agents"), ""),
    "another container": (
        OF_THE_DRIVER,
        DRIVER,
        tokens("", "of the page", "of the agents"),
        "is for the driver, which has the agent's token",
    ),
    "a container that says it is the host": (
        CALLS,
        HOST | SELF,
        tokens("", "of the agent", "of the pages"),
        "not for the lab's network",
    ),
    "a trial by the host": (("PUT /trial",), HOST, ({},), "is for the driver, inside the lab"),
    "a link": (("GET /",), HOST | LINK, (*AWAY, *HERE), None),
    "a frame": (("GET /",), HOST | FRAME, AWAY, "another site"),
    "an image": (("GET /", "GET /api/servers"), HOST | IMAGE, AWAY, "another site"),
    "an image of the page": (("GET /", "GET /api/servers"), HOST | IMAGE, HERE, None),
    "a link to what is no page": (
        ("GET /api/servers", "GET /metrics", "GET /trial"),
        HOST | LINK,
        AWAY,
        "another site",
    ),
    "the page changes": (CHANGES, HOST, ({}, SELF, SELF | HERE[0]), None),
    "another origin changes": (
        CHANGES,
        HOST,
        tuple(
            {"origin": origin}
            for origin in (
                *("http://evil.example", "null"),
                *("http://localhost:3000", "https://localhost:9464"),
            )
        ),
        "Origin",
    ),
    "another site changes": (CHANGES, HOST, AWAY, "another site"),
    "without the header": (CHANGES, HOST, ({"lab-control": "0"}, {"lab-control": ""}), "lab-contr"),
    "a form": (
        CHANGES,
        HOST,
        ({"content-type": "text/plain"}, {"content-type": "application/x-www-form-urlencoded"}),
        "application/json",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_who_may_ask_for_what(case: str) -> None:
    calls, headers, more, says = CASES[case]
    for call in calls:
        for each in more:
            found = refusal(call, headers | each)
            assert (found is None) is (says is None), (call, each)
            assert says is None or says in str(found), (call, each)


def test_an_empty_token_is_none() -> None:
    no_token = {"lab-token": ""}
    says = "only `make up` gives a lab its tokens"
    assert refusal("GET /", HOST | no_token, page_token="") == says
    assert refusal("PUT /trial", DRIVER | no_token, agent_token="")


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
