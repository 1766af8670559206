"""Was the load what it was to be, or was the generator itself the limit?"""

from lab.judge.checks.check import Found, check, stored
from lab.judge.predict import most_beyond
from lab.judge.trial import KEPT_UP, Trial, think_ms
from lab.model import Value, answered, lost_rps

# Little's law must hold within this share, plus half a latency at each edge of the window: of the
# requests that are there at the edges (`Trial.crossing_s`).
LITTLE_TOLERANCE = 0.05
# Rounding, and the edges of the window, may put the rate this far above a bound.
BOUND_SLACK = 0.02

wrk2_connections = stored(
    "wrk2-connections", "invalidates", "wrk2 opens as many connections in each of its threads"
)


@check("backlog", "invalidates", "answers", repeatable=True)
def backlog(trial: Trial) -> Found:
    """Open load: as much more than offered was answered as may be missing from it ({KEPT_UP:.0%}),
    plus the engine's longest pause ÷ window: requests of the warm-up waited when the window
    began"""
    answered_rps, offered = trial.reading.achieved_rps, trial.offered_rps
    if offered is None or trial.reading.corrected is None:
        return
    if answered_rps > (2 - KEPT_UP + trial.edges) * offered:
        yield {"answered_rps": answered_rps, "offered_rps": offered}


@check("littles-law", "invalidates", "answers", symptom=True)
def littles_law(trial: Trial) -> Found:
    """Closed load: rate × (latency + think time) differs from the connections by more than
    {LITTLE_TOLERANCE:.0%} + latency ÷ window. Only pacer measures the
    [think time](method.md#think-time). Of others the reason says how long it would be

    N = X·(R + Z) (Little 1961), where every connection is always busy: with a request, or until the
    generator has sent the next. Not asked of a window that is too short to tell.
    """
    reading, think, planned = trial.reading, think_ms(trial.reading), trial.plan.concurrency
    if trial.is_open or reading.answer_ms is None or reading.window_s < trial.least_window_s:
        return
    each_s = reading.answer_ms / 1000 + (think or 0.0) / 1000
    busy = reading.achieved_rps * each_s
    tolerance = LITTLE_TOLERANCE + trial.crossing_s / reading.window_s
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
def above_bound(trial: Trial) -> Found:
    """Goodput above bound + {BOUND_SLACK:.0%} + connections ÷ window: another server or a cache
    may have answered

    Connections that began at once answer in bursts, of which the window may have one too many. An
    open load that catches up after a stall may exceed its average rate for a while.
    """
    bound, offered, call = trial.plan.predicted_rps, trial.plan.offered_rps, trial.drawn
    if bound is None or (offered is not None and bound >= offered):
        return
    drawn = most_beyond(call, trial.before, trial.reading.samples) if call else 0.0
    # An error can come faster than the bound's response time.
    slack_rps = trial.plan.concurrency / trial.reading.window_s
    if trial.rps > bound * (1 + BOUND_SLACK + drawn) + slack_rps:
        yield {"goodput_rps": trial.rps, "bound_rps": bound}


@check("overload", "notes", "answers")
def overload(trial: Trial) -> Found:
    """Open load: fewer requests ended than {KEPT_UP:.0%} of offered while the connections were
    busy. Requests that may never be answered count as ended here. This is a finding. Corrected
    latencies then grow with the run's length"""
    if trial.offered_rps is not None and trial.overloaded:
        yield {"answered_rps": trial.reading.achieved_rps, "offered_rps": trial.offered_rps}


@check("errors", "notes", "answers")
def errors(trial: Trial) -> Found:
    """Any HTTP errors, or errors of which so many are not as the subject's file
    [expects](your-own-service.md#what-an-answer-has-to-be): then a second note for each request
    says what came instead. The latencies are
    [of the others](columns.md#latencies-of-answers-of-errors-and-of-neither); of an engine that
    does not tell them apart, of all"""
    reading = trial.reading
    good, failed = answered(reading)
    if failed and good:
        apart = reading.failed is not None or reading.raw is None
        unexpected = {"unexpected": reading.unexpected} if reading.unexpected else {}
        latencies = {"latencies": "apart" if apart else "mixed"}
        yield {"share": failed / (failed + good), **unexpected, **latencies}


@check("without-answer", "notes", "answers")
def without_answer(trial: Trial) -> Found:
    """Any"""
    lost = lost_rps(trial.reading, trial.plan.offered_rps)
    if lost:
        yield {"share": lost / (trial.reading.achieved_rps + lost)}


@check("never-answered", "notes", "answers")
def never_answered(trial: Trial) -> Found:
    """Open load of pacer, where a request had waited for much longer than any answer took: more
    than chance (three deviations of those in flight), a pause of the engine, a latency that rises
    by a tenth and a queue explain. In a queue that is served first come, first served, who is
    answered last has waited longer than who was first. A timeout is reported only after 30 s"""
    if trial.unanswered:
        yield {"requests": trial.unanswered}


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


# Of a held load no speed is measured, so nothing else of its figures is asked.


@check("held-unread", "invalidates", "held")
def held_unread(trial: Trial) -> Found:
    """The server did not report its memory, the load ended first, or (in flight) Toxiproxy may not
    have accepted all calls; a note says which"""
    if trial.record.live_heap_bytes is None or trial.record.resident_bytes is None:
        yield {}


@check("held-incomplete", "invalidates", "held")
def held_incomplete(trial: Trial) -> Found:
    """A connection was lost and opened again (and sent again), or was not open when the load ended.
    Or idle connections had no answer, or an error; requests in flight had an answer, or the server
    worked on others as well"""
    reading, counts, planned = trial.reading, trial.reading.counts, trial.plan.concurrency
    there = {"sent": counts.sent}
    if counts.sent == planned:
        idle = trial.plan.hold == "idle"
        there = {"answered": counts.ok} if idle else {"in-flight": trial.record.in_flight}
        if reading.samples:
            yield {"what": "answered-late", "count": reading.samples, "planned": 0}
    for what, count in there.items():
        if count != planned:
            yield {"what": what, "count": count or 0, "planned": planned}
