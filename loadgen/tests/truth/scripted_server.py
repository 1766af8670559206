"""A server with scripted latencies that logs its own truth: `scripted_server.py LOG LATENCIES`.

LATENCIES is a file with seconds, one per line. The n-th request is answered after the n-th of them,
and the log gets its arrival and its answer, both of the clock CLOCK_MONOTONIC. The first line on
standard output is the port.
"""

import asyncio
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, cast

END = b"\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok"


class Scripted(asyncio.Protocol):
    """One connection. Clients send one request at a time."""

    def __init__(self, latencies: Iterator[float], log: TextIO) -> None:
        self._latencies, self._log, self._unread = latencies, log, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        arrived_s = time.monotonic()
        self._unread += data
        while END in self._unread:
            self._unread = self._unread.partition(END)[2]
            loop = asyncio.get_running_loop()
            loop.call_later(next(self._latencies), self._answer, arrived_s)

    def _answer(self, arrived_s: float) -> None:
        if not self._transport.is_closing():
            self._transport.write(ANSWER)
            self._log.write(f"{arrived_s:.6f} {time.monotonic():.6f}\n")


async def main(log: TextIO, latencies: Iterator[float]) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Scripted(latencies, log), "127.0.0.1", backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    script = [float(line) for line in Path(sys.argv[2]).read_text().split()]
    with Path(sys.argv[1]).open("w", buffering=1) as file:
        asyncio.run(main(file, itertools.cycle(script)))
