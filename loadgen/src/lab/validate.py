"""Measurement to judgement: valid, or the reasons why not. Fails closed.

A reason makes the trial invalid: its figures do not mean what their columns say. A note is
something a reader must know of a valid trial; overload by the server is a finding, not a
fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab.types import Judgement, Measurement, Reading, Snapshot, TrialRecord

# Little's law must hold within this share, plus half a latency at each edge of the window.
LITTLE_TOLERANCE = 0.05
# An open trial that answers this share of its offered rate has kept up.
KEPT_UP = 0.99
# Above this share of connections busy, the server's side kept them busy; below, requests
# were due and connections free, so the generator did not send them.
BUSY_CONNECTIONS = 0.9
# A generator that used this share of its cores was at its limit.
GENERATOR_CPU = 0.95
HOST_BUSY = 0.95
# Beyond this share of the median corrected latency, the generator measures itself.
LAG_SHARE = 0.1
LEAST_LAG_MS = 1.0
# What rounding and the edges of a window may put above a bound.
BOUND_SLACK = 0.02
MIN_SAMPLES = 200


def judge(measurement: Measurement) -> Judgement:
    """All reasons and notes of one measurement."""
    record, reading = measurement.record, measurement.reading
    reasons = [*_same_server(record), *record.unequal]
    notes = list(record.notes)
    if reading is None:
        reasons.append(measurement.problem or "its raw data could not be read")
        return Judgement(tuple(reasons), tuple(notes))
    reasons += [*reading.problems, *_samples(reading)]
    notes += reading.notes
    if reading.samples:
        reasons += [*_answers(reading), *_littles_law(record, reading), *_bound(record, reading)]
        reasons += [*_generator(record, reading), *_backlog(record, reading)]
        notes += _findings(record, reading)
    busy = record.usage.host_busy
    if busy is not None and busy >= HOST_BUSY:
        notes.append(f"the host's CPU was {busy:.0%} busy: these numbers are this machine's limit")
    steal = record.usage.host_steal
    if steal is not None and steal >= 0.05:
        notes.append(f"the host lost {steal:.0%} of its CPU to other machines (steal)")
    return Judgement(tuple(reasons), tuple(dict.fromkeys(notes)))


def _same_server(record: TrialRecord) -> Iterator[str]:
    plan, before, after = record.plan, record.before, record.after
    if before.identity.model != plan.server:
        yield f"wrong server: {before.identity.model} answered as {plan.server}"
    if after is None:
        yield f"the server could not be read back afterwards: {record.after_problem}"
        return
    if after.identity.start_time_ms != before.identity.start_time_ms:
        yield "the JVM restarted during the trial"
    elif after.identity != before.identity:
        yield "the server's identity changed during the trial"
    yield from _changes(before, after)
    if record.toxic_changes and before.toxics == after.toxics:
        yield f"toxics changed during the trial: {', '.join(record.toxic_changes)}"


def _changes(before: Snapshot, after: Snapshot) -> Iterator[str]:
    changed = sorted(
        name
        for name in {*before.settings, *after.settings}
        if before.settings.get(name) != after.settings.get(name)
    )
    if changed:
        yield f"settings changed during the trial: {', '.join(changed)}"
    if before.toxics != after.toxics:
        was, now = ("; ".join(snapshot.toxics.in_force) or "none" for snapshot in (before, after))
        yield f"toxics changed during the trial: {was} became {now}"
    if before.downstream_delay_ms != after.downstream_delay_ms:
        yield (
            f"the downstream's delay changed during the trial: {before.downstream_delay_ms:g} "
            f"became {after.downstream_delay_ms:g} ms"
        )


def _samples(reading: Reading) -> Iterator[str]:
    if reading.samples == 0:
        yield "nothing was answered in the measured window"
    elif reading.samples < MIN_SAMPLES:
        yield f"too few samples: {reading.samples}, and p95 needs {MIN_SAMPLES}"


def _answers(reading: Reading) -> Iterator[str]:
    if reading.counts.ok == 0:
        yield "no answer was a success: the latencies are those of errors"


def _littles_law(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """N = X·R for a closed load (Little 1961): all connections are always busy."""
    if record.plan.mode != "closed" or reading.raw is None:
        return
    latency_s = reading.raw.mean_ms / 1000
    busy = reading.achieved_rps * latency_s
    tolerance = LITTLE_TOLERANCE + latency_s / reading.window_s
    if abs(busy / record.plan.concurrency - 1) > tolerance:
        yield (
            f"Little's law does not hold: {reading.achieved_rps:.0f} req/s × {latency_s:.3f} s "
            f"= {busy:.0f} connections busy of {record.plan.concurrency} "
            f"(tolerance {tolerance:.0%})"
        )


def _bound(record: TrialRecord, reading: Reading) -> Iterator[str]:
    bound = record.plan.predicted_rps
    if bound is None or reading.counts.http_errors:
        return  # An error can be answered faster than the bound's response time.
    # An open load that catches up after a stall may exceed its own average for a while.
    if record.plan.offered_rps is not None and bound >= record.plan.offered_rps:
        return
    if reading.achieved_rps > bound * (1 + BOUND_SLACK) + 1 / reading.window_s:
        yield (
            f"faster than possible: {reading.achieved_rps:.0f} req/s against a bound of "
            f"{bound:.0f}: something else answered"
        )


def connections_busy(record: TrialRecord, reading: Reading) -> float | None:
    """The share of connections with a request in flight, by Little's law."""
    if reading.raw is None:
        return None
    return reading.achieved_rps * reading.raw.mean_ms / 1000 / record.plan.concurrency


def _overloaded(record: TrialRecord, reading: Reading) -> bool:
    """Fewer answers than offered, more than the edges of the window can have missed."""
    offered = record.plan.offered_rps
    if offered is None:
        return False
    return reading.achieved_rps < (KEPT_UP - reading.pause_s / reading.window_s) * offered


def _generator(record: TrialRecord, reading: Reading) -> Iterator[str]:
    cpu_s, cores = record.usage.window_cpu_s, record.plan.cores
    if cpu_s is not None and cpu_s / reading.window_s >= GENERATOR_CPU * cores:
        yield (
            f"the generator was the limit: it used {cpu_s / reading.window_s:.1f} "
            f"of its {cores} cores"
        )
    if reading.lag_ms is not None and reading.corrected is not None:
        allowed_ms = max(LEAST_LAG_MS, LAG_SHARE * reading.corrected.p50_ms)
        if reading.lag_ms > allowed_ms:
            yield (
                f"the generator was late itself, by {reading.lag_ms:.0f} ms on average "
                f"(allowed {allowed_ms:.0f} ms)"
            )
    if _overloaded(record, reading):
        busy = connections_busy(record, reading)
        if busy is None or busy < BUSY_CONNECTIONS:
            share = "unknown" if busy is None else f"{busy:.0%}"
            yield (
                f"the generator did not offer its rate: {reading.achieved_rps:.0f} of "
                f"{record.plan.offered_rps} req/s with {share} of its connections busy"
            )


def _backlog(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """More answers than offered: those of requests that were due before the window."""
    offered = record.plan.offered_rps
    if offered is None or reading.corrected is None:
        return
    if reading.achieved_rps > (2 - KEPT_UP + reading.pause_s / reading.window_s) * offered:
        yield (
            f"a backlog of the warm-up was worked off: {reading.achieved_rps:.0f} answered of "
            f"{offered} req/s offered, so the corrected latencies are not those of this load"
        )


def _findings(record: TrialRecord, reading: Reading) -> Iterator[str]:
    if _overloaded(record, reading):
        yield (
            f"overloaded: {reading.achieved_rps:.0f} of {record.plan.offered_rps} req/s "
            "offered were answered, so corrected latencies grow with the run's length"
        )
    counts = reading.counts
    if counts.http_errors and counts.ok:
        share = counts.http_errors / (counts.http_errors + counts.ok)
        yield f"{share:.1%} of the answers were HTTP errors, and their latencies count too"
