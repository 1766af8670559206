"""The memory of a server while its connections are held: read once, within the window."""

from dataclasses import dataclass

from lab.errors import LabUnreachable
from lab.judge.checks import data
from lab.load.engine_run import EngineRun
from lab.model import Remark, TrialPlan
from lab.system.jvm import live_heap
from lab.system.stack import Stack

# Until the server has read what was sent last.
SETTLE_S = 1.0
# The descriptors that Toxiproxy takes of a call, and those that it must have left: without any it
# accepts no more calls, and they wait as those do that it holds back.
PROXY_FILES, SPARE_PROXY_FILES = 2, 16


@dataclass(frozen=True, slots=True)
class Memory:
    """The live heap, the process's memory in RAM, and the requests that the server works on."""

    live_heap_bytes: int
    resident_bytes: int
    in_flight: int


class HeldMemory:
    """Reads the memory where the plan holds its load; else does nothing. `opens_s` is the start of
    the window, in seconds since the measured run began. `problem`: why it was not read."""

    def __init__(self, plan: TrialPlan, opens_s: float, stack: Stack) -> None:
        self._server = plan.server
        self._proxy_files = PROXY_FILES * plan.concurrency if plan.hold == "in-flight" else None
        self._due_s = opens_s + SETTLE_S if plan.hold else None
        self._stack = stack
        self.memory: Memory | None = None
        self.problem: Remark | None = None

    def tick(self, elapsed_s: float, run: EngineRun) -> None:
        if self._due_s is None or elapsed_s < self._due_s or run.ended:
            return
        self._due_s = None
        try:
            heap_bytes = live_heap(self._server, self._stack)
            resident_bytes = self._stack.exporter.resident_bytes(self._server)
            in_flight = self._stack.management.in_flight(self._server)
            self.problem = self._not_accepted()
        except LabUnreachable as failure:
            self.problem = data.memory_unread.remark(problem=str(failure))
            return
        if run.process.poll() is not None:
            self.problem = data.load_ended_early.remark()
        if self.problem is not None:
            return
        self.memory = Memory(heap_bytes, resident_bytes, in_flight)

    def _not_accepted(self) -> Remark | None:
        """Why calls of the requests may not have reached Toxiproxy. Raises LabUnreachable."""
        if self._proxy_files is None:
            return None
        used, most = self._stack.toxiproxy.files()
        if self._proxy_files <= used < most - SPARE_PROXY_FILES:
            return None
        return data.proxy_files.remark(used=used, most=most, needed=self._proxy_files)
