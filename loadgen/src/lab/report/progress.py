"""The progress of a run: a live line on a terminal, and everywhere a line for each trial."""

from typing import Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from lab.model import NONE, UNKNOWN, Remark, Row, TrialPlan, goodput, p95_of
from lab.report import remarks
from lab.report.remarks import say, text_of
from lab.report.text import data, number, place


class Trials:
    """The progress of a run. Use as a context; a `load.Watcher`.

    `done` trials are there already, and `left` are still to be made; None if that depends on their
    findings.
    """

    def __init__(self, console: Console, done: int, left: int | None) -> None:
        self._console = console
        self._done = done
        self._left = left
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
        self.phase(plan, f"{phase}, {duration(max(0.0, total_s - elapsed_s))}")

    def phase(self, plan: TrialPlan, phase: str) -> None:
        """A step of a trial, on the live line."""
        if self._live is not None:
            self._live.update(Text(f"{self._number(1)} {place(plan)}: {phase}"))

    def finished(self, row: Row, left: int | None) -> None:
        """Print a trial's figures and what limited it, in one line. `left` are still to do."""
        self._done += 1
        self._left = left
        self.say(f"{self._number(0)} {place(row)}: {figures(row)}")

    def warn(self, text: str) -> None:
        self.say(f"warning: {text}")

    def remark(self, remark: Remark) -> None:
        self.warn(remarks.text(remark))

    def say(self, text: str) -> None:
        """One line, above the live one."""
        self._console.print(Text(text), soft_wrap=True)

    def _number(self, ahead: int) -> str:
        total = "" if self._left is None else f"/{self._done + self._left}"
        return f"[{self._done + ahead}{total}]"


def figures(row: Row) -> str:
    """What was measured of a trial, and what limited it."""
    if row.live_heap_bytes is not None and row.resident_bytes is not None:
        # Each held connection sent one request: that is no throughput.
        limit = None if row.valid else _limit(row)
        heap, resident = data(row.live_heap_bytes), data(row.resident_bytes)
        return say("progress", "held", heap=heap, resident=resident, limit=limit)
    return say(
        "progress",
        "trial",
        rps=number(goodput(row)),
        most=row.predicted_rps,
        # Of an open load what its clients wait, of a closed one the only one there is.
        p95=number(p95_of(row)),
        limit=_limit(row),
    )


def _limit(row: Row) -> str:
    if not row.valid:
        return say("progress", "invalid", reasons=text_of(row))
    limit = row.bottleneck or UNKNOWN
    code = limit if limit in (NONE, UNKNOWN) else "limit"
    return say("progress", code, limit=limit, strength=row.strength)


def duration(seconds: float) -> str:
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 60}m{whole % 60:02d}s" if whole >= 60 else f"{whole}s"
