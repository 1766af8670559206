"""Real sockets to a small server on a free port of this machine."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.model.density import Kind
from lab.system.connections import Connections, source_ports

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nLab-Model: a\r\n\r\nup"


class Server:
    """Takes connections, reads what comes, and does with each what the test says."""

    def __init__(self, do: Callable[[socket.socket, bytes], None]) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.taken: list[socket.socket] = []
        self.read: list[bytes] = []
        self._do = do
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.taken.append(connection)
            try:
                self.read.append(connection.recv(4096))
                self._do(connection, self.read[-1])
            except OSError:
                pass

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        # Every client is gone by now, so nothing it reads can block.
        self._thread.join(60)
        self.listener.close()
        for connection in self.taken:
            connection.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket, bytes], None]], Server]]:
    servers: list[Server] = []

    def start(do: Callable[[socket.socket, bytes], None]) -> Server:
        servers.append(Server(do))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def connect(port: int, kind: Kind, count: int, seconds: float = 60) -> Connections:
    connections = Connections("127.0.0.1", port, kind, "/block?wait_ms=60000", lambda: None)
    connections.add(count, time.monotonic() + seconds, time.monotonic)
    return connections


def until_open(held: Connections, count: int) -> None:
    """Returns when so many are open."""
    until = time.monotonic() + 60
    while held.open != count:
        assert time.monotonic() < until
        time.sleep(0.01)
        held.notice_closed()


def answer(connection: socket.socket, _: bytes) -> None:
    # In two parts: an answer need not come at once.
    connection.sendall(ANSWER[:20])
    connection.sendall(ANSWER[20:])


def silent(connection: socket.socket, _: bytes) -> None:
    pass


def test_an_idle_connection_has_had_a_whole_answer(serve: Callable[..., Server]) -> None:
    server = serve(answer)
    with connect(server.port, "idle", 100) as held:
        held.add(50, time.monotonic() + 60, time.monotonic)
        held.notice_closed()
        assert (held.open, held.problem) == (150, None)
    assert set(server.read) == {b"GET /health HTTP/1.1\r\nHost: lab\r\n\r\n"}


def test_a_slow_connection_has_begun_a_request_and_not_ended_it(
    serve: Callable[..., Server],
) -> None:
    server = serve(silent)
    with connect(server.port, "slow", 20) as held:
        held.notice_closed()
        assert (held.open, held.problem) == (20, None)
        until = time.monotonic() + 60
        while len(server.read) < 20:
            assert time.monotonic() < until
            time.sleep(0.01)
    assert all(one.startswith(b"GET /block ") for one in server.read)
    assert not any(b"\r\n\r\n" in one for one in server.read)


def test_a_request_in_flight_is_whole_and_an_answer_ends_it(serve: Callable[..., Server]) -> None:
    server = serve(silent)
    with connect(server.port, "in-flight", 20) as held:
        until = time.monotonic() + 60
        while len(server.read) < 20:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert (held.open, held.problem) == (20, None)
        answer(server.taken[0], b"")
        until_open(held, 19)
        assert held.lost == "the server answered b'HTTP/1.1 200 OK'"
    assert set(server.read) == {b"GET /block?wait_ms=60000 HTTP/1.1\r\nHost: lab\r\n\r\n"}


def test_what_the_server_closes_meanwhile_is_noticed(serve: Callable[..., Server]) -> None:
    server = serve(answer)
    with connect(server.port, "idle", 10) as held:
        for connection in server.taken[:4]:
            connection.close()
        until_open(held, 6)
        assert held.problem is None


def test_a_server_that_closes_without_an_answer_is_a_problem(
    serve: Callable[..., Server],
) -> None:
    server = serve(lambda connection, _: connection.close())
    with connect(server.port, "idle", 5) as held:
        assert held.open == 0
        assert held.problem is not None


def test_an_answer_that_is_no_success_is_a_problem(serve: Callable[..., Server]) -> None:
    bad = ANSWER.replace(b"200 OK", b"503 No")
    server = serve(lambda connection, _: connection.sendall(bad))
    with connect(server.port, "idle", 1) as held:
        assert held.problem == "the server answered 503"


def test_a_slow_request_that_is_answered_is_lost(serve: Callable[..., Server]) -> None:
    server = serve(answer)
    with connect(server.port, "slow", 1) as held:
        until_open(held, 0)


def test_a_server_that_never_answers_ends_at_the_deadline(serve: Callable[..., Server]) -> None:
    server = serve(silent)
    with connect(server.port, "idle", 1, seconds=0.2) as held:
        assert (held.open, held.problem) == (0, "not in time")


def test_a_port_where_nobody_listens_is_a_problem() -> None:
    # Bound, so that nobody else can listen there meanwhile.
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        with connect(silent.getsockname()[1], "idle", 3) as held:
            assert (held.open, held.problem) == (0, "Connection refused")


def test_an_interrupt_ends_the_opening(serve: Callable[..., Server]) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    server = serve(answer)
    held = Connections("127.0.0.1", server.port, "idle", "/", stop)
    with pytest.raises(KeyboardInterrupt), held:
        held.add(10, time.monotonic() + 60, time.monotonic)


def test_the_kernel_tells_how_many_ports_there_are(tmp_path: Path) -> None:
    path = tmp_path / "ports"
    assert source_ports(path) is None
    path.write_text("10000\t65535\n")
    assert source_ports(path) == 55_536
