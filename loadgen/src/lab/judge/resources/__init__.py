"""What limited a trial: where the time above R0 went (docs/verdict.md).

A resource is one object in one file. To add one: its file, a line of ALL, and its words in
`lab.report.resources`.
"""

from __future__ import annotations

from lab.judge.resources import rule
from lab.judge.resources.accept_queue import ACCEPT_QUEUE
from lab.judge.resources.carrier_threads import CARRIER_THREADS
from lab.judge.resources.connection_set_up import CONNECTION_SET_UP
from lab.judge.resources.downstream import DOWNSTREAM
from lab.judge.resources.downstream_connections import DOWNSTREAM_CONNECTIONS
from lab.judge.resources.downstream_timeout import DOWNSTREAM_TIMEOUT
from lab.judge.resources.event_loop import EVENT_LOOP
from lab.judge.resources.file_descriptors import FILE_DESCRIPTORS
from lab.judge.resources.front import FRONT
from lab.judge.resources.garbage_collection import GARBAGE_COLLECTION
from lab.judge.resources.generator import GENERATOR
from lab.judge.resources.host_cpu import HOST_CPU
from lab.judge.resources.load_connections import LOAD_CONNECTIONS
from lab.judge.resources.lock import LOCK
from lab.judge.resources.network import NETWORK
from lab.judge.resources.other_work import OTHER_WORK
from lab.judge.resources.pinned_carriers import PINNED_CARRIERS
from lab.judge.resources.ports import PORTS
from lab.judge.resources.resource import Resource
from lab.judge.resources.server_cpu import SERVER_CPU
from lab.judge.resources.toxiproxy import TOXIPROXY
from lab.judge.resources.worker_pool import WORKER_POOL
from lab.judge.seen import SeenTrial
from lab.model import UNKNOWN, Basis, Judgement, Measurement, Observation, SeriesError, Verdict

ALL: tuple[Resource, ...] = (
    WORKER_POOL,
    CARRIER_THREADS,
    PINNED_CARRIERS,
    EVENT_LOOP,
    FRONT,
    LOCK,
    SERVER_CPU,
    GARBAGE_COLLECTION,
    ACCEPT_QUEUE,
    FILE_DESCRIPTORS,
    PORTS,
    DOWNSTREAM_CONNECTIONS,
    DOWNSTREAM_TIMEOUT,
    NETWORK,
    CONNECTION_SET_UP,
    TOXIPROXY,
    DOWNSTREAM,
    HOST_CPU,
    OTHER_WORK,
    LOAD_CONNECTIONS,
    GENERATOR,
)
# Every resource that a verdict can name, in the words of rows, reports and SUSPECT=.
RESOURCES = tuple(resource.name for resource in ALL)


def verdict_of(
    measurement: Measurement, judgement: Judgement, observation: Observation | None
) -> Verdict:
    """What limited a trial. It is UNKNOWN where stored series are not what the lab writes, and for
    a route that the lab no longer has."""
    reading = measurement.reading
    if reading is None:
        return _unknown("no figures")
    if measurement.record.plan.hold:
        return _unknown("held")
    if observation is None:
        return _unknown("no series")
    seen = SeenTrial(measurement, judgement, reading, observation)
    try:
        _ = seen.call
    except ValueError:
        return _unknown("no such route")
    try:
        return rule.verdict(seen, ALL)
    except SeriesError:
        return _unknown("bad series")


def _unknown(basis: Basis) -> Verdict:
    return Verdict(UNKNOWN, "", basis, None)
