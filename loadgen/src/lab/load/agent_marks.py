"""The live agent in a trial: it hears which trial runs and what its load sees, and tells which
toxics it saw."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from msgspec.structs import replace

from lab.errors import LabUnreachable
from lab.model import TrialPlan
from lab.system.agent import ToxicsSeen, Trial
from lab.system.stack import Stack

# The most of a server's bound (of a foreign service: of what its light load did) that the live
# probe may use: what a trial may miss (99 % kept).
PROBE_SHARE = 0.01


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
        # Lines of the load that are still to be sent, and those that are being sent.
        self._lines: list[str] = []
        self._sending: Future[None] | None = None
        self._sender = ThreadPoolExecutor(1, "agent")

    @contextmanager
    def trial(
        self, plan: TrialPlan, expires_s: float, light_rps: float | None, *, streams: bool = False
    ) -> Iterator[Callable[[str], None]]:
        """Announce the plan's trial for as long as the context lasts. It gives a function that
        names the phase the trial has come to. The agent forgets the trial after `expires_s`
        without a call; `light_rps` is what a foreign service did under its light load. `streams`:
        its engine's lines come through `lines`, so no probe is needed."""
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
            probe_rps=0.0 if streams else self._probe_rps(plan, light_rps),
            expires_s=expires_s,
        )

        def mark(phase: str) -> None:
            self._try(lambda: self._stack.agent.announce(replace(announced, phase=phase)))

        self._lost = False
        self._lines = []
        mark("warmup")
        try:
            yield mark
        finally:
            self._send()
            self._send()
            self._try(self._stack.agent.end_trial)

    def lines(self, lines: Sequence[str]) -> None:
        """Hand on what the trial's engine has written since the last call, as it is. A separate
        thread does that: nothing waits for the agent here, and lines wait while others are sent."""
        self._lines += lines
        if self._sending is None or self._sending.done():
            self._send()

    def toxics_seen(self) -> ToxicsSeen | None:
        """The toxics that the agent saw; None if it does not answer. A lost agent is asked too:
        it may have come back."""
        try:
            return self._stack.agent.toxics_seen()
        except LabUnreachable as failure:
            self._lose(failure)
            return None

    def _probe_rps(self, plan: TrialPlan, light_rps: float | None) -> float | None:
        """The highest rate of the probe. Without a light load nothing shows how little a foreign
        service can take, and no request is sent; nor is one over TLS."""
        most_rps = plan.predicted_rps
        if plan.url.startswith("https:"):
            most_rps = 0.0
        elif self._stack.is_foreign(plan.server):
            most_rps = min(light_rps or 0.0, plan.offered_rps or math.inf)
        return None if most_rps is None else PROBE_SHARE * most_rps

    def _send(self) -> None:
        """Wait for the lines that are being sent, and begin to send the next."""
        if self._sending is not None:
            self._try(self._sending.result)
            self._sending = None
        if self._lines and not self._lost:
            lines, self._lines = self._lines, []
            self._sending = self._sender.submit(self._stack.agent.send_lines, lines)

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
            what = "no live view of this trial, and maybe nobody watches the toxics"
            self._warn(f"{what}: {failure}")
        self._lost = self._warned = True
