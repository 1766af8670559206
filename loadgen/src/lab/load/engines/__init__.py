"""Load engines: one file each, behind the interface of `base`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.errors import RawDataError
from lab.load.engines.base import Engine, Schedule
from lab.load.engines.pacer import Pacer
from lab.load.engines.second import Second
from lab.load.engines.wrk2 import Wrk2
from lab.model import TrialPlan

__all__ = ["ENGINES", "Engine", "Schedule", "Second", "engines_of", "every_second"]

_PACER = Pacer()
ENGINES: tuple[Engine, ...] = (Wrk2(), _PACER)


def engines_of(generators: Sequence[str]) -> Sequence[Engine]:
    """Those that can put a load on. Where further machines take a share of it (HOST:PORT), only one
    can."""
    return (Pacer(tuple(generators)),) if generators else ENGINES


def every_second(plan: TrialPlan, raw: Path) -> tuple[Second, ...]:
    """Every second of a run, warm-up included, from its raw folder: of pacer, which alone keeps
    them, in the order of time. Raises RawDataError."""
    if plan.engine != _PACER.name:
        raise RawDataError(raw, None, f"{plan.engine} does not tell every second")
    return _PACER.seconds(plan, raw)
