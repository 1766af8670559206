"""The vocabulary of executors: frozen dataclasses. No I/O."""

from __future__ import annotations

import math
from dataclasses import dataclass

EXECUTORS = ("fixed-pool", "virtual-threads")


@dataclass(frozen=True, slots=True)
class ExecutorsPlan:
    """The plan of a run: `launches` JVMs for each executor."""

    launches: int = 6
    tasks: int = 10_000
    sleep_ms: int = 100
    pool_size: int = 200

    def bound_ms(self, executor: str) -> int:
        """The least time the tasks can take: rounds of the pool, or one sleep for all."""
        rounds = math.ceil(self.tasks / self.pool_size) if executor == "fixed-pool" else 1
        return rounds * self.sleep_ms


@dataclass(frozen=True, slots=True)
class Launch:
    """The result of one JVM. The launcher's program documents how and when it reads each number.

    Raises ValueError for an impossible result, such as tasks that ended before they can have slept.
    """

    executor: str
    tasks: int
    sleep_ms: int
    pool_size: int
    bound_ms: int
    elapsed_us: int
    heap_before_bytes: int
    heap_peak_bytes: int
    heap_after_bytes: int
    allocated_bytes: int
    gc_count: int
    resident_before_bytes: int
    resident_peak_bytes: int
    resident_after_bytes: int
    platform_threads_before: int
    platform_threads_peak: int
    cpus: int
    max_heap_bytes: int
    jdk: str
    gc: tuple[str, ...]
    jvm_flags: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.executor not in EXECUTORS:
            raise ValueError(f"executor {self.executor} is not one of {', '.join(EXECUTORS)}")
        if self.elapsed_us < self.bound_ms * 1000:
            raise ValueError(f"{self.elapsed_us} µs is less than the bound {self.bound_ms} ms")
        if min(self.heap_before_bytes, self.resident_before_bytes) <= 0:
            raise ValueError("a JVM without memory")

    @property
    def elapsed_ms(self) -> float:
        """From the first hand-over to the last task done."""
        return self.elapsed_us / 1000

    @property
    def heap_delta_bytes(self) -> int:
        """Heap used at its peak, over that before the tasks; garbage included."""
        return self.heap_peak_bytes - self.heap_before_bytes

    @property
    def resident_delta_bytes(self) -> int:
        """Resident memory at its peak, over that before the tasks."""
        return max(self.resident_peak_bytes, self.resident_after_bytes) - self.resident_before_bytes

    @property
    def conditions(self) -> tuple[object, ...]:
        """The conditions that every JVM of a run must share."""
        return (
            self.tasks, self.sleep_ms, self.pool_size,
            self.cpus, self.max_heap_bytes, self.jdk, self.gc, self.jvm_flags,
        )  # fmt: skip
