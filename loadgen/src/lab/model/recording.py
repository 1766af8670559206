"""A recording of a server's JVM under a load: what its threads did, as stacks with weights."""

from __future__ import annotations

from collections.abc import Mapping

from lab.model.record import Record

CPU, ALLOC, LOCK = "cpu", "alloc", "lock"
# What RECORD= takes, and the unit of its weights.
UNITS: Mapping[str, str] = {CPU: "samples", ALLOC: "bytes", LOCK: "ns"}
# After the name of a trial: its load once more, with a recording.
RECORDED = "-recorded"


class Recording(Record):
    """What a server's JVM recorded in the window of a trial (docs/recording.md).

    `kind` is one of UNITS, `events` the JDK Flight Recorder's events that it is made of, `samples`
    how many of them there were. `whole` False: it outgrew its room, and its beginning may be
    missing. `stacks` have their frames, as class.method:line, from the outermost to the innermost
    with semicolons between; a frame in brackets is no code. Their weights have the unit of the
    kind.
    """

    kind: str
    events: tuple[str, ...]
    samples: int
    whole: bool
    stacks: Mapping[str, int]

    def __post_init__(self) -> None:
        if self.kind not in UNITS:
            raise ValueError(f"a recording is one of {', '.join(UNITS)}, not {self.kind}")
        if self.samples < 0 or min(self.stacks.values(), default=0) < 0:
            raise ValueError("a weight is never negative")
        if any("\n" in stack for stack in self.stacks):
            raise ValueError("a stack has no line break")

    @property
    def total(self) -> int:
        return sum(self.stacks.values())
