"""Time as the agent sees it: a seam, so that tests need no waiting."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic seconds for intervals, wall seconds for marks."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    def wall(self) -> float:
        """Seconds since 1970 UTC."""

    async def sleep_until(self, monotonic: float) -> None:
        """Return at that monotonic time, or at once when it has passed."""


class SystemClock:
    """The real one."""

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970 UTC."""
        return time.time()

    async def sleep_until(self, monotonic: float) -> None:
        """Return at that monotonic time; gives way to other tasks even when it has passed."""
        await asyncio.sleep(max(0.0, monotonic - time.monotonic()))
