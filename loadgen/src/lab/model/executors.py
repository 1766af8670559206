"""The vocabulary of executors: frozen dataclasses. No I/O."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

EXECUTORS = ("fixed-pool", "virtual-threads")
# cold: nothing ran before. aot: nor here, but the JVM starts with an AOT cache (JEP 483, 514, 515)
# that a run of its own wrote. warm: identical rounds ran before, on the same executor.
STARTS = ("cold", "aot", "warm")
# A heap whose pages are touched before the clock starts tells the time, any other the memory.
PURPOSES = ("time", "memory")
# The lab's own JVM flags: what a start and a purpose must have, and no other may.
PRETOUCH, CACHE = "-XX:+AlwaysPreTouch", "-XX:AOT"
# The longest that the rounds before a warm one take, by their bound; one round may take longer.
WARM_UP_MS = 5000
# An executor whose round takes longer than that, by its bound, is left out.
LONGEST_ROUND_MS = 60_000


@dataclass(frozen=True, slots=True)
class Asked:
    """One JVM to measure. `start` is one of STARTS, or "train", which writes the cache for aot."""

    executor: str
    start: str
    purpose: str


@dataclass(frozen=True, slots=True)
class ExecutorsPlan:
    """The plan of a run: `launches` JVMs for each executor, start and purpose."""

    launches: int = 6
    tasks: int = 10_000
    sleep_ms: int = 100
    pool_size: int = 200
    warmup: int = 20

    @property
    def executors(self) -> tuple[str, ...]:
        """Those that are measured."""
        return tuple(one for one in EXECUTORS if self.bound_ms(one) <= LONGEST_ROUND_MS)

    @property
    def order(self) -> Iterator[Asked]:
        """All JVMs, those that are compared beside each other."""
        for _, purpose, start, executor in product(
            range(self.launches), PURPOSES, STARTS, self.executors
        ):
            yield Asked(executor, start, purpose)

    def rounds(self, asked: Asked) -> int:
        """How many rounds run before the measured one: `warmup`, or as many as fit WARM_UP_MS."""
        if asked.start != "warm":
            return 0
        return max(1, min(self.warmup, WARM_UP_MS // self.bound_ms(asked.executor)))

    def bound_ms(self, executor: str) -> int:
        """The least time the tasks can take: rounds of the pool, or one sleep for all."""
        rounds = math.ceil(self.tasks / self.pool_size) if executor == "fixed-pool" else 1
        return rounds * self.sleep_ms


@dataclass(frozen=True, slots=True)
class Launch:
    """The result of one JVM. The launcher's program documents how and when it reads each number.

    Raises ValueError for an impossible result, such as tasks that ended before they can have slept.
    """

    start: str
    purpose: str
    executor: str
    tasks: int
    sleep_ms: int
    pool_size: int
    rounds_before: int
    bound_ms: int
    submitted_us: int
    first_start_us: int
    last_start_us: int
    first_wake_us: int
    last_wake_us: int
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
        if self.start not in STARTS or self.purpose not in PURPOSES:
            raise ValueError(f"a JVM for {self.purpose} with start {self.start}")
        if self.elapsed_us < self.bound_ms * 1000:
            raise ValueError(f"{self.elapsed_us} µs is less than the bound {self.bound_ms} ms")
        if min(self.heap_before_bytes, self.resident_before_bytes) <= 0:
            raise ValueError("a JVM without memory")
        if not (
            0 < self.first_start_us <= self.last_start_us <= self.last_wake_us <= self.elapsed_us
            and self.first_start_us + self.sleep_ms * 1000 <= self.first_wake_us
            and self.first_wake_us <= self.last_wake_us
            and 0 < self.submitted_us <= self.elapsed_us
        ):
            raise ValueError("tasks in an order that cannot be")
        cached = any(flag.startswith(CACHE) for flag in self.jvm_flags)
        if cached != (self.start == "aot") or (self.rounds_before > 0) != (self.start == "warm"):
            raise ValueError(f"a JVM that was not started {self.start}")
        if self.purpose == "time" and PRETOUCH not in self.jvm_flags:
            raise ValueError(f"a JVM for time without {PRETOUCH}")

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
        """The conditions that every JVM of a run must share; the lab's own flags are none."""
        flags = (f for f in self.jvm_flags if f != PRETOUCH and not f.startswith(CACHE))
        return (
            self.tasks, self.sleep_ms, self.pool_size,
            self.cpus, self.max_heap_bytes, self.jdk, self.gc, *flags,
        )  # fmt: skip
