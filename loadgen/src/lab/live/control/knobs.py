"""The servers' settings that can be changed while they run, through their management ports."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx

from lab.errors import LabUnreachable, WordError
from lab.live.http import new_client
from lab.model.knobs import KNOBS, check_knob
from lab.system.management import PORT

DEADLINE_S = 5.0


@dataclass(frozen=True, slots=True)
class ServerKnobs:
    """A server's knobs in force, without the knobs that its model does not have. ``problem``: why
    nothing is known."""

    server: str
    values: Mapping[str, int]
    problem: str | None = None


class Servers:
    """Reads and changes the servers' knobs. Lives in one event loop. ``transport`` is the seam for
    tests."""

    def __init__(
        self, names: Sequence[str], transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self.names = tuple(names)
        self._http = new_client(DEADLINE_S, transport)

    async def all(self) -> tuple[ServerKnobs, ...]:
        """The knobs of every server. Never raises: a server that is away has a ``problem``."""
        return tuple(await asyncio.gather(*map(self._one, self.names)))

    async def change(self, server: str, wanted: Mapping[str, object]) -> ServerKnobs:
        """Change knobs of a server, all or none, and read them back. Raises WordError for a name
        that is no knob, a value out of its limits, or one that the server refuses;
        LabUnreachable."""
        if server not in self.names:
            raise WordError(f"{server!r} is not a server; allowed: {', '.join(self.names)}")
        if not wanted:
            raise WordError(f"nothing to change; allowed: {', '.join(k.name for k in KNOBS)}")
        try:
            for name, value in wanted.items():
                check_knob(name, value)
        except ValueError as failure:
            raise WordError(str(failure)) from None
        try:
            answer = await self._http.patch(_url(server), json=dict(wanted))
            body = answer.json()
        except (httpx.HTTPError, OSError, ValueError) as failure:
            raise LabUnreachable(f"{server} does not answer ({type(failure).__name__})") from None
        if not answer.is_success:
            problem = body.get("error") if isinstance(body, dict) else None
            raise WordError(f"{server}: {problem or answer.status_code}")
        return _values(server, body)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _one(self, server: str) -> ServerKnobs:
        try:
            answer = (await self._http.get(_url(server))).raise_for_status()
            return _values(server, answer.json())
        except (httpx.HTTPError, OSError, ValueError) as failure:
            return ServerKnobs(server, {}, f"does not answer ({type(failure).__name__})")
        except LabUnreachable as failure:
            return ServerKnobs(server, {}, str(failure))


def _url(server: str) -> str:
    return f"http://{server}:{PORT}/settings"


def _values(server: str, body: object) -> ServerKnobs:
    settings = body.get("settings") if isinstance(body, dict) else None
    if not isinstance(settings, dict):
        raise LabUnreachable(f"{server}: its settings hold no object 'settings'")
    known = {knob.name for knob in KNOBS}
    values = {n: v for n, v in settings.items() if n in known and type(v) is int}
    return ServerKnobs(server, values)
