"""CPU sets as the kernel and Docker write them: 0-1,4."""

from __future__ import annotations

# CPU_SETS of .env, where the lab gives its parts sets of their own by itself.
AUTO = "auto"


def cpus_of(cpu_set: str) -> frozenset[int]:
    """The numbers of the CPUs in a set; an empty one has none. Raises ValueError for no set."""
    parts = [part.split("-") for part in cpu_set.split(",") if part]
    return frozenset(cpu for ends in parts for cpu in range(int(ends[0]), int(ends[-1]) + 1))
