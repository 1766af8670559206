"""The evidence that is missing about a service that is not the lab's, and how to get it.

A verdict needs all of it: without it, a full resource may stay unseen beside the one that was found
full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.judge.gates.server import unknown_r0
from lab.judge.verdict.evidence import MOST_OF_R0, SeenTrial
from lab.model import Series, Standing
from lab.model.routes import EXPORTER_PORT

# A pool with a free worker, or that nobody waits for, scores no more than this.
NOT_FULL = 0.5
PAGE = "docs/your-own-service.md"


def missing(seen: SeenTrial, ranked: Sequence[Standing]) -> Iterator[str]:
    """One line for each missing piece of evidence, given the known standings."""
    before, server = seen.record.before, seen.server
    exporter = f"{server}:{EXPORTER_PORT}"
    if before.exported is None:
        yield (
            f"no JMX exporter at {exporter} that prometheus/own.json lists: heap, GC, descriptors "
            f"and pool unknown; see {PAGE}"
        )
    elif not before.scraped:
        yield (
            f"Prometheus does not read {exporter}: heap, GC, descriptors and pool unknown; list "
            f'"{server}" in prometheus/own.json, see {PAGE}'
        )
    else:
        pool = foreign_pool_unknown(seen)
        if pool is not None:
            yield f"{exporter} tells of {pool}"
        if not seen.observation.series("process_open_fds", server=server):
            yield f"{exporter} tells of no file descriptors: whether any were left is unknown"
    if not seen.observation.series("container_cpu_usage_seconds_total", service=server):
        yield f"{server} is no container of the lab: its CPU quota and memory unknown; see {PAGE}"
    quotas = len(foreign_quotas(seen))
    if quotas > 1:
        yield f"{server} is {quotas} containers with a CPU quota each: whether one binds is unknown"
    if not seen.r0_s:
        yield f"R0 unknown: {unknown_r0(seen.record)}"
    elif seen.beyond_r0:
        yield (
            f"R0 unknown: {seen.rps:,.0f} req/s are {seen.at_load_bound:.0%} of connections / "
            f"{seen.cycle}, "
            f"so it is less than the {seen.r0_s:g} s measured before the load"
        )
    else:
        yield from _pool_beyond_r0(seen, ranked)


def foreign_pool_unknown(seen: SeenTrial) -> str | None:
    """Why nobody can tell a foreign service's pool of worker threads. None where exactly one pool
    has a size."""
    found = seen.observation.series("lab_worker_pool_size", server=seen.server)
    if not found:
        return "no pool of worker threads: whether one is full is unknown"
    if len(found) > 1:
        return f"{len(found)} connectors: which of their pools serves this route is unknown"
    if found[0].values[-1] <= 0:
        return (
            f"a pool of {found[0].values[-1]:g} worker threads, as a shared executor has none of "
            "its own: whether that is full is unknown"
        )
    return None


def foreign_quotas(seen: SeenTrial) -> tuple[Series, ...]:
    """The CPU quotas of the containers of this name. The sum of several says nothing."""
    return tuple(seen.observation.series("container_spec_cpu_quota", service=seen.server))


def _pool_beyond_r0(seen: SeenTrial, ranked: Sequence[Standing]) -> Iterator[str]:
    """Why R0 is unknown: a full pool gave clearly more than its size / R0."""
    for one in ranked:
        if one.resource != "worker pool" or one.score <= NOT_FULL:
            continue
        share = seen.rps * seen.r0_s / one.evidence[0].value
        if share > MOST_OF_R0:
            yield (
                f"R0 unknown: {seen.rps:,.0f} req/s are {share:.0%} of workers / R0, so a worker "
                f"is held for less than the {seen.r0_s:g} s measured before the load"
            )
