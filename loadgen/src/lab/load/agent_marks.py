"""The live agent in a trial: it hears which trial runs, and tells which toxics it saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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

    @contextmanager
    def trial(
        self,
        plan: TrialPlan,
        expires_s: float,
        light_rps: float | None,
        *,
        streams: bool = False,  # noqa: ARG002
    ) -> Iterator[Callable[[str], None]]:
        """Mark the plan's trial for as long as the context lasts. It gives a function that names
        the phase the trial has come to. The agent forgets the trial after `expires_s` without a
        call; `light_rps` is what a foreign service did under its light load. `streams`: the engine
        tells of the load while it runs (`lines`)."""

        def mark(phase: str) -> None:
            self._tell(lambda: self._stack.agent.mark(self._run, plan, phase, expires_s, light_rps))

        self._lost = False
        mark("warmup")
        try:
            yield mark
        finally:
            self._tell(self._stack.agent.unmark)

    def lines(self, lines: Sequence[str]) -> None:
        """What the engine has said of the load since the last call, a line a second: the agent
        hears none of it yet."""

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
