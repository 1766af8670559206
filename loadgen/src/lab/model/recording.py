"""A recording of a server's JVM under a load: what its threads did, as stacks with weights."""

from collections.abc import Mapping
from typing import Literal

from lab.model.record import Count, Record

# What RECORD= takes, and the unit of its weights.
UNITS: Mapping[str, str] = {"cpu": "samples", "alloc": "bytes", "lock": "ns"}
CPU, ALLOC, LOCK = UNITS
# After the name of a trial: its load once more, with a recording.
RECORDED = "-recorded"


class Recording(Record):
    """What a server's JVM recorded in the window of a trial (docs/recording.md).

    `events` are the JDK Flight Recorder's events that it is made of, `samples` how many of them
    there were. Not `whole`: it outgrew its room, and its beginning may be missing. `stacks` have
    their frames, as class.method:line, from the outermost to the innermost with semicolons between;
    a frame in brackets is no code. Their weights have the unit of the kind."""

    kind: Literal["cpu", "alloc", "lock"]
    events: tuple[str, ...]
    samples: Count
    whole: bool
    stacks: Mapping[str, Count]

    def __post_init__(self) -> None:
        if min(self.stacks.values(), default=0) < 0 or any("\n" in stack for stack in self.stacks):
            raise ValueError("a weight is never negative, and a stack has no line break")

    @property
    def total(self) -> int:
        return sum(self.stacks.values())
