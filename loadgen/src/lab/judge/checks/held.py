"""Was a held load what it was to be: were all connections there while the memory was read?

No speed is measured, so nothing else of the figures and of the generator is asked.
"""

from lab.judge.checks.check import Evidence, Found, check


@check("held-unread", "invalidates", "held")
def held_unread(evidence: Evidence) -> Found:
    """The server did not report its memory, the load ended first, or (in flight) Toxiproxy may not
    have accepted all calls; a note says which"""
    if evidence.record.live_heap_bytes is None or evidence.record.resident_bytes is None:
        yield {}


@check("held-incomplete", "invalidates", "held")
def held_incomplete(evidence: Evidence) -> Found:
    """A connection was lost and opened again (and sent again), or was not open when the load ended.
    Or idle connections had no answer, or an error; requests in flight had an answer, or the server
    worked on others as well"""
    record, reading, counts = evidence.record, evidence.reading, evidence.reading.counts
    planned = record.plan.concurrency
    there = {"sent": counts.sent or 0}
    if counts.sent == planned:
        idle = record.plan.hold == "idle"
        there = {"answered": counts.ok or 0} if idle else {"in-flight": record.in_flight or 0}
        if reading.samples:
            yield {"what": "answered-late", "count": reading.samples, "planned": 0}
    for what, count in there.items():
        if count != planned:
            yield {"what": what, "count": count, "planned": planned}
