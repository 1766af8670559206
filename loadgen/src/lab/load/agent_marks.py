"""The live agent in a trial: it hears which trial runs and what its load shows, and it saw the
toxics."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from msgspec.structs import replace

from lab.errors import LabUnreachable
from lab.model import Remark, TrialPlan
from lab.system.agent import Agent, Phase, ToxicsSeen, Trial

# The most of what a server can do that the live probe may use: what a trial may miss (99 % kept).
PROBE_SHARE = 0.01


class AgentMarks:
    """The trials of one run. A trial goes on without the agent, unseen live: after the first call
    that it does not answer, later calls of this trial are skipped, as each takes seconds.
    The next trial tries again. A warning says when the agent is lost, once until it is back."""

    def __init__(self, run: str, agent: Agent, warn: Callable[[Remark], None]) -> None:
        self._run = run
        self._agent = agent
        self._warn = warn
        self._lost = self._warned = False
        # Lines of the load that are still to be sent, and those that are being sent.
        self._lines: list[str] = []
        self._sending: Future[None] | None = None
        self._sender = ThreadPoolExecutor(1, "agent")

    @contextmanager
    def trial(
        self, plan: TrialPlan, expires_s: float, most_rps: float | None
    ) -> Iterator[Callable[[Phase], None]]:
        """Announce the plan's trial for as long as the context lasts. It gives a function that
        names the phase the trial has come to. The agent forgets the trial after `expires_s`
        without a call. It probes with PROBE_SHARE of `most_rps`, None: at its own rate."""
        announced = Trial(
            run=self._run,
            trial=plan.trial,
            server=plan.server,
            # The label of the servers' own metrics is the path alone.
            route=plan.route.partition("?")[0],
            engine=plan.engine,
            mode=plan.mode,
            concurrency=plan.concurrency,
            offered_rps=plan.offered_rps,
            phase="warmup",
            url=plan.url,
            probe_rps=None if most_rps is None else PROBE_SHARE * most_rps,
            expires_s=expires_s,
        )

        def mark(phase: Phase) -> None:
            self._try(lambda: self._agent.announce(replace(announced, phase=phase)))

        self._lost, self._lines = False, []
        mark("warmup")
        try:
            yield mark
        finally:
            self._send()
            self._send()
            self._try(self._agent.end_trial)

    def lines(self, lines: Sequence[str]) -> None:
        """Hand on what the trial's engine wrote, as it is. A separate thread does that: nothing
        waits for the agent here, and lines wait while others are sent."""
        self._lines += lines
        if self._sending is None or self._sending.done():
            self._send()

    def toxics_seen(self) -> ToxicsSeen | None:
        """The toxics that the agent saw; None if it does not answer. A lost agent is asked too: it
        may have come back."""
        self._lost = False
        return self._try(self._agent.toxics_seen)

    def _send(self) -> None:
        """Wait for the lines that are being sent, and begin to send the next."""
        if self._sending is not None:
            self._try(self._sending.result)
            self._sending = None
        if self._lines and not self._lost:
            lines, self._lines = self._lines, []
            self._sending = self._sender.submit(self._agent.send_lines, lines)

    def _try[T](self, call: Callable[[], T]) -> T | None:
        if self._lost:
            return None
        try:
            answer = call()
        except LabUnreachable as failure:
            if not self._warned:
                self._warn(Remark("agent-lost", {"problem": str(failure)}))
            self._lost = self._warned = True
            return None
        self._warned = False
        return answer
