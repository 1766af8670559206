"""What a request's CPU time and mean time are made of, and how long threads ran and waited.

The parts of the time follow each other, each measured within one part of the lab by its own clock.
No clocks are compared. A difference between two parts is of neither: what the client saw beyond the
server's time is unexplained, and may be below 0; what the server saw of a call beyond the
downstream's time is the path, with the proxy in it. For how long an answer lay unread in an event
loop, and by how much a virtual thread goes on late, is time in the server's queue.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from copy import replace
from statistics import fmean
from typing import TYPE_CHECKING

from lab.judge.metrics import (
    CALLS,
    PROCESS_RUN,
    PROCESS_RUNQ,
    REQUESTS,
    RUN,
    RUNQ,
    USED,
    machine_cpus,
    mean_of,
    without_none,
)
from lab.model import CpuSplit, Observation, Reading, Row, ThreadTimes, TimeSplit
from lab.model.routes import parse

if TYPE_CHECKING:
    from lab.judge.trial import Trial

PROXY, DOWNSTREAM, DRIVER = "toxiproxy", "downstream", "driver"
WATCHERS = ("prometheus", "cadvisor", "loadgen")
# Not every machine can have its image.
OPTIONAL_WATCHER = "grafana"
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
# What a server may write into a table as the name of a class.
_CLASS = re.compile(r"[a-z]{1,16}")


def cpu_split(trial: Trial) -> CpuSplit:
    """The CPU time of each part per answered request: of containers, and of the engine's process.
    Unknown for a trial without answers or with spikes (no count has the requests of the second
    engine), and for a generator on several machines, of which only this one's is read."""
    seen, usage, reading = trial.observation, trial.usage, trial.measurement.reading
    if reading is None or not reading.achieved_rps or trial.plan.spike:
        return CpuSplit()
    engine = None if usage.window_cpu_s is None else usage.window_cpu_s / reading.window_s
    cpus = {
        "generator": None if reading.shares else engine,
        "server": seen.rate(USED, service=trial.server),
        "proxy": seen.rate(USED, service=PROXY),
        "downstream": seen.rate(USED, service=DOWNSTREAM),
        "observation": _watching(seen, engine, usage.spun),
    }
    rps = reading.achieved_rps
    return CpuSplit(**{f"cpu_{part}_us": used and used * 1e6 / rps for part, used in cpus.items()})


def _watching(observation: Observation, engine: float | None, spun: float | None) -> float | None:
    """What the driver uses without its engine and a spinner, and the containers that observe."""
    driver = observation.rate(USED, service=DRIVER)
    grafana = (OPTIONAL_WATCHER,) if observation.series(USED, service=OPTIONAL_WATCHER) else ()
    used = [observation.rate(USED, service=service) for service in (*WATCHERS, *grafana)]
    cpus = machine_cpus(observation)
    spinner = 0.0 if spun is None else None if cpus is None else spun * cpus
    if driver is None or engine is None or spinner is None or None in used:
        return None
    # They are read at slightly different times, so a driver that rests may seem to use less than 0.
    return sum(without_none(*used)) + max(0.0, driver - engine - spinner)


def time_split(trial: Trial) -> TimeSplit:
    """Unknown for a trial with more errors than MOST_ERRORS, and if the figures of a part are
    missing."""
    reading = trial.measurement.reading
    if reading is None or reading.answer_ms is None or trial.plan.spike:
        return TimeSplit()
    until_sent = _until_sent_ms(trial.plan.mode, reading)
    if until_sent is None or trial.error_share > MOST_ERRORS:
        return TimeSplit()
    if (parts := _of_server(trial)) is None:
        return TimeSplit()
    generator_ms, connect_ms = until_sent
    connect_ms += parts.time_connect_ms or 0.0
    parts = replace(parts, time_generator_ms=generator_ms, time_connect_ms=connect_ms)
    # As the server's, with errors.
    seen_ms = sum(until_sent) + reading.answer_ms
    return replace(parts, time_unexplained_ms=seen_ms - parts.whole_ms)


def _until_sent_ms(mode: str, reading: Reading) -> tuple[float, float] | None:
    """By how much the generator itself was late, and the wait for a connection before that: none in
    a closed load, whose request is due when its connection is free. If the engine does not report
    its lateness, all is the generator's, or 0 in a closed load."""
    late_ms = reading.late.mean_ms if reading.late else None
    if mode == "closed":
        return late_ms or 0.0, 0.0
    if reading.corrected is None or reading.raw is None:
        return None
    until_sent_ms = reading.corrected.mean_ms - reading.raw.mean_ms
    generator_ms = until_sent_ms if late_ms is None else late_ms
    return generator_ms, until_sent_ms - generator_ms


def _of_server(trial: Trial) -> TimeSplit | None:
    """The parts from the accept queue on; None where one of them is missing."""
    seen, server, route = trial.observation, {"server": trial.server}, trial.route

    def mean_ms(name: str, **labels: str) -> float | None:
        return mean_of(seen, name, {**server, **labels}, 1000.0)

    queue_ms = mean_ms(REQUESTS, route=route, phase="queue")
    service_ms = mean_ms(REQUESTS, route=route, phase="service")
    requests = seen.increase(f"{REQUESTS}_count", route=route, phase="queue", **server)
    if queue_ms is None or service_ms is None or not requests:
        return None
    lag_ms = mean_ms(LAG)
    # Where nothing hands requests over, the thread that waits for the next one begins with it. Of
    # an event loop that does not report since when a request was there, the queue is unknown.
    queue_ms = queue_ms or lag_ms
    accepting_ms = _accepting_ms(seen, trial.server, requests)
    calls = seen.increase(f"{CALLS}_count", phase="call", **server)
    if not calls:
        whole = TimeSplit(None, accepting_ms, queue_ms, service_ms)
        return None if parse(trial.plan.route).route.calls_downstream else whole
    pending_ms, call_ms = mean_ms(CALLS, phase="pending"), mean_ms(CALLS, phase="call")
    downstream_ms = _downstream_ms(seen)
    if pending_ms is None or call_ms is None or downstream_ms is None:
        return None
    if abs(calls / requests - 1) > OFF:
        return None
    unread_ms = mean_ms(UNREAD)
    if unread_ms is None:
        unread_ms = lag_ms or 0.0
    return TimeSplit(
        time_connect_ms=accepting_ms,
        time_queue_ms=None if queue_ms is None else queue_ms + unread_ms,
        time_own_ms=service_ms - pending_ms - call_ms,
        time_pending_ms=pending_ms,
        time_path_ms=call_ms - downstream_ms - unread_ms,
        time_downstream_ms=downstream_ms,
    )


def _accepting_ms(observation: Observation, server: str, requests: float) -> float:
    """How long a request's connection stood in the server's accept queue (Little's law, of the
    lengths that were scraped); 0 if unknown."""
    queues = observation.series(ACCEPT_QUEUE, server=server)
    lengths = [length for queue in queues for length in observation.inside(queue.points)]
    return 1000 * fmean(lengths) * observation.window_s / requests if lengths else 0.0


def _downstream_ms(observation: Observation) -> float | None:
    answered = observation.increase(ANSWERED)
    took = without_none(*(observation.increase(name) for name in TOOK))
    return 1000 * sum(took) / answered if answered and len(took) == len(TOOK) else None


def mean_split(rows: Iterable[Row]) -> TimeSplit:
    """The mean of each part over the trials whose parts are known."""
    known = [row for row in rows if row.time_own_ms is not None]
    parts = {
        name: without_none(*(getattr(row, name) for row in known)) for name in TimeSplit.columns()
    }
    return TimeSplit(**{name: fmean(values) for name, values in parts.items() if values})


def allowed_ms(split: TimeSplit) -> float:
    """How much of this mean may be unexplained, either way."""
    above_ms = split.whole_ms - (split.time_downstream_ms or 0.0)
    return max(UNEXPLAINED_MS, UNEXPLAINED_SHARE * above_ms)


def thread_times(trial: Trial) -> ThreadTimes:
    seen = trial.observation
    times: dict[str, float | None] = {}
    for part, run, runq, labels in (
        ("server", RUN, RUNQ, {"server": trial.server}),
        ("proxy", PROCESS_RUN, PROCESS_RUNQ, {"process": PROXY}),
        ("downstream", PROCESS_RUN, PROCESS_RUNQ, {"process": DOWNSTREAM}),
    ):
        times[f"{part}_run_s"] = thread_s(seen, run, **labels)
        times[f"{part}_runq_s"] = thread_s(seen, runq, **labels)
    return ThreadTimes(**times, server_runq_class=_longest(seen, trial.server))


def thread_s(observation: Observation, name: str, **labels: str) -> float | None:
    """How long threads ran, or waited for a CPU, in the window."""
    rate = observation.rate(name, **labels)
    # A server may show whatever numbers it likes.
    seconds = math.inf if rate is None else rate * observation.window_s
    return seconds if math.isfinite(seconds) else None


def _longest(observation: Observation, server: str) -> str | None:
    """The class whose threads waited longest; None where that of one is not known."""
    classes = {waits.labels.get("threads", "") for waits in observation.series(RUNQ, server=server)}
    rates = {name: observation.rate(RUNQ, server=server, threads=name) for name in sorted(classes)}
    waited = {
        name: rate for name, rate in rates.items() if rate is not None and _CLASS.fullmatch(name)
    }
    longest = max(waited, key=waited.__getitem__, default=None)
    return longest if longest and len(waited) == len(rates) and waited[longest] > 0 else None
