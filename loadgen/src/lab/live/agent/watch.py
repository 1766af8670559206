"""Watches Toxiproxy: the toxics in force, and when they were seen to change."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from copy import replace
from datetime import UTC, datetime, timedelta

from lab.errors import LabUnreachable
from lab.live.clock import Clock
from lab.model.toxics import WHOLE_PROXY, Proxy, ToxicsInForce
from lab.system.agent import ToxicsSeen
from lab.system.http import Http
from lab.system.toxiproxy import Toxiproxy

DEADLINE_S = 2.0
# With more than this from look to look, a look failed or came late. Then nobody watched.
LONGEST_STEP = timedelta(seconds=2)
# So many changes are kept: many times the changes of a trial.
LONGEST_HISTORY = 1000


class ToxicsWatch:
    """What looks at Toxiproxy find. `in_force` is from the last look: None while Toxiproxy does
    not answer, as the unknown is not exported. `seen` is from all looks. Lives in one event
    loop."""

    def __init__(self, http: Http, url: str, clock: Clock) -> None:
        self._toxiproxy = Toxiproxy(http, url)
        self._clock = clock
        # One look after the other: of two, the older one could end last.
        self._thread = ThreadPoolExecutor(1, "toxics")
        self._last: ToxicsInForce | None = None
        self.in_force: ToxicsInForce | None = None
        self.seen = ToxicsSeen(answers=False, watched=None)

    async def look(self) -> None:
        loop = asyncio.get_running_loop()
        self.in_force = await loop.run_in_executor(self._thread, self._ask)
        if self.in_force is None:
            self.seen = replace(self.seen, answers=False)
            return
        now = datetime.fromtimestamp(self._clock.wall(), UTC)
        self.seen = _after(self.seen, self._last, self.in_force, now)
        self._last = self.in_force

    def _ask(self) -> ToxicsInForce | None:
        try:
            return self._toxiproxy.in_force(DEADLINE_S)
        except LabUnreachable:
            return None


def _after(
    seen: ToxicsSeen, before: ToxicsInForce | None, now: ToxicsInForce, at: datetime
) -> ToxicsSeen:
    """What was `seen` until a look at `at` that found `now`; the one before found `before`."""
    if before is None or seen.watched is None:
        return ToxicsSeen(answers=True, watched=(at, at))
    first, last = seen.watched
    gap = ((last, at),) if at - last > LONGEST_STEP else ()
    new = tuple(
        (at, proxy.name, name)
        for proxy in now.proxies
        for name in _changed(before.proxy(proxy.name), proxy)
    )
    latest = {change[1:]: change for change in (*seen.changes, *new)}
    return ToxicsSeen(
        answers=True,
        watched=(first, at),
        gaps=(*seen.gaps, *gap)[-LONGEST_HISTORY:],
        history=(*seen.history, *new)[-LONGEST_HISTORY:],
        changes=tuple(latest.values()),
    )


def _changed(before: Proxy | None, after: Proxy) -> list[str]:
    """The toxics that were added, changed or removed, and WHOLE_PROXY for down and up."""
    if before is None:
        return []
    old, new = ({toxic.name: toxic for toxic in proxy.toxics} for proxy in (before, after))
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return names if before.enabled == after.enabled else [*names, WHOLE_PROXY]
