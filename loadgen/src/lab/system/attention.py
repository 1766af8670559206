"""Has Prometheus look closely at the server that is measured, and rarely at the others.

A scrape costs the server as well as Prometheus, and a server that is not measured shares the
machine with the one that is. The agent lists which are idle (`lab.live.agent.service`). Prometheus
asks it every second, but heeds what changed only every five.
"""

from contextlib import suppress

from lab.errors import LabUnreachable
from lab.system.host import System
from lab.system.stack import Stack

# A close look is this many scrapes in this many seconds: one per second, and one may be lost.
SCRAPES = 3
LOOK_S = 4
# What Prometheus takes at most to heed a change, and to scrape once after that: it asks every
# second, passes on what changed every five, and reloads every second (compose.yaml).
HEEDED_S = 8.0
# Twice that. It is not counted on.
WAIT_S = 15.0
POLL_S = 0.25


class Attention:
    """What Prometheus is to look at, for the trials of one run."""

    def __init__(self, stack: Stack, system: System) -> None:
        self._stack = stack
        self._system = system
        # Since when a server counts as measured, by its name.
        self._since_s: dict[str, float] = {}

    def turn(self, *servers: str) -> None:
        """From now on these are the servers that are measured; none: nothing is. Without an agent
        Prometheus goes on as it did; the trial's series then show what is missing."""
        now = self._system.monotonic()
        before, self._since_s = self._since_s, {}
        with suppress(LabUnreachable):
            self._stack.agent.attend(*servers)
            self._since_s = {server: before.get(server, now) for server in servers}

    def await_close_look(self, server: str, warm_up_s: float) -> None:
        """Wait until Prometheus looks closely at one of the lab's servers and at cAdvisor, or
        surely will before a warm-up of `warm_up_s` is over. At most WAIT_S, and not at all if
        Prometheus does not answer. Raises Interrupted."""
        now = self._system.monotonic()
        until = now + WAIT_S
        if server in self._since_s:
            until = min(until, self._since_s[server] + HEEDED_S - warm_up_s)
        # cAdvisor's has no server.
        query = f'up{{job=~"server|cadvisor",server=~"{server}|"}}[{LOOK_S}s]'
        with suppress(LabUnreachable):
            while self._system.monotonic() < until:
                found = self._stack.prometheus.series(query, self._system.now().timestamp())
                scrapes = {series.labels["job"]: len(series.times) for series in found}
                if scrapes.get("server", 0) >= SCRAPES and "cadvisor" in scrapes:
                    return
                self._system.sleep(POLL_S)
