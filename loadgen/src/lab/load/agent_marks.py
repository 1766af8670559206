"""The live agent in a trial: it hears which trial runs and what its load sees, and tells which
toxics it saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from lab.errors import LabUnreachable
from lab.model import TrialPlan
from lab.system.agent import ToxicsSeen
from lab.system.stack import Stack


class AgentMarks:
    """The trials of one run. A trial goes on without the agent, unseen live: after the first call
    that it does not answer, later calls of this trial are skipped, as each takes seconds.
    The next trial tries again. A warning says when the agent is lost, once until it is back."""

    def __init__(self, run: str, stack: Stack, warn: Callable[[str], None]) -> None:
        self._run = run
        self._stack = stack
        self._warn = warn
        self._lost = False
        self._warned = False
        # Lines of the load that are still to be told, and those that are being told.
        self._lines: list[str] = []
        self._telling: Future[None] | None = None
        self._teller = ThreadPoolExecutor(1, "agent")

    @contextmanager
    def trial(
        self, plan: TrialPlan, expires_s: float, light_rps: float | None, *, streams: bool = False
    ) -> Iterator[Callable[[str], None]]:
        """Mark the plan's trial for as long as the context lasts. It gives a function that names
        the phase the trial has come to. The agent forgets the trial after `expires_s` without a
        call; `light_rps` is what a foreign service did under its light load. `streams`: its
        engine's lines come through `lines`, so no probe is needed."""

        def mark(phase: str) -> None:
            self._tell(
                lambda: self._stack.agent.mark(
                    self._run, plan, phase, expires_s, light_rps, streams=streams
                )
            )

        self._lost = False
        self._lines = []
        mark("warmup")
        try:
            yield mark
        finally:
            self._told()
            self._hand_on()
            self._told()
            self._tell(self._stack.agent.unmark)

    def lines(self, lines: Sequence[str]) -> None:
        """Hand on what the trial's engine has told since the last call, as it is. A thread of its
        own does that: nothing waits for the agent here, and lines wait while others are told."""
        self._lines += lines
        if self._telling is not None and self._telling.done():
            self._told()
        self._hand_on()

    def _hand_on(self) -> None:
        """Begin to tell what is to be told, unless other lines are being told."""
        if self._lines and self._telling is None and not self._lost:
            tell, self._lines = self._lines, []
            self._telling = self._teller.submit(self._stack.agent.tell, tell)

    def _told(self) -> None:
        """Wait until the lines that are being told are told."""
        telling, self._telling = self._telling, None
        if telling is not None:
            self._tell(telling.result)

    def toxics_seen(self) -> ToxicsSeen | None:
        """The toxics that the agent saw; None where it does not answer. A lost agent is asked too:
        it may have come back."""
        try:
            return self._stack.agent.toxics_seen()
        except LabUnreachable as failure:
            self._lose(failure)
            return None

    def _tell(self, call: Callable[[], None]) -> None:
        if self._lost:
            return
        try:
            call()
        except LabUnreachable as failure:
            self._lose(failure)
        else:
            self._warned = False

    def _lose(self, failure: LabUnreachable) -> None:
        if not self._warned:
            what = "no live view of this trial, and maybe nobody watches the toxics"
            self._warn(f"{what}: {failure}")
        self._lost = self._warned = True
