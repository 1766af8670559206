"""Where the mean time of a request goes: parts that follow each other, in ms, and what they leave.

A part is a time that one part of the lab measured by its own clock: the generator what passed until
it sent, the server its queue, its own work and its waits, the downstream its delay. What is left of
the client's mean is unexplained, and may be below 0: the sum of the parts can disagree with the
client. A difference within one of them is such a time, as of the server's service without its
calls. A difference between two of them is not: what the client saw beyond the server's time is
unexplained. What the server saw of a call beyond the downstream's time is the path, with the
proxy in it. An event loop tells for
how long an answer lay there before it was read, and virtual threads by how much one goes on later
than it could: that is time in the server's queue, and not on the path. No clocks are compared.
"""

import statistics
from collections.abc import Iterable
from copy import replace

from lab.model import Measurement, Observation, Reading, Row, TimeSplit, TrialRecord, error_share
from lab.model.routes import parse

REQUESTS = "lab_http_request_seconds"
CALLS = "lab_downstream_call_seconds"
UNREAD = "lab_downstream_unread_seconds"
LAG = "lab_virtual_thread_lag_seconds"
ANSWERED = "lab_downstream_requests_total"
# What the downstream took for its answers: their delays, and by how much they were later.
TOOK = ("lab_downstream_drawn_seconds_total", "lab_downstream_lag_seconds_sum")
ACCEPT_QUEUE = "lab_kernel_accept_queue_length"
# Requests that end without an answer are in the server's times, and in no latency of the client.
MOST_ERRORS = 0.01
# Requests whose calls are a part of them make one each, but for those at the window's edges.
OFF = 0.02
# So much of a mean may be unexplained: this share of what is above the downstream's time, or so
# many ms.
UNEXPLAINED_SHARE, UNEXPLAINED_MS = 0.1, 0.3


def time_split(measurement: Measurement, observation: Observation | None) -> TimeSplit:
    """The parts of a trial's mean time. Nothing is told of a service that is not the lab's, of a
    trial with more errors than MOST_ERRORS, and where the figures of any part are missing."""
    record, reading = measurement.record, measurement.reading
    if reading is None or reading.answer_ms is None or observation is None:
        return TimeSplit()
    before = _until_sent_ms(record, reading)
    if before is None or not _told(record, reading):
        return TimeSplit()
    parts = _measured(record, observation, *before)
    if parts == TimeSplit():
        return parts
    # As the server's, with errors.
    seen_ms = sum(before) + reading.answer_ms
    return replace(parts, time_unexplained_ms=seen_ms - parts.whole_ms)


def _measured(
    record: TrialRecord, observation: Observation, generator_ms: float, connect_ms: float
) -> TimeSplit:
    server, route = record.plan.server, record.plan.route.partition("?")[0]
    queue_ms, service_ms = (
        _mean_ms(observation, REQUESTS, server=server, route=route, phase=phase)
        for phase in ("queue", "service")
    )
    requests = observation.increase(f"{REQUESTS}_count", server=server, route=route, phase="queue")
    if queue_ms is None or service_ms is None or not requests:
        return TimeSplit()
    lag_ms = _mean_ms(observation, LAG, server=server)
    # Where nothing hands requests over, the thread that waits for the next one begins with it. Of
    # an event loop that does not tell since when a request was there, nobody knows.
    queue_ms = queue_ms or lag_ms
    around = TimeSplit(
        time_generator_ms=generator_ms,
        time_connect_ms=connect_ms + _accepting_ms(observation, server, requests),
        time_queue_ms=queue_ms,
        time_own_ms=service_ms,
    )
    calls = observation.increase(f"{CALLS}_count", server=server, phase="call")
    if not calls:
        return TimeSplit() if parse(record.plan.route).route.calls_downstream else around
    pending_ms, call_ms = (
        _mean_ms(observation, CALLS, server=server, phase=phase) for phase in ("pending", "call")
    )
    downstream_ms = _downstream_ms(observation)
    if abs(calls / requests - 1) > OFF:
        return TimeSplit()
    if pending_ms is None or call_ms is None or downstream_ms is None:
        return TimeSplit()
    unread_ms = _mean_ms(observation, UNREAD, server=server)
    if unread_ms is None:
        unread_ms = lag_ms or 0.0
    return replace(
        around,
        time_queue_ms=None if queue_ms is None else queue_ms + unread_ms,
        time_own_ms=service_ms - pending_ms - call_ms,
        time_pending_ms=pending_ms,
        time_path_ms=call_ms - downstream_ms - unread_ms,
        time_downstream_ms=downstream_ms,
    )


def mean_split(rows: Iterable[Row]) -> TimeSplit:
    known = [row for row in rows if row.time_own_ms is not None]
    means = {}
    for name in TimeSplit.columns():
        values = [value for row in known if (value := getattr(row, name)) is not None]
        means[name] = statistics.fmean(values) if values else None
    return TimeSplit(**means)


def allowed_ms(of: TimeSplit) -> float:
    """How much of this mean may be unexplained, in ms: either way."""
    above_ms = of.whole_ms - (of.time_downstream_ms or 0.0)
    return max(UNEXPLAINED_MS, UNEXPLAINED_SHARE * above_ms)


def _told(record: TrialRecord, reading: Reading) -> bool:
    errors = error_share(reading, record.plan.offered_rps)
    return not (record.before.foreign or record.plan.spike or errors > MOST_ERRORS)


def _until_sent_ms(record: TrialRecord, reading: Reading) -> tuple[float, float] | None:
    """From when a request was due to when it was sent: by how much the generator itself was late,
    and before that the wait for a connection. A closed load's request is due when its connection is
    free. Of an engine that does not tell its own lateness all is the generator's, and in a closed
    load 0."""
    late_ms = reading.late.mean_ms if reading.late else None
    if record.plan.mode == "closed":
        return late_ms or 0.0, 0.0
    if reading.corrected is None or reading.raw is None:
        return None
    until_sent_ms = reading.corrected.mean_ms - reading.raw.mean_ms
    own_ms = until_sent_ms if late_ms is None else late_ms
    return own_ms, until_sent_ms - own_ms


def _accepting_ms(observation: Observation, server: str, requests: float) -> float:
    """How long a request's connection stood in the server's accept queue, on average over all
    requests (Little's law, of the lengths that were scraped); 0 where nothing tells it."""
    opens, closes = observation.window
    lengths = [
        length
        for series in observation.series(ACCEPT_QUEUE, server=server)
        for at, length in series.points
        if opens <= at <= closes
    ]
    return 1000 * statistics.fmean(lengths) * (closes - opens) / requests if lengths else 0.0


def _mean_ms(observation: Observation, name: str, **labels: str) -> float | None:
    total = observation.increase(f"{name}_sum", **labels)
    count = observation.increase(f"{name}_count", **labels)
    return 1000 * total / count if total is not None and count else None


def _downstream_ms(observation: Observation) -> float | None:
    answered = observation.increase(ANSWERED)
    took = [observation.increase(name) for name in TOOK]
    known = [seconds for seconds in took if seconds is not None]
    return 1000 * sum(known) / answered if answered and len(known) == len(TOOK) else None
