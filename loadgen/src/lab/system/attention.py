"""Has Prometheus scrape the measured server every second, and the others rarely.

A scrape costs CPU time, and the idle servers share the machine with the measured one. The agent
lists the idle ones (`lab.live.agent.agent`). Prometheus asks it every second, but applies a change
only every five seconds.
"""

from contextlib import suppress

from lab.errors import LabUnreachable
from lab.system.host import System
from lab.system.stack import Stack

# A server is scraped closely if it has this many scrapes in this many seconds.
SCRAPES = 3
LOOK_S = 4
# The longest time until Prometheus has applied a change and scraped once after it (compose.yaml).
HEEDED_S = 8.0
WAIT_S = 15.0
POLL_S = 0.25


class Attention:
    """The servers that Prometheus scrapes closely, for the trials of one run."""

    def __init__(self, stack: Stack, system: System) -> None:
        self._stack = stack
        self._system = system
        # Since when a server counts as measured, by its name.
        self._since_s: dict[str, float] = {}

    def turn(self, *servers: str) -> None:
        """These servers are measured from now on. Without an agent nothing changes, and the
        trial's series will show the gap."""
        now = self._system.monotonic()
        before, self._since_s = self._since_s, {}
        with suppress(LabUnreachable):
            self._stack.agent.attend(*servers)
            self._since_s = {server: before.get(server, now) for server in servers}

    def await_close_look(self, server: str, warm_up_s: float) -> None:
        """Wait until Prometheus scrapes the server closely, and cAdvisor, or is certain to do so
        before a warm-up of `warm_up_s` ends. At most WAIT_S; not at all if Prometheus does not
        answer. Raises Interrupted."""
        now = self._system.monotonic()
        until = now + WAIT_S
        if server in self._since_s:
            until = min(until, self._since_s[server] + HEEDED_S - warm_up_s)
        # The series of cAdvisor has no such label.
        query = f'up{{job=~"server|cadvisor",server=~"{server}|"}}[{LOOK_S}s]'
        with suppress(LabUnreachable):
            while self._system.monotonic() < until:
                found = self._stack.prometheus.series(query, self._system.now().timestamp())
                scrapes = {series.labels["job"]: len(series.times) for series in found}
                if scrapes.get("server", 0) >= SCRAPES and "cadvisor" in scrapes:
                    return
                self._system.sleep(POLL_S)
