"""Was the load what it was to be: did the generator put it on, in time and by itself?"""

from collections.abc import Callable, Iterator
from copy import replace

from lab.judge.checks.check import Evidence, Found, Values, check, stored
from lab.judge.quantities import (
    BUSY_CONNECTIONS,
    HOST_CROWDED,
    LAG_SHARE,
    LEAST_SHARE,
    PART_CPU,
    THROTTLED,
    WAITED,
    allowed_ms,
    connections_busy,
    cores_of,
    ended_rps,
    overloaded,
    think_ms,
    think_share,
    waited_share,
)
from lab.model import Reading

# The window is placed by when its process was started. Series are of each second.
LATEST_START_S = 0.5
# The driver starts and ends a peak within two of its steps. Nor may what it sends be later.
PEAK_SLACK_S = 0.5
# A peak is a crowd: of its connections the generator may leave so many for later, on average.
UNTRIED = 0.05

generator_exhausted = stored("generator-exhausted", "invalidates")


@check("generator-full", "invalidates", "load")
def generator_full(evidence: Evidence) -> Found:
    """At least {PART_CPU:.0%} of its cores; of pacer, of those that its threads can use (one
    for four)"""
    record, reading = evidence.record, evidence.reading
    cpu_s, cores = record.usage.window_cpu_s, cores_of(record, reading)
    if cpu_s is not None and cpu_s / reading.window_s >= PART_CPU * cores:
        yield {"used": cpu_s / reading.window_s, "cores": cores}


@check("generator-throttled", "invalidates", "load")
def generator_throttled(evidence: Evidence) -> Found:
    """More than {THROTTLED:.0%} of the window"""
    throttled_s, window_s = evidence.record.usage.window_throttled_s, evidence.reading.window_s
    if throttled_s is not None and throttled_s > THROTTLED * window_s:
        yield {"throttled_s": throttled_s, "window_s": window_s}


@check("generator-starved", "invalidates", "load", repeatable=True)
def generator_starved(evidence: Evidence) -> Found:
    """Each turn on a CPU took more than {LEAST_LAG_MS:g} ms of waiting, and more than
    {LAG_SHARE:.0%} of p50"""
    usage, reading = evidence.record.usage, evidence.reading
    latency = reading.raw or reading.corrected
    typical_ms = latency.p50_ms if latency else reading.answer_ms
    if usage.window_wait_s is None or not usage.window_slices or typical_ms is None:
        return
    wait_ms = usage.window_wait_s / usage.window_slices * 1000
    if wait_ms > allowed_ms(typical_ms):
        yield {"wait_ms": wait_ms, "allowed_ms": allowed_ms(typical_ms)}


@check("generator-began-late", "invalidates", "answers", repeatable=True)
def generator_began_late(evidence: Evidence) -> Found:
    """More than {LATEST_START_S:g} s (pacer; not of several machines, which wait for each other)"""
    reading = evidence.reading
    if reading.began_s is not None and not reading.shares:
        late_s = reading.began_s - evidence.record.run_started_at.timestamp()
        if late_s > LATEST_START_S:
            yield {"late_s": late_s}


@check("generator-late", "invalidates", "answers", repeatable=True)
def generator_late(evidence: Evidence) -> Found:
    """Open load (pacer): it sent more than {LEAST_LAG_MS:g} ms late and more than {LAG_SHARE:.0%}
    of a raw latency: on average against p50, and at p95 against p95. Where all machines together
    are in time, each is asked"""
    if evidence.record.plan.mode == "open":
        yield from _of_each(evidence.reading, _late)


@check("generator-thinks", "invalidates", "answers", repeatable=True)
def generator_thinks(evidence: Evidence) -> Found:
    """Closed load: more than {LAG_SHARE:.0%} of the cycle of a connection (answer, next request,
    next answer) is [think time](method.md#think-time) for want of a CPU (pacer). Of the think time
    that is the share that the generator's threads stood in the run queue while they did not sleep,
    all of it where that is unknown, as of several machines. Asked where the host's CPUs are at
    least {HOST_CROWDED:.0%} busy: elsewhere it is how long the kernel takes to wake a thread

    X = N / (R + Z) is the load that was put on, whatever Z is. But where the generator itself waits
    for a CPU, its shortage decides the rate.
    """
    usage, reading = evidence.record.usage, evidence.reading
    if evidence.record.plan.mode == "open":
        return
    if usage.host_taken is not None and usage.host_taken < HOST_CROWDED and not reading.shares:
        return
    waited = 1.0
    if usage.window_wait_s is not None and usage.window_cpu_s is not None and not reading.shares:
        waited = usage.window_wait_s / ((usage.window_wait_s + usage.window_cpu_s) or 1.0)

    def thinks(share: Reading) -> Values | None:
        lost = waited * think_share(share)
        return {"share": lost, "allowed": LAG_SHARE} if lost > LAG_SHARE else None

    yield from _of_each(reading, thinks)


@check("generator-short", "invalidates", "answers", repeatable=True, symptom=True)
def generator_short(evidence: Evidence) -> Found:
    """Fewer requests ended than {KEPT_UP:.0%} of offered, although fewer than
    {BUSY_CONNECTIONS:.0%} of the connections were busy and the server always answered. Not asked of
    pacer, which measures how late it was. The {KEPT_UP:.0%} falls by the engine's longest
    pause ÷ window (with Poisson arrivals or [drawn delays](delays.md): by what chance does at both
    edges), the {BUSY_CONNECTIONS:.0%} by latency ÷ window"""
    record, reading = evidence.record, evidence.reading
    if reading.late is not None or not overloaded(record, reading):
        return
    busy = connections_busy(record, reading)
    rates = {"ended_rps": ended_rps(record, reading), "of_rps": record.plan.offered_rps or 0}
    if busy is None or reading.answer_ms is None:
        yield rates
    elif busy < BUSY_CONNECTIONS - reading.answer_ms / 1000 / reading.window_s:
        yield {**rates, "busy": busy}


@check("spikes-missing", "invalidates", "load")
def spikes_missing(evidence: Evidence) -> Found:
    """The load ended early"""
    spike, made = evidence.record.plan.spike, len(evidence.record.peaks)
    if spike is not None and made < spike.repeats:
        yield {"made": made, "planned": spike.repeats}


@check("spike-flawed", "invalidates", "load", repeatable=True)
def spike_flawed(evidence: Evidence) -> Found:
    """Of its own engine (pacer): it had no port or descriptor left for a connection, or what it
    reported is damaged. Its length is off by more than {PEAK_SLACK_S:g} s. On average more than
    {UNTRIED:.0%} of its connections were not tried yet (those that the server did not accept are
    tried: they are [a note](#valid-with-a-note)). Or the p95 of its lateness is more than
    {PEAK_SLACK_S:g} s"""
    spike = evidence.record.plan.spike
    if spike is None:
        return
    for number, peak in enumerate(evidence.record.peaks, 1):
        length_s, late_ms = peak.ended_s - peak.started_s, peak.late_p95_ms or 0.0
        untried = peak.untried or 0.0
        if abs(length_s - spike.peak_s) > PEAK_SLACK_S:
            yield {"spike": number, "length_s": length_s, "planned_s": spike.peak_s}
        if untried > UNTRIED * spike.extra:
            yield {"spike": number, "untried": untried, "extra": spike.extra}
        if late_ms > 1000 * PEAK_SLACK_S:
            yield {"spike": number, "late_ms": late_ms}
        yield from ({"spike": number, **problem.values} for problem in peak.problems)


@check("generator-waited", "warns", "answers")
def generator_waited(evidence: Evidence) -> Found:
    """At least {WAITED:.0%}"""
    share = waited_share(evidence.record, evidence.reading)
    if share is not None and share >= WAITED:
        yield {"share": share}


@check("think-time", "notes", "answers")
def think_time(evidence: Evidence) -> Found:
    """Closed load: {LEAST_SHARE:.0%} or more of the cycle of a connection (pacer). From
    {LAG_SHARE:.0%} on the [verdict](verdict.md) may name the generator"""
    share, think = think_share(evidence.reading), think_ms(evidence.reading)
    if evidence.record.plan.mode == "closed" and think is not None and share >= LEAST_SHARE:
        yield {"think_ms": think, "share": share}


@check("partly-late", "warns", "answers")
def partly_late(evidence: Evidence) -> Found:
    """Open load (pacer): the mean of its lateness is more than {LAG_SHARE:.0%} of the mean of the
    corrected latency, as the checks allow up to {LEAST_LAG_MS:g} ms; or its p99 is more than
    {LEAST_LAG_MS:g} ms and more than {LAG_SHARE:.0%} of p99. Closed load by `https`: the same of
    p95, as what delays sending may delay reading; by `http` the kernel dates the answers"""
    late, whole = evidence.reading.late, evidence.reading.corrected
    yield from (dict(remark.values) for remark in evidence.kept if remark.code == "partly-late")
    if evidence.record.plan.mode == "closed" or late is None or whole is None:
        return
    if late.mean_ms > LAG_SHARE * whole.mean_ms:
        yield {"figure": "mean", "late_ms": late.mean_ms}
    if late.p99_ms is None or whole.p99_ms is None:
        return
    if late.p99_ms > allowed_ms(whole.p99_ms):
        yield {"figure": "p99", "late_ms": late.p99_ms}


def _of_each(reading: Reading, find: Callable[[Reading], Values | None]) -> Iterator[Values]:
    """What is found of all of the generator or, where several machines put the load on and all
    together are in time, of each."""
    if whole := find(reading):
        yield whole
        return
    for share in reading.shares:
        if found := find(replace(reading, lag_ms=share.lag_ms, late=share.late)):
            yield {**found, "machine": share.machine}


def _late(reading: Reading) -> Values | None:
    latency, late = reading.raw or reading.corrected, reading.late
    if latency is None:
        return None
    p95_ms = late.p95_ms if late else None
    for figure, late_ms, took_ms in (
        ("mean", reading.lag_ms, latency.p50_ms),
        ("p95", p95_ms, latency.p95_ms),
    ):
        if late_ms is not None and took_ms is not None and late_ms > allowed_ms(took_ms):
            return {"figure": figure, "late_ms": late_ms, "allowed_ms": allowed_ms(took_ms)}
    return None
