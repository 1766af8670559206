"""A server that is slower than the other one."""

import copy
from pathlib import Path

from lab.model import Reading, TrialPlan
from support.fakes import FakeEngine, latency, reading


class Slower(FakeEngine):
    """Server b gives half as many answers to a closed load, and its slowest of an open one take
    twice as long."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        if plan.server != "b":
            return super().read(plan, raw)
        if plan.mode == "closed":
            return reading(plan.concurrency * 2.5, raw=latency(400.0))
        tail = copy.replace(latency(), p99_ms=420.0, max_ms=430.0)
        return reading(float(plan.offered_rps or 0), corrected=tail, raw=tail)
