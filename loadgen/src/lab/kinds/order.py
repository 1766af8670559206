"""The order of an experiment's trials.

A design is a function of the rows so far. With the same rows it plans the same trial again, which
is how an interrupted run goes on.
"""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.judge.checks import by_accident
from lab.judge.checks.data import window_short
from lab.judge.grouping import lane_of
from lab.judge.predict import auto_rate_rps, needed_window_s, predict
from lab.kinds.reading import no_auto_rate
from lab.load.engines import Engine
from lab.load.engines.base import REQUEST_TIMEOUT_S
from lab.model import AGAIN, Condition, Experiment, Mode, Row, Snapshot, TrialPlan
from lab.model.routes import parse

# The URL of a route, with its query, on a server.
UrlOf = Callable[[str, str], str]

REPEATS_IN_VAIN = 2
# Where a window proves to be too short for its latencies, its load is given a longer one, of at
# most so many seconds.
LONGEST_S = 60


class Design(ABC):
    """Which trial is next. Stateless."""

    # A trial may take other settings of a container than it has.
    needs_host = False
    # The trials that are known before the first one; none where they follow from findings.
    known: tuple[TrialPlan, ...] = ()
    # For the user: what the design leaves out.
    notes: tuple[str, ...] = ()

    @property
    @abstractmethod
    def most(self) -> int:
        """How many trials there can be at most, not counting invalid ones that run once more."""

    @abstractmethod
    def next(self, rows: Sequence[Row]) -> TrialPlan | None:
        """The trial after these rows, which are in the order of time; None: the run is over."""

    def left(self, rows: Sequence[Row]) -> int | None:  # noqa: ARG002
        """How many trials are left after these rows; None where that depends on their findings."""
        return None

    def to_record(self, rows: Sequence[Row]) -> Iterable[str]:  # noqa: ARG002
        """The trials after these rows that RECORD repeats with a recording, as soon as it may
        replace their servers' JVMs; none where the kind does not record."""
        return ()

    def then(self, plan: TrialPlan) -> str:
        """The server of the trial after this one, as far as known before this one has its row."""
        return plan.server


class Listed(Design):
    """A design that knows all its trials before the first one, except the length of some windows.

    Where a window proved too short for the latencies in it, all later trials of that load have the
    longer one that would have done (`lengthened`).

    `repeats`: a trial that is invalid by accident (`checks.by_accident`) is measured once more, and
    at once, while its JVM still runs. That trial is called as the first, with AGAIN after it. No
    more trials of a launch are repeated once REPEATS_IN_VAIN of its repeats in a row were invalid
    too: then it is no accident, but the machine or the lab. A trial of the launch that runs is also
    measured once more if its load has a longer window by now: sides are compared at one length.
    """

    def __init__(
        self, plans: Sequence[TrialPlan], notes: tuple[str, ...] = (), *, repeats: bool = False
    ) -> None:
        self.known = tuple(plans)
        self.notes = notes
        self.repeats = repeats
        conditions = [plan.condition for plan in plans]
        self.needs_host = any(each.host or each.generator_cpus is not None for each in conditions)

    @property
    def most(self) -> int:
        return len(self.known)

    def left(self, rows: Sequence[Row]) -> int:
        return sum(1 for _ in self._left(rows))

    def next(self, rows: Sequence[Row]) -> TrialPlan | None:
        return next(self._left(rows), None)

    def to_record(self, rows: Sequence[Row]) -> Iterator[str]:
        """The last trial of each server, or arm of one, that has no other left."""
        names = {row.trial.removesuffix(AGAIN) for row in rows}
        left = {lane_of(plan) for plan in self.known if plan.trial not in names}
        if (following := self.next(rows)) is not None:
            # It may be a trial that is measured once more.
            left.add(lane_of(following))
        last = {lane_of(row): row.trial for row in rows}
        yield from (trial for lane, trial in last.items() if lane not in left)

    def then(self, plan: TrialPlan) -> str:
        at = [known.trial for known in self.known].index(plan.repeats or plan.trial)
        return (*self.known, plan)[at + 1].server

    def _left(self, rows: Sequence[Row]) -> Iterator[TrialPlan]:
        by_trial = {row.trial: row for row in rows}
        for known in self.known:
            plan = known
            if plan.spike is None and not plan.script:
                plan = lengthened(plan, [row for row in rows if _load_of(row) == _load_of(plan)])
            row, again = by_trial.get(plan.trial), f"{plan.trial}{AGAIN}"
            if row is None:
                yield plan
            elif self.repeats and again not in by_trial and _may_repeat(row, plan, rows):
                yield copy.replace(plan, trial=again, repeats=plan.trial)


def _may_repeat(row: Row, plan: TrialPlan, rows: Sequence[Row]) -> bool:
    """True if a trial was invalid by accident, and its launch's last repeats not all in vain; or if
    it is of the launch that runs, and only lacked the longer window that its load has now."""
    repeats = [
        each.valid for each in rows if each.launch == row.launch and each.trial.endswith(AGAIN)
    ]
    in_vain = len(repeats) >= REPEATS_IN_VAIN and not any(repeats[-REPEATS_IN_VAIN:])
    shorter = row.duration_s is not None and row.duration_s < plan.duration_s
    now = row.launch == rows[-1].launch and (row.valid or _longer_s(row) > 0)
    return (not in_vain and by_accident(row.reasons)) or (shorter and now)


def _load_of(trial: Row | TrialPlan) -> tuple[str, str, str, int, int | None]:
    return trial.route, trial.engine, trial.mode, trial.concurrency, trial.offered_rps


def lengthened(plan: TrialPlan, rows: Sequence[Row]) -> TrialPlan:
    """The trial with the window that these rows of its load ask for, if that is longer."""
    return copy.replace(plan, duration_s=max(plan.duration_s, *map(_longer_s, rows), 0))


def _longer_s(row: Row) -> int:
    """The window that a trial takes, in seconds, whose own was too short: with another try it may
    be valid. 0 for any other trial, and where LONGEST_S would not do."""
    needed_s, others = 0, []
    for reason in row.reasons:
        if reason.code == window_short.code:
            needed_s = needed_s or int(reason.values["needed_s"])
        else:
            others.append(reason)
    return needed_s if needed_s <= LONGEST_S and (not others or by_accident(others)) else 0


def next_number(rows: Sequence[Row]) -> int:
    return 1 + max((int(row.trial.partition("-")[0]) for row in rows), default=0)


@dataclass(frozen=True, slots=True)
class Planner:
    """What all trials of a run have in common: the experiment, the servers as they were read back
    before the first trial, the load engines of the run by name, and how many CPUs an engine has.
    `conditions`: those of the trials that were there when it was resumed.
    """

    experiment: Experiment
    snapshots: Mapping[str, Snapshot]
    engines: Mapping[str, Engine]
    url_of: UrlOf
    cores: int
    conditions: Mapping[str, Condition] = field(default_factory=dict)

    def plan(
        self,
        server: str,
        engine: Engine,
        mode: Mode,
        concurrency: int,
        offered_rps: int | None,
        *,
        route: str | None = None,
        duration_s: int | None = None,
        **changes: Any,
    ) -> TrialPlan:
        """A trial without a name yet. The route is the experiment's first if not given, and the
        duration what this load needs on this server (`duration_s`). `changes` are further fields of
        TrialPlan."""
        route, requests = route or self.experiment.routes[0], self.experiment.requests
        return TrialPlan(
            trial="",
            server=server,
            url=self.url_of(server, requests[0].path if requests else route),
            route=route,
            engine=engine.name,
            mode=mode,
            concurrency=concurrency,
            offered_rps=offered_rps,
            predicted_rps=None,
            duration_s=duration_s or self.duration_s([server], route, concurrency, offered_rps),
            warmup_s=self.experiment.warmup_s,
            cores=self.cores,
            arrivals=self.experiment.arrivals if mode == "open" else "constant",
            requests=requests,
            **changes,
        )

    def single(self, server: str, concurrency: int | None = None, **changes: Any) -> TrialPlan:
        """A trial, without a name yet, of an experiment of one route and one mode; its first
        concurrency if none is given. `changes` as of `plan`. Raises WordError."""
        mode, route = self.experiment.modes[0], self.experiment.routes[0]
        concurrency = concurrency or self.experiment.concurrencies[0]
        rate = self.offered_rps(route, concurrency) if mode == "open" else None
        if mode == "open" and rate is None:
            raise no_auto_rate(route)
        return self.plan(server, self.engine, mode, concurrency, rate, **changes)

    def one_per_launch(self, **changes: Any) -> Listed:
        """A design with one such trial (see `single`) per server and launch. Raises WordError."""
        plans = [
            self.single(server, launch=launch, **changes)
            for launch in launches(self.experiment)
            for server in turned(self.experiment.servers, launch)
        ]
        return Listed(self.numbered(plans), repeats=True)

    def duration_s(
        self, servers: Sequence[str], route: str, concurrency: int, offered_rps: int | None
    ) -> int:
        """How long the window of this load is, on all of these servers."""
        least_s = self.experiment.duration_s
        if not self.experiment.longer:
            return least_s
        expected_s = self.expected_s(servers, route, concurrency, offered_rps)
        call = parse(route) if self.experiment.target is None else None
        snapshots = (self.snapshots[server] for server in servers)
        return max(least_s, *(needed_window_s(expected_s, call, each) for each in snapshots))

    def expected_s(
        self, servers: Sequence[str], route: str, concurrency: int, offered_rps: int | None
    ) -> float:
        """The latency that is expected of the slowest of these servers, without the cost of
        computing, which is not known before the run. 0 where nothing is expected."""
        if self.experiment.target is not None:
            return 0.0
        expected_ms = (
            # An open load above its bound keeps every connection busy, as a closed load does.
            predict(route, concurrency, offered_rps, self.snapshots[server]).expected_ms
            or predict(route, concurrency, None, self.snapshots[server]).expected_ms
            or 0.0
            for server in servers
        )
        return min(REQUEST_TIMEOUT_S, max(expected_ms) / 1000)

    def offered_rps(self, route: str, concurrency: int) -> int | None:
        """The rate of an open load; None where RATE=auto has no meaning because nothing waits.

        One server's snapshot is enough: delay and toxics are the same for all servers.
        """
        experiment = self.experiment
        first = self.snapshots[experiment.servers[0]]
        return experiment.rate_rps or auto_rate_rps(route, concurrency, first)

    @property
    def engine(self) -> Engine:
        """The first of the engines."""
        return next(iter(self.engines.values()))

    def numbered(self, plans: Sequence[TrialPlan]) -> tuple[TrialPlan, ...]:
        """The trials with their names. Raises WordError where an engine cannot do a trial."""
        digits = max(2, len(str(len(plans))))
        return tuple(self.named(plan, at, digits) for at, plan in enumerate(plans, 1))

    def named(self, plan: TrialPlan, number: int, digits: int) -> TrialPlan:
        """The trial with its name, as 01-server-mode-c100. Arm, route, engine and launch are in
        the name only where the run has several. Raises WordError where its engine cannot do it."""
        experiment = self.experiment
        parts = [
            f"{number:0{digits}d}",
            plan.server,
            plan.arm,
            _slug(plan.route) if len(experiment.routes) > 1 else None,
            plan.mode,
            f"c{plan.concurrency}",
            plan.engine if len(self.engines) > 1 else None,
            f"l{plan.launch}" if experiment.launches > 1 else None,
        ]
        named = copy.replace(plan, trial="-".join(part for part in parts if part))
        self.engines[plan.engine].schedule(named, Path())
        return named


def launches(experiment: Experiment) -> Sequence[int]:
    """The numbers of the launches, from 1; only 0 where trials use the JVMs that run."""
    return range(1, experiment.launches + 1) if experiment.launches else (0,)


def turned[T](values: Sequence[T], launch: int) -> Sequence[T]:
    return values if launch % 2 or not launch else values[::-1]


def balanced[T](values: Sequence[T], launch: int, launches: int) -> Sequence[T]:
    """The values in an order in which each comes as often early as late in a JVM's life.

    Every pair of launches begins with another value, and the second of a pair has the order of the
    first in reverse. So all values have the same mean place after an even number of launches, and
    after twice as many launches as values each of them came first. One launch has them as given.
    """
    if launch < 1:
        return values
    pair, pairs = (launch - 1) // 2, (launches + 1) // 2
    start = pair * len(values) // pairs
    return turned((*values[start:], *values[:start]), launch)


def _slug(route: str) -> str:
    """A route as part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", route.lower()).strip("-") or "root"
