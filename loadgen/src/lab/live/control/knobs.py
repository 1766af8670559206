"""The servers' settings that can be changed while they run, through their management ports."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.errors import LabUnreachable, Refused, WordError
from lab.model.knobs import KNOBS, check_knob, knobs_of
from lab.system.http import Http
from lab.system.management import Management


@dataclass(frozen=True, slots=True)
class ServerKnobs:
    """A server's knobs in force, of those its model has. ``problem``: why they are unknown."""

    server: str
    values: Mapping[str, int]
    problem: str | None = None


class Servers:
    """Reads and changes the servers' knobs. Lives in one event loop."""

    def __init__(self, names: Sequence[str], http: Http) -> None:
        self.names = tuple(names)
        self._http = http

    async def all(self) -> tuple[ServerKnobs, ...]:
        """The knobs of every server. Never raises: a server that is away has a ``problem``."""
        asked = (asyncio.to_thread(self._one, server) for server in self.names)
        return tuple(await asyncio.gather(*asked))

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
            knobs = {name: value for name, value in wanted.items() if isinstance(value, int)}
            await asyncio.to_thread(Management(self._http, server).change_knobs, knobs)
        except (ValueError, Refused) as failure:
            raise WordError(str(failure)) from None
        return await asyncio.to_thread(self._one, server)

    def _one(self, server: str) -> ServerKnobs:
        try:
            settings = Management(self._http, server).settings()
        except LabUnreachable as failure:
            return ServerKnobs(server, {}, str(failure).removeprefix(f"{server}: "))
        return ServerKnobs(server, knobs_of(settings))
