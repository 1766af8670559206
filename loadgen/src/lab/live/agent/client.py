"""The probe's HTTP client: GET on kept-alive connections.

The probe runs beside the load, so it must be cheap. Of CPU time one request took 0.35 ms with h11
over asyncio's streams, and 2.3 ms with httpx (200 requests each, on a busy machine).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import h11

from lab.model.address import parse

# Below the servers' own idle limit (120 s): the probe, not the server, closes idle connections.
KEEPALIVE_S = 60.0
CHUNK_BYTES = 65_536


@dataclass(slots=True)
class _Connection:
    """`idle_since` is when it last became idle."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    http: h11.Connection
    idle_since: float = 0.0

    @property
    def is_usable(self) -> bool:
        is_fresh = time.monotonic() - self.idle_since < KEEPALIVE_S
        return is_fresh and not self.reader.at_eof()

    async def get(self, host: str, target: str) -> int:
        headers = {"Host": host, "User-Agent": "concurrency-lab-probe", "Lab-Probe": "1"}
        request = h11.Request(method="GET", target=target, headers=list(headers.items()))
        self.writer.write(self.http.send(request) + self.http.send(h11.EndOfMessage()))
        status = 0
        while True:
            match self.http.next_event():
                case h11.NEED_DATA:
                    self.http.receive_data(await self.reader.read(CHUNK_BYTES))
                case h11.Response(status_code=status):
                    pass
                case h11.EndOfMessage():
                    return status
                case h11.ConnectionClosed():
                    raise ConnectionResetError("closed before the answer")


class Client:
    """Never makes a request wait for a connection: it opens one if none is idle. Lives in one
    event loop."""

    def __init__(self) -> None:
        self._idle: dict[str, list[_Connection]] = {}

    def close(self) -> None:
        for idle in self._idle.values():
            while idle:
                idle.pop().writer.close()

    async def get(self, url: str) -> int:
        """The status of the answer, when all of it is there. The caller limits the time. Raises
        OSError, h11.ProtocolError, and ValueError for what is no address."""
        address = parse(url)
        host = f"{address.host}:{address.port}"
        idle = self._idle.setdefault(host, [])
        # The one that was used last.
        while idle and not idle[-1].is_usable:
            idle.pop().writer.close()
        if not idle:
            streams = await asyncio.open_connection(address.host, address.port)
            idle.append(_Connection(*streams, h11.Connection(h11.CLIENT)))
        connection = idle.pop()
        try:
            status = await connection.get(host, address.path or "/")
            if connection.http.our_state is connection.http.their_state is h11.DONE:
                connection.http.start_next_cycle()
                connection.idle_since = time.monotonic()
                idle.append(connection)
            else:
                connection.writer.close()
        except BaseException:
            connection.writer.close()
            raise
        return status
