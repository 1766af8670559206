"""Experiments and rows for tests of designs, and a design run to its end without any load."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lab.kinds.order import Design, Planner
from lab.load.engines import Engine
from lab.model import Experiment, Row, Snapshot, TrialPlan
from lab.store.records import to_json
from support.fakes import FakeEngine, snapshot


def experiment(**changes: Any) -> Experiment:
    """An experiment; `own` is the record of its kind."""
    whole = Experiment(
        name="x",
        servers=("a", "b"),
        routes=("/downstream",),
        concurrencies=(100,),
        modes=("closed", "open"),
        rate_rps=None,
        duration_s=15,
        warmup_s=None,
    )
    if "own" in changes:
        changes["own"] = to_json(changes["own"])
    return copy.replace(whole, **changes)


def row(plan: TrialPlan, **changes: Any) -> Row:
    empty = dict.fromkeys(Row.columns())
    whole = Row(**{**empty, "run": "r", "valid": True, "invalid_reasons": ""})
    known = ("trial", "server", "route", "engine", "mode", "concurrency", "offered_rps",
             "duration_s", "warmup_s", "launch", "arm")  # fmt: skip
    same = {name: getattr(plan, name) for name in known}
    return copy.replace(whole, **{**same, **changes})


def with_damaged(rows: Sequence[Row], at: int) -> list[Row]:
    """The rows, but the raw data of this one is damaged."""
    damaged = {"valid": False, "invalid_reasons": "damaged problem=trial.json:%20x"}
    return [*rows[:at], copy.replace(rows[at], **damaged), *rows[at + 1 :]]


def resumed(
    order: Design,
    rows: Sequence[Row],
    at: int,
    answer: Callable[[TrialPlan], Mapping[str, Any]],
    *,
    gone: bool,
) -> list[Row]:
    """The rows of a design that goes on after this trial was damaged, or is gone as a whole."""
    done = [*rows[:at], *rows[at + 1 :]] if gone else with_damaged(rows, at)
    while (plan := order.next(done)) is not None:
        assert len(done) < 3 * len(rows)
        assert plan.trial not in {one.trial for one in done}
        done.append(row(plan, **answer(plan)))
    return done


def planner(
    of: Experiment, *engines: Engine, snapshots: Mapping[str, Snapshot] | None = None
) -> Planner:
    """Plans the trials of an experiment for these engines, by default for a fake one."""
    return Planner(
        of,
        snapshots or dict.fromkeys(of.servers, snapshot()),
        {engine.name: engine for engine in engines or (FakeEngine(),)},
        lambda server, route: f"http://{server}:8080{route}",
        2,
    )


def all_of(order: Design) -> list[TrialPlan]:
    """Every trial, as if each were done when the next is asked for."""
    done: list[Row] = []
    plans = []
    while (plan := order.next(done)) is not None:
        plans.append(plan)
        done.append(row(plan))
    return plans
