"""Was the load the planned one, or was the generator itself the limit?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from lab.model import Reading, TrialRecord, lost_rps
from lab.model.routes import RouteCall, parse

# An open trial has kept up when requests ended at this share of the offered rate.
KEPT_UP = 0.99
# With more than this share of the connections busy, the server kept them busy. With less, requests
# were due and connections were free, so the generator did not send. The share is lowered by one
# latency per window: an answer that the window's edge cuts off counts nowhere.
BUSY_CONNECTIONS = 0.9
# A generator that used this share of its cores was at its limit.
GENERATOR_CPU = 0.95
# Beyond this share of the median raw latency the generator measures itself. This holds for how late
# it sends, and for how long it waits for a CPU before it can send or read an answer. The corrected
# latency is no measure for it: in an overloaded load it is many seconds, and grows with the window.
LAG_SHARE = 0.1
LEAST_LAG_MS = 1.0
# From this share of a closed load's cycle on a reader should know of the generator's think time.
LEAST_SHARE = 0.02
# CPUs this busy on average are full in bursts: requests wait for a CPU, and clocks that run on
# during these waits (pauses, calls) show more than was worked.
HOST_CROWDED = 0.8
# A CPU quota may stop a part of the lab for at most this share of the window.
THROTTLED = 0.01
LATE = "the generator sent late"
BEGAN_LATE = "the generator began its load late"
# The window is placed by when its process was started. Series are of each second.
LATEST_START_S = 0.5
STARVED = "the generator was starved: its threads waited"
# This is inferred by Little's law from the requests that ended: a slow server can look like it.
NOT_OFFERED = "the generator did not offer its rate"
# A reader should know where the threads waited for a CPU for this share of the cores' time.
WAITED = 0.2
# The driver starts and ends a peak within two of its steps. Nor may what it sends be later.
PEAK_SLACK_S = 0.5
# A peak is a crowd: of its connections the generator may leave so many for later, on average.
UNTRIED = 0.05
SPIKE = "spike"
# By so much of those in flight, or in a queue, the count of a window may be off without a finding.
MOST_RISE = 0.1


def began_late(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Where the engine's own seconds are not those of the window, as the lab has it. Not of several
    machines, which wait for each other."""
    if reading.began_s is None or reading.shares:
        return
    late_s = reading.began_s - record.run_started_at.timestamp()
    if late_s > LATEST_START_S:
        yield f"{BEGAN_LATE}: {late_s:.1f} s after its process, by which the window is placed"


def connections_busy(record: TrialRecord, reading: Reading) -> float | None:
    """The share of connections with a request in flight, by Little's law."""
    if reading.answer_ms is None:
        return None
    return reading.in_flight / record.plan.concurrency


def ended_rps(record: TrialRecord, reading: Reading) -> float:
    """Requests per second that ended, with an answer or without one (socket errors, timeouts). All
    of them were sent. Requests that the engine cannot count are left out."""
    return reading.achieved_rps + lost_rps(reading, record.plan.offered_rps)


def offered_rps(record: TrialRecord, reading: Reading) -> float | None:
    """The rate that was offered in the window: what was due in it where the engine counts that, as
    arrivals at random are never just as many as planned. None for a closed load."""
    planned = record.plan.offered_rps
    if planned is None or reading.due is None:
        return planned
    return reading.due / reading.window_s


def overloaded(record: TrialRecord, reading: Reading) -> bool:
    """Whether fewer requests ended than were offered, by more than the edges of the window, and
    those that may never be answered, explain."""
    return _fell_behind(record, reading, unanswered(record, reading))


def _fell_behind(record: TrialRecord, reading: Reading, more: int = 0) -> bool:
    """Whether fewer than were offered ended, with so many more than are counted."""
    offered = offered_rps(record, reading)
    if offered is None:
        return False
    ended = ended_rps(record, reading) + more / reading.window_s
    return ended < (KEPT_UP - edges(record, reading)) * offered


def unanswered(record: TrialRecord, reading: Reading) -> int:
    """How many requests of an open load may never be answered: those that were due in the window
    less those that ended in it, where some `hangs` and these are more than chance (`edges`), a
    pause of the engine, a rise of the latency by MOST_RISE, and a queue (`_queued`) explain. An
    engine gives up on a request after many seconds, so in a short run it tells of none that is
    never answered, and such a one is in no latency. A queue or a pause at the window's end is no
    such thing: there none waits for much longer than others did. 0 where the load was disturbed on
    purpose, for requests then wait; where nobody counts those that were due; and where the load
    was not kept and nobody tells how a queue grew."""
    if reading.due is None or reading.answer_ms is None or not reading.hangs:
        return 0
    queued = _queued(record, reading)
    if record.peaks or record.plan.script or (queued is None and _fell_behind(record, reading)):
        return 0
    left = reading.due - reading.samples - (reading.window_lost or 0) - (queued or 0)
    in_flight = reading.in_flight
    paused = reading.pause_s * reading.due / reading.window_s
    rise = MOST_RISE * (in_flight + (queued or 0))
    explained = 3 * math.sqrt(2 * in_flight) + paused + rise
    return left if left > explained else 0


def _queued(record: TrialRecord, reading: Reading) -> int | None:
    """By how many requests a queue grew in the window, wherever it is, served first come, first
    served: who is answered in its last second waited for so much longer than in its first, and as
    many as came meanwhile are behind (Little's law). None where nobody tells, and where requests of
    several kinds may have queues of their own."""
    means = [second.mean_ms for second in reading.seconds if second.mean_ms is not None]
    if len(means) < 2 or reading.due is None or len(record.plan.requests) > 1:
        return None
    # These are means of seconds, so they are a second less apart than the window's ends.
    longer_s = max(0.0, means[-1] - means[0]) / 1000 * len(means) / (len(means) - 1)
    return round(longer_s * reading.due / reading.window_s)


def drawn_call(record: TrialRecord) -> RouteCall | None:
    """What a request calls, where a drawn delay may be part of it."""
    drawn = record.before.spread is not None and not record.before.foreign
    return parse(record.plan.route) if drawn else None


def edges(record: TrialRecord, reading: Reading) -> float:
    """By what share of an open load's requests the count of its window may be off, for what its
    edges cut off: by the engine's pauses, and by chance where arrivals or delays are random. Then
    as many are in flight at each edge as chance wants: λR on average, with a standard deviation of
    at most √(λR) where nothing queues (the number in an M/G/∞ system is Poisson: W. Feller, An
    Introduction to Probability Theory, vol. 1, 1968, XVII.7). Three deviations of the difference of
    two edges are allowed."""
    pause_s, call, offered = reading.pause_s, drawn_call(record), offered_rps(record, reading)
    random = record.plan.arrivals != "constant" or (call and call.route.calls_downstream)
    if random and offered:
        pause_s = max(pause_s, 3 * math.sqrt(2 * reading.in_flight) / offered)
    return pause_s / reading.window_s


def _free(busy: float | None, reading: Reading) -> bool:
    """Whether connections were free to send requests. True also where nobody knows how many were
    busy."""
    if busy is None or reading.answer_ms is None:
        return True
    return busy < BUSY_CONNECTIONS - reading.answer_ms / 1000 / reading.window_s


def cores_of(record: TrialRecord, reading: Reading) -> int:
    """How many CPUs the generator can use: those that it has, or fewer where its threads are."""
    return min(record.plan.cores, reading.threads or record.plan.cores)


def short_of_cpu(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Why the generator had too little CPU. Where nothing was answered, less is known about it."""
    cpu_s, cores = record.usage.window_cpu_s, cores_of(record, reading)
    if cpu_s is not None and cpu_s / reading.window_s >= GENERATOR_CPU * cores:
        yield (
            f"the generator was the limit: it used {cpu_s / reading.window_s:.1f} "
            f"of its {cores} cores"
        )
    yield from _starved(record, reading)


def late(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Why the generator itself was late: all of it or, where several machines put the load on, the
    one that was."""
    of = _late if record.plan.mode == "open" else partial(_thinks_starved, record)
    found = list(of(reading))
    yield from found
    for one in () if found else reading.shares:
        for reason in of(replace(reading, lag_ms=one.lag_ms, late=one.late)):
            yield f"{reason}: machine {one.machine}"


def _late(reading: Reading) -> Iterator[str]:
    """Of an open load: on average against the median latency, and where it tells of every request,
    its p95 against the p95 of the corrected latency, which begins when a request is due."""
    told, latency = reading.late, reading.raw or reading.corrected
    if latency is None:
        return
    if reading.lag_ms is not None:
        most_ms = allowed_ms(latency.p50_ms)
        if reading.lag_ms > most_ms:
            yield f"{LATE}, by {reading.lag_ms:.0f} ms on average (allowed {most_ms:.0f} ms)"
            return
    if told is None or told.p95_ms is None or latency.p95_ms is None:
        return
    most_ms = allowed_ms(latency.p95_ms)
    if told.p95_ms > most_ms:
        yield f"{LATE}, by {told.p95_ms:.1f} ms or more for 5 % (allowed {most_ms:.1f} ms)"


def _thinks_starved(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Of a closed load: the generator takes its think time Z between an answer and the connection's
    next request, and X = N / (R + Z) is the load that was put on, whatever Z is. But where the
    generator itself waits for a CPU, its shortage decides the rate. Of the time in which its
    threads do not sleep, the share in the run queue is that of Z. Where the CPUs are not crowded
    that is how long the kernel takes to wake a thread, on any machine; where nobody knows, it is
    all of Z."""
    usage, busy = record.usage, record.usage.host_taken
    if busy is not None and busy < HOST_CROWDED and not reading.shares:
        return
    waited = 1.0
    if usage.window_wait_s is not None and usage.window_cpu_s is not None and not reading.shares:
        waited = usage.window_wait_s / ((usage.window_wait_s + usage.window_cpu_s) or 1.0)
    share = waited * think_share(reading)
    if share > LAG_SHARE:
        yield (
            f"{STARVED} for a CPU for {share:.1%} of each cycle of a connection, before they sent "
            f"its next request (allowed {LAG_SHARE:.0%})"
        )


def late_in_part(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """A note where the figures are in part the generator's own: of an open load the mean or the
    p99, of a closed load the rate."""
    told, whole = reading.late, reading.corrected
    if record.plan.mode == "closed":
        share, think = think_share(reading), think_ms(reading)
        if think is not None and share >= LEAST_SHARE:
            yield (
                f"the generator took {think:.2g} ms between an answer and the connection's next "
                f"request, {share:.0%} of each cycle: its think time Z, X = N / (R + Z)"
            )
        return
    if told is None or whole is None:
        return
    # The gates allow LEAST_LAG_MS, which may be most of a short latency.
    if told.mean_ms > LAG_SHARE * whole.mean_ms:
        yield (
            f"the latencies are in part the generator's own: it sent {told.mean_ms:.2f} ms late on "
            f"average, and their mean is {whole.mean_ms:.2f} ms"
        )
    if told.p99_ms is None or whole.p99_ms is None:
        return
    if told.p99_ms > allowed_ms(whole.p99_ms):
        own_ms = told.p99_ms
        yield f"p99 is in part the generator's own: it sent 1 % late by {own_ms:.1f} ms or more"


def think_ms(reading: Reading) -> float | None:
    """The mean think time Z of a closed load: from when a connection has its answer until the
    generator has sent its next request. None where the engine does not tell it. By the interactive
    response time law R = N / X - Z (P. J. Denning, J. P. Buzen, ACM Computing Surveys 10(3), 1978)
    it is part of the rate, and of no latency."""
    return reading.late.mean_ms if reading.late else None


def think_share(reading: Reading) -> float:
    """Z / (R + Z): the share of a closed load's cycle that is the generator's; 0 where the engine
    does not tell it."""
    think = think_ms(reading)
    if not think or reading.answer_ms is None:
        return 0.0
    return think / (think + reading.answer_ms)


def allowed_ms(latency_ms: float) -> float:
    """By how much the generator itself may be late where requests take so long."""
    return max(LEAST_LAG_MS, LAG_SHARE * latency_ms)


def not_offered(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Why the generator was the limit, judged by the requests that ended. Not asked of an engine
    that tells how late it was: what was due then waited for the server."""
    if reading.late is not None:
        return
    if overloaded(record, reading):
        busy = connections_busy(record, reading)
        if _free(busy, reading):
            share = "unknown" if busy is None else f"{busy:.0%}"
            yield (
                f"{NOT_OFFERED}: {ended_rps(record, reading):.0f} of "
                f"{record.plan.offered_rps} req/s, with {share} of its connections busy"
            )


def unread(record: TrialRecord) -> Iterator[str]:
    """The readings of the generator and its machine that are missing, named for a note."""
    usage = record.usage
    if usage.window_cpu_s is None:
        yield "the generator's CPU"
    if usage.window_wait_s is None or usage.window_slices is None:
        yield "its waits for a CPU"
    if usage.window_throttled_s is None:
        yield "its CPU quota"
    if usage.host_taken is None:
        yield "the host's CPU"


def _starved(record: TrialRecord, reading: Reading) -> Iterator[str]:
    usage, latency = record.usage, reading.raw or reading.corrected
    typical_ms = latency.p50_ms if latency else reading.answer_ms
    throttled_s = usage.window_throttled_s
    if throttled_s is not None and throttled_s > THROTTLED * reading.window_s:
        yield (
            f"the generator was starved: its CPU quota stopped it for {throttled_s:.1f} s of "
            f"the {reading.window_s:.0f} s window"
        )
    if usage.window_wait_s is None or not usage.window_slices or typical_ms is None:
        return
    wait_ms = usage.window_wait_s / usage.window_slices * 1000
    most_ms = allowed_ms(typical_ms)
    if wait_ms > most_ms:
        yield f"{STARVED} {wait_ms:.1f} ms for each turn on a CPU (allowed {most_ms:.1f} ms)"


def waited_share(record: TrialRecord, reading: Reading) -> float | None:
    """The share of its cores' time that the generator waited for a CPU; None where not known."""
    wait_s = record.usage.window_wait_s
    return None if wait_s is None else wait_s / (reading.window_s * cores_of(record, reading))


def waited(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """A note where the generator often waited for a CPU."""
    share = waited_share(record, reading)
    if share is not None and share >= WAITED:
        yield f"the generator waited for a CPU for {share:.0%} of its cores' time"


def load_kept(record: TrialRecord) -> Iterator[str]:
    """Why the peaks beside the trial's own load were not the planned ones. Where the server took
    fewer connections or requests than were put on it, that is no reason."""
    spike = record.plan.spike
    if spike is None:
        return
    if len(record.peaks) < spike.repeats:
        yield f"only {len(record.peaks)} of {spike.repeats} spikes were produced"
    for number, peak in enumerate(record.peaks, 1):
        length_s = peak.ended_s - peak.started_s
        if abs(length_s - spike.peak_s) > PEAK_SLACK_S:
            yield f"{SPIKE} {number} lasted {length_s:.1f} s instead of {spike.peak_s} s"
        for problem in peak.problems:
            yield f"{SPIKE} {number} was not as planned: {problem}"
        if peak.untried is not None and peak.untried > UNTRIED * spike.extra:
            yield (
                f"{SPIKE} {number} was no crowd: on average the generator had not tried to open "
                f"{peak.untried:.0f} of its {spike.extra} connections yet"
            )
        if peak.late_p95_ms is not None and peak.late_p95_ms > 1000 * PEAK_SLACK_S:
            yield f"{SPIKE} {number} was sent late, by {peak.late_p95_ms:.0f} ms or more for 5 %"
