"""Searches of a capacity, on servers whose capacity is planted."""

import dataclasses
import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.experiments import capacity
from lab.experiments.kind import Outcome
from lab.experiments.objective import Objective
from lab.experiments.order import Design
from lab.experiments.searching.findings import findings
from lab.experiments.searching.state import Capacity
from lab.model import Experiment, Finding, Row, TrialPlan
from support.fakes import snapshot
from support.planned import experiment, planner, row

CAPACITY = Capacity(Objective(p99_ms=500.0), 500, 100_000, 0.03, 100_000)

UNBOUND = snapshot(settings={})

FILLED = "work outside the lab used 40% of the CPUs"

JIT = "compiling"

LATE_GENERATOR = "generator-full"

Server = Callable[[TrialPlan], dict[str, Any]]


def searched(**changes: Any) -> Experiment:
    known = {"kind": "capacity", "modes": ("open",), "own": CAPACITY, "servers": ("a",)}
    return experiment(**{**known, **changes})


def order_of(of: Experiment) -> Design:
    return capacity.design(planner(of, snapshots=dict.fromkeys(of.servers, UNBOUND)))


def server(
    most: float, scatter: float = 0.0, seed: int = 0, name: str = "host CPU", luck: float = 0.0
) -> Server:
    """Holds up to `most` req/s. Its capacity scatters by this share from trial to trial (standard
    deviation of the logarithm). That share of trials says the opposite by `luck`, at any rate."""
    random_ = random.Random(seed)

    def answer(plan: TrialPlan) -> dict[str, Any]:
        rate = plan.offered_rps or 0
        holds = rate <= most * math.exp(random_.gauss(0, scatter))
        holds ^= luck > 0 and random_.random() < luck
        p99_ms = 210.0 if holds else 900.0
        return {
            "achieved_rps": float(rate),
            "p99_ms": p99_ms,
            "max_ms": p99_ms,
            "bottleneck": "none" if holds else name,
            "strength": "" if holds else "strong",
        }

    return answer


def run(
    of: Experiment, servers: Mapping[str, Server], most_trials: int = 500, rows: Sequence[Row] = ()
) -> list[Row]:
    """All rows of the run; it goes on after `rows`."""
    order, done = order_of(of), list(rows)
    while (plan := order.next(done)) is not None:
        assert len(done) < most_trials
        done.append(row(plan, **servers[plan.server](plan)))
    return done


def ran(servers: Mapping[str, Server], **changes: Any) -> tuple[Experiment, list[Row]]:
    """The search on these servers, and its rows."""
    of = searched(servers=tuple(servers), **changes)
    return of, run(of, servers)


def found(of: Experiment, rows: list[Row], *, complete: bool = False) -> tuple[Finding, ...]:
    return findings(Outcome(of, rows, Path(), complete=complete))


def alone(answer: Server, **changes: Any) -> tuple[list[Row], Finding, Finding]:
    """The search on one server: its rows, the answer, and how it was searched."""
    of, rows = ran({"a": answer}, **changes)
    told = found(of, rows)
    return rows, told[0], told[1]


def untold(when: Callable[[int], bool], answer: Server, reason: str = LATE_GENERATOR) -> Server:
    """The same server, with invalid trials at some rates."""

    def wrong(plan: TrialPlan) -> dict[str, Any]:
        bad = {"valid": False, "invalid_reasons": reason}
        return answer(plan) | (bad if when(plan.offered_rps or 0) else {})

    return wrong


PROVE = dataclasses.replace(CAPACITY, prove=True)

POOL = snapshot(settings={"pool_size": 200, "downstream_connections": 20_000})


def a_pool_of_threads(machine: float = 2600) -> Server:
    """Holds 5 req/s a thread, but no more than the machine does."""

    def answer(plan: TrialPlan) -> dict[str, Any]:
        threads = 5 * plan.condition.knobs.get("pool_size", 200)
        name = "worker pool" if threads <= machine else "host CPU"
        return server(min(threads, machine), name=name)(plan)

    return answer


def on_the_machine(most: float = 1000, spun: float | None = 0.2, falls: bool = True) -> Server:
    """Holds what the machine's CPUs allow; so much of them was taken away where a spinner ran."""

    def answer(plan: TrialPlan) -> dict[str, Any]:
        if plan.condition.spin is None:
            return server(most)(plan)
        left = 1 - (spun or 0.0) if falls else 1.0
        return server(left * most)(plan) | {"spun": spun}

    return answer
