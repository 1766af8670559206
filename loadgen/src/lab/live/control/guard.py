"""Checks every request to the agent first.

Two kinds of stranger reach the port. A container of the lab's network can send any header; a page
open in the user's browser reaches the port that the lab publishes, by cross-site requests (another
site's page asks here, with the browser's help) or by DNS rebinding (another site's name is made to
point to 127.0.0.1, so that its page is of our origin).

* The page is served to whoever has its token: the front, which adds it to what the host asks
  (go/downstream/service/front.go).
* `Host` must be one of the page's names. A rebound name is not.
* Another site may link to a page, and ask for nothing else.
* A request that changes anything must carry the header `Lab-Control`. Another origin may not send
  it without asking first (a CORS preflight, which is never answered here). Where the browser sends
  an `Origin`, it must be the page's own.
* Inside the lab's network the agent has another name. Under that name everyone reads what
  Prometheus needs; the driver's paths need the agent's token.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lab.system.tokens import HEADER as TOKEN

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
HEADER = "lab-control"
READS = ("GET", "HEAD")
API = "/api/"
# Prometheus has no token.
OPEN_PATHS = ("/metrics", "/targets/servers", "/targets/cadvisor")
AGENT_PATHS = ("/trial", "/load", "/toxics", "/attention", *OPEN_PATHS)
NOT_OF_THE_HOST = "the page is for the host, at the published port, not for the lab's network"
# For the container's health check.
HEALTH = "/health"
SECURITY = {
    # Parts of two versions of the page do not work together.
    "cache-control": "no-cache",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def page_hosts(ports: Iterable[int]) -> frozenset[str]:
    """The values of `Host` under which the page is served."""
    return frozenset(f"{name}:{port}" for name in LOOPBACK for port in ports)


class Guard:
    """Refuses a request with 403 and one line, or hands it on to ``app``. ``pages`` are the hosts
    of the page, ``agents`` the hosts inside the lab. Nobody has a token that is empty."""

    def __init__(
        self,
        app: ASGIApp,
        pages: Iterable[str],
        agents: Iterable[str],
        *,
        page_token: str,
        agent_token: str,
    ) -> None:
        self._app = app
        self._pages = frozenset(pages)
        self._agents = frozenset(agents)
        self._page_token = page_token
        self._agent_token = agent_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY.items():
                    headers.setdefault(name, value)
            await send(message)

        problem = self._refusal(scope)
        if problem is None:
            await self._app(scope, receive, send_safely)
        else:
            await JSONResponse({"error": problem}, 403)(scope, receive, send_safely)

    def _refusal(self, scope: Scope) -> str | None:
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        if len(headers.getlist("host")) != 1:
            return "one Host is needed"
        host, given = headers["host"].lower(), headers.get(TOKEN, "")
        if path == HEALTH and method in READS:
            return None
        if host in self._agents:
            if path not in AGENT_PATHS:
                return f"{path} is not served under this name"
            if (method in READS and path in OPEN_PATHS) or _same(given, self._agent_token):
                return None
            return f"{method} {path} is for the driver, which has the agent's token"
        if host not in self._pages:
            return "this Host is not one of the lab's: use http://127.0.0.1 and the published port"
        if not _same(given, self._page_token):
            return NOT_OF_THE_HOST if self._page_token else "only `make up` gives a lab its tokens"
        foreign = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        if method in READS:
            page = not path.startswith(API) and path not in AGENT_PATHS
            if foreign and not (page and _follows_a_link(headers)):
                return "another site may not ask anything here, and link to the page only"
            return None
        if not path.startswith(API):
            return f"{method} {path} is for the driver, inside the lab"
        if headers.get("origin", f"http://{host}").lower() != f"http://{host}":
            return "this Origin may not change anything here"
        if foreign:
            return "another site may not change anything here"
        if headers.get(HEADER) != "1":
            return f"the header {HEADER}: 1 is missing"
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return "only application/json is taken"
        return None


def _same(given: str, token: str) -> bool:
    return bool(token) and hmac.compare_digest(given.encode(), token.encode())


def _follows_a_link(headers: Headers) -> bool:
    """A frame or an image is another destination."""
    what = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return what == ("navigate", "document")
