"""The live agent in a trial: it hears which trial runs and what its load shows, and it saw the
toxics."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from lab.errors import LabUnreachable
from lab.model import Remark, TrialPlan
from lab.system.agent import Agent, ToxicsSeen


class AgentMarks:
    """The trials of one run. A trial goes on without the agent, unseen live: after the first call
    that it does not answer, later calls of this trial are skipped, as each takes seconds.
    The next trial tries again. A warning says when the agent is lost, once until it is back."""

    def __init__(self, run: str, agent: Agent, warn: Callable[[Remark], None]) -> None:
        self._run = run
        self._agent = agent
        self._warn = warn
        self._lost = self._warned = False
        # Lines of the load that are still to be passed on, and the call that passes others on.
        self._lines: list[str] = []
        self._passing: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, "agent")

    @contextmanager
    def trial(
        self, plan: TrialPlan, expires_s: float, most_rps: float | None
    ) -> Iterator[Callable[[str], None]]:
        """Mark the plan's trial for as long as the context lasts. It gives a function that names
        the phase the trial has come to. The rest is as of Agent.mark."""

        def mark(phase: str) -> None:
            self._try(lambda: self._agent.mark(self._run, plan, phase, expires_s, most_rps))

        self._lost, self._lines = False, []
        mark("warmup")
        try:
            yield mark
        finally:
            self._await_passed()
            self._pass_on()
            self._await_passed()
            self._try(self._agent.unmark)

    def lines(self, lines: Sequence[str]) -> None:
        """Pass on what the trial's engine wrote, as it is. A thread of its own does that: nothing
        waits for the agent here."""
        self._lines += lines
        if self._passing is not None and self._passing.done():
            self._await_passed()
        self._pass_on()

    def toxics_seen(self) -> ToxicsSeen | None:
        """The toxics that the agent saw; None if it does not answer. A lost agent is asked too: it
        may have come back."""
        try:
            return self._agent.toxics_seen()
        except LabUnreachable as failure:
            self._lose(failure)
            return None

    def _pass_on(self) -> None:
        if self._lines and self._passing is None and not self._lost:
            lines, self._lines = self._lines, []
            self._passing = self._thread.submit(self._agent.pass_on, lines)

    def _await_passed(self) -> None:
        passing, self._passing = self._passing, None
        if passing is not None:
            self._try(passing.result)

    def _try(self, call: Callable[[], None]) -> None:
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
            self._warn(Remark("agent-lost", {"problem": str(failure)}))
        self._lost = self._warned = True
