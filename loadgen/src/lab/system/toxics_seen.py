"""What the agent, which looks at the toxics every second, saw of a trial, and what nobody saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from lab.model import Unwatched
from lab.system.agent import ToxicsSeen
from lab.system.toxic_timeline import Timeline

# The agent sees a change up to this late: one made just before the load is no change of it. So
# it is no less late for a script's own changes, and what nobody watched for less is not said.
AGENT_LOOKS = timedelta(seconds=2)
Span = tuple[datetime, datetime]


def changes(seen: ToxicsSeen, began: datetime, ended: datetime, script: Timeline) -> Iterator[str]:
    """What changed while the load ran, also what was undone again, but not the script's own
    steps: what it touches, when it did. What others did to that meanwhile it reads back itself."""
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

    While a step of the script has Toxiproxy busy (the removal of a reset_peer waits for it, and
    every look with it), it takes no change of others either: that is no such time."""
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
    """What is left of the spans, some of which may be of no length or less."""
    for first, last in own:
        parts = [
            left
            for part in parts
            for left in ((part[0], min(part[1], first)), (max(part[0], last), part[1]))
        ]
    return parts
