"""Brings a server into a known state: a fresh JVM or container, or one with nothing left to do."""

from lab.errors import LabUnreachable
from lab.model import Identity
from lab.system.host import Clock, System
from lab.system.host_changes import HostChanges
from lab.system.stack import Stack

POLL_S = 0.2
# A JVM ends and starts in seconds; Docker waits longer each time one ended soon.
RESTART_S = 120.0
# A queue left behind by an overload must not be where the next load starts.
SETTLE_S = 30.0


def fresh_jvm(server: str, stack: Stack, clock: Clock) -> Identity:
    """Restart the server's JVM, and wait until a new one answers traffic, as itself.

    Raises LabUnreachable when that takes longer than RESTART_S: also when the old JVM, which
    has the old start time, goes on.
    """
    before = stack.management.identity(server).start_time_ms
    stack.management.restart(server)
    return another_jvm(server, before, stack, clock)


def another_jvm(server: str, before: int, stack: Stack, clock: Clock) -> Identity:
    """Wait until a JVM with another start time than `before` answers traffic, as itself.

    Raises LabUnreachable as fresh_jvm.
    """
    until = clock.monotonic() + RESTART_S
    while True:
        clock.sleep(POLL_S)
        try:
            identity = stack.management.identity(server)
            if identity.start_time_ms != before:
                stack.traffic.healthy(server)
                return identity
        except LabUnreachable as failure:
            problem = failure.problem
        else:
            problem = "its JVM did not end when told to"
        if clock.monotonic() >= until:
            problem = f"{problem} ({RESTART_S:.0f} s after its restart)"
            raise LabUnreachable(problem, server)


def fresh_container(server: str, host_changes: HostChanges, stack: Stack, clock: Clock) -> None:
    """Put a new container in the place of a foreign service's, and wait until it answers its route,
    and its JMX exporter where the old one had one that answers.

    Raises LabUnreachable when that takes longer than RESTART_S, and LabError.
    """
    host_changes.fresh(server, clock)
    answers_again(server, stack, clock)


def answers_again(server: str, stack: Stack, clock: Clock) -> None:
    """Wait until a foreign service answers whose container is new. Raises as fresh_container."""
    until = clock.monotonic() + RESTART_S
    while True:
        clock.sleep(POLL_S)
        try:
            return stack.check_foreign(server)
        except LabUnreachable:
            if clock.monotonic() >= until:
                raise


def live_heap(server: str, stack: Stack) -> int:
    """The bytes of the heap that are live: what a second full collection leaves, which frees what
    the first one released. Both stop the JVM. Raises LabUnreachable."""
    stack.management.collect_garbage(server)
    return stack.management.collect_garbage(server)


def settled(server: str, stack: Stack, system: System) -> bool:
    """Wait until the server has answered what it was sent; False after SETTLE_S.

    A server that does not answer counts as settled: whoever reads it back next will say so. A
    foreign service does not tell what it works on, so it is sent one more request: if it takes
    requests in turn, its answer shows that those before are done.
    """
    until = system.monotonic() + SETTLE_S
    if stack.is_foreign(server):
        return stack.traffic.answers(server, SETTLE_S)
    while system.monotonic() < until:
        try:
            # The live probe may have one request under way; a queue has many. On an event loop a
            # request ends when its client leaves, but its downstream call goes on.
            if stack.management.in_flight(server) <= 1 and stack.exporter.leased(server) <= 1:
                return True
        except LabUnreachable:
            return True
        system.sleep(POLL_S)
    return False
