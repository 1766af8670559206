"""What is not known of a service that is not the lab's, and how to make it known.

Each of these is evidence that a verdict needs: without it a full resource may stand unseen beside
the one that was found full.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.routes import EXPORTER_PORT
from lab.verdict.seen import Seen

PAGE = "docs/your-own-service.md"


def missing(seen: Seen) -> Iterator[str]:
    """One line for each."""
    before, server = seen.record.before, seen.server
    exporter = f"{server}:{EXPORTER_PORT}"
    if before.exported is None:
        yield f"no JMX exporter at {exporter}: heap, GC, descriptors and pool unknown; see {PAGE}"
    elif not before.scraped:
        yield (
            f"Prometheus does not read {exporter}: heap, GC, descriptors and pool unknown; list "
            f'"{server}" in prometheus/own.json, see {PAGE}'
        )
    elif not seen.observation.series("lab_worker_pool_size", server=server):
        yield f"{exporter} tells of no pool of worker threads: whether one is full is unknown"
    if not seen.observation.series("container_cpu_usage_seconds_total", service=server):
        yield f"{server} is no container of the lab: its CPU quota and memory unknown; see {PAGE}"
    if not seen.r0_s:
        yield "R0 unknown: a single connection got no figures before the load"
    elif seen.beyond_r0:
        yield (
            f"R0 unknown: {seen.rps:,.0f} req/s are {seen.at_load_bound:.0%} of connections / R0, "
            f"so it is less than the {seen.r0_s:g} s measured before the load"
        )
