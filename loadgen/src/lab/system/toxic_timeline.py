"""Changes toxics at the planned instants of a trial's script, and undoes them in the end."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from lab.errors import LabUnreachable, WordError
from lab.model import ScriptedToxic, ToxicStep, TrialPlan
from lab.model.toxic_script import applied, concerns, difference
from lab.model.toxic_words import ToxicRequest, parse_toxic
from lab.model.toxics import ToxicsInForce
from lab.system.host import System
from lab.system.toxiproxy import Toxiproxy
from lab.system.undo_log import UndoLog

BESIDE = "toxics changed beside the script"


class Timeline:
    """Makes the steps of `plan.script`; without a script it asks and changes nothing.

    Times of steps count from `opens_s`, the start of the window in seconds since the measured run
    began. Toxics are read back before and after each step, so changes of others are seen too.
    After a step that failed no other is made. One thread; call `undo` at the end in any case.
    `touched` has (proxy, toxic or WHOLE_PROXY) of all that it changes; `times` when it changed
    anything, taking back included: from, to.
    """

    def __init__(
        self,
        plan: TrialPlan,
        opens_s: float,
        toxiproxy: Toxiproxy,
        system: System,
        undo_log: UndoLog,
    ) -> None:
        self._opens_s = opens_s
        self._undo_log = undo_log
        self._toxiproxy = toxiproxy
        self._system = system
        self._due: list[tuple[ToxicStep, ToxicRequest]] = [
            (step, parse_toxic(step.words)) for step in plan.script
        ]
        self.touched = tuple(dict.fromkeys(concerns(request) for _, request in self._due))
        self._before: ToxicsInForce | None = None
        self._expected: ToxicsInForce | None = None
        self._done: list[ScriptedToxic] = []
        self.times: list[tuple[datetime, datetime]] = []

    @property
    def done(self) -> tuple[ScriptedToxic, ...]:
        return tuple(self._done)

    def tick(self, elapsed_s: float) -> None:
        """Make the steps that are due `elapsed_s` after the measured run began."""
        while self._due and elapsed_s >= self._opens_s + self._due[0][0].at_s:
            step, request = self._due.pop(0)
            began, began_at = self._system.monotonic(), self._system.now()
            problem = None
            try:
                problem = self._make(request)
            except (LabUnreachable, WordError) as failure:
                problem = str(failure)
                self._due = []
            ended_s = elapsed_s + self._system.monotonic() - began
            self.times.append((began_at, self._system.now()))
            self._done.append(
                ScriptedToxic(
                    started_s=round(elapsed_s, 3),
                    ended_s=round(ended_s, 3),
                    change=step.text,
                    clear=self._expected == self._before,
                    problem=problem,
                )
            )

    def undo(self) -> None:
        """Put back all that the script touches, and make no other step. Changes of others since
        the last step are noted as its problem. Raises LabUnreachable."""
        self._due = []
        if self._before is None or self._expected is None:
            return
        began_at = self._system.now()
        others = ", ".join(difference(self._expected, self._toxiproxy.in_force()))
        after = self._toxiproxy.restore(self._before, self.touched)
        self._undo_log.toxics_back(self.touched, after)
        self.times.append((began_at, self._system.now()))
        self._before = None
        if others and self._done and self._done[-1].problem is None:
            self._done[-1] = replace(self._done[-1], problem=f"{BESIDE}: {others}")

    def _make(self, request: ToxicRequest) -> str | None:
        """Returns what others changed since the last step, None if nothing."""
        now = self._toxiproxy.in_force()
        if self._before is None or self._expected is None:
            self._before = self._expected = now
        others = ", ".join(difference(self._expected, now))
        wanted = applied(now, request)
        self._undo_log.toxic(concerns(request), self._before, wanted)
        self._toxiproxy.apply(request)
        # What others changed is in `wanted` from now on, so it is said only once.
        self._expected = wanted
        return f"{BESIDE}: {others}" if others else None
