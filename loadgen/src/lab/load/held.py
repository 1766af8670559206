"""The memory of a server while its connections are held: read once, within the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.errors import LabUnreachable
from lab.judge.checks import data
from lab.load.bench import EngineRun
from lab.model import Remark, TrialPlan

if TYPE_CHECKING:
    from lab.subject.subject import Memory, Subject
    from lab.system.toxiproxy import Toxiproxy

# Until the server has read what was sent last.
SETTLE_S = 1.0
# The descriptors that Toxiproxy takes of a call, and those that it must have left: without any it
# accepts no more calls, and they wait as those do that it holds back.
PROXY_FILES, SPARE_PROXY_FILES = 2, 16


class HeldMemory:
    """Reads the memory if the plan holds its load; else does nothing. `opens_s` is the start of
    the window, in seconds since the measured run began. `problem`: why it was not read."""

    def __init__(
        self, plan: TrialPlan, opens_s: float, subject: Subject, toxiproxy: Toxiproxy
    ) -> None:
        self._calls = plan.concurrency if plan.hold == "in-flight" else 0
        self._due_s = opens_s + SETTLE_S if plan.hold else None
        self._subject = subject
        self._toxiproxy = toxiproxy
        self.memory: Memory | None = None
        self.problem: Remark | None = None

    def tick(self, elapsed_s: float, run: EngineRun) -> None:
        if self._due_s is None or elapsed_s < self._due_s or run.ended:
            return
        self._due_s = None
        try:
            memory = self._subject.memory()
            self.problem = self._not_accepted() if self._calls else None
        except LabUnreachable as failure:
            self.problem = data.memory_unread.remark(problem=str(failure))
            return
        if run.process.poll() is not None:
            self.problem = data.load_ended_early.remark()
        if self.problem is None:
            self.memory = memory

    def _not_accepted(self) -> Remark | None:
        """Why calls of the requests may not have reached Toxiproxy. Raises LabUnreachable."""
        used, most = self._toxiproxy.files()
        needed = PROXY_FILES * self._calls
        if needed <= used < most - SPARE_PROXY_FILES:
            return None
        return data.proxy_files.remark(used=used, most=most, needed=needed)
