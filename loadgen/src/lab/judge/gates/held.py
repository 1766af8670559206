"""Were all connections of a held load there while the memory was read?"""

from __future__ import annotations

from collections.abc import Iterator

from lab.model import Reading, TrialRecord

NOT_READ = "the memory was not read while the connections were held"


def kept(record: TrialRecord, reading: Reading) -> Iterator[str]:
    """Why the memory is not that of the planned connections. A connection that is lost is opened
    again, and sends again."""
    wanted, counts = record.plan.concurrency, reading.counts
    if record.live_heap_bytes is None or record.resident_bytes is None:
        yield NOT_READ
    if counts.sent != wanted:
        yield f"{counts.sent} requests were sent over {wanted} connections: one each was planned"
        return
    if record.plan.hold == "idle" and counts.ok != wanted:
        yield f"{counts.ok} of {wanted} connections had an answer"
    if reading.samples:
        yield f"{reading.samples} answers came while the connections were held"
    there = record.in_flight or 0
    if record.plan.hold == "in-flight" and there != wanted:
        yield f"{there} of {wanted} requests were in flight when the memory was read"
