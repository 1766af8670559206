"""Watches Toxiproxy: the toxics in force, and when they were seen to change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import replace
from datetime import UTC, datetime, timedelta

from lab.errors import LabUnreachable
from lab.live.clock import Clock
from lab.model.toxics import ToxicsInForce
from lab.system.agent import ToxicsSeen
from lab.system.toxiproxy import Toxiproxy

DEADLINE_S = 2.0
# A longer time between two answered looks is a gap.
LONGEST_STEP = timedelta(seconds=2)
# Many times the changes of a trial.
LONGEST_HISTORY = 1000


class ToxicsWatch:
    """`in_force` is from the last look: None while Toxiproxy does not answer. `seen` is from all
    looks. Lives in one event loop."""

    def __init__(self, toxiproxy: Toxiproxy, clock: Clock) -> None:
        self._toxiproxy = toxiproxy
        self._clock = clock
        # One look after the other: otherwise the older of two could end last.
        self._thread = ThreadPoolExecutor(1, "toxics")
        self._last: ToxicsInForce | None = None
        self.in_force: ToxicsInForce | None = None
        self.seen = ToxicsSeen(answers=False, watched=None)

    async def look(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            now = await loop.run_in_executor(self._thread, self._toxiproxy.in_force, DEADLINE_S)
        except LabUnreachable:
            self.in_force, self.seen = None, replace(self.seen, answers=False)
            return
        at = datetime.fromtimestamp(self._clock.wall(), UTC)
        first, last = self.seen.watched or (at, at)
        gap = ((last, at),) if at - last > LONGEST_STEP else ()
        new = tuple((at, *item) for item in _changed(self._last or now, now))
        self.seen = ToxicsSeen(
            answers=True,
            watched=(first, at),
            gaps=(*self.seen.gaps, *gap)[-LONGEST_HISTORY:],
            history=(*self.seen.history, *new)[-LONGEST_HISTORY:],
        )
        self._last = self.in_force = now


def _changed(before: ToxicsInForce, after: ToxicsInForce) -> Iterator[tuple[str, str]]:
    """The proxy and the name of each toxic that was added, changed or removed; WHOLE_PROXY for
    down and up."""
    known = {proxy.name: proxy.values for proxy in before.proxies}
    for proxy in after.proxies:
        old, new = known.get(proxy.name, proxy.values), proxy.values
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                yield proxy.name, name
