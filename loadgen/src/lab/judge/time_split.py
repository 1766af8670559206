"""Where the mean time of a request goes: parts that follow each other and add up, in ms.

Each part is measured by whoever has it. A longer time contains a shorter one that another part of
the lab measured, and what lies between the two is the way there and back: the client's time
contains the server's, and a call of the server contains the downstream's time. These are
differences of durations, so no clocks are compared.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace

from lab.model import Measurement, Observation, Reading, Row, TimeSplit, TrialRecord, error_share
from lab.model.routes import parse

REQUESTS = "lab_http_request_seconds"
CALLS = "lab_downstream_call_seconds"
ANSWERED = "lab_downstream_requests_total"
# What the downstream took for its answers: their delays, and by how much they were later.
TOOK = ("lab_downstream_drawn_seconds_total", "lab_downstream_lag_seconds_sum")
# Requests that end without an answer are in the server's times, and in no latency of the client.
MOST_ERRORS = 0.01
# Requests whose calls are a part of them make one each, but for those at the window's edges.
OFF = 0.02
# What a part is called in a sentence, in the order of TimeSplit.
SPENT = (
    "waiting in the generator",
    "between the generator and the server",
    "waiting in the queue of the server",
    "the server's own",
    "waiting for a connection to the downstream",
    "on the path to the downstream and back",
    "in the downstream",
)
# A smaller growth is not told part by part.
LEAST_GROWTH_MS = 1.0


def time_split(measurement: Measurement, observation: Observation | None) -> TimeSplit:
    """The parts of a trial's mean time. Nothing is told of a service that is not the lab's, of a
    trial with more errors than MOST_ERRORS, and where the figures of any part are missing."""
    record, reading = measurement.record, measurement.reading
    if reading is None or observation is None or not _told(record, reading):
        return TimeSplit()
    server, route = record.plan.server, record.plan.route.partition("?")[0]
    seen_ms = reading.raw.mean_ms if reading.raw else None
    generator_ms = _generator_ms(record, reading)
    queue_ms, service_ms = (
        _mean_ms(observation, REQUESTS, server=server, route=route, phase=phase)
        for phase in ("queue", "service")
    )
    if seen_ms is None or generator_ms is None or queue_ms is None or service_ms is None:
        return TimeSplit()
    around = TimeSplit(
        time_generator_ms=generator_ms,
        time_outside_ms=seen_ms - queue_ms - service_ms,
        time_queue_ms=queue_ms,
        time_own_ms=service_ms,
    )
    calls = observation.increase(f"{CALLS}_count", server=server, phase="call")
    if not calls:
        return TimeSplit() if parse(record.plan.route).route.calls_downstream else around
    requests = observation.increase(f"{REQUESTS}_count", server=server, route=route, phase="queue")
    pending_ms, call_ms = (
        _mean_ms(observation, CALLS, server=server, phase=phase) for phase in ("pending", "call")
    )
    downstream_ms = _downstream_ms(observation)
    if not requests or abs(calls / requests - 1) > OFF:
        return TimeSplit()
    if pending_ms is None or call_ms is None or downstream_ms is None:
        return TimeSplit()
    return replace(
        around,
        time_own_ms=service_ms - pending_ms - call_ms,
        time_pending_ms=pending_ms,
        time_path_ms=call_ms - downstream_ms,
        time_downstream_ms=downstream_ms,
    )


def mean_split(rows: Iterable[Row]) -> TimeSplit:
    """The means of the trials of which the parts are known."""
    known = [row for row in rows if row.time_own_ms is not None]
    means = {}
    for name in TimeSplit.columns():
        values = [value for row in known if (value := getattr(row, name)) is not None]
        means[name] = statistics.fmean(values) if values else None
    return TimeSplit(**means)


@dataclass(frozen=True, slots=True)
class Growth:
    """By how many ms a mean time grew, and the share of that in the part that grew most, as SPENT
    calls it. Above 1 where other parts shrank."""

    grown_ms: float
    share: float
    most: str


def growth(before: TimeSplit, after: TimeSplit, least_ms: float = 0.0) -> Growth | None:
    """Which part of the mean time grew most. None where a split is not known, or the mean grew by
    less than `least_ms` or LEAST_GROWTH_MS."""
    if TimeSplit() in (before, after):
        return None
    grown = after.whole_ms - before.whole_ms
    if grown < max(LEAST_GROWTH_MS, least_ms):
        return None
    pairs = zip(before.parts, after.parts, strict=True)
    parts = [(now or 0.0) - (then or 0.0) for then, now in pairs]
    return Growth(
        grown, *max((part / grown, name) for part, name in zip(parts, SPENT, strict=True))
    )


def _told(record: TrialRecord, reading: Reading) -> bool:
    errors = error_share(reading, record.plan.offered_rps)
    return not (record.before.foreign or record.plan.spike or errors > MOST_ERRORS)


def _generator_ms(record: TrialRecord, reading: Reading) -> float | None:
    """From when a request was due to when it was sent. In a closed load it is due when its
    connection is free: 0 for an engine that does not tell how much later it sends."""
    if record.plan.mode == "closed":
        return reading.late.mean_ms if reading.late else 0.0
    if reading.corrected is None or reading.raw is None:
        return None
    return reading.corrected.mean_ms - reading.raw.mean_ms


def _mean_ms(observation: Observation, name: str, **labels: str) -> float | None:
    """The mean of a histogram's observations in the window."""
    total = observation.increase(f"{name}_sum", **labels)
    count = observation.increase(f"{name}_count", **labels)
    return 1000 * total / count if total is not None and count else None


def _downstream_ms(observation: Observation) -> float | None:
    answered = observation.increase(ANSWERED)
    took = [observation.increase(name) for name in TOOK]
    known = [seconds for seconds in took if seconds is not None]
    return 1000 * sum(known) / answered if answered and len(known) == len(TOOK) else None
