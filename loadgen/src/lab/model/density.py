"""The vocabulary of density: frozen dataclasses. No I/O."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Row:
    """One row of density.csv: one fresh JVM; the fields are its columns, in this order.

    * asked, opened: connections wanted and opened; why_fewer: the reason where they differ
    * heap_…: the heap right after a full collection, before the first connection (requests in
      flight: with the first step of them) and with all
    * resident_…: the process's memory in RAM then (without the kernel's socket buffers)
    * …_per_connection_bytes: (after - before) / the number that was opened in between
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
    valid: bool
    invalid_reasons: str
    started_at: datetime
    ended_at: datetime

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The column names."""
        return tuple(field.name for field in fields(cls))
