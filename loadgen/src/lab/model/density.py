"""The vocabulary of density: frozen dataclasses. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Literal, get_args

# idle: a request was answered, then silence. slow: a request has begun and does not end. in-flight:
# the server works on a request, and waits.
Kind = Literal["idle", "slow", "in-flight"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# What requests in flight ask for: a downstream call that is not answered meanwhile, or the longest
# wait that the contract has.
IN_FLIGHT = {"/downstream": "/downstream", "/block": "/block?wait_ms=60000"}


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run: every launch of every kind on every server is one row.

    `asked` connections are wanted, `connections` are possible; `why_fewer` says why not all.
    `route` is what requests in flight ask for, with its query.
    """

    name: str
    servers: tuple[str, ...]
    kinds: tuple[Kind, ...]
    asked: int
    connections: int
    why_fewer: str | None
    launches: int
    words: tuple[str, ...] = ()
    question: str = ""
    hypothesis: str = ""
    route: str = IN_FLIGHT["/downstream"]

    def __post_init__(self) -> None:
        if not 1 <= self.connections <= self.asked:
            raise ValueError(f"{self.connections} of {self.asked} connections")
        if (self.why_fewer is None) != (self.connections == self.asked):
            raise ValueError("fewer connections than asked need a reason")

    @property
    def rows(self) -> int:
        """The number of rows of the whole run."""
        return len(self.servers) * len(self.kinds) * self.launches


# A class with less of a connection's heap is left out: a reference takes 4 bytes.
LEAST_EACH = 4.0


def made_of_text(before: Mapping[str, int], after: Mapping[str, int], more: int) -> str:
    """What the live objects of each class have grown by, in bytes for each of so many more
    connections, most first, as a Row has it."""
    each = {name: (size - before.get(name, 0)) / more for name, size in after.items()}
    most = sorted(each.items(), key=lambda one: (-one[1], one[0]))
    return "; ".join(f"{name} {size:.1f}" for name, size in most if size >= LEAST_EACH)


def made_of(row: Row) -> dict[str, float]:
    """The bytes for each connection by class, of a row's `made_of`."""
    parts = (one.rsplit(" ", 1) for one in (row.made_of or "").split("; ") if one)
    return {name: float(size) for name, size in parts}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of density.csv: one fresh JVM; the fields are its columns, in this order.

    * asked, opened: connections wanted and opened; why_fewer: the reason where they differ
    * heap_…: the heap right after a full collection, before the first connection (requests in
      flight: with the first step of them) and with all
    * resident_…: the process's memory in RAM then (without the kernel's socket buffers)
    * …_per_connection_bytes: (after - before) / the number that was opened in between
    * made_of: of which classes' objects the heap of a connection is made, in the same way, most
      first, as `byte[] 812.5; lab.Connection 24.0` (see `made_of`). None: a file from before it
    """

    run: str
    server: str
    kind: Kind
    launch: int
    asked: int
    opened: int
    why_fewer: str | None
    heap_before_bytes: int | None
    heap_after_bytes: int | None
    resident_before_bytes: int | None
    resident_after_bytes: int | None
    heap_per_connection_bytes: float | None
    resident_per_connection_bytes: float | None
    made_of: str | None
    valid: bool
    invalid_reasons: str
    started_at: datetime
    ended_at: datetime

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls))
