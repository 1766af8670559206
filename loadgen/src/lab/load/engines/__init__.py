"""Load engines: one file each, behind the interface of `base`."""

from collections.abc import Sequence

from lab.load.engines.base import Engine, Schedule
from lab.load.engines.pacer import Pacer
from lab.load.engines.wrk2 import Wrk2

__all__ = ["ENGINES", "Engine", "Pacer", "Schedule", "engines_of"]

ENGINES: tuple[Engine, ...] = (Wrk2(), Pacer())


def engines_of(generators: Sequence[str]) -> Sequence[Engine]:
    """Those that can put a load on. Only one can share it with further machines (HOST:PORT)."""
    return (Pacer(tuple(generators)),) if generators else ENGINES
