"""Time as the control page needs it; the agent's clock is one."""

from __future__ import annotations

from typing import Protocol


class WallClock(Protocol):
    """Monotonic seconds for intervals, wall seconds for what people read."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    def wall(self) -> float:
        """Seconds since 1970 UTC."""
