"""The toxics during a trial: its script changes them, the agent sees what others change."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from lab.errors import LabUnreachable, WordError
from lab.model import ScriptedToxic, TrialPlan, Unwatched
from lab.model.toxics import parse_toxic
from lab.subject.changes import Change, Journal, Toxics, after, values_of
from lab.system.agent import ToxicsSeen
from lab.system.host import System
from lab.system.stack import Stack

# The agent looks every second and sees a change up to this late. A change seen so soon after the
# load began, or after a step of a script, may be older; and a shorter gap is not reported.
AGENT_LOOKS = timedelta(seconds=2)
Span = tuple[datetime, datetime]


class Timeline:
    """Makes the steps of `plan.script`; without a script it reads and changes nothing.

    Times of steps count from `opens_s`, the start of the window in seconds since the measured run
    began. After a step that failed no other is made. One thread; call `undo` at the end in any
    case.
    """

    def __init__(
        self, plan: TrialPlan, opens_s: float, stack: Stack, journal: Journal, system: System
    ) -> None:
        self._opens_s = opens_s
        self._toxiproxy = stack.toxiproxy
        self._change = Change(Toxics(stack.toxiproxy), journal)
        self._system = system
        self._due = [(step, parse_toxic(step.words)) for step in plan.script]
        self._touched = {request.item for _, request in self._due}
        self.done: tuple[ScriptedToxic, ...] = ()
        # When it changed anything, taking back included.
        self._times: list[Span] = []

    def tick(self, elapsed_s: float) -> None:
        """Make the steps that are due `elapsed_s` after the measured run began."""
        while self._due and elapsed_s >= self._opens_s + self._due[0][0].at_s:
            step, request = self._due.pop(0)
            began_s, problem = self._system.monotonic(), None
            try:
                with self._timed():
                    now = self._toxiproxy.in_force()
                    self._change.apply(after(now, [request]), values_of(now))
            except (LabUnreachable, WordError) as failure:
                problem = str(failure)
                self._due = []
            made = ScriptedToxic(
                started_s=round(elapsed_s, 3),
                ended_s=round(elapsed_s + self._system.monotonic() - began_s, 3),
                change=step.text,
                clear=self._change.as_found,
                problem=problem,
            )
            self.done = (*self.done, made)

    def undo(self) -> None:
        """Put back all that the script changed, and make no other step. Raises LabUnreachable."""
        self._due = []
        if self.done:
            with self._timed():
                self._change.undo()

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = self._system.now()
        try:
            yield
        finally:
            self._times.append((began, self._system.now()))

    def others(self, seen: ToxicsSeen, began: datetime, ended: datetime) -> Iterator[str]:
        """Every change that the agent saw while the load ran, also one that was undone again, but
        not the steps of the script. A change of the same toxic so soon after a step that the agent
        may have seen the step (AGENT_LOOKS) counts as the step."""
        for at, proxy, toxic in sorted(seen.history):
            scripted = (proxy, toxic) in self._touched and any(
                first <= at <= last + AGENT_LOOKS for first, last in self._times
            )
            if began + AGENT_LOOKS <= at <= ended + AGENT_LOOKS and not scripted:
                yield f"{'/'.join(filter(None, (proxy, toxic)))} at {at:%H:%M:%S}"

    def unwatched(
        self, seen: ToxicsSeen | None, began: datetime, ended: datetime
    ) -> Iterator[Unwatched]:
        """The times of the load in which nobody watched; `seen` None: the agent does not answer.

        A step of the script can keep Toxiproxy busy, and every look with it (the removal of a
        reset_peer waits). Such a time does not count: Toxiproxy takes no other change then."""
        if seen is None or seen.watched is None:
            yield Unwatched(began, ended)
            return
        first_look, last_look = seen.watched
        for first, last in ((began, first_look), *seen.gaps, (last_look, ended)):
            spans = [(max(first, began), min(last, ended))]
            for busy in self._times:
                spans = [part for span in spans for part in _without(span, busy)]
            for since, until in spans:
                if until - since > AGENT_LOOKS:
                    yield Unwatched(since, until)


def _without(span: Span, busy: Span) -> tuple[Span, Span]:
    """What of a span is before and after another; either may end before it starts."""
    return (span[0], min(span[1], busy[0])), (max(span[0], busy[1]), span[1])
