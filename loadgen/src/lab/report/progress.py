"""Progress with time left: a live line on a terminal, a plain line every few seconds else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from lab.model import NONE, UNKNOWN, Remark, Row, TrialPlan, goodput, strength_text, three
from lab.report import remarks
from lab.report.table import NOTHING, data, lane, with_unit

EVERY_S = 5.0


class Trials:
    """The progress of a run. Use as a context; a `load.Watcher`.

    `done` trials are there already, and `left` are still to be made; None where that depends on
    their findings. The time left counts what finished trials took in all, fresh JVM and warm-up
    included.
    """

    def __init__(
        self,
        console: Console,
        done: int,
        left: int | None,
        monotonic: Callable[[], float],
    ) -> None:
        self._console = console
        self._done = done
        self._trials_left = left
        self._monotonic = monotonic
        self._here = 0
        self._took_s = 0.0
        self._since_s = monotonic()
        self._said_at: float | None = None
        self._said_phase = ""
        self._live: Status | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = self._console.status("starting")
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def progress(self, plan: TrialPlan, phase: str, elapsed_s: float, total_s: float) -> None:
        self._show(plan, phase, total_s - elapsed_s)

    def phase(self, plan: TrialPlan, phase: str) -> None:
        """A step before the trial itself."""
        self._show(plan, phase, None)

    def finished(self, row: Row, left: int | None) -> None:
        """Prints a trial's figures and what limited it, in one line. `left` are still to do."""
        now = self._monotonic()
        self._took_s += now - self._since_s
        self._since_s = now
        self._done += 1
        self._trials_left = left
        self._here += 1
        self.say(_ended(row))

    def warn(self, text: str) -> None:
        self.say(f"warning: {text}")

    def remark(self, remark: Remark) -> None:
        self.warn(remarks.text(remark))

    def say(self, text: str) -> None:
        """One line, above the live one."""
        self._console.print(Text(text), soft_wrap=True)

    def _show(self, plan: TrialPlan, phase: str, left_s: float | None) -> None:
        left = self._trials_left
        total = "" if left is None else f"/{self._done + max(1, left)}"
        arm = "" if plan.arm is None else f"@{plan.arm}"
        launch = f" launch {plan.launch}" if plan.launch else ""
        what = (
            f"[{self._done + 1}{total}] {plan.server}{arm} {plan.mode} "
            f"CONC={plan.concurrency}{launch} {phase}"
        )
        told = self._left(left_s)
        text = f"{what}, {told}" if told else what
        if self._live is not None:
            self._live.update(Text(text))
            return
        now = self._monotonic()
        due = self._said_at is None or now - self._said_at >= EVERY_S
        # A phase that counts seconds is the same phase.
        kind = f"{plan.trial} {phase.partition(',')[0]}"
        if due or self._said_phase != kind:
            self._said_at, self._said_phase = now, kind
            self.say(text)

    def _left(self, left_s: float | None) -> str:
        """The time left of everything; empty where that is not known."""
        if self._trials_left is None:
            return ""
        if self._here:
            trial_s = self._took_s / self._here
            if left_s is None:
                left_s = trial_s
        elif left_s is None:
            return ""
        else:
            trial_s = left_s + self._monotonic() - self._since_s
        return f"{duration(max(0.0, left_s) + max(0, self._trials_left - 1) * trial_s)} left"


def _ended(row: Row) -> str:
    load = f"{lane(row)} {row.mode} CONC={row.concurrency}"
    if row.live_heap_bytes is not None and row.resident_bytes is not None:
        # Each held connection sent one request: that is no throughput.
        memory = f"{data(row.live_heap_bytes)} of live heap, {data(row.resident_bytes)} resident"
        return f"{load}: {memory}{'' if row.valid else ', invalid'}"
    rate = goodput(row)
    rates = f"{NOTHING if rate is None else three(rate)} req/s"
    if row.predicted_rps is not None:
        rates += f" of at most {three(row.predicted_rps)}"
    # Of an open load what its clients wait, of a closed one the only one there is.
    p95 = f"raw p95 {with_unit(row.raw_p95_ms)}"
    if row.mode == "open":
        p95 = f"p95 {with_unit(row.p95_ms)}"
    if not row.valid:
        end = "invalid"
    elif row.bottleneck in (None, UNKNOWN):
        end = "what limits is unknown"
    else:
        none = row.bottleneck == NONE
        end = "nothing limits but the load" if none else f"limit: {row.bottleneck}"
        evidence = strength_text(row.strength or "")
        end += f" ({evidence})" if evidence else ""
    return f"{load}: {rates}, {p95}, {end}"


def duration(seconds: float) -> str:
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 60}m{whole % 60:02d}s" if whole >= 60 else f"{whole}s"
