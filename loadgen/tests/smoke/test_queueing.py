"""`/block` on a pool of a few threads, beside a simulation of that pool: rate and p95 agree."""

import math

import pytest

from lab.kinds.cases import Case
from lab.kinds.planted import of_trials
from lab.model import Experiment
from lab.model.routes import parse
from support.queueing import Request, closed_load, open_load
from support.stored import Run

# Above this the machine is part of the queue.
MOST_CPU = 0.9
RATE_SHARE, P95_SHARE = 0.02, 0.1


def simulated(case: Case, until_s: float) -> list[Request]:
    wait_ms = parse(case.route).wait_ms
    assert wait_ms
    pool, service_s = case.condition.knobs["pool_size"], wait_ms / 1000
    if case.rate is None:
        return closed_load(case.concurrency, pool, lambda: service_s, until_s)
    due_s = [at / case.rate for at in range(round(case.rate * until_s))]
    return open_load(due_s, case.concurrency, pool, lambda: service_s)


def test_what_is_measured_is_what_the_queue_gives() -> None:
    run = Run("queueing")
    experiment = run.manifest.experiment
    assert isinstance(experiment, Experiment)
    wrong, compared = [], 0
    for row in run.every_row:
        case = of_trials(experiment)[row.trial]
        record = run.record(row.trial)
        busy = record["usage"]["host_busy"]
        if busy is None or busy >= MOST_CPU:
            continue
        opens_s = record["window_offset_s"]
        assert row.window_s
        closes_s = opens_s + row.window_s
        ended = [one for one in simulated(case, closes_s) if opens_s <= one.end_s < closes_s]
        times_ms = sorted(1000 * (one.end_s - one.due_s) for one in ended)
        rps, p95_ms = len(ended) / row.window_s, times_ms[math.ceil(0.95 * len(ended)) - 1]
        told_ms = row.raw_p95_ms if case.rate is None else row.p95_ms
        compared += 1
        # While other machines have the CPU nothing ends in time: where they took 14 to 20 % of it
        # a wait of 100 ms took 102, and the rate was 3.4 % lower.
        lost = record["usage"]["host_steal"] or 0.0
        # Equal waits keep the clients of a closed load together: those at work end at once, within
        # the window or just behind it.
        working = min(case.concurrency, case.condition.knobs["pool_size"])
        wave = working / len(ended) if case.rate is None else 0.0
        if row.achieved_rps != pytest.approx(rps, rel=RATE_SHARE + wave + lost):
            wrong.append(f"{row.trial}: {row.achieved_rps} req/s, simulated {rps}")
        if told_ms != pytest.approx(p95_ms, rel=P95_SHARE + lost):
            wrong.append(f"{row.trial}: p95 {told_ms} ms, simulated {p95_ms}")
    assert wrong == []
    assert compared, "the CPUs were full in every trial"
