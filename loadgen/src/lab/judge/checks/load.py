"""Was the load what it was to be, or was the generator itself the limit?"""

from lab.judge.checks.check import Evidence, Found, check, stored
from lab.judge.predict import most_beyond
from lab.judge.quantities import (
    KEPT_UP,
    drawn_call,
    edges,
    offered_rps,
    overloaded,
    think_ms,
    trial_crossing_s,
    unanswered,
    window_is_short,
)
from lab.model import Value, answered, goodput, lost_rps

# Little's law must hold within this share, plus half a latency at each edge of the window: of the
# requests that are there at the edges (`crossing_s`).
LITTLE_TOLERANCE = 0.05
# Rounding, and the edges of the window, may put the rate this far above a bound.
BOUND_SLACK = 0.02

wrk2_connections = stored(
    "wrk2-connections", "invalidates", "wrk2 opens as many connections in each of its threads"
)


@check("backlog", "invalidates", "answers", repeatable=True)
def backlog(evidence: Evidence) -> Found:
    """Open load: as much more than offered was answered as may be missing from it ({KEPT_UP:.0%}),
    plus the engine's longest pause ÷ window: requests of the warm-up waited when the window
    began"""
    record, reading = evidence.record, evidence.reading
    offered = offered_rps(record, reading)
    if offered is None or reading.corrected is None:
        return
    if reading.achieved_rps > (2 - KEPT_UP + edges(record, reading)) * offered:
        yield {"answered_rps": reading.achieved_rps, "offered_rps": offered}


@check("littles-law", "invalidates", "answers", symptom=True)
def littles_law(evidence: Evidence) -> Found:
    """Closed load: rate × (latency + think time) differs from the connections by more than
    {LITTLE_TOLERANCE:.0%} + latency ÷ window. Only pacer measures the
    [think time](method.md#think-time). Of others the reason says how long it would be

    N = X·(R + Z) (Little 1961), where every connection is always busy: with a request, or until the
    generator has sent the next. Not asked of a window that is too short to tell.
    """
    record, reading = evidence.record, evidence.reading
    closed = record.plan.mode == "closed"
    if not closed or reading.answer_ms is None or window_is_short(record, reading):
        return
    latency_s, think = reading.answer_ms / 1000, think_ms(reading)
    each_s = latency_s + (think or 0.0) / 1000
    busy, planned = reading.achieved_rps * each_s, record.plan.concurrency
    tolerance = LITTLE_TOLERANCE + trial_crossing_s(record, latency_s) / reading.window_s
    if abs(busy / planned - 1) > tolerance:
        values: dict[str, Value] = {
            "answered_rps": reading.achieved_rps,
            "each_s": each_s,
            "busy": busy,
            "planned": planned,
            "tolerance": tolerance,
        }
        if think is None and busy < planned:
            values["missing_ms"] = planned * 1000 / reading.achieved_rps - reading.answer_ms
        yield values


@check("above-bound", "invalidates", "answers")
def above_bound(evidence: Evidence) -> Found:
    """Goodput above bound + {BOUND_SLACK:.0%} + connections ÷ window: another server or a cache
    may have answered

    Connections that began at once answer in bursts, of which the window may have one too many. An
    open load that catches up after a stall may exceed its average rate for a while.
    """
    record, reading = evidence.record, evidence.reading
    bound, offered = record.plan.predicted_rps, record.plan.offered_rps
    if bound is None or (offered is not None and bound >= offered):
        return
    # An error can come faster than the bound's response time.
    good_rps, call = goodput(reading), drawn_call(record)
    drawn = most_beyond(call, record.before, reading.samples) if call else 0.0
    if good_rps > bound * (1 + BOUND_SLACK + drawn) + record.plan.concurrency / reading.window_s:
        yield {"goodput_rps": good_rps, "bound_rps": bound}


@check("overload", "notes", "answers")
def overload(evidence: Evidence) -> Found:
    """Open load: fewer requests ended than {KEPT_UP:.0%} of offered while the connections were
    busy. Requests that may never be answered count as ended here. This is a finding. Corrected
    latencies then grow with the run's length"""
    record, reading = evidence.record, evidence.reading
    offered = offered_rps(record, reading)
    if offered is not None and overloaded(record, reading):
        yield {"answered_rps": reading.achieved_rps, "offered_rps": offered}


@check("errors", "notes", "answers")
def errors(evidence: Evidence) -> Found:
    """Any HTTP errors, or errors of which so many are not as the subject's file
    [expects](your-own-service.md#what-an-answer-has-to-be): then a second note for each request
    says what came instead. The latencies are
    [of the others](columns.md#latencies-of-answers-of-errors-and-of-neither); of an engine that
    does not tell them apart, of all"""
    reading = evidence.reading
    good, failed = answered(reading)
    if failed and good:
        apart = reading.failed is not None or reading.raw is None
        yield {
            "share": failed / (failed + good),
            **({"unexpected": reading.unexpected} if reading.unexpected else {}),
            "latencies": "apart" if apart else "mixed",
        }


@check("without-answer", "notes", "answers")
def without_answer(evidence: Evidence) -> Found:
    """Any"""
    reading = evidence.reading
    lost = lost_rps(reading, evidence.record.plan.offered_rps)
    if lost:
        yield {"share": lost / (reading.achieved_rps + lost)}


@check("never-answered", "notes", "answers")
def never_answered(evidence: Evidence) -> Found:
    """Open load of pacer, where a request had waited for much longer than any answer took: more
    than chance (three deviations of those in flight), a pause of the engine, a latency that rises
    by a tenth and a queue explain. In a queue that is served first come, first served, who is
    answered last has waited longer than who was first. A timeout is reported only after 30 s"""
    if left := unanswered(evidence.record, evidence.reading):
        yield {"requests": left}


socket_errors = stored("socket-errors", "notes")
connect_failed = stored("connect-failed", "notes")
unsent = stored("unsent", "notes")
connections_closed = stored(
    "connections-closed",
    "notes",
    "fewer than 95% of the load's connections, on average of the ends of the window's seconds "
    "(pacer). The others are in no latency: the server did not accept them, or closes each after "
    "an answer",
)
request_waits = stored(
    "request-waits",
    "notes",
    "it had waited for more than twice as long as any answer took, and for more than a second "
    "(pacer). A timeout is reported only after 30 s",
)
reopened = stored(
    "reopened",
    "notes",
    "1% of the answers or more (pacer): the server closes connections, or sends more than its "
    "answer. To open one takes time that is in no raw latency",
)
spike_refused = stored("spike-refused", "notes")
spike_unsent = stored("spike-unsent", "notes")
not_as_expected = stored("not-as-expected", "notes")
wrk2_attempts = stored("wrk2-attempts", "notes")
wrk2_waiting = stored("wrk2-waiting", "notes")
wrk2_bursts = stored("wrk2-bursts", "notes")
