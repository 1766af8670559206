"""Was a held load what it was to be: were all connections there while the memory was read?

No speed is measured, so nothing else of the figures and of the generator is asked.
"""

from lab.judge.checks.check import Found, check
from lab.judge.trial import Trial


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
