"""The clock of the agent and the control page. Tests have another one, without waiting."""

from __future__ import annotations

import asyncio
import time


class Clock:
    """Seconds: monotonic, and since 1970."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970 UTC."""
        return time.time()

    async def sleep_until(self, monotonic: float) -> None:
        """Other tasks run at least once, even if that time has passed."""
        await asyncio.sleep(max(0.0, monotonic - time.monotonic()))
