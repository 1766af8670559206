"""Many client connections that stay open and are quiet: what density measures the cost of.

One thread, one selector. An idle connection has had a whole answer, a slow one has sent the
beginning of a request, one in flight a whole request that is not answered yet.
"""

from __future__ import annotations

import os
import re
import selectors
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from lab.model.density import Kind

# Connections being opened at a time: well under the smallest accept queue.
OPENING = 64
STEP_S = 0.05
# Closed with a reset, a connection leaves no port in TIME_WAIT for the next launch to miss.
RESET = struct.pack("ii", 1, 0)
PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)\r\n")


def source_ports(path: Path = PORT_RANGE) -> int | None:
    """How many connections to one address this network namespace has ports for (ip(7)); None if the
    system does not tell."""
    try:
        low, high = map(int, path.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return None
    return high - low + 1


class Connections:
    """Connections to one server. Use as a context: what is left open is closed at its end.

    `route` is what requests in flight ask for. `check` is called every STEP_S at the latest; what
    it raises ends the opening.
    """

    def __init__(
        self, host: str, port: int, kind: Kind, route: str, check: Callable[[], None]
    ) -> None:
        self._address = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4]
        self._answered = kind == "idle"
        self._request = _request(kind, route)
        self._check = check
        self._selector = selectors.DefaultSelector()
        self._opening: dict[socket.socket, bytearray] = {}
        self._open: set[socket.socket] = set()
        self.problem: str | None = None
        # Why the first one that was open is no more.
        self.lost: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def open(self) -> int:
        """The number of open connections, as far as was noticed."""
        return len(self._open)

    def add(self, count: int, deadline: float, monotonic: Callable[[], float]) -> None:
        """Open so many more. Fewer are open afterwards where something prevents it, which is
        then `problem`; nothing is tried twice."""
        missing = count
        while (missing or self._opening) and self.problem is None:
            while missing and len(self._opening) < OPENING and self.problem is None:
                self._begin()
                missing -= 1
            self._advance()
            if monotonic() >= deadline:
                self._fail("not in time")
        for connection in list(self._opening):
            self._drop(connection)

    def notice_closed(self) -> None:
        """See which ones the other side has closed meanwhile."""
        while True:
            before = self.open
            self._advance(0)
            if self.open == before:
                return

    def close(self) -> None:
        """Close all, with resets."""
        for connection in [*self._opening, *self._open]:
            self._drop(connection)
        self._selector.close()

    def _begin(self) -> None:
        try:
            connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        except OSError as failure:
            self._fail(failure.strerror or str(failure))
            return
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._opening[connection] = bytearray()
        try:
            connection.connect(self._address)
        except BlockingIOError:
            pass
        except OSError as failure:
            self._fail(failure.strerror or str(failure))
            self._drop(connection)
            return
        self._selector.register(connection, selectors.EVENT_WRITE)

    def _advance(self, wait_s: float = STEP_S) -> None:
        for connection, events in self._ready(wait_s):
            try:
                if events & selectors.EVENT_WRITE:
                    self._send(connection)
                else:
                    self._receive(connection)
            except OSError as failure:
                self._lose(connection, failure.strerror or str(failure))

    def _ready(self, wait_s: float) -> Iterator[tuple[socket.socket, int]]:
        self._check()
        for key, events in self._selector.select(wait_s):
            if isinstance(key.fileobj, socket.socket):
                yield key.fileobj, events

    def _send(self, connection: socket.socket) -> None:
        failed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, os.strerror(failed))
        # Far less than a send buffer: it goes out whole.
        connection.send(self._request)
        self._selector.modify(connection, selectors.EVENT_READ)
        if not self._answered:
            self._opened(connection)

    def _receive(self, connection: socket.socket) -> None:
        some = connection.recv(65_536)
        if not some:
            self._lose(connection, "the server closed it")
            return
        answer = self._opening.get(connection)
        if answer is None:
            if not self._answered:
                self._lose(connection, f"the server answered {some.partition(b'\r\n')[0][:60]!r}")
            return
        answer += some
        status = _complete(answer)
        if status == 200:
            self._opened(connection)
        elif status is not None:
            self._lose(connection, f"the server answered {status}")

    def _opened(self, connection: socket.socket) -> None:
        del self._opening[connection]
        self._open.add(connection)

    def _lose(self, connection: socket.socket, why: str) -> None:
        if connection in self._opening:
            self._fail(why)
        else:
            self.lost = self.lost or why
        self._drop(connection)

    def _fail(self, why: str) -> None:
        self.problem = self.problem or why

    def _drop(self, connection: socket.socket) -> None:
        self._opening.pop(connection, None)
        self._open.discard(connection)
        if connection.fileno() in self._selector.get_map():
            self._selector.unregister(connection)
        connection.close()


def _request(kind: Kind, route: str) -> bytes:
    match kind:
        case "idle":  # Answered before the silence.
            return b"GET /health HTTP/1.1\r\nHost: lab\r\n\r\n"
        case "slow":
            return b"GET /block HTTP/1.1\r\nHost: lab\r\nAccept: text/"
        case "in-flight":
            return f"GET {route} HTTP/1.1\r\nHost: lab\r\n\r\n".encode("ascii")


def _complete(answer: bytearray) -> int | None:
    """The status of a complete answer; 0 if it is malformed; None if it is incomplete."""
    head, end, body = answer.partition(b"\r\n\r\n")
    if not end:
        return None
    status, length = _STATUS.match(head), _LENGTH.search(head + b"\r\n")
    if status is None or length is None:
        return 0
    return int(status[1]) if len(body) >= int(length[1]) else None
