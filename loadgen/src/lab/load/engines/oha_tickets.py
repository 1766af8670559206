"""How many tickets of an oha run have no answer, so that no generator hides its own lateness."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from lab.load.engines.base import REQUEST_TIMEOUT_S

# No request of a run waits longer: it has timed out before. One second is slack.
_AT_MOST_S = REQUEST_TIMEOUT_S + 1
# Rounding may take this much off the instant of a ticket.
_ROUNDING_S = 1e-6

# Ticket, start, end in seconds from the run's start; status.
Answer = tuple[float, float, float, int]


def missing(
    rows: Iterable[Answer],
    rate_rps: int,
    connections: int,
    failed: int,
    aborted: int,
    run_s: float,
) -> Sequence[int]:
    """For every answer of an open load, ordered by ticket: the most earlier tickets that can be
    without an answer. `failed` requests ended without an answer. `aborted` connections were cut off
    at the end of the run, most of them idle.

    Answer i belongs to ticket i + m(i), where m(i) earlier tickets have no answer. Nothing tells
    m(i), but it has bounds. The least bound is used, so that no generator looks later than it was:

    * No ticket is issued before it is due, so i + m(i) ≤ floor(ticket(i) · rate).
    * m never falls from one answer to the next, so a bound of m(j) bounds every m(i) before it: the
      minimum over all j ≥ i counts. A generator that stalled catches up afterwards, all at once.
      From the first j that is in time again, this bound is the true number, so a stall is told in
      full.
    * m(i) ≤ failed + the connections cut off while they waited for an earlier ticket. Tickets are
      taken up in order, so such a connection has held its ticket since before answer i was sent. No
      answer kept it busy at any moment after that. So there are at most `connections` less the
      most connections that were busy from then on. There are none where the run ends later than a
      request may wait. This tells the lateness of a generator that does not catch up, except for
      (connections that were never busy) / rate.
    """
    tickets, starts, ends = array("d"), array("d"), array("d")
    for ticket, start, end, _ in rows:
        tickets.append(ticket)
        starts.append(start)
        ends.append(end)
    sent, busy = _busy(starts, ends)
    bounds = array("q", bytes(8 * len(tickets)))
    least = failed + aborted
    for index in range(len(tickets) - 1, -1, -1):
        start = starts[index]
        cut_off = min(aborted, max(0, connections - busy[bisect_left(sent, start)]))
        if start < run_s - _AT_MOST_S:
            cut_off = 0
        issued = math.floor((tickets[index] + _ROUNDING_S) * rate_rps) - index
        least = max(0, min(least, issued, failed + cut_off))
        bounds[index] = least
    return bounds


def _busy(starts: Iterable[float], ends: Iterable[float]) -> tuple[list[float], array[int]]:
    """When answered requests were sent, ascending; and for each of these moments the most answered
    requests that were in flight at it or at a later one."""
    sent, answered = sorted(starts), sorted(ends)
    busy = array("q", bytes(8 * len(sent)))
    over = 0
    for index, start in enumerate(sent):
        while over < len(answered) and answered[over] <= start:
            over += 1
        busy[index] = index + 1 - over
    for index in range(len(sent) - 2, -1, -1):
        busy[index] = max(busy[index], busy[index + 1])
    return sent, busy
