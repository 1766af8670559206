"""Was the load what it was to be: did the generator put it on, in time and by itself?"""

from collections.abc import Callable, Iterator
from copy import replace

from lab.judge.checks.check import Found, Values, check, kept, stored
from lab.judge.checks.machine import PART_CPU, THROTTLED
from lab.judge.trial import (
    BUSY_CONNECTIONS,
    HOST_CROWDED,
    LAG_SHARE,
    WAITED,
    Trial,
    allowed_ms,
    think_ms,
    think_share,
)
from lab.model import Reading

# From this share of a closed load's cycle on a reader should know of the generator's think time.
LEAST_SHARE = 0.02
# The window is placed by when its process was started. Series are of each second.
LATEST_START_S = 0.5
# The driver starts and ends a peak within two of its steps. Nor may what it sends be later.
PEAK_SLACK_S = 0.5
# A peak is a crowd: of its connections the generator may leave so many for later, on average.
UNTRIED = 0.05

generator_exhausted = stored("generator-exhausted", "invalidates")


@check("generator-full", "invalidates", "load")
def generator_full(trial: Trial) -> Found:
    """At least {PART_CPU:.0%} of its cores; of pacer, of those that its threads can use (one
    for four)"""
    cpu_s, window_s = trial.usage.window_cpu_s, trial.reading.window_s
    if cpu_s is not None and cpu_s / window_s >= PART_CPU * trial.cores:
        yield {"used": cpu_s / window_s, "cores": trial.cores}


@check("generator-throttled", "invalidates", "load")
def generator_throttled(trial: Trial) -> Found:
    """More than {THROTTLED:.0%} of the window"""
    throttled_s, window_s = trial.usage.window_throttled_s, trial.reading.window_s
    if throttled_s is not None and throttled_s > THROTTLED * window_s:
        yield {"throttled_s": throttled_s, "window_s": window_s}


@check("generator-starved", "invalidates", "load", repeatable=True)
def generator_starved(trial: Trial) -> Found:
    """Each turn on a CPU took more than {LEAST_LAG_MS:g} ms of waiting, and more than
    {LAG_SHARE:.0%} of p50"""
    usage, reading = trial.usage, trial.reading
    latency = reading.raw or reading.corrected
    typical_ms = latency.p50_ms if latency else reading.answer_ms
    if usage.window_wait_s is None or not usage.window_slices or typical_ms is None:
        return
    wait_ms = usage.window_wait_s / usage.window_slices * 1000
    if wait_ms > allowed_ms(typical_ms):
        yield {"wait_ms": wait_ms, "allowed_ms": allowed_ms(typical_ms)}


@check("generator-began-late", "invalidates", "answers", repeatable=True)
def generator_began_late(trial: Trial) -> Found:
    """More than {LATEST_START_S:g} s (pacer; not of several machines, which wait for each other)"""
    if trial.reading.began_s is not None and not trial.reading.shares:
        late_s = trial.reading.began_s - trial.record.run_started_at.timestamp()
        if late_s > LATEST_START_S:
            yield {"late_s": late_s}


@check("generator-late", "invalidates", "answers", repeatable=True)
def generator_late(trial: Trial) -> Found:
    """Open load (pacer): it sent more than {LEAST_LAG_MS:g} ms late and more than {LAG_SHARE:.0%}
    of a raw latency: on average against p50, and at p95 against p95. Where all machines together
    are in time, each is asked"""
    if trial.is_open:
        yield from _of_each_machine(trial.reading, _late)


@check("generator-thinks", "invalidates", "answers", repeatable=True)
def generator_thinks(trial: Trial) -> Found:
    """Closed load: more than {LAG_SHARE:.0%} of the cycle of a connection (answer, next request,
    next answer) is [think time](method.md#think-time) for want of a CPU (pacer). Of the think time
    that is the share that the generator's threads stood in the run queue while they did not sleep,
    all of it where that is unknown, as of several machines. Asked where the host's CPUs are at
    least {HOST_CROWDED:.0%} busy: elsewhere it is how long the kernel takes to wake a thread

    X = N / (R + Z) is the load that was put on, whatever Z is. But where the generator itself waits
    for a CPU, its shortage decides the rate.
    """
    usage, reading = trial.usage, trial.reading
    busy, several = usage.host_taken, bool(reading.shares)
    if trial.is_open or (busy is not None and busy < HOST_CROWDED and not several):
        return
    waited = 1.0
    if usage.window_wait_s is not None and usage.window_cpu_s is not None and not several:
        waited = usage.window_wait_s / ((usage.window_wait_s + usage.window_cpu_s) or 1.0)

    def thinks(reading: Reading) -> Values | None:
        share = waited * think_share(reading)
        return {"share": share, "allowed": LAG_SHARE} if share > LAG_SHARE else None

    yield from _of_each_machine(reading, thinks)


@check("generator-short", "invalidates", "answers", repeatable=True, symptom=True)
def generator_short(trial: Trial) -> Found:
    """Fewer requests ended than {KEPT_UP:.0%} of offered, although fewer than
    {BUSY_CONNECTIONS:.0%} of the connections were busy and the server always answered. Not asked of
    pacer, which measures how late it was. The {KEPT_UP:.0%} falls by the engine's longest
    pause ÷ window (with Poisson arrivals or [drawn delays](delays.md): by what chance does at both
    edges), the {BUSY_CONNECTIONS:.0%} by latency ÷ window"""
    reading, busy = trial.reading, trial.connections_busy
    if reading.late is not None or not trial.overloaded:
        return
    rates = {"ended_rps": trial.ended_rps, "of_rps": trial.plan.offered_rps or 0}
    if busy is None or reading.answer_ms is None:
        yield rates
    elif busy < BUSY_CONNECTIONS - reading.answer_ms / 1000 / reading.window_s:
        yield {**rates, "busy": busy}


@check("spikes-missing", "invalidates", "load")
def spikes_missing(trial: Trial) -> Found:
    """The load ended early"""
    spike, made = trial.plan.spike, len(trial.record.peaks)
    if spike is not None and made < spike.repeats:
        yield {"made": made, "planned": spike.repeats}


@check("spike-flawed", "invalidates", "load", repeatable=True)
def spike_flawed(trial: Trial) -> Found:
    """Of its own engine (pacer): it had no port or descriptor left for a connection, or what it
    reported is damaged. Its length is off by more than {PEAK_SLACK_S:g} s. On average more than
    {UNTRIED:.0%} of its connections were not tried yet (those that the server did not accept are
    tried: they are [a note](#valid-with-a-note)). Or the p95 of its lateness is more than
    {PEAK_SLACK_S:g} s"""
    spike = trial.plan.spike
    if spike is None:
        return
    for number, peak in enumerate(trial.record.peaks, 1):
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
def generator_waited(trial: Trial) -> Found:
    """At least {WAITED:.0%}"""
    if trial.waited_share is not None and trial.waited_share >= WAITED:
        yield {"share": trial.waited_share}


@check("think-time", "notes", "answers")
def think_time(trial: Trial) -> Found:
    """Closed load: {LEAST_SHARE:.0%} or more of the cycle of a connection (pacer). From
    {LAG_SHARE:.0%} on the [verdict](verdict.md) may name the generator"""
    share, think = think_share(trial.reading), think_ms(trial.reading)
    if not trial.is_open and think is not None and share >= LEAST_SHARE:
        yield {"think_ms": think, "share": share}


@check("partly-late", "warns", "answers")
def partly_late(trial: Trial) -> Found:
    """Open load (pacer): the mean of its lateness is more than {LAG_SHARE:.0%} of the mean of the
    corrected latency, as the checks allow up to {LEAST_LAG_MS:g} ms; or its p99 is more than
    {LEAST_LAG_MS:g} ms and more than {LAG_SHARE:.0%} of p99. Closed load by `https`: the same of
    p95, as what delays sending may delay reading; by `http` the kernel dates the answers"""
    late, whole = trial.reading.late, trial.reading.corrected
    yield from (dict(remark.values) for remark in kept(trial) if remark.code == "partly-late")
    if not trial.is_open or late is None or whole is None:
        return
    if late.mean_ms > LAG_SHARE * whole.mean_ms:
        yield {"figure": "mean", "late_ms": late.mean_ms}
    if late.p99_ms is None or whole.p99_ms is None:
        return
    if late.p99_ms > allowed_ms(whole.p99_ms):
        yield {"figure": "p99", "late_ms": late.p99_ms}


def _of_each_machine(
    reading: Reading, find: Callable[[Reading], Values | None]
) -> Iterator[Values]:
    """What is found of the whole generator; else, where several machines put the load on, of
    each."""
    if values := find(reading):
        yield values
        return
    for share in reading.shares:
        if values := find(replace(reading, lag_ms=share.lag_ms, late=share.late)):
            yield {**values, "machine": share.machine}


def _late(reading: Reading) -> Values | None:
    latency, late = reading.raw or reading.corrected, reading.late
    if latency is None:
        return None
    for figure, late_ms, took_ms in (
        ("mean", reading.lag_ms, latency.p50_ms),
        ("p95", late.p95_ms if late else None, latency.p95_ms),
    ):
        if late_ms is not None and took_ms is not None and late_ms > allowed_ms(took_ms):
            return {"figure": figure, "late_ms": late_ms, "allowed_ms": allowed_ms(took_ms)}
    return None
