"""Load engines: one file each, behind the interface of `base`."""

from __future__ import annotations

from lab.load.engines.base import Engine, Schedule
from lab.load.engines.oha import Oha
from lab.load.engines.wrk import Wrk
from lab.load.engines.wrk2 import Wrk2

__all__ = ["ENGINES", "Engine", "Schedule"]

# In the order of preference.
ENGINES: tuple[Engine, ...] = (Wrk2(), Oha(), Wrk())
