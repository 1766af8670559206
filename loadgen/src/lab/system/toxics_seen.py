"""The toxic changes the agent saw during a trial, and the times when nobody watched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from lab.model import Unwatched
from lab.system.agent import ToxicsSeen
from lab.system.toxic_timeline import Timeline

# The agent looks every second and sees a change up to this late. A change seen so soon after the
# load began, or after a step of a script, may be older; and a shorter gap is not reported.
AGENT_LOOKS = timedelta(seconds=2)
Span = tuple[datetime, datetime]


def changes(seen: ToxicsSeen, began: datetime, ended: datetime, script: Timeline) -> Iterator[str]:
    """Every change while the load ran, also one that was undone again, but not the steps of the
    script. The script itself reads back what others changed of its toxics meanwhile."""
    for at, proxy, toxic in sorted(seen.history):
        own = (proxy, toxic) in script.touched and any(
            first <= at <= last + AGENT_LOOKS for first, last in script.times
        )
        if began + AGENT_LOOKS <= at <= ended + AGENT_LOOKS and not own:
            what = f"{proxy}/{toxic}" if toxic else proxy
            yield f"{what} at {at:%H:%M:%S}"


def unwatched(
    seen: ToxicsSeen | None, began: datetime, ended: datetime, script: Timeline
) -> Iterator[Unwatched]:
    """The times of the load in which nobody watched; `seen` None: the agent does not answer.

    A step of the script can keep Toxiproxy busy, and every look with it (the removal of a
    reset_peer waits). Such a time does not count: Toxiproxy takes no other change then."""
    if seen is None or seen.watched is None:
        yield Unwatched(began, ended)
        return
    first, last = seen.watched
    for gap in ((began, first), *seen.gaps, (last, ended)):
        clipped = max(gap[0], began), min(gap[1], ended)
        for part in _without([clipped], script.times):
            if part[1] - part[0] > AGENT_LOOKS:
                yield Unwatched(*part)


def _without(parts: list[Span], own: Sequence[Span]) -> list[Span]:
    """The spans without the script's `own`; some may be empty or end before they start."""
    for first, last in own:
        parts = [
            left
            for part in parts
            for left in ((part[0], min(part[1], first)), (max(part[0], last), part[1]))
        ]
    return parts
