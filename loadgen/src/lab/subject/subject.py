"""The thing under test, as a run needs it: a server of the lab, or a service of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lab.errors import LabUnreachable
from lab.model import Demand, Remark, Snapshot, TrialPlan, Warmth
from lab.subject.changes import Knobs
from lab.subject.jvm import Counters, JitReading
from lab.system.host import Clock, System
from lab.system.management import Recorder

if TYPE_CHECKING:
    from lab.load.bench import Bench

POLL_S = 0.2
# A JVM ends and starts in seconds; Docker waits longer each time one ended soon.
RESTART_S = 120.0
# A queue left behind by an overload must not be where the next load starts.
SETTLE_S = 30.0
# A route's first answer on a cold JVM, through a delay and toxics.
ROUTE_DEADLINE_S = 30.0
# The statuses of a service that has no such route for GET.
NOT_SERVED = (404, 405)
# A JVM is warmed up with the load it will have, but with at most this many connections.
WARM_CONNECTIONS = 1000

# The counters at both edges of a closed load on a warm JVM.
Edges = tuple[Counters, Counters]


@dataclass(frozen=True, slots=True)
class Memory:
    """The live heap, the process's memory in RAM, and the requests that it works on."""

    live_heap_bytes: int
    resident_bytes: int
    in_flight: int


class Subject(Protocol):
    """Every method may raise LabUnreachable. One thread.

    * `process` is what a launch replaces: a JVM, a container
    * `rests`: Prometheus scrapes it rarely while it is not measured
    * `uses_toxiproxy`: its calls go through the lab's Toxiproxy
    * `has_identity`: its JVM has a start time that tells it from another
    """

    name: str
    process: str
    rests: bool
    uses_toxiproxy: bool
    has_identity: bool
    knobs: Knobs | None
    recorder: Recorder

    def check(self) -> None:
        """Raises LabUnreachable unless it answers, as itself."""

    def check_recorder(self) -> None:
        """Raises LabUnreachable, with what to do, if nothing can record its JVM."""

    def check_route(self, route: str) -> Remark | None:
        """What is wrong with its answer on a route, if toxics may be why. Raises LabUnreachable if
        the route is not served."""

    def routes(self) -> tuple[str, ...] | None:
        """The paths that it serves; None: any."""

    def url(self, route: str) -> str: ...

    def snapshot(self) -> Snapshot: ...

    def settled(self, clock: Clock) -> bool:
        """Wait until it has answered what it was sent; False after SETTLE_S. One that does not
        answer counts as settled: whoever reads it back next will see that."""

    def renew(self, clock: Clock) -> None:
        """Put another process in the place of the one that runs. Raises LabError."""

    def started_ms(self) -> int | None:
        """None if unknown, or if no JVM runs."""

    def await_another(self, before_ms: int | None, clock: Clock) -> None:
        """Wait until a process with another start time answers."""

    def to_warm(self, plan: TrialPlan, most: int) -> int:
        """With how many connections it is warmed up, for loads of up to `most`."""

    def light(self, plan: TrialPlan, most: int) -> int:
        """How many connections measure the cost of a request, for loads of up to `most`."""

    def warm(self, bench: Bench, connections: int) -> tuple[Warmth, Edges | None]:
        """Load it until it is steady (lab.subject.jvm), at most MAX_WARM_S. The end of that may be
        a light load: its edges."""

    def demand(
        self, bench: Bench, connections: int, cores: int | None, edges: Edges | None
    ) -> Demand | None:
        """The cost of a request under the light load with these edges, None: under one that is made
        here. `cores` are the machine's CPUs if known. None if the load showed too little."""

    def most_rps(self, plan: TrialPlan, demand: Demand | None) -> float | None:
        """The most that it can do under the plan, of which a probe may use a part."""

    def compilation_s(self) -> float: ...

    def jit(self, system: System) -> JitReading | None:
        """What its JIT compiler's threads used so far; None if unknown. Raises nothing."""

    def live_heap(self) -> int | None:
        """The bytes of heap that live after full collections; None if it cannot be asked."""

    def memory(self) -> Memory:
        """After full collections."""


Subjects = Mapping[str, Subject]


def await_answer(check: Callable[[], object], clock: Clock, most_s: float = RESTART_S) -> None:
    """Check until that succeeds. Raises the last LabUnreachable."""
    until = clock.monotonic() + most_s
    while True:
        clock.sleep(POLL_S)
        try:
            check()
        except LabUnreachable:
            if clock.monotonic() >= until:
                raise
        else:
            return
