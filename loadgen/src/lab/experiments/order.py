"""The order of an experiment's trials.

A design is a function of what is done so far: asked again with the same rows it plans the same
trial, which is how an interrupted run goes on.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from lab.errors import WordError
from lab.experiments.reading import no_auto_rate
from lab.judge.predict import auto_rate_rps
from lab.load.engines import Engine
from lab.model import (
    AS_IT_IS,
    Condition,
    Experiment,
    Mode,
    Row,
    Snapshot,
    Spike,
    ToxicStep,
    TrialPlan,
)

T = TypeVar("T")
# The URL of a route, with its query, on a server.
UrlOf = Callable[[str, str], str]
# Of trials that the rows before them no longer ask for: an older version judged those otherwise.
STRAYED = "not to be told from here on, with the verdicts of this version"


class Design(Protocol):
    """Which trial is next. Stateless."""

    @property
    def total(self) -> int | None:
        """How many trials there will be; None where that depends on what they find."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, for the user."""

    def left(self, done: Sequence[Row]) -> int:
        """How many trials there will be after these; where `total` is None at most so many,
        those that are invalid and run once more not counted."""

    def next(self, done: Sequence[Row]) -> TrialPlan | None:
        """The trial after those that are done, in the order they were; None: no more."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A design that knows all its trials beforehand."""

    plans: tuple[TrialPlan, ...]
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int | None:
        """All of them."""
        return len(self.plans)

    def left(self, done: Sequence[Row]) -> int:
        """Those that are not done."""
        names = {row.trial for row in done}
        return sum(plan.trial not in names for plan in self.plans)

    def next(self, done: Sequence[Row]) -> TrialPlan | None:
        """The first that is not done."""
        names = {row.trial for row in done}
        return next((plan for plan in self.plans if plan.trial not in names), None)


def loads(
    experiment: Experiment,
    snapshots: Mapping[str, Snapshot],
    engines: Mapping[str, Engine],
    url_of: UrlOf,
    cores: int,
) -> Design:
    """Every cell on every server. `engines` are those of this run, by name.

    On the JVMs that run: route, concurrency, mode, engine, then the servers, so that compared
    trials are neighbours in time. On fresh JVMs each launch goes through all of that, every
    other one with engines, servers and arms in reverse (A B B A): what drifts steadily falls
    on all alike. Arms are outermost in a launch, as two of one server cannot live at once.
    Raises WordError where an engine cannot do a trial, or nothing would be left to do.
    """
    planner = Planner(experiment, engines, url_of, cores)
    offers, notes = _offers(experiment, snapshots)
    plans = [
        planner.plan(
            server, engine, mode, concurrency, offered, route=route, launch=launch, arm=arm
        )
        for launch in launches(experiment)
        for arm in turned(experiment.arms or (None,), launch)
        for route, concurrency, mode, offered in offers
        for engine in turned(tuple(engines.values()), launch)
        if mode in engine.modes
        for server in turned(experiment.servers, launch)
    ]
    return Listed(planner.numbered(plans), notes)


@dataclass(frozen=True, slots=True)
class Planner:
    """What all trials of a run have in common."""

    experiment: Experiment
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
        launch: int = 0,
        arm: str | None = None,
        spike: Spike | None = None,
        script: tuple[ToxicStep, ...] = (),
        condition: Condition = AS_IT_IS,
    ) -> TrialPlan:
        """A trial without a name yet; route and duration are the experiment's if not given."""
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
            launch=launch,
            arm=arm,
            spike=spike,
            script=script,
            condition=condition,
        )

    def engine_for(self, mode: Mode) -> Engine:
        """The first that does this mode. Raises WordError."""
        for engine in self.engines.values():
            if mode in engine.modes:
                return engine
        raise self._no_engine(mode)

    def numbered(self, plans: Sequence[TrialPlan]) -> tuple[TrialPlan, ...]:
        """The trials with their names. Raises WordError where an engine cannot do one, or
        there is none."""
        if not plans:
            raise self._no_engine(*self.experiment.modes)
        digits = max(2, len(str(len(plans))))
        return tuple(self.named(plan, at, digits) for at, plan in enumerate(plans, 1))

    def named(self, plan: TrialPlan, number: int, digits: int) -> TrialPlan:
        """The trial with its name, as 01-server-mode-c100: beside that only what there are
        several of. Raises WordError where its engine cannot do it."""
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
    """The launches, from 1; or only 0, the JVMs that run."""
    return range(1, experiment.launches + 1) if experiment.launches else (0,)


def turned(values: Sequence[T], launch: int) -> Sequence[T]:
    """The values, in reverse in every other launch."""
    return values if launch % 2 or not launch else values[::-1]


def offered_rps(
    experiment: Experiment, route: str, concurrency: int, snapshots: Mapping[str, Snapshot]
) -> int | None:
    """What an open load offers; None where RATE=auto has no meaning, as nothing waits.

    It is computed from one server's snapshot, for delay and toxics are the same for all.
    """
    if experiment.rate_rps is not None:
        return experiment.rate_rps
    return auto_rate_rps(route, concurrency, snapshots[experiment.servers[0]])


def slug(route: str) -> str:
    """A route as part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", route.lower()).strip("-") or "root"


_Offer = tuple[str, int, Mode, int | None]


def _offers(
    experiment: Experiment, snapshots: Mapping[str, Snapshot]
) -> tuple[list[_Offer], tuple[str, ...]]:
    """Route, connections, mode and rate of every cell that is possible, and what is not."""
    offers: list[_Offer] = []
    without_rate: list[str] = []
    for route in experiment.routes:
        for concurrency in experiment.concurrencies:
            for mode in experiment.modes:
                rate = None
                if mode == "open":
                    rate = offered_rps(experiment, route, concurrency, snapshots)
                if mode == "closed" or rate is not None:
                    offers.append((route, concurrency, mode, rate))
                elif route not in without_rate:
                    without_rate.append(route)
    if not offers:
        raise no_auto_rate(without_rate[0])
    if not without_rate:
        return offers, ()
    what = "closed load only" if "closed" in experiment.modes else "left out"
    does = "does" if len(without_rate) == 1 else "do"
    return offers, (
        f"{what}: RATE=auto is a share of connections / wait, and {', '.join(without_rate)} "
        f"{does} not wait now; RATE=n adds the open load",
    )
