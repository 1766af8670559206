"""The load that is described by settings, whatever is to be done with it."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta

from lab.errors import WordError
from lab.kinds.reading import target as targets
from lab.kinds.reading.settings import (
    MAX_RATE_RPS,
    Asked,
    Connections,
    Duration,
    Pause,
    Settings,
)
from lab.load.engines import ENGINES
from lab.model import MODES, Arrivals, Experiment, Mode, Record
from lab.model.routes import Route, foreign, parse
from lab.store.records import UNREADABLE, read_bytes, to_json
from lab.store.run_dir import find_run_dir

DEFAULT_DURATION_S = 15
# So long a run waits in all until the machine is quiet, and a shorter time by a SCALE below 1.
DEFAULT_PATIENCE_S = 300
# Closed first: it leaves a JVM warm, and an open load on a cold one starts with a backlog.
BOTH: tuple[Mode, ...] = tuple(reversed(MODES))
# The engine that is exact to the second, and the only one with other arrivals than constant ones
# (lab.load.engines.pacer).
EXACT = "pacer"
# Descriptors a server needs besides those of requests: jars, listeners, management, probe.
SPARE_DESCRIPTORS = 1000
_RPS, _UNIT = "auto|[1-9][0-9]{0,6}|10000000", f"auto, 1..{MAX_RATE_RPS} requests per second"
_SHARE = "([1-9][0-9]?|1[0-4][0-9]|150)%"
# `auto`, or a number; a rate may also be a share of a capacity.
ExtraRate = Annotated[str, Meta(pattern=rf"^({_RPS})\Z", description=_UNIT)]
Rate = Annotated[
    str,
    Meta(pattern=rf"^({_RPS}|{_SHARE})\Z", description=f"{_UNIT}, or 1%..150% of a CAPACITY"),
]
# The name of an arm, or a setting of .env with the value that names it, as FRONTS=2.
Arm = Annotated[
    str,
    Meta(
        pattern=r"^([A-Z_]+=)?[a-z0-9][a-z0-9-]{0,39}\Z",
        description="a name of a-z, 0-9 and '-', or a setting with its value, as FRONTS=2",
    ),
]


class LoadTable(Record):
    """The keys of [load]."""

    servers: tuple[str, ...] = ()
    routes: tuple[str, ...] = ("/downstream",)
    concurrency: tuple[Connections, ...] = ()
    modes: tuple[Literal["open", "closed", "both"], ...] = ()
    rate: Rate = "auto"
    capacity: str = ""
    arrivals: Arrivals = "constant"
    duration_s: Duration | None = None
    warmup_s: Pause | None = None
    engines: tuple[str, ...] = ()


class RepeatTable(Record):
    """The keys of [repeat]."""

    launches: Annotated[int, Meta(ge=0, le=100)] = 0
    arms: tuple[Arm, ...] = ()
    patience_s: Pause | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """A load as an experiment without a kind yet, of one connection where it has none of its own.
    The machine holds `most` connections on the route where it holds the fewest, `held` in words.
    `notes` say which connections were left out, and where a target is."""

    draft: Experiment
    most: int
    held: str
    notes: tuple[str, ...]

    def experiment(self, kind: str, own: object = None, **changes: Any) -> Experiment:
        """The load as an experiment of a kind; `own` is the record of that kind's settings,
        `changes` are what the kind decides itself."""
        stored = {} if own is None else to_json(own)
        return copy.replace(self.draft, kind=kind, own=stored, **changes)


def read_load(
    asked: Asked,
    modes: tuple[Mode, ...] = BOTH,
    single: tuple[str, ...] = (),
    *,
    searched: bool = False,
    exact: bool = False,
) -> Load:
    """The load; `modes` where none are given, `single` are settings of which the kind takes one.
    `searched`: connections and rate are not those of [load]. `exact`: the kind reads every second
    of a load without bursts, so it takes the engine that is exact.

    A target is the only server, whatever servers and routes a file names; what is held is then what
    the generator holds. Connections beyond what the machine holds are refused in a word of
    the user's, and left out where a file asks for them. Raises WordError.
    """
    settings, here = asked.settings, asked.here
    table, repeat = settings.table("load", LoadTable), settings.table("repeat", RepeatTable)
    settings.one_of("load.engines", [engine.name for engine in ENGINES])
    with settings.checked("load.routes"):
        calls = tuple(map(parse, table.routes))
    servers, routes, launches = table.servers or tuple(here.servers), table.routes, repeat.launches
    modes = tuple(mode for mode in BOTH if {mode, "both"} & {*table.modes}) or modes
    target = targets.given(settings, here.subjects)
    if target is None:
        settings.one_of("load.servers", here.servers, "a server of the lab")
    else:
        calls, servers, routes = (foreign(target.route),), (target.server,), (target.route,)
        launches = targets.launches(settings, launches, target.server, here.own)
        modes = modes if searched else targets.modes(settings, modes)
    tightest = max((call.route for call in calls), key=lambda route: route.descriptors)
    most = max_concurrency(tightest, here.file_limit)
    if most < 1:
        raise WordError(f"only {here.file_limit} open files are allowed per process; raise NOFILE")
    each = f", of which each connection takes {tightest.descriptors}"
    held = f"1..{most} on {tightest.path} ({here.file_limit} open files per process{each})"
    concurrencies, notes = _that_fit(settings, table.concurrency, most, held)
    if not searched and not concurrencies:
        raise settings.missing("load.concurrency")
    rate_rps = _rate(asked, table, servers)
    if modes == ("closed",):
        if table.arrivals != "constant":
            what = "is not allowed: a closed load has no arrivals"
            raise settings.refuse("load.arrivals", what)
        wanted = settings.by_user("load.rate") or not settings.by_user("load.modes")
        if rate_rps is not None and wanted:
            raise settings.refuse("load.rate", "is not allowed: a closed load has no rate")
        rate_rps = None
    patience_s = min(DEFAULT_PATIENCE_S, settings.scaled(DEFAULT_PATIENCE_S))
    draft = Experiment(
        name=asked.name,
        question=asked.question,
        hypothesis=asked.hypothesis,
        words=asked.words,
        servers=servers,
        routes=routes,
        concurrencies=concurrencies or (1,),
        modes=modes,
        rate_rps=rate_rps,
        arrivals=table.arrivals if "open" in modes else "constant",
        duration_s=table.duration_s or settings.scaled(DEFAULT_DURATION_S),
        longer=not settings.by_user("load.duration"),
        warmup_s=table.warmup_s,
        engines=table.engines or ((EXACT,) if exact else ()),
        launches=launches,
        patience_s=patience_s if repeat.patience_s is None else repeat.patience_s,
        scale=settings.scale,
    )
    if target:
        draft = copy.replace(
            draft,
            target=target.url,
            requests=target.requests,
            ready=target.ready,
            levers=target.levers if target.server in here.own else {},
            subject=target.subject,
        )
        notes = (*notes, *([target.note] if target.note else ()))
    several = {"routes": routes, "concurrency": concurrencies, "modes": modes,
               "engines": table.engines}  # fmt: skip
    for name in single:
        if len(several[name]) > 1 and settings.get(f"load.{name}"):
            raise settings.refuse(f"load.{name}", "is more than one; allowed: one in this kind")
    _refuse_engines(settings, draft, table.engines, exact=exact)
    waits = any(call.wait_ms != 0 for call in calls)
    if modes == ("open",) and rate_rps is None and not waits and not searched:
        raise no_auto_rate(routes[0])
    return Load(draft, most, held, notes)


def max_concurrency(route: Route, file_limit: int) -> int:
    """How many connections a server can hold: one descriptor in, and one more per request
    where the route opens a connection or a file."""
    return (file_limit - SPARE_DESCRIPTORS) // route.descriptors


def _that_fit(
    settings: Settings, connections: tuple[int, ...], most: int, held: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The connections that the machine holds, and a note on the others. Raises WordError."""
    fit = tuple(count for count in connections if count <= most)
    over = ", ".join(str(count) for count in connections if count > most)
    if not over:
        return fit, ()
    if settings.by_user("load.concurrency") or not fit:
        what = f"is more than this machine holds ({over}); allowed: {held}"
        raise settings.refuse("load.concurrency", what)
    return fit, (f"{over} connections left out: this machine holds {held}",)


def _rate(asked: Asked, table: LoadTable, servers: Sequence[str]) -> int | None:
    """The rate of an open load. A share, as 70%, is of the least capacity of these servers in a
    stored run: of what 95 of 100 trials met, by the strictest objective. Raises WordError."""
    settings, share = asked.settings, table.rate.removesuffix("%")
    if share == table.rate:
        if table.capacity:
            what = "is not allowed without a share of it, as RATE=70%"
            raise settings.refuse("load.capacity", what)
        return None if share == "auto" else int(share)
    if not table.capacity or asked.here.results is None:
        what = "is a share of a capacity; name its run, as CAPACITY=<run>"
        raise settings.refuse("load.rate", what)
    folder = find_run_dir(asked.here.results, "CAPACITY", table.capacity)
    rates: dict[str, float] = {}
    try:
        for finding in json.loads(read_bytes(folder / "findings.json")):
            often = finding.get("often") if finding.get("unit") == "req/s" else None
            if often and often[0] >= 1:
                server = finding["server"]
                rates[server] = min(often[0], rates.get(server, often[0]))
        share_of = [int(int(share) / 100 * rates[server]) for server in servers if server in rates]
    except (*UNREADABLE, TypeError, AttributeError, KeyError, ArithmeticError):
        what = "is not a run of make capacity in results/"
        raise settings.refuse("load.capacity", what) from None
    missing = [server for server in servers if server not in rates]
    if missing:
        what = f"has no capacity of {missing[0]}; allowed: {', '.join(rates)}"
        raise settings.refuse("load.capacity", what)
    return max(1, min(share_of))


def no_auto_rate(path: str) -> WordError:
    return WordError(
        f"RATE=auto is a share of connections / wait, and {path} does not wait now; "
        "allowed: RATE=n requests per second, or MODE=closed"
    )


def _refuse_engines(
    settings: Settings, draft: Experiment, engines: tuple[str, ...], *, exact: bool
) -> None:
    """Raises WordError for an engine that cannot do the load: all but EXACT have limits."""
    route = draft.routes[0]
    expects = any(request.expect for request in draft.requests)
    problems = {
        "is not exact to the second, which this kind needs": exact,
        f"checks no answers, and {route} expects some": expects,
        f"sends GET of one path only, and {route} is more": bool(draft.requests),
        f"sends no {draft.arrivals} arrivals": draft.arrivals != "constant",
    }
    for problem, holds in problems.items():
        if holds and engines not in ((), (EXACT,)):
            raise settings.refuse("load.engines", f"{problem}; allowed: ENGINE={EXACT}")
