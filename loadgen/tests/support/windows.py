"""Windows made by hand, as Prometheus would have them, and the verdict on a trial in one."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from lab.judge.resources import verdict_of
from lab.judge.trial import Trial
from lab.model import (
    Demand,
    Judgement,
    Latency,
    Observation,
    Remark,
    Series,
    Spread,
    ToxicState,
    Usage,
    Verdict,
)
from lab.model.verdict import Standing
from support.fakes import IDENTITY, latency, measurement, plan, reading, record
from support.series import CLOSES, OPENS, counter, gauge, mean_time

SERVER = "a"
MINE = {"server": SERVER}
REQUEST = {**MINE, "route": "/downstream"}
Labels = tuple[tuple[str, str], ...]

QUIET = (
    *(gauge("up", 1, job=job) for job in ("server", "jvm", "downstream", "toxiproxy", "cadvisor")),
    gauge("jvm_threads_current", 30, job="jvm", server=SERVER),
    gauge("process_open_fds", 500, job="jvm", server=SERVER),
    gauge("process_max_fds", 20_000, job="jvm", server=SERVER),
    gauge("lab_worker_pool_size", 200, server=SERVER),
    gauge("lab_worker_pool_active", 10, server=SERVER),
    gauge("lab_downstream_connections_cap", 20_000, server=SERVER),
    gauge("lab_downstream_connections_leased", 200, server=SERVER),
    gauge("lab_downstream_connections_pending", 0, server=SERVER),
    counter("lab_downstream_calls_total", 990, server=SERVER, outcome="ok"),
    counter("lab_downstream_calls_total", 0, server=SERVER, outcome="timeout"),
    counter("lab_kernel_listen_overflows_total", 0, server=SERVER),
    gauge("lab_kernel_tcp_time_wait", 0, server=SERVER),
    *(
        counter(f"lab_path_accept_queue_{name}", 0, job="downstream", listener=listener)
        for name in ("connection_seconds_total", "occupied_seconds_total")
        for listener in ("toxiproxy", "downstream")
    ),
    counter("jvm_gc_collection_seconds_sum", 0.01, server=SERVER, gc="G1 Young Generation"),
    counter("container_cpu_usage_seconds_total", 0.5, service=SERVER),
    gauge("machine:machine_cpu_cores:max", 2),
)


def key(series: Series) -> Labels:
    return tuple(sorted(series.labels.items()))


def seen(*changed: Series, without: str = "") -> Observation:
    """A quiet window, but for these series; `without` those of a name."""
    named = {key(series): series for series in (*QUIET, *changed)}
    kept = (one for one in named.values() if one.labels["__name__"] != without)
    return Observation((OPENS, CLOSES), tuple(kept))


def judged(
    observation: Observation,
    *,
    rps: float = 500.0,
    errors: int = 0,
    pause_s: float = 0.0,
    corrected: Latency | None = None,
    raw: Latency | None = None,
    late: Latency | None = None,
    settings: Mapping[str, object] | None = None,
    toxics: ToxicState | None = None,
    spread: Spread | None = None,
    jdk: str = IDENTITY.jdk,
    cpus: int = IDENTITY.cpus,
    usage: Usage | None = None,
    demand: Demand | None = None,
    reasons: tuple[Remark, ...] = (),
    **planned: object,
) -> Verdict:
    """The verdict of a trial with this plan, closed unless that offers a rate; the downstream takes
    200 ms, so 200 connections could do 1,000 req/s. Answers take 200 ms unless their latencies are
    given."""
    mode = "open" if planned.get("offered_rps") else "closed"
    load = plan(mode, **{"server": SERVER, "concurrency": 200, **planned})
    usage = usage or Usage(1.0, 1.0, 0.4, 0.0, 0.1, 1000)
    of = record(load, usage=usage, demand=demand)
    before = copy.replace(
        of.before,
        toxics=toxics or of.before.toxics,
        spread=spread,
        identity=copy.replace(IDENTITY, jdk=jdk, cpus=cpus),
        settings={**of.before.settings, **(settings or {})},
    )
    latencies = {"corrected": corrected or latency(), "raw": raw or latency(), "late": late}
    counts = copy.replace(reading(rps).counts, http_errors=errors)
    said = reading(rps, pause_s=pause_s, counts=counts, **latencies)
    whole = measurement(copy.replace(of, before=before), said)
    return verdict_of(Trial(whole, observation, judgement=Judgement(reasons, ())))


def gauges(prefix: str, **values: float) -> list[Series]:
    return [gauge(f"{prefix}{name}", value, **MINE) for name, value in values.items()]


def calls(outcome: str, rate: float) -> Series:
    return counter("lab_downstream_calls_total", rate, outcome=outcome, **MINE)


def times(mean_ms: float, p95_ms: float) -> Latency:
    return Latency(mean_ms, mean_ms, p95_ms, p95_ms, p95_ms)


def cpu(busy: float | None, waited_s: float = 0.1, slices: int = 1000, **more: float) -> Usage:
    return Usage(1.0, 1.0, busy, 0.0, waited_s, slices, **more)


def pool(size: int, waiting: float, held_s: float) -> list[Series]:
    """A pool with all its threads busy: by Little's law each waits for waiting × held / size."""
    name = "lab_http_request_seconds"
    return [
        *gauges("lab_worker_pool_", size=size, active=size, queue_depth=waiting),
        *mean_time(name, waiting * held_s / size, phase="queue", **REQUEST),
        *mean_time(name, held_s, phase="service", **REQUEST),
    ]


# A name, series beside those of a quiet window, figures of `judged`, what is named, how surely.
Line = tuple[str, Iterable[Series], Mapping[str, Any], str, str]


def table(lines: Iterable[Line]) -> pytest.MarkDecorator:
    """A table of verdicts, for `check`. `without` among the figures leaves series out."""
    return pytest.mark.parametrize("line", [pytest.param(line, id=line[0]) for line in lines])


def check(line: Line) -> None:
    _, series, figures, *expected = line
    figures = dict(figures)
    observed = seen(*series, without=figures.pop("without", ""))
    assert named(observed, **figures) == tuple(expected)


def named(observed: Observation | None, **changes: Any) -> tuple[str, str]:
    """The bottleneck, and how strong its evidence is."""
    found = judged(observed, **changes)
    return found.bottleneck, found.strength


def standing(verdict: Verdict, resource: str) -> Standing | None:
    """The place of a resource in the ranking, if it has one."""
    found = [each for each in verdict.ranked if each.resource == resource]
    assert len(found) < 2
    return found[0] if found else None
