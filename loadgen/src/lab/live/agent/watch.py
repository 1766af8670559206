"""Watches Toxiproxy: what is in force, and when it was seen to change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import httpx

from lab.live.agent.clock import Clock
from lab.model.toxic_script import REMOVED, WHOLE_PROXY
from lab.model.toxics import Proxy, ToxicsInForce, parse_proxies
from lab.system.toxiproxy import USER_AGENT

# A toxic must show within seconds; one small request a second costs nothing on either side.
INTERVAL_S = 1.0
# From look to look: beyond it one failed, or came as late. Then nobody watched.
LONGEST_STEP_S = 2 * INTERVAL_S
# Changes that are kept to be told apart afterwards: many times those of a trial.
LONGEST_HISTORY = 1000


@dataclass(frozen=True, slots=True)
class ToxicsSeen:
    """What was in force at the last look, and the changes seen since the agent started:
    (proxy, toxic name, WHOLE_PROXY for down and up, REMOVED) to seconds since 1970. What was
    already there at the first look, at ``since``, has no entry: it is older. ``until`` is the
    last look, and ``gaps`` are times in between without any, from and to.
    ``history`` has every change as (when, proxy, toxic name or WHOLE_PROXY), also those that
    were changed again; ``changes`` only the last of each."""

    in_force: ToxicsInForce
    since: float
    until: float
    changes: Mapping[tuple[str, str], float] = field(default_factory=lambda: MappingProxyType({}))
    history: tuple[tuple[float, str, str], ...] = ()
    gaps: tuple[tuple[float, float], ...] = ()

    def last_change(self, proxy: str) -> float:
        """When anything of the proxy last changed; 0.0 = not since the agent started."""
        return max((at for (name, _), at in self.changes.items() if name == proxy), default=0.0)

    def then(self, now: ToxicsInForce, at: float) -> ToxicsSeen:
        """What is seen after ``now`` was found at wall time ``at``."""
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
    """The answer to GET /toxics, times in UTC. ``last`` is what the last look saw that Toxiproxy
    answered (None: none ever did), and ``answers`` whether it was the last of all: if not, what
    is in force now, and since when, is not told. What was seen is told in any case, with the
    times in which nobody looked."""

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
    """Looks at Toxiproxy once a second, and when asked to. ``run`` never ends by itself; failures
    make ``seen`` None (what is not known is not exported) until Toxiproxy answers again."""

    def __init__(
        self, url: str, clock: Clock, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._url = url.rstrip("/")
        self._clock = clock
        self._transport = transport
        self._last: ToxicsSeen | None = None
        self._answers = False
        self._client: httpx.AsyncClient | None = None
        # One look at a time: of two, the older one could be told last.
        self._order = asyncio.Lock()

    @property
    def seen(self) -> ToxicsSeen | None:
        """What was in force at the last look; None if that look failed."""
        return self._last if self._answers else None

    @property
    def told(self) -> dict[str, Any]:
        """What it knows, as ``told_of``."""
        return told_of(self._last, answers=self._answers)

    async def run(self) -> None:
        """Look, wait, look again, until cancelled."""
        async with httpx.AsyncClient(
            transport=self._transport,
            timeout=INTERVAL_S,
            headers={"User-Agent": USER_AGENT},
            trust_env=False,
            verify=False,  # noqa: S501 - plain http inside the lab
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
        """One look between the others: what was just changed here is seen at once. Nothing while
        ``run`` does not run."""
        async with self._order:
            if self._client is not None:
                await self.look(self._client)

    async def look(self, client: httpx.AsyncClient) -> None:
        """One look."""
        try:
            async with asyncio.timeout(2 * INTERVAL_S):
                answer = (await client.get(f"{self._url}/proxies")).raise_for_status()
            now = parse_proxies(answer.json())
        except (httpx.HTTPError, TimeoutError, OSError, ValueError):
            self._answers = False
            return
        before = self._last
        wall = self._clock.wall()
        self._last = ToxicsSeen(now, wall, wall) if before is None else before.then(now, wall)
        self._answers = True
