"""The launcher in the container `executors`: a call starts one JVM and blocks until it ends."""

from __future__ import annotations

import httpx

from lab.errors import LabError, LabUnreachable
from lab.model.executors import Asked, ExecutorsPlan
from lab.system.host import System
from lab.system.http import Http

WHO = "the launcher of the executors' JVMs"
START_DEADLINE_S = 30.0
# The launcher ends a JVM after this for each round, and 60 s; its answer comes after that.
DEADLINE_BOUNDS, DEADLINE_TASK_S, DEADLINE_S = 10, 100e-6, 75.0


class Launcher:
    """`transport` is the seam for tests."""

    def __init__(self, url: str, transport: httpx.BaseTransport | None = None) -> None:
        self._url = url
        self._http = Http(transport)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def wait(self, system: System) -> None:
        """Wait until it answers. Raises LabUnreachable after START_DEADLINE_S."""
        until = system.monotonic() + START_DEADLINE_S
        while True:
            try:
                self._http.call(WHO, "GET", f"{self._url}/health", deadline_s=2.0)
            except LabUnreachable as failure:
                if system.monotonic() >= until:
                    raise LabUnreachable(f"{failure}; `make executors` starts it") from None
            else:
                return
            system.sleep(0.2)

    def measure(self, plan: ExecutorsPlan, asked: Asked) -> str:
        """One fresh JVM; returns the line it printed. Raises LabError."""
        rounds, bound_ms = plan.rounds(asked), plan.bound_ms(asked.executor)
        words = (
            *(asked.start, asked.purpose, asked.executor),
            *(plan.tasks, plan.sleep_ms, plan.pool_size, rounds),
        )
        url = f"{self._url}/measure/{'/'.join(map(str, words))}"
        round_s = DEADLINE_BOUNDS * bound_ms / 1000 + DEADLINE_TASK_S * plan.tasks
        deadline_s = (rounds + 1) * round_s + DEADLINE_S
        answer = self._http.ask(asked.executor, "POST", url, deadline_s=deadline_s)
        if not answer.is_success:
            raise LabError(f"{asked.executor}, {asked.start}: {answer.text.strip()}")
        return answer.text.strip()
