"""Time as the agent and the control page see it: a seam, so that tests need no waiting."""

from __future__ import annotations

import asyncio
import time


class Clock:
    """Monotonic seconds for intervals, wall seconds for marks and for people."""

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970 UTC."""
        return time.time()

    async def sleep_until(self, monotonic: float) -> None:
        """Return at that monotonic time; gives way to other tasks even when it has passed."""
        await asyncio.sleep(max(0.0, monotonic - time.monotonic()))
