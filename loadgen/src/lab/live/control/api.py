"""The control page's HTTP side.

* GET    /                      the page; /static/<file> its parts
* GET    /api/info              the lab: servers, toxic types, knobs, routes, links
* GET    /api/live              its state: trial, bench, toxics in force, numbers of each server
* GET    /api/runs              the newest runs
* GET    /api/servers           the knobs of every server
* PATCH  /api/servers/{name}    {"pool_size": 100, …}
* POST   /api/toxics            {"words": {"TYPE": "latency", "LATENCY": "300"}}: as `make toxic`
* POST   /api/toxics/reset      {}
* POST   /api/bench             {"words": {"CONC": "100", …}}: as `make bench`; 409 while one runs
* DELETE /api/bench             {}: SIGINT to the bench started here
* GET    /results/{run}/{file}  the files of a run, read-only

A refusal is {"error": one line}: 400 a wrong word, 409 not now, 502 a part does not answer.
Every change passes `lab.live.control.guard` first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from lab.errors import LabError, LabUnreachable, WordError
from lab.experiments.plans import of_verb
from lab.experiments.reading import Here, refuse_target
from lab.live.clock import Clock
from lab.live.control.bench import Bench
from lab.live.control.knobs import Servers
from lab.live.control.live import Live
from lab.live.control.runs import TYPES, Runs, policy
from lab.live.http import json_object
from lab.model.knobs import KNOBS
from lab.model.routes import ROUTES
from lab.model.toxic_words import parse_toxic
from lab.model.toxics import STREAMS, TOXIC_TYPES, Proxy
from lab.system import lock
from lab.system.toxiproxy import Toxiproxy

MOST_WORDS = 20
LONGEST_WORD = 200
STATIC = {
    "index.html": "text/html; charset=utf-8",
    "control.css": "text/css; charset=utf-8",
    "favicon.svg": "image/svg+xml",
    **dict.fromkeys(
        ("app.js", "api.js", "bench.js", "chart.js", "dom.js", "knobs.js", "live.js", "runs.js",
         "toxics.js"),
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


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """Where things are. ``file_limit`` bounds a bench's connections. ``links`` are the lab's other
    pages: their ports on the host, by name."""

    home: Path
    file_limit: int
    links: Mapping[str, int]


class Control:
    """The parts of the page, wired. Lives in one event loop. ``look`` makes the agent look at
    Toxiproxy at once: afterwards ``now`` is not older than the call."""

    def __init__(
        self,
        settings: ControlSettings,
        now: Callable[[], Now],
        look: Callable[[], Awaitable[None]],
        toxiproxy: Toxiproxy,
        bench: Bench,
        live: Live,
        servers: Servers,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._now = now
        self._look = look
        self._toxiproxy = toxiproxy
        self._bench = bench
        self._live = live
        self._servers = servers
        self._clock = clock
        self._runs = Runs(settings.home / "results")
        self._static = {
            name: files("lab.live.control").joinpath("static", name).read_bytes() for name in STATIC
        }
        # One change at a time, and one look at results/.
        self._changing = asyncio.Lock()
        self._looking = asyncio.Lock()

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes, for the agent's application."""

        def route(path: str, answer: Answer, *methods: str) -> Route:
            return Route(path, _told(answer), methods=methods or ("GET",))

        return [
            route("/", self._page),
            route("/static/{name}", self._page),
            route("/api/info", self._info),
            route("/api/live", self._live_now),
            route("/api/runs", self._list_runs),
            route("/api/servers", self._list_servers),
            route("/api/servers/{name}", self._change_server, "PATCH"),
            route("/api/toxics", self._change_toxic, "POST"),
            route("/api/toxics/reset", self._reset_toxics, "POST"),
            route("/api/bench", self._start_bench, "POST"),
            route("/api/bench", self._stop_bench, "DELETE"),
            route("/results/{run}/{name:path}", self._file),
        ]

    async def close(self) -> None:
        """End the bench that runs, if any."""
        await self._bench.close()

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
                "routes": [route.path for route in ROUTES],
                "links": self._settings.links,
            }
        )

    async def _live_now(self, _: Request) -> Response:
        now, numbers = self._now(), await self._live.numbers()
        return JSONResponse(
            {
                "at": self._clock.wall(),
                "trial": now.trial,
                "bench": asdict(self._bench.state),
                "proxies": None if now.proxies is None else [asdict(p) for p in now.proxies],
                "changes": now.told["changes"],
                "history": now.told["history"][-MOST_CHANGES:],
                "first_look": now.told["first_look"],
                "numbers": numbers.servers,
                "problem": numbers.problem,
            }
        )

    async def _list_runs(self, _: Request) -> Response:
        async with self._looking:
            runs = await asyncio.to_thread(self._runs.newest)
        return JSONResponse({"runs": [asdict(run) for run in runs]})

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

    async def _start_bench(self, request: Request) -> Response:
        words = await _words(request)
        # Only the user of this machine may choose its target, not everyone who can reach a page.
        refuse_target(words, "control page")
        of_verb("bench", words, Here(self._servers.names, self._settings.file_limit))
        async with self._changing:
            busy = await self._busy()
            if busy is not None:
                return JSONResponse({"error": busy}, 409)
            try:
                await self._bench.start(words)
            except OSError as failure:
                raise LabUnreachable(f"the driver cannot be started: {failure}") from None
        return JSONResponse(asdict(self._bench.state), 202)

    async def _stop_bench(self, request: Request) -> Response:
        await json_object(request)
        if not self._bench.stop():
            return JSONResponse({"error": "no bench that was started here is running"}, 409)
        return JSONResponse(asdict(self._bench.state), 202)

    async def _busy(self) -> str | None:
        """Why no bench may start now, if none may: two loads at a time measure each other."""
        if self._bench.running:
            return "a bench started here is running; stop it first, or wait for its end"
        folder = self._settings.home / lock.FOLDER
        claimed = await asyncio.to_thread(lock.is_claimed, folder)
        if claimed is False:
            # A trial that is announced, or a run that says it runs, was killed.
            return None
        trial = self._now().trial
        if trial is not None:
            return f"trial {trial['trial']} of {trial['run']} is running; wait for its end"
        async with self._looking:
            run = await asyncio.to_thread(self._runs.active, self._clock.wall())
        if run is not None:
            return f"the run {run} is being measured; wait for its end"
        return "another measurement is under way; wait for its end" if claimed else None

    async def _file(self, request: Request) -> Response:
        run, name = request.path_params["run"], request.path_params["name"]
        path = await asyncio.to_thread(self._runs.file, run, name)
        if path is None:
            return JSONResponse({"error": "there is no such file of a run"}, 404)
        headers = {"cache-control": "no-cache"}
        allowed = await asyncio.to_thread(policy, path)
        if allowed is not None:
            headers["content-security-policy"] = allowed
        return FileResponse(path, headers=headers, media_type=TYPES[path.suffix])


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
