"""Did the proxy and the downstream keep up? Judged by the window's series from Prometheus.

A missing or short observation says nothing: it is a note, not a reason.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import pairwise

from lab.judge.gates.generator import THROTTLED
from lab.model import AWAY, CLOCKS_APART, Observation, Series, TrialRecord
from lab.model.routes import EXPORTER_PORT

JOBS = ("server", "jvm", "downstream", "toxiproxy", "cadvisor")
# The jobs of a service that is not the lab's: `jvm` only where a JMX exporter is scraped.
JOBS_FOREIGN = ("jvm", "cadvisor")
# A downstream that is later than this share of its delay at p95 is what the trial measures.
LATE_SHARE = 0.1
LEAST_LATE_MS = 5.0
LATE_DOWNSTREAM = "the downstream was late"
# A part that used this share of the CPUs it may use was at its limit.
PART_CPU = 0.95
# What tells how many CPUs a part uses at most, by its job: each of the downstream's loops uses one,
# of however many its runtime may use.
CPUS = {"downstream": "lab_downstream_loops", "toxiproxy": "go_sched_gomaxprocs_threads"}
_PARTS = {"downstream": "the downstream", "toxiproxy": "the proxy"}
# What runs on a machine is scraped every second or two, and no scrape lasts longer than that. One
# of each may fail by chance where it is busy.
AWAY_S = 3.0
AWAY_SCRAPES = 3
# Half of the second between two scrapes: what is further off is in another second of the window.
CLOCKS_APART_S = 0.5
PART_RESTARTED = "a part of the lab was restarted during the trial"
# A process tells when it began by the machine's time of boot, which some kernels move by a second.
BOOT_MOVES_S = 2.0


def missing(record: TrialRecord, observation: Observation | None) -> Iterator[str]:
    """Notes on what is not known, or assumed."""
    yield from _assumed(record, observation)
    if observation is None:
        yield "the window's series are missing: Prometheus did not answer"
        return
    unseen = list(jobs_unseen(record, observation))
    if unseen:
        yield f"Prometheus did not see the whole window of {', '.join(unseen)}"


def restarted(record: TrialRecord, observation: Observation | None) -> Iterator[str]:
    """Which of the proxy and the downstream ended in the window and came back. Meanwhile nobody
    answered the server: its answers were errors, which may be quick. Of a server that calls past
    the proxy only the downstream counts."""
    if observation is None:
        return
    opens, closes = observation.window
    for part, name in _PARTS.items():
        if part == "toxiproxy" and record.before.direct:
            continue
        for one in observation.series("process_start_time_seconds", job=part):
            before = [began for at, began in one.points if at <= opens][-1:]
            later = [began for at, began in one.points if opens < at <= closes]
            after = [began for at, began in one.points if at > closes][:1]
            known = (*before, *later, *after)
            if known and max(known) - min(known) > BOOT_MOVES_S:
                yield f"{PART_RESTARTED}: {name}"


def clocks_apart(record: TrialRecord) -> Iterator[str]:
    """Whether a clock that samples have (that of Prometheus, and on several machines those of their
    parts) was surely further from that of the window than its figures bear."""
    for one in record.clocks:
        if abs(one.offset_s) - one.uncertainty_s > CLOCKS_APART_S:
            side = "ahead of" if one.offset_s > 0 else "behind"
            yield (
                f"{CLOCKS_APART}: that of {one.of} was {abs(one.offset_s):.1f} s {side} the "
                f"driver's (± {one.uncertainty_s:.1f} s)"
            )
            return


def away(observation: Observation | None) -> Iterator[str]:
    """Which of several machines gave Prometheus no answer for AWAY_S or longer, neither its
    cAdvisor nor any other part there, from the window on. What its parts did meanwhile is nobody's
    finding. One machine has no name, and is none."""
    if observation is None:
        return
    for of_machine in observation.series("up", job="cadvisor"):
        name = of_machine.labels.get("machine")
        if name is None:
            continue
        ran = observation.series("container_cpu_usage_seconds_total", machine=name)
        there = {one.labels.get("service") for one in ran}
        # Each machine has a cAdvisor. The servers' targets tell the server; those of other parts
        # are called as these are.
        there.discard("cadvisor")
        ups = [
            one
            for one in observation.series("up")
            if one.labels.get("server", one.labels.get("job")) in there
        ]
        gap_s = _silence_s((of_machine, *ups), observation.window[0])
        if gap_s >= AWAY_S:
            yield f"{AWAY}: {name} gave Prometheus no answer for {gap_s:.0f} s"


def _silence_s(ups: tuple[Series, ...], opens: float) -> float:
    """The longest time that ends after `opens` in which scrapes of each of these targets failed,
    AWAY_SCRAPES in all, and none was answered; 0.0 without one."""
    answered = sorted(at for one in ups for at in one.times_of(1.0))
    edges = [min(one.times[0] for one in ups), *answered, max(one.times[-1] for one in ups)]
    longest = 0.0
    for since, until in pairwise(edges):
        failed = [sum(since <= at <= until for at in one.times_of(0.0)) for one in ups]
        if until > opens and all(failed) and sum(failed) >= AWAY_SCRAPES:
            longest = max(longest, until - since)
    return longest


def _assumed(record: TrialRecord, observation: Observation | None) -> Iterator[str]:
    """A note on an exporter whose owner is assumed: its host may run other things beside the
    service."""
    server, before = record.plan.server, record.before
    if not before.foreign or before.exported is None:
        return
    container = observation is not None and observation.series(
        "container_cpu_usage_seconds_total", service=server
    )
    if "." in server or not container:
        port = str(before.settings.get("url", "")).rpartition(":")[2]
        yield (
            f"assumed: the JMX exporter on {server}:{EXPORTER_PORT} is that of the service on "
            f"port {port}"
        )


def jobs(record: TrialRecord) -> tuple[str, ...]:
    """The jobs that Prometheus should have scraped during a trial."""
    if not record.before.foreign:
        return JOBS
    return JOBS_FOREIGN if record.before.scraped else JOBS_FOREIGN[1:]


def jobs_unseen(record: TrialRecord, observation: Observation) -> Iterator[str]:
    """Those of them of which Prometheus did not see the whole window."""
    return (job for job in jobs(record) if not observation.covers(job))


def calm(record: TrialRecord, observation: Observation | None) -> Observation | None:
    """The window up to its first spike; all of it without one."""
    if observation is None or not record.peaks:
        return observation
    opens = observation.window[0]
    calm_s = record.peaks[0].started_s - record.window_offset_s
    return dataclasses.replace(observation, window=(opens, opens + calm_s)) if calm_s > 0 else None


def saturated(record: TrialRecord, observation: Observation | None) -> Iterator[str]:
    """Why the proxy or the downstream was at its limit in the observed window, if it was."""
    if observation is None or record.before.foreign:
        return
    window_s = observation.window[1] - observation.window[0]
    late_s = observation.quantile(0.95, "lab_downstream_lag_seconds")
    if late_s is not None:
        allowed_ms = max(LEAST_LATE_MS, LATE_SHARE * record.before.downstream_delay_ms)
        if late_s * 1000 > allowed_ms:
            yield (
                f"{LATE_DOWNSTREAM} by {late_s * 1000:.0f} ms at p95 (allowed {allowed_ms:.0f} ms)"
            )
    for part, name in _PARTS.items():
        throttled_s = observation.increase(
            "container_cpu_cfs_throttled_seconds_total", service=part
        )
        if throttled_s is not None and throttled_s > THROTTLED * window_s:
            yield f"{name} was stopped by its CPU quota for {throttled_s:.1f} s of the window"
        used_s = observation.increase("process_cpu_seconds_total", job=part)
        metric = CPUS[part]
        cpus = [value for _, value in observation.points(metric, job=part)]
        if used_s is not None and cpus and used_s >= PART_CPU * max(cpus) * window_s:
            yield f"{name} used all of its {max(cpus):.0f} CPUs"
