"""The order of an experiment's trials.

A design is a function of the rows so far. With the same rows it plans the same trial again, which
is how an interrupted run goes on.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lab.errors import WordError
from lab.experiments.reading import no_auto_rate
from lab.judge.predict import auto_rate_rps
from lab.load.engines import Engine
from lab.model import Experiment, Mode, Row, Snapshot, TrialPlan

# The URL of a route, with its query, on a server.
UrlOf = Callable[[str, str], str]
# Of trials that the rows before them do not ask for: the version that ran them judged those rows
# otherwise.
STRAYED = "not to be told from here on, with the verdicts of this version"


class Design(Protocol):
    """Which trial is next. Stateless."""

    @property
    def total(self) -> int | None:
        """How many trials there will be; None where their number depends on their findings."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """For the user: what the design leaves out."""
        return ()

    def left(self, done: Sequence[Row]) -> int:
        """How many trials are left after these rows. Where `total` is None this is the most there
        can be, not counting invalid trials that run once more."""

    def next(self, done: Sequence[Row]) -> TrialPlan | None:
        """The trial after these rows, which are in the order of time; None: the run is over."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A design that knows all its trials before the first one."""

    plans: tuple[TrialPlan, ...]
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The number of all trials."""
        return len(self.plans)

    def left(self, done: Sequence[Row]) -> int:
        """The number of trials without a row."""
        names = {row.trial for row in done}
        return sum(plan.trial not in names for plan in self.plans)

    def next(self, done: Sequence[Row]) -> TrialPlan | None:
        """The first trial without a row."""
        names = {row.trial for row in done}
        return next((plan for plan in self.plans if plan.trial not in names), None)


@dataclass(frozen=True, slots=True)
class Planner:
    """What all trials of a run have in common: the experiment, the servers as they were read back
    before the first trial, the load engines of the run by name, and how many CPUs an engine has.
    """

    experiment: Experiment
    snapshots: Mapping[str, Snapshot]
    engines: Mapping[str, Engine]
    url_of: UrlOf
    cores: int

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
        """A trial without a name yet. Route and duration are the experiment's if not given;
        `changes` are further fields of TrialPlan."""
        route = route or self.experiment.routes[0]
        return TrialPlan(
            trial="",
            server=server,
            url=self.url_of(server, route),
            route=route,
            engine=engine.name,
            mode=mode,
            concurrency=concurrency,
            offered_rps=offered_rps,
            predicted_rps=None,
            duration_s=duration_s or self.experiment.duration_s,
            warmup_s=self.experiment.warmup_s,
            cores=self.cores,
            **changes,
        )

    def single(self, server: str, concurrency: int | None = None, **changes: Any) -> TrialPlan:
        """A trial, without a name yet, of an experiment of one route and one mode; its first
        concurrency if none is given. `changes` as of `plan`. Raises WordError."""
        mode, route = self.experiment.modes[0], self.experiment.routes[0]
        concurrency = concurrency or self.experiment.concurrencies[0]
        rate = None
        if mode == "open":
            rate = self.offered_rps(route, concurrency)
            if rate is None:
                raise no_auto_rate(route)
        return self.plan(server, self.engine_for(mode), mode, concurrency, rate, **changes)

    def one_per_launch(self, **changes: Any) -> Listed:
        """A design with one such trial (see `single`) per server and launch. Raises WordError."""
        return Listed(
            self.numbered(
                [
                    self.single(server, launch=launch, **changes)
                    for launch in launches(self.experiment)
                    for server in turned(self.experiment.servers, launch)
                ]
            )
        )

    def offered_rps(self, route: str, concurrency: int) -> int | None:
        """The rate of an open load; None where RATE=auto has no meaning because nothing waits.

        One server's snapshot is enough: delay and toxics are the same for all servers.
        """
        experiment = self.experiment
        if experiment.rate_rps is not None:
            return experiment.rate_rps
        return auto_rate_rps(route, concurrency, self.snapshots[experiment.servers[0]])

    def engine_for(self, mode: Mode) -> Engine:
        """The first engine that does this mode. Raises WordError."""
        for engine in self.engines.values():
            if mode in engine.modes:
                return engine
        raise self._no_engine(mode)

    def numbered(self, plans: Sequence[TrialPlan]) -> tuple[TrialPlan, ...]:
        """The trials with their names. Raises WordError where an engine cannot do a trial, or
        there is no trial."""
        if not plans:
            raise self._no_engine(*self.experiment.modes)
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
            slug(plan.route) if len(experiment.routes) > 1 else None,
            plan.mode,
            f"c{plan.concurrency}",
            plan.engine if len(self.engines) > 1 else None,
            f"l{plan.launch}" if experiment.launches > 1 else None,
        ]
        named = dataclasses.replace(plan, trial="-".join(part for part in parts if part))
        self.engines[plan.engine].schedule(named, Path())
        return named

    def _no_engine(self, *modes: Mode) -> WordError:
        names = ", ".join(self.engines)
        return WordError(f"{names}: no engine that does MODE={','.join(modes)} runs here")


def launches(experiment: Experiment) -> Sequence[int]:
    """The numbers of the launches, from 1; only 0 where trials use the JVMs that run."""
    return range(1, experiment.launches + 1) if experiment.launches else (0,)


def turned[T](values: Sequence[T], launch: int) -> Sequence[T]:
    """The values; every other launch has them in reverse."""
    return values if launch % 2 or not launch else values[::-1]


def slug(route: str) -> str:
    """A route as part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", route.lower()).strip("-") or "root"
