"""The control page's HTTP side.

* GET    /                      the page; /static/<file> its parts
* GET    /api/info              the lab: servers, toxic types, knobs, links
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from lab.errors import LabUnreachable, WordError
from lab.live.agent.watch import ToxicsWatch
from lab.live.control.live import read_numbers
from lab.live.http import Json, decoded
from lab.model.knobs import KNOBS, check_knob, knobs_of
from lab.model.toxics import STREAMS, TOXIC_TYPES, Proxy, parse_toxic
from lab.system.agent import Trial
from lab.system.management import Management
from lab.system.stack import Stack

STATIC = Path(__file__).with_name("static")


class ToxicWords(Struct, forbid_unknown_fields=True):
    """The body of a change of toxics."""

    words: dict[str, str]


@dataclass(frozen=True)
class Control:
    """Lives in one event loop. ``links`` are the ports on the host of the lab's other pages."""

    links: Mapping[str, int]
    servers: Sequence[str]
    trial: Callable[[], Trial | None]
    watch: ToxicsWatch
    stack: Stack
    # One change at a time.
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", self._page),
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/api/info", self._info),
            Route("/api/live", self._live),
            Route("/api/servers", self._knobs),
            Route("/api/servers/{name}", self._change_knobs, methods=["PATCH"]),
            Route("/api/toxics", self._change_toxic, methods=["POST"]),
            Route("/api/toxics/reset", self._reset_toxics, methods=["POST"]),
        ]

    async def _page(self, _: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def _info(self, _: Request) -> Response:
        return Json(
            {
                "servers": self.servers,
                "toxics": dict(TOXIC_TYPES),
                "streams": STREAMS,
                "knobs": KNOBS,
                "links": self.links,
            }
        )

    async def _live(self, _: Request) -> Response:
        numbers, problem = await asyncio.to_thread(read_numbers, self.stack.prometheus)
        in_force = self.watch.in_force
        return Json(
            {
                "trial": self.trial(),
                "proxies": None if in_force is None else in_force.proxies,
                "history": self.watch.seen.history,
                "numbers": numbers,
                "problem": problem,
            }
        )

    async def _knobs(self, _: Request) -> Response:
        asked = (asyncio.to_thread(self._knobs_of, server) for server in self.servers)
        return Json({"servers": await asyncio.gather(*asked)})

    def _knobs_of(self, server: str) -> Mapping[str, object]:
        """The knobs that the server has. `problem`: why they are unknown."""
        try:
            values = knobs_of(Management(self.stack.http, server).settings())
        except LabUnreachable as failure:
            return {"server": server, "values": {}, "problem": failure.problem}
        return {"server": server, "values": values, "problem": None}

    async def _change_knobs(self, request: Request) -> Response:
        """Change knobs of a server, all or none, and read them back."""
        server = request.path_params["name"]
        if server not in self.servers:
            raise WordError(f"{server!r} is not a server; allowed: {', '.join(self.servers)}")
        knobs = await decoded(request, dict[str, Any])
        try:
            for name, value in knobs.items():
                check_knob(name, value)
        except ValueError as failure:
            raise WordError(str(failure)) from None
        async with self._changing:
            await asyncio.to_thread(Management(self.stack.http, server).change_knobs, knobs)
        return Json(await asyncio.to_thread(self._knobs_of, server))

    async def _change_toxic(self, request: Request) -> Response:
        wanted = parse_toxic((await decoded(request, ToxicWords)).words)
        return await self._changed(lambda: (self.stack.toxiproxy.apply(wanted),))

    async def _reset_toxics(self, _: Request) -> Response:
        return await self._changed(lambda: self.stack.toxiproxy.reset().proxies)

    async def _changed(self, change: Callable[[], Sequence[Proxy]]) -> Response:
        """Make a change, and answer with the proxies it reads back. From then on /api/live has
        nothing older, even if the change failed half-way."""
        async with self._changing:
            try:
                proxies = await asyncio.to_thread(change)
            finally:
                await self.watch.look()
        return Json({"proxies": proxies})
