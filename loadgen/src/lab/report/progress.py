"""Progress with time left: a live bar on a terminal, a plain line every few seconds else."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from lab.types import TrialPlan

EVERY_S = 5.0


class Bench:
    """The progress of a bench of `trials` trials. Use as a context; a `load.Watcher`.

    `expected_s` is how long a trial takes, for the time left; `monotonic` tells seconds.
    """

    def __init__(
        self, console: Console, trials: int, expected_s: float, monotonic: Callable[[], float]
    ) -> None:
        self._console = console
        self._trials = trials
        self._expected_s = expected_s
        self._monotonic = monotonic
        self._done = 0
        self._said_at: float | None = None
        self._said_phase = ""
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[left]} left"),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task("starting", total=1.0, left="")
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def progress(self, plan: TrialPlan, phase: str, elapsed_s: float, total_s: float) -> None:
        """See `load.Watcher`."""
        self._expected_s = total_s
        left_s = max(0.0, total_s - elapsed_s) + (self._trials - self._done - 1) * total_s
        what = (
            f"[{self._done + 1}/{self._trials}] {plan.server} {plan.mode} "
            f"CONC={plan.concurrency} {phase}"
        )
        if self._bar is not None:
            share = (self._done + min(1.0, elapsed_s / total_s)) / self._trials
            self._bar.update(self._task, description=what, completed=share, left=_time(left_s))
            return
        now = self._monotonic()
        due = self._said_at is None or now - self._said_at >= EVERY_S
        if due or self._said_phase != f"{plan.trial} {phase}":
            self._said_at, self._said_phase = now, f"{plan.trial} {phase}"
            self.say(f"{what}, {_time(left_s)} left")

    def finished(self) -> None:
        """One trial more is done."""
        self._done += 1

    def warn(self, text: str) -> None:
        """See `load.Watcher`."""
        self.say(f"warning: {text}")

    def say(self, text: str) -> None:
        """One line, above the bar."""
        self._console.print(Text(text), soft_wrap=True)


def _time(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60}m{whole % 60:02d}s" if whole >= 60 else f"{whole}s"
