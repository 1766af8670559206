"""The control page's HTTP side.

* GET    /                      the page; /static/<file> its parts
* GET    /api/info              the lab: servers, toxic types, knobs, routes, links
* GET    /api/live              its state: trial, toxics in force, numbers of each server
* GET    /api/servers           the knobs of every server
* PATCH  /api/servers/{name}    {"pool_size": 100, …}
* POST   /api/toxics            {"words": {"TYPE": "latency", "LATENCY": "300"}}: as `make toxic`
* POST   /api/toxics/reset      {}

A refusal is {"error": one line}: 400 a wrong word, 502 a part does not answer.
Every change passes `lab.live.control.guard` first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from lab.errors import LabError, WordError
from lab.live.clock import Clock
from lab.live.control.knobs import Servers
from lab.live.control.live import Live
from lab.live.http import json_object
from lab.model.knobs import KNOBS
from lab.model.toxic_words import parse_toxic
from lab.model.toxics import STREAMS, TOXIC_TYPES, Proxy
from lab.system.toxiproxy import Toxiproxy

MOST_WORDS = 20
LONGEST_WORD = 200
STATIC = {
    "index.html": "text/html; charset=utf-8",
    "control.css": "text/css; charset=utf-8",
    "favicon.svg": "image/svg+xml",
    **dict.fromkeys(
        ("app.js", "api.js", "chart.js", "dom.js", "knobs.js", "live.js", "toxics.js"),
        "text/javascript; charset=utf-8",
    ),
}  # fmt: skip
# The page draws so many changes of toxics: more than two minutes have, unless a script makes them.
MOST_CHANGES = 200
Answer = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Now:
    """The agent's own knowledge: the announced ``trial``; the ``proxies`` with their toxics, None
    while Toxiproxy does not answer; ``told``, its answer to GET /toxics."""

    trial: Mapping[str, object] | None
    proxies: tuple[Proxy, ...] | None
    told: Mapping[str, Any]


class Control:
    """The parts of the page, wired. Lives in one event loop. ``links`` are the lab's other pages:
    their ports on the host, by name. ``look`` makes the agent look at Toxiproxy at once: afterwards
    ``now`` is not older than the call."""

    def __init__(
        self,
        links: Mapping[str, int],
        now: Callable[[], Now],
        look: Callable[[], Awaitable[None]],
        toxiproxy: Toxiproxy,
        live: Live,
        servers: Servers,
        clock: Clock,
    ) -> None:
        self._links = links
        self._now = now
        self._look = look
        self._toxiproxy = toxiproxy
        self._live = live
        self._servers = servers
        self._clock = clock
        self._static = {
            name: files("lab.live.control").joinpath("static", name).read_bytes() for name in STATIC
        }
        # One change at a time.
        self._changing = asyncio.Lock()

    @property
    def routes(self) -> list[BaseRoute]:
        def route(path: str, answer: Answer, *methods: str) -> Route:
            return Route(path, _told(answer), methods=methods or ("GET",))

        return [
            route("/", self._page),
            route("/static/{name}", self._page),
            route("/api/info", self._info),
            route("/api/live", self._live_now),
            route("/api/servers", self._list_servers),
            route("/api/servers/{name}", self._change_server, "PATCH"),
            route("/api/toxics", self._change_toxic, "POST"),
            route("/api/toxics/reset", self._reset_toxics, "POST"),
        ]

    async def _page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in self._static:
            return JSONResponse({"error": f"there is no {name}"}, 404)
        headers = {"cache-control": "no-cache"}
        return Response(self._static[name], headers=headers, media_type=STATIC[name])

    async def _info(self, _: Request) -> Response:
        return JSONResponse(
            {
                "servers": self._servers.names,
                "toxics": {
                    name: [asdict(one) for one in attributes]
                    for name, attributes in TOXIC_TYPES.items()
                },
                "streams": STREAMS,
                "knobs": [asdict(knob) for knob in KNOBS],
                "links": self._links,
            }
        )

    async def _live_now(self, _: Request) -> Response:
        now, numbers = self._now(), await self._live.numbers()
        return JSONResponse(
            {
                "at": self._clock.wall(),
                "trial": now.trial,
                "proxies": None if now.proxies is None else [asdict(p) for p in now.proxies],
                "changes": now.told["changes"],
                "history": now.told["history"][-MOST_CHANGES:],
                "first_look": now.told["first_look"],
                "numbers": numbers.servers,
                "problem": numbers.problem,
            }
        )

    async def _list_servers(self, _: Request) -> Response:
        return JSONResponse({"servers": [asdict(one) for one in await self._servers.all()]})

    async def _change_server(self, request: Request) -> Response:
        wanted = await json_object(request)
        async with self._changing:
            return JSONResponse(
                asdict(await self._servers.change(request.path_params["name"], wanted))
            )

    async def _change_toxic(self, request: Request) -> Response:
        wanted = parse_toxic(await _words(request))
        return await self._changed(lambda toxiproxy: (toxiproxy.apply(wanted),))

    async def _reset_toxics(self, request: Request) -> Response:
        await json_object(request)
        return await self._changed(lambda toxiproxy: toxiproxy.reset().proxies)

    async def _changed(self, change: Callable[[Toxiproxy], tuple[Proxy, ...]]) -> Response:
        """Make a change, and answer with the proxies it reads back. From then on /api/live tells
        nothing older, even where the change failed half-way."""
        async with self._changing:
            try:
                proxies = await asyncio.to_thread(change, self._toxiproxy)
            finally:
                await self._look()
        return JSONResponse({"proxies": [asdict(proxy) for proxy in proxies]})


def _told(answer: Answer) -> Answer:
    """The same handler, with every LabError as an answer."""

    async def told(request: Request) -> Response:
        try:
            return await answer(request)
        except LabError as failure:
            status = 400 if isinstance(failure, WordError) else 502
            return JSONResponse({"error": str(failure)}, status)

    return told


async def _words(request: Request) -> dict[str, str]:
    """The body as the words of a verb. Raises WordError."""
    body = await json_object(request)
    words = body.get("words")
    if set(body) != {"words"} or not isinstance(words, dict) or len(words) > MOST_WORDS:
        raise WordError('the body must be {"words": {"WORD": "value", …}}')
    for word, value in words.items():
        if not isinstance(value, str) or not value.isprintable() or len(value) > LONGEST_WORD:
            raise WordError(f"{word[:LONGEST_WORD]}: allowed one line of text")
    return dict(words)
