"""Watches Toxiproxy: the toxics in force, and when they were seen to change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import httpx
import msgspec

from lab.live.clock import Clock
from lab.model.toxic_script import REMOVED, WHOLE_PROXY
from lab.model.toxics import Proxy, ToxicsInForce, parse_proxies
from lab.system.http import MOST_BYTES, USER_AGENT
from lab.system.tokens import TokenAuth

# A toxic must show within seconds. One small request per second costs nothing on either side.
INTERVAL_S = 1.0
# With more than this from look to look, a look failed or came late. Then nobody watched.
LONGEST_STEP_S = 2 * INTERVAL_S
# So many changes are kept: many times the changes of a trial.
LONGEST_HISTORY = 1000


@dataclass(frozen=True, slots=True)
class ToxicsSeen:
    """The toxics in force at the last look, and the changes seen since the agent started.

    ``since`` is the time of the first look, ``until`` of the last, and ``gaps`` are the times in
    between without a look, from and to. ``history`` has every change as (when, proxy, toxic name or
    WHOLE_PROXY). ``changes`` has the last change of each: (proxy, toxic name, WHOLE_PROXY for down
    and up, or REMOVED) to seconds since 1970. A toxic of the first look has no change: it is older.
    """

    in_force: ToxicsInForce
    since: float
    until: float
    changes: Mapping[tuple[str, str], float] = field(default_factory=lambda: MappingProxyType({}))
    history: tuple[tuple[float, str, str], ...] = ()
    gaps: tuple[tuple[float, float], ...] = ()

    def last_change(self, proxy: str) -> float:
        """When the proxy or its toxics last changed; 0.0 = not since the agent started."""
        return max((at for (name, _), at in self.changes.items() if name == proxy), default=0.0)

    def then(self, now: ToxicsInForce, at: float) -> ToxicsSeen:
        """The state after a look that found ``now`` at wall time ``at``."""
        changes = dict(self.changes)
        history = list(self.history)
        for proxy in now.proxies:
            before = self.in_force.proxy(proxy.name)
            if before is None or before == proxy:
                continue
            changed, removed = _difference(before, proxy)
            for name in removed:
                changes.pop((proxy.name, name), None)
            for name in changed:
                changes[proxy.name, name] = at
            if removed:
                changes[proxy.name, REMOVED] = at
            history += [(at, proxy.name, name) for name in sorted(changed | removed)]
            if before.enabled != proxy.enabled:
                changes[proxy.name, WHOLE_PROXY] = at
                history.append((at, proxy.name, WHOLE_PROXY))
        gap = ((self.until, at),) if at - self.until > LONGEST_STEP_S else ()
        return ToxicsSeen(
            in_force=now,
            since=self.since,
            until=at,
            changes=MappingProxyType(changes),
            history=tuple(history[-LONGEST_HISTORY:]),
            gaps=(*self.gaps, *gap)[-LONGEST_HISTORY:],
        )


def _difference(before: Proxy, after: Proxy) -> tuple[set[str], set[str]]:
    old = {toxic.name: toxic for toxic in before.toxics}
    new = {toxic.name: toxic for toxic in after.toxics}
    changed = {name for name, toxic in new.items() if old.get(name) != toxic}
    return changed, old.keys() - new.keys()


def told_of(last: ToxicsSeen | None, *, answers: bool = True) -> dict[str, Any]:
    """The answer to GET /toxics, times in UTC. ``last`` is the state after the last look that
    Toxiproxy answered (None: it never answered). ``answers``: that was the last look of all. If it
    was not, the answer leaves out what is in force now, and since when. It always has the changes
    seen, with the times in which nobody looked."""

    def change(at: float, proxy: str, toxic: str) -> dict[str, str]:
        return {"proxy": proxy, "toxic": toxic, "since": _utc(at)}

    told: dict[str, Any] = {"changes": [], "history": [], "first_look": None, "watched": None}
    if last is None:
        return told
    told["history"] = [change(*one) for one in last.history]
    told["watched"] = _span(last.since, last.until) | {"gaps": [_span(*gap) for gap in last.gaps]}
    if answers:
        told["changes"] = [change(at, *what) for what, at in sorted(last.changes.items())]
        told["first_look"] = _utc(last.since)
    return told


def _span(first: float, last: float) -> dict[str, Any]:
    return {"from": _utc(first), "to": _utc(last)}


def _utc(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


class ToxicsWatch:
    """Looks at Toxiproxy once a second, and when asked to. ``run`` never ends by itself. After a
    failure ``seen`` is None until Toxiproxy answers again: the unknown is not exported."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        transport: httpx.AsyncBaseTransport | None = None,
        secret: str = "",
    ) -> None:
        self._url = url.rstrip("/")
        self._clock = clock
        self._transport = transport
        self._auth = TokenAuth(secret)
        self._last: ToxicsSeen | None = None
        self._answers = False
        self._client: httpx.AsyncClient | None = None
        # One request at a time: of two, the older one could end last.
        self._order = asyncio.Lock()

    @property
    def seen(self) -> ToxicsSeen | None:
        """The state at the last look; None where that look failed."""
        return self._last if self._answers else None

    @property
    def told(self) -> dict[str, Any]:
        return told_of(self._last, answers=self._answers)

    async def run(self) -> None:
        async with httpx.AsyncClient(
            transport=self._transport,
            auth=self._auth,
            timeout=INTERVAL_S,
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            trust_env=False,
            verify=False,  # noqa: S501 - plain http inside the lab; loading certificates costs CPU
        ) as client:
            self._client = client
            due = self._clock.monotonic()
            try:
                while True:
                    await self.look_now()
                    due = max(due + INTERVAL_S, self._clock.monotonic())
                    await self._clock.sleep_until(due)
            finally:
                self._client = None

    async def look_now(self) -> None:
        """Look between the regular looks, so that a change just made is seen at once. Does nothing
        while ``run`` does not run."""
        async with self._order:
            if self._client is not None:
                await self.look(self._client)

    async def look(self, client: httpx.AsyncClient) -> None:
        try:
            body = bytearray()
            async with (
                asyncio.timeout(2 * INTERVAL_S),
                client.stream("GET", f"{self._url}/proxies") as answer,
            ):
                async for chunk in answer.raise_for_status().aiter_bytes():
                    body += chunk
                    if len(body) > MOST_BYTES:
                        break  # What is cut off is no JSON.
            now = parse_proxies(msgspec.json.decode(body))
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, RecursionError):
            self._answers = False
            return
        before = self._last
        wall = self._clock.wall()
        self._last = ToxicsSeen(now, wall, wall) if before is None else before.then(now, wall)
        self._answers = True
