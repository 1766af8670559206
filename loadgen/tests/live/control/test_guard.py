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

CHANGE = {"lab-control": "1", "content-type": "application/json"}
# Tokens of the page and of the agent.
PAGE, AGENT = "of the page", "of the agent"
LINK = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
# What is asked inside the lab: by the driver with the agent's token, and by everyone.
LAB = {"host": "loadgen:9464", **CHANGE}
DRIVER = [
    "GET /trial",
    "PUT /trial",
    "DELETE /trial",
    "PUT /load",
    "GET /toxics",
    "PUT /attention",
]
OPEN = ("GET /health", "GET /metrics", "GET /targets/servers", "GET /targets/cadvisor")


def ask(
    call: str,
    headers: dict[str, str],
    given: str | None = None,
    page: str = PAGE,
    agent: str = AGENT,
) -> httpx.Response:
    """What a guard with these tokens answers. The token that is right, if none is `given`."""
    right = AGENT if headers["host"] == "loadgen:9464" else PAGE
    headers = {**headers, "lab-token": right if given is None else given}

    async def served(_: Request) -> Response:
        return Response("served")

    every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    app = Starlette(routes=[Route("/{path:path}", served, methods=every)])
    guard = Guard(
        app, page_hosts({9464, 29464}), {"loadgen:9464"}, page_token=page, agent_token=agent
    )

    async def go() -> httpx.Response:
        transport: Any = httpx.ASGITransport(guard)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.request(*call.split(" "), headers=headers)

    return asyncio.run(go())


def refusal(*asked: Any, **tokens: str) -> str:
    """Why it is refused."""
    answer = ask(*asked, **tokens)
    assert answer.status_code == 403
    return str(answer.json()["error"])


def test_the_page_is_served_under_the_names_of_this_machine() -> None:
    for host in ("127.0.0.1:9464", "localhost:9464", "LOCALHOST:29464", "[::1]:29464"):
        assert ask("GET /", {"host": host}).status_code == 200, host
    # The health check needs no name.
    assert ask("GET /health", {"host": "lab"}).status_code == 200
    assert ask("POST /health", {"host": "lab", **CHANGE}).status_code == 403


@pytest.mark.parametrize(
    "host",
    [
        "rebound.example:9464",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1.example:9464",
        "localhost:9464.example",
        "",
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/live", "/results/x/report.html", "/metrics"])
def test_a_name_that_was_made_to_point_here_gets_nothing(host: str, path: str) -> None:
    assert "Host" in refusal(f"GET {path}", {"host": host})


def test_inside_the_lab_there_is_the_agent_and_no_page() -> None:
    for call in [*DRIVER, *OPEN]:
        assert ask(call, LAB).status_code == 200, call
    for call in ("GET /", "POST /api/toxics", "GET /api/servers"):
        assert ask(call, LAB).status_code == 403, call


@pytest.mark.parametrize("given", ["", PAGE, "of the agents"])
def test_without_the_agents_token_everyone_reads_what_prometheus_needs(given: str) -> None:
    for call in OPEN:
        assert ask(call, LAB, given).status_code == 200
        assert ask(call.replace("GET", "POST"), LAB, given).status_code == 403
    for call in DRIVER:
        assert refusal(call, LAB, given) == (
            f"{call} is for the driver, which has the agent's token"
        )


@pytest.mark.parametrize("given", ["", AGENT, "of the pages"])
@pytest.mark.parametrize(
    "call", ["GET /", "GET /api/runs", "GET /api/servers", "POST /api/bench", "DELETE /api/bench"]
)
def test_a_container_that_says_it_is_the_host_gets_no_page(given: str, call: str) -> None:
    host = {"host": "localhost:9464", **CHANGE, "origin": "http://localhost:9464"}
    assert "not for the lab's network" in refusal(call, host, given)


def test_an_empty_token_is_none_and_a_trial_is_announced_inside_the_lab_only() -> None:
    host = {"host": "localhost:9464", **CHANGE}
    assert refusal("GET /", host, "", page="") == "only `make up` gives a lab its tokens"
    assert ask("PUT /trial", LAB, "", agent="").status_code == 403
    assert refusal("PUT /trial", host) == "PUT /trial is for the driver, inside the lab"


IMAGE = {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        ("/", LINK, 200),
        ("/", LINK | {"sec-fetch-dest": "iframe"}, 403),
        ("/", IMAGE, 403),
        ("/api/servers", IMAGE, 403),
        ("/api/servers", LINK, 403),
        ("/metrics", LINK, 403),
        ("/trial", LINK, 403),
    ],
)
def test_another_site_may_link_to_the_page_and_nothing_else(
    site: str, path: str, more: dict[str, str], status: int
) -> None:
    host = {"host": "localhost:9464", **more}
    assert ask(f"GET {path}", host | {"sec-fetch-site": site}).status_code == status
    for itself in ("same-origin", "none"):
        assert ask(f"GET {path}", host | {"sec-fetch-site": itself}).status_code == 200


def test_the_page_may_change_things() -> None:
    page = {"host": "localhost:29464", **CHANGE}
    from_page = page | {"origin": "http://localhost:29464"}
    for headers in (page, from_page, from_page | {"sec-fetch-site": "same-origin"}):
        assert ask("POST /api/toxics", headers).status_code == 200


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"origin": "http://evil.example"}, "Origin"),
        ({"origin": "null"}, "Origin"),
        ({"origin": "http://127.0.0.1:3000"}, "Origin"),
        ({"origin": "https://127.0.0.1:9464"}, "Origin"),
        ({"sec-fetch-site": "cross-site"}, "another site"),
        ({"sec-fetch-site": "same-site"}, "another site"),
        ({"lab-control": "0"}, "lab-control"),
        ({"content-type": "text/plain"}, "application/json"),
        ({"content-type": "application/x-www-form-urlencoded"}, "application/json"),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_no_other_site_may_change_anything(method: str, wrong: dict[str, str], says: str) -> None:
    host = {"host": "127.0.0.1:9464", **CHANGE}
    assert says in refusal(f"{method} /api/toxics", host | wrong)
    # Nor is anything changed without the header.
    del host["lab-control"]
    assert ask(f"{method} /api/toxics", host).status_code == 403


def test_no_other_site_is_told_that_it_may() -> None:
    headers = {
        "host": "127.0.0.1:9464",
        "origin": "http://evil.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "lab-control",
    }
    answer = ask("OPTIONS /api/toxics", headers)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_every_answer_tells_the_browser_to_be_careful() -> None:
    for host in ("127.0.0.1:9464", "evil.example"):
        answer = ask("GET /", {"host": host})
        assert {name: answer.headers[name] for name in SECURITY} == SECURITY
    assert "unsafe" not in SECURITY["content-security-policy"]
