"""The probe's client against a server that is really there."""

import asyncio

import httpcore
import pytest

from lab.live.agent.probe import get

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
LAST = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"


class Server:
    """Gives each request the next of `answers`. Where an answer is cut short, or the last one was
    given, it closes the connection."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while self.answers:
            try:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            except asyncio.IncompleteReadError:
                break
            answer = self.answers.pop(0)
            writer.write(answer)
            if answer not in (OK, BUSY):
                break
        writer.close()

    def asked(self, count: int = 1, path: str = "/x", *, at_once: bool = False) -> list[int]:
        """The statuses of so many requests of one client for a page of this server."""

        async def run() -> list[int]:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            async with server, asyncio.timeout(60):
                url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{path}"
                async with httpcore.AsyncConnectionPool(max_connections=None) as pool:
                    if at_once:
                        return await asyncio.gather(*(get(pool, url) for _ in range(count)))
                    return [await get(pool, url) for _ in range(count)]

        return asyncio.run(run())


def test_a_connection_is_kept_for_the_next_request() -> None:
    server = Server(OK, BUSY, OK)
    # A path is asked as the load asks it.
    assert server.asked(3, "//a;b%41?") == [200, 503, 200]
    assert server.connections == 1
    assert server.requests[2].startswith(b"GET //a;b%41? HTTP/1.1\r\n")
    assert b"\r\nLab-Probe: 1\r\n" in server.requests[2]


def test_requests_at_the_same_time_have_separate_connections() -> None:
    server = Server(OK, OK, OK)
    assert server.asked(3, at_once=True) == [200, 200, 200]
    assert server.connections == 3


def test_a_connection_that_the_server_closes_is_not_used_again() -> None:
    server = Server(LAST, OK)
    assert server.asked(2) == [200, 200]
    assert server.connections == 2


@pytest.mark.parametrize("wrong", [b"", OK[:-1], b"HTTP/1.1 200", b"220 mail ready\r\n\r\n"])
def test_an_answer_that_is_cut_short_or_no_http_is_an_error(wrong: bytes) -> None:
    with pytest.raises((httpcore.NetworkError, httpcore.ProtocolError)):
        Server(wrong).asked()
