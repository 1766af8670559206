"""Time that passes only when something waits for it, and a trial as it is announced."""

import asyncio
from typing import Any

import pytest

ANNOUNCED: dict[str, Any] = {
    "run": "20250601T120000Z-bench",
    "trial": "t1",
    "server": "fixed-pool",
    "route": "/downstream",
    "engine": "wrk2",
    "mode": "open",
    "concurrency": 200,
    "offered_rps": 900,
    "phase": "warmup",
    "url": "http://fixed-pool:8080/downstream",
}


class FakeClock:
    """Waiting advances the time at once; ``stop_after`` of those, it waits for ever."""

    def __init__(self, now: float = 1000.0, stop_after: int = 1_000_000) -> None:
        self.now = now
        self.waits = 0
        self.stop_after = stop_after

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now

    async def sleep_until(self, monotonic: float) -> None:
        self.waits += 1
        if self.waits > self.stop_after:
            await asyncio.Event().wait()
        self.now = max(self.now, monotonic)
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
