"""Time that passes only when something waits for it."""

from __future__ import annotations

import asyncio

import pytest


class FakeClock:
    """Waiting advances the time at once; ``stop_after`` of those, it waits for ever."""

    def __init__(self, stop_after: int = 1_000_000) -> None:
        self.now = 1000.0
        self.waits = 0
        self.stop_after = stop_after

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1_750_000_000.0 + self.now

    async def sleep_until(self, monotonic: float) -> None:
        self.waits += 1
        if self.waits > self.stop_after:
            await asyncio.Event().wait()
        self.now = max(self.now, monotonic)
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
