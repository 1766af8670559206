"""Has Prometheus look closely at the server that is measured, and rarely at the others.

A scrape costs the server as well as Prometheus, and a server that is not measured shares the
machine with the one that is. The agent tells Prometheus which are idle (`lab.live.agent.service`).
Prometheus asks it every second, but heeds what changed only every five.
"""

from __future__ import annotations

from contextlib import suppress

from lab.errors import LabUnreachable
from lab.system.host import System
from lab.system.stack import Stack

# So many scrapes in so many seconds are a close look: one per second, and one may be lost.
SCRAPES = 3
LOOK_S = 4
# Prometheus asks for cAdvisor every 5 s, and heeds a change every 5 s: a change shows LOOK_S later.
WAIT_S = 15.0
POLL_S = 0.5


def attend(stack: Stack, *servers: str, unobserved: bool = False) -> None:
    """From now on these are the servers that are measured; none: nothing is. `unobserved`:
    Prometheus has no server to scrape. Without an agent Prometheus goes on as it did; what it did
    not see of a trial is told of that trial."""
    with suppress(LabUnreachable):
        stack.agent.attend(*servers, unobserved=unobserved)


def await_close_look(
    server: str, stack: Stack, system: System, *, unobserved: bool = False
) -> None:
    """Wait until Prometheus looks closely at one of the lab's servers and at cAdvisor, or no longer
    looks at either (`unobserved`); at most WAIT_S, and not at all where Prometheus does not answer.
    Raises Interrupted."""
    until = system.monotonic() + WAIT_S
    # cAdvisor's has no server.
    asked = f'up{{job=~"server|cadvisor",server=~"{server}|"}}[{LOOK_S}s]'
    with suppress(LabUnreachable):
        while system.monotonic() < until:
            found = stack.prometheus.series(asked, system.now().timestamp())
            scrapes = {one.labels["job"]: len(one.times) for one in found}
            if unobserved and not scrapes:
                return
            if scrapes.get("server", 0) >= SCRAPES and "cadvisor" in scrapes and not unobserved:
                return
            system.sleep(POLL_S)
