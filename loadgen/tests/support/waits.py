"""A trial whose requests waited at known places, and whose threads ran and waited for a CPU for
known times: for tests of the rule that names what was waited for."""

import copy
from collections.abc import Mapping
from typing import Any

from lab.judge.metrics import PROCESS_RUN, PROCESS_RUNQ, RUN, RUNQ
from lab.judge.resources import verdict_of
from lab.judge.trial import Trial
from lab.model import Judgement, Observation, Second, Series, Usage, Verdict
from support.fakes import flat, latency, measurement, plan, reading, record
from support.series import CLOSES, OPENS, counter, gauge, mean_time
from support.windows import QUIET, SERVER, key

DELAY_MS = 200.0
REQUEST = {"server": SERVER, "route": "/downstream"}
# Seconds on a CPU and in its run queue, per second of the window.
Threads = Mapping[str, tuple[float, float]]
IDLE: Threads = {"worker": (0.2, 0.02), "front": (0.1, 0.01), "proxy": (0.2, 0.02),
                 "downstream": (0.1, 0.01), "generator": (0.1, 0.01)}  # fmt: skip


def threads(**changed: tuple[float, float]) -> Threads:
    return {**IDLE, **changed}


def times(rps: float, **ms: float) -> list[Series]:
    """The server's and the downstream's metrics of requests that waited so long at these places."""
    lag_ms, pending_ms = ms.get("downstream", 0.0), ms.get("pending", 0.0)
    call_ms = DELAY_MS + lag_ms + ms.get("path", 0.0)
    request, call = "lab_http_request_seconds", "lab_downstream_call_seconds"
    phases = (
        (request, "queue", ms.get("queue", 0.0), REQUEST),
        (request, "service", ms.get("own", 0.0) + pending_ms + call_ms, REQUEST),
        (call, "pending", pending_ms, {"server": SERVER}),
        (call, "call", call_ms, {"server": SERVER}),
    )
    each = (
        ("lab_downstream_requests_total", 1.0),
        ("lab_downstream_drawn_seconds_total", DELAY_MS / 1000),
        ("lab_downstream_lag_seconds_sum", lag_ms / 1000),
        ("lab_downstream_lag_seconds_count", 1.0),
    )
    return [
        *(one for name, phase, mean_ms, labels in phases
          for one in mean_time(name, mean_ms / 1000, rps, phase=phase, **labels)),
        *(counter(name, rps * amount, job="downstream") for name, amount in each),
        counter("lab_downstream_calls_total", rps, server=SERVER, outcome="ok"),
        # A pool with threads to spare.
        gauge("lab_worker_pool_size", 10_000, server=SERVER),
    ]  # fmt: skip


def run_queues(at: Threads) -> list[Series]:
    found = []
    for name, (run, runq) in at.items():
        if name in ("proxy", "downstream"):
            process = {"job": "downstream", "process": name.replace("proxy", "toxiproxy")}
            found += [counter(PROCESS_RUN, run, **process), counter(PROCESS_RUNQ, runq, **process)]
        elif name != "generator":
            mine = {"server": SERVER, "threads": name}
            mine |= {"front": "front-1"} if name == "front" else {}
            found += [counter(RUN, run, **mine), counter(RUNQ, runq, **mine)]
            found.append(gauge("lab_threads", 1, **mine))
    return found


def waited(
    *more: Series,
    rps: float = 5000.0,
    offered_rps: int | None = None,
    busy: float = 0.9,
    steal: float = 0.0,
    others: float | None = None,
    at: Threads | None = IDLE,
    p99_ms: float | None = None,
    dispersion: float | None = None,
    seconds: tuple[float, ...] = (),
    reasons: tuple[str, ...] = (),
    settings: Mapping[str, object] | None = None,
    usage: Mapping[str, Any] | None = None,
    **ms: float,
) -> Verdict:
    """The verdict of a trial of so many answers a second, each of which took 200 ms and these ms
    more: `generator`, `connect`, `queue`, `own`, `pending`, `path`, `downstream`, `unexplained`.
    The load is closed unless it offers a rate. `at` None: no run queue is known."""
    sent = ("queue", "own", "pending", "path", "downstream", "unexplained")
    answer_ms = DELAY_MS + sum(ms.get(place, 0.0) for place in sent)
    late_ms = ms.get("generator", 0.0)
    due_ms = answer_ms + late_ms + ms.get("connect", 0.0)
    mode = "closed" if offered_rps is None else "open"
    connections = round(rps * (answer_ms + (late_ms if mode == "closed" else 0.0)) / 1000)
    load = plan(mode, server=SERVER, concurrency=connections, offered_rps=offered_rps)

    def taken(mean_ms: float) -> Any:
        tail = mean_ms + 20 if p99_ms is None else p99_ms
        return copy.replace(latency(mean_ms), p99_ms=tail, max_ms=tail + 100)

    run, runq = (at or {}).get("generator", (0.1, 0.0))
    known = at is not None
    figures = {"window_cpu_s": run * 10, "window_wait_s": runq * 10 if known else None}
    used = Usage(1.0, host_busy=busy, host_steal=steal, **{**figures, **(usage or {})})
    of = record(load, usage=used)
    before = copy.replace(of.before, settings={**of.before.settings, **(settings or {})})
    said = reading(
        rps,
        10.0,
        raw=taken(answer_ms),
        corrected=taken(due_ms) if mode == "open" else None,
        late=flat(late_ms),
        dispersion=dispersion,
        seconds=tuple(Second(round(rps), round(rps), mean) for mean in seconds),
        generator_run_s=run * 10 if known else None,
        generator_runq_s=runq * 10 if known else None,
    )
    series = {key(one): one for one in (*QUIET, *times(rps, **ms), *run_queues(at or {}), *more)}
    whole = measurement(copy.replace(of, before=before), said)
    judgement = Judgement(reasons, (), others_cpu=others)
    return verdict_of(
        Trial(whole, Observation((OPENS, CLOSES), tuple(series.values())), judgement=judgement)
    )
