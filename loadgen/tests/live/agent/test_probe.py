"""The probe over a fake clock and a fake server."""

import asyncio
import random
import statistics
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from itertools import pairwise
from typing import Any

import h11
import pytest
from msgspec.structs import replace

from lab.live.agent.client import Client
from lab.live.agent.probe import Probe
from lab.system.agent import Trial
from live.conftest import TRIAL, FakeClock, metrics_of, value_of

Handler = Callable[[], Awaitable[int]]


def answering(status: int = 200, failure: Exception | None = None) -> Handler:
    async def answer() -> int:
        if failure is not None:
            raise failure
        return status

    return answer


async def never() -> int:
    await asyncio.Event().wait()
    raise AssertionError


class Bench:
    """A probe over a fake clock. Its client is the real one where `answer` is None."""

    def __init__(self, clock: Any, answer: Handler | None, most_in_flight: int = 2000) -> None:
        self.clock, self.real = clock, answer is None
        self.metrics = metrics_of(clock)

        def client(url: str) -> Client:
            client = Client(url)
            client.get = answer or client.get
            return client

        self.probe = Probe(clock, self.metrics, client, random.Random(7), most_in_flight)

    def run(self, sends: int, see: Callable[[], object] = str, rps: float | None = None) -> object:
        """Let ``sends`` requests fall due; what ``see`` gives before the probe is stopped."""
        return asyncio.run(self.sent(sends, replace(TRIAL, probe_rps=rps), see))

    async def sent(self, sends: int, trial: Trial, see: Callable[[], object] = str) -> object:
        self.clock.stop_after = sends
        self.probe.start(trial)
        while self.clock.waits <= sends or (self.real and self.ended < sends):
            await asyncio.sleep(0)
        await self.settled()
        seen = see()
        self.probe.stop()
        await self.settled()
        return seen

    @property
    def ended(self) -> float:
        """Requests of which it is known how they ended."""
        outcomes = ("ok", "http_error", "timeout", "error")
        return sum(self.value("requests_total", outcome=each) or 0.0 for each in outcomes)

    @staticmethod
    async def settled() -> None:
        """Every task that is ready has run, and what follows from it in this loop."""
        for _ in range(50):
            await asyncio.sleep(0)

    def value(self, name: str, **labels: str) -> float | None:
        return value_of(self.metrics, f"lab_client_{name}", source="probe", **labels)


def test_requests_leave_as_a_poisson_stream_of_the_rate_asked_for(clock: Any) -> None:
    due: list[float] = [clock.now]

    async def note() -> int:
        due.append(clock.now)
        return 200

    bench = Bench(clock, note)
    bench.run(4000)
    assert bench.value("requests_total", outcome="ok") == 4000
    gaps = [after - before for before, after in pairwise(due)]
    # Exponential gaps: mean 1/20 s, and a standard deviation equal to the mean. The bounds
    # are 5 standard errors of a sample of 4000 (0.05/sqrt(4000) = 0.0008).
    assert statistics.mean(gaps) == pytest.approx(0.05, abs=0.004)
    assert statistics.stdev(gaps) == pytest.approx(0.05, abs=0.006)


@pytest.mark.parametrize(("most", "gap_s"), [(1.0, 1.0), (100.0, 0.05), (None, 0.05)])
def test_a_trial_of_little_capacity_is_probed_less(most: float | None, gap_s: float) -> None:
    clock = FakeClock()
    Bench(clock, answering()).run(4000, rps=most)
    # 5 standard errors of the mean of 4000 exponential gaps are 8 % of it.
    assert (clock.now - 1000) / 4000 == pytest.approx(gap_s, rel=0.08)


def test_a_request_does_not_wait_for_the_one_before(clock: Any) -> None:
    bench = Bench(clock, never)
    assert bench.run(50, lambda: bench.value("requests_in_flight")) == 50
    assert bench.value("requests_in_flight") == 0
    assert bench.value("request_seconds_count") == 0
    # Too many without an answer are skipped and counted.
    bench = Bench(FakeClock(), never, most_in_flight=3)
    bench.run(10)
    assert bench.value("requests_skipped_total") == 7


def test_latency_counts_from_the_time_the_request_was_meant_to_be_sent(clock: Any) -> None:
    async def slow() -> int:
        clock.now += 2.0
        return 200

    bench = Bench(clock, slow)
    bench.run(1)
    assert bench.value("request_seconds_sum", phase="", since="due") == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("outcome", "answer", "observed"),
    [
        ("ok", answering(), 1),
        ("http_error", answering(503), 0),
        ("timeout", answering(failure=TimeoutError("late")), 1),
        ("error", answering(failure=ConnectionRefusedError("refused")), 0),
        ("error", answering(failure=h11.RemoteProtocolError("cut")), 0),
    ],
)
def test_outcomes_are_different(outcome: str, answer: Handler, observed: int) -> None:
    bench = Bench(FakeClock(), answer)
    assert bench.run(1, lambda: bench.probe.is_broken) is False
    for other in ("ok", "http_error", "timeout", "error"):
        assert bench.value("requests_total", outcome=other) == (other == outcome)
    assert bench.value("request_seconds_count") == observed


def test_a_failure_of_another_kind_breaks_the_probe_where_it_is_seen(clock: Any) -> None:
    bench = Bench(clock, answering(failure=ValueError("a bug")))
    assert bench.run(1, lambda: bench.probe.is_broken) is True


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def url_of(server: asyncio.Server) -> str:
    return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def of_server(answer: bytes, sends: int, together: int) -> tuple[Bench, list[bytes]]:
    """A probe of a server that is really there, which answers from `together` requests on; and
    the requests."""
    bench, requests, begin = Bench(FakeClock(), None), list[bytes](), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        if len(requests) == together:
            begin.set()
        await begin.wait()
        writer.write(answer)
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, asyncio.timeout(60):
            await bench.sent(sends, replace(TRIAL, url=f"{url_of(server)}//a;b%41?"))

    asyncio.run(run())
    return bench, requests


def test_no_request_waits_for_a_connection_and_a_path_is_asked_as_the_load_asks_it() -> None:
    answer = b"HTTP/1.1 503 Away\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    bench, requests = of_server(answer, 20, together=20)
    assert bench.value("requests_total", outcome="http_error") == 20
    assert {request.partition(b"\r\n")[0] for request in requests} == {b"GET //a;b%41? HTTP/1.1"}
    assert b"\r\nLab-Probe: 1\r\n" in requests[0]


@pytest.mark.parametrize("wrong", [b"", b"HTTP/1.1 200", b"220 mail ready\r\n\r\n", OK[:-1]])
def test_an_answer_that_is_cut_short_or_no_http_is_an_error(wrong: bytes) -> None:
    bench, _ = of_server(wrong, 1, together=1)
    assert bench.value("requests_total", outcome="error") == 1


def test_a_connection_is_kept_for_the_next_request_unless_the_server_closes_it() -> None:
    last = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    answers, connections = [OK, OK, last, OK], []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        with suppress(asyncio.IncompleteReadError):
            while answers:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answers.pop(0))
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, asyncio.timeout(60):
            with closing(Client(url_of(server))) as client:
                assert [await client.get() for _ in range(4)] == [200] * 4

    asyncio.run(run())
    assert len(connections) == 2
