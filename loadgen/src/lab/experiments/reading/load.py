"""The load that is described by settings, whatever is to be done with it."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import WordError
from lab.experiments.reading import rules
from lab.experiments.reading import target as targets
from lab.experiments.reading.settings import Asked, Settings
from lab.experiments.reading.subject import given_target
from lab.experiments.reading.target import Target
from lab.load.engines import ENGINES
from lab.model import MODES, Arrivals, Experiment, Mode, OwnLever
from lab.model.routes import RouteCall, foreign, parse
from lab.store.records import to_json
from lab.store.run_dir import find_run_dir

DEFAULT_ROUTE = "/downstream"
DEFAULT_DURATION_S = 15
# So long a run waits in all until the machine is quiet, and a shorter time by a SCALE below 1. A
# quick look, which is trials of the kind `loads` without launches, waits for nothing.
DEFAULT_PATIENCE_S = 300
QUICK = "loads"
# Closed first: it leaves a JVM warm, and an open load on a cold one starts with a backlog.
BOTH: tuple[Mode, ...] = tuple(reversed(MODES))
# The engine that is exact to the second, and the only one with other arrivals than constant ones
# (lab.load.engines.pacer).
EXACT = "pacer"


@dataclass(frozen=True, slots=True)
class Load:
    """The settings of [load] and [repeat]. `target` is the service that is the only server, where
    it is not the lab's; `most` is how many connections the machine holds on the route where it
    holds the fewest, `notes` say which connections were left out, and where the target is."""

    asked: Asked
    servers: tuple[str, ...]
    calls: tuple[RouteCall, ...]
    routes: tuple[str, ...]
    concurrencies: tuple[int, ...]
    modes: tuple[Mode, ...]
    rate_rps: int | None
    arrivals: Arrivals
    duration_s: int
    warmup_s: int | None
    engines: tuple[str, ...]
    launches: int
    patience_s: int | None
    target: Target | None
    most: int
    held: str
    notes: tuple[str, ...]

    @property
    def levers(self) -> Mapping[str, OwnLever]:
        """What the lab may change of the target: none where that is no container of the lab."""
        of = self.target
        return of.levers if of and of.server in self.asked.here.own else {}

    def experiment(self, kind: str, own: object = None, **changes: Any) -> Experiment:
        """The load as an experiment of a kind; `own` is the record of that kind's settings,
        `changes` are what the kind decides itself."""
        asked = self.asked
        given = asked.settings.get("load.duration")
        patience_s = self.patience_s
        if patience_s is None:
            most = min(DEFAULT_PATIENCE_S, asked.settings.scaled(DEFAULT_PATIENCE_S))
            patience_s = 0 if kind == QUICK and not self.launches else most
        fields = ("servers", "routes", "concurrencies", "modes", "rate_rps", "arrivals",
                  "duration_s", "warmup_s", "engines", "launches")  # fmt: skip
        return Experiment(
            name=asked.name,
            question=asked.question,
            hypothesis=asked.hypothesis,
            words=asked.words,
            kind=kind,
            own={} if own is None else to_json(own),
            scale=asked.settings.scale,
            longer=given is None or not given.by_user,
            target=self.target.url if self.target else None,
            requests=self.target.requests if self.target else (),
            ready=self.target.ready if self.target else None,
            levers=self.levers,
            subject=self.target.subject if self.target else None,
            patience_s=patience_s,
            **{name: getattr(self, name) for name in fields} | changes,
        )


def read_load(
    asked: Asked,
    modes: tuple[Mode, ...] = BOTH,
    single: tuple[str, ...] = (),
    *,
    with_connections: bool = True,
    searched: bool = False,
) -> Load:
    """The load; `modes` where none are given, `single` are settings of which the kind takes one,
    `with_connections` whether there must be load.concurrency, `searched` whether the kind finds the
    rate itself.

    A target is the only server, whatever servers and routes a file names; what is held is then what
    the generator holds. Connections beyond what the machine holds are refused in a word of
    the user's, and left out where a file asks for them. Raises WordError.
    """
    settings, file_limit = asked.settings, asked.here.file_limit
    calls = settings.each("load.routes", parse) or (parse(DEFAULT_ROUTE),)
    given = settings.get("load.routes")
    routes = given.texts if given else (DEFAULT_ROUTE,)
    servers, target = tuple(asked.here.servers), given_target(settings, asked.here.subjects)
    chosen = settings.each("load.modes", rules.one_of((*MODES, "both")))
    modes = tuple(mode for mode in BOTH if mode in chosen or "both" in chosen) or modes
    launches = settings.one("repeat.launches", rules.number(0, rules.MAX_LAUNCHES), 0)
    if target is not None:
        calls, servers, routes = (foreign(target.route),), (target.server,), (target.route,)
        launches = targets.launches(settings, launches, target.server, asked.here.own)
        if not searched:
            modes = targets.modes(settings, modes)
    tightest = min(
        (call.route for call in calls), key=lambda r: rules.max_concurrency(r, file_limit)
    )
    most = rules.max_concurrency(tightest, file_limit)
    if most < 1:
        raise WordError(f"only {file_limit} open files per process are allowed here; raise NOFILE")
    held = rules.held(tightest, file_limit)
    concurrencies, notes = _concurrencies(settings, most, held)
    if with_connections and not concurrencies:
        raise settings.missing("load.concurrency")
    named = () if target else settings.each("load.servers", rules.server(servers))
    duration_s = settings.one("load.duration", rules.seconds(1), DEFAULT_DURATION_S)
    load = Load(
        asked=asked,
        servers=named or servers,
        calls=calls,
        routes=routes,
        concurrencies=concurrencies,
        modes=modes,
        rate_rps=_rate(settings, asked.here.results, named or servers),
        arrivals=settings.one("load.arrivals", rules.arrivals, "constant"),
        duration_s=settings.scaled(duration_s),
        warmup_s=settings.one("load.warmup", rules.seconds(0), None),
        engines=settings.each("load.engines", rules.one_of([one.name for one in ENGINES])),
        launches=launches,
        patience_s=settings.one("repeat.patience", rules.seconds(0), None),
        target=target,
        most=most,
        held=held,
        notes=(*notes, *((target.note,) if target and target.note else ())),
    )
    _check_single(load, single)
    return _possible(settings, load, searched=searched)


def _rate(settings: Settings, results: Path | None, servers: Sequence[str]) -> int | None:
    """The rate of an open load. A share, as 70%, is of the least capacity of these servers in a
    stored run: of what 95 of 100 trials met. Raises WordError."""
    given = settings.get("load.rate")
    run = settings.get("load.capacity")
    share = re.fullmatch(r"([1-9]\d?|1[0-4]\d|150)%", given.text) if given else None
    if given is None or share is None:
        if run is not None:
            raise run.refuse(f"{run.text} is not allowed without a share of it, as RATE=70%")
        return settings.one("load.rate", rules.rate, None)
    if run is None or results is None:
        raise given.refuse(
            f"{given.text} is a share of a capacity; name its run, as CAPACITY=<run>"
        )
    folder = find_run_dir(results, "CAPACITY", settings.one("load.capacity", rules.run_name, ""))
    try:
        known = capacities(json.loads((folder / "findings.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, AttributeError):
        raise run.refuse(f"{run.text} is not a run of make capacity in results/") from None
    missing = [server for server in servers if server not in known]
    if missing:
        raise run.refuse(
            f"{run.text} knows no capacity of {missing[0]}; allowed: {', '.join(known)}"
        )
    return max(1, int(int(share[1]) / 100 * min(known[server] for server in servers)))


def capacities(findings: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The rate that each server sustains in 95 of 100 trials, by the findings of a run of capacity;
    of several objectives the least."""
    found: dict[str, float] = {}
    for each in findings:
        often = each.get("often") if each.get("unit") == "req/s" else None
        if often and often[0] >= 1:
            found[each["server"]] = min(often[0], found.get(each["server"], math.inf))
    return found


def check_exact(load: Load) -> None:
    """Raises WordError for engines that are not exact to the second, as recovery needs."""
    engines = load.asked.settings.get("load.engines")
    if engines is not None and load.engines != (EXACT,):
        raise engines.refuse(
            f"{engines.text} is not exact to the second, and recovery is read from every second; "
            f"allowed: {EXACT}"
        )


def no_auto_rate(path: str) -> WordError:
    return WordError(
        f"RATE=auto is a share of connections / wait, and {path} does not wait now; "
        "allowed: RATE=n requests per second, or MODE=closed"
    )


def _check_single(load: Load, names: tuple[str, ...]) -> None:
    values = {
        "routes": load.routes,
        "concurrency": load.concurrencies,
        "modes": load.modes,
        "engines": load.engines,
    }
    for name in names:
        given = load.asked.settings.get(f"load.{name}")
        if given is not None and len(values[name]) > 1:
            raise given.refuse(f"{given.text} is more than one; allowed: one in this kind")


def _concurrencies(
    settings: Settings, most: int, held: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    given = settings.get("load.concurrency")
    values = settings.each("load.concurrency", rules.connections(most))
    over = [value for value in values if value > most]
    if given is None or not over:
        return values, ()
    if given.by_user or len(over) == len(values):
        raise given.refuse(f"{over[0]} is more than this machine holds; allowed: {held}")
    names = ", ".join(map(str, over))
    return tuple(value for value in values if value <= most), (
        f"{names} connections left out: this machine holds {held}",
    )


def _possible(settings: Settings, load: Load, *, searched: bool) -> Load:
    """The load, where its settings go together. Raises WordError."""
    engines, rate, modes = (settings.get(f"load.{key}") for key in ("engines", "rate", "modes"))
    if rate is not None and load.rate_rps is not None and load.modes == ("closed",):
        if rate.by_user or modes is None or not modes.by_user:
            raise rate.refuse(f"{rate.text} is not allowed: a closed load has no rate")
        return dataclasses.replace(load, rate_rps=None)
    if engines is not None and load.target and load.target.requests and load.engines != (EXACT,):
        what = f"sends GET of one path only, and {load.target.route} is more"
        if any(one.expect for one in load.target.requests):
            what = f"checks no answers, and {load.target.route} expects some"
        raise engines.refuse(f"{engines.text} {what}; allowed: ENGINE={EXACT}")
    arrivals = settings.get("load.arrivals")
    if arrivals is not None and load.arrivals != "constant":
        if "open" not in load.modes:
            raise arrivals.refuse(f"{arrivals.text} is not allowed: a closed load has no arrivals")
        if engines is not None and load.engines != (EXACT,):
            raise arrivals.refuse(
                f"{arrivals.text} with {engines.text} is not allowed; allowed: ENGINE={EXACT}"
            )
    waits = any(call.wait_ms != 0 for call in load.calls)
    if load.modes == ("open",) and load.rate_rps is None and not waits and not searched:
        raise no_auto_rate(load.routes[0])
    return load
