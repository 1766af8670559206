"""The probe over a fake clock and a fake server."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import h11
import pytest
from msgspec.structs import replace

from lab.live.agent.client import Client
from lab.live.agent.probe import Probe
from live.conftest import TRIAL, FakeClock, metrics_of, value_of

Handler = Callable[[str], Awaitable[int]]


class Answers(Client):
    """A client that asks no server."""

    def __init__(self, handler: Handler) -> None:
        super().__init__()
        self.get = handler


class Bench:
    """A probe over a fake clock and a fake server."""

    def __init__(self, clock: Any, handler: Handler, most_in_flight: int = 2000) -> None:
        self.clock = clock
        self.metrics = metrics_of(clock)
        new = lambda: Answers(handler)  # noqa: E731
        self.probe = Probe(20, clock, self.metrics, new, random.Random(7), most_in_flight)

    def run(
        self,
        sends: int,
        seen: Callable[[], None] = lambda: None,
        probe_rps: float | None = None,
    ) -> None:
        """Let ``sends`` requests fall due, call ``seen``, then stop."""

        async def run() -> None:
            self.clock.stop_after = sends
            self.probe.start(replace(TRIAL, probe_rps=probe_rps))
            while self.clock.waits <= sends:
                await asyncio.sleep(0)
            for _ in range(20):
                await asyncio.sleep(0)
            seen()
            self.probe.stop()
            for _ in range(20):
                await asyncio.sleep(0)

        asyncio.run(run())

    def value(self, name: str, **labels: str) -> float | None:
        where = {"server": "fixed-pool", "route": "/downstream", "mode": "open", "source": "probe"}
        if "seconds" in name:
            where |= {"phase": "", "since": "due"}
        return value_of(self.metrics, f"lab_client_{name}", **where, **labels)


async def ok(url: str) -> int:
    return 200


def test_requests_leave_as_a_poisson_stream_of_the_rate_asked_for(clock: Any) -> None:
    due: list[float] = []

    async def note(url: str) -> int:
        due.append(clock.now)
        assert url == TRIAL.url
        return 200

    bench = Bench(clock, note)
    bench.run(4000)
    assert bench.value("requests_total", outcome="ok") == 4000
    gaps = [after - before for before, after in zip([1000.0, *due], due, strict=False)]
    # Exponential gaps: mean 1/20 s, and a standard deviation equal to the mean. The bounds
    # are 5 standard errors of a sample of 4000 (0.05/sqrt(4000) = 0.0008).
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert mean == pytest.approx(0.05, abs=0.004)
    assert deviation == pytest.approx(0.05, abs=0.006)


@pytest.mark.parametrize(("most", "gap_s"), [(1.0, 1.0), (100.0, 0.05), (None, 0.05)])
def test_a_trial_of_little_capacity_is_probed_less(most: float | None, gap_s: float) -> None:
    clock = FakeClock()
    Bench(clock, ok).run(4000, probe_rps=most)
    # 5 standard errors of the mean of 4000 exponential gaps are 8 % of it.
    assert (clock.now - 1000) / 4000 == pytest.approx(gap_s, rel=0.08)


async def never(url: str) -> int:
    await asyncio.Event().wait()
    raise AssertionError


def test_a_request_does_not_wait_for_the_one_before(clock: Any) -> None:
    bench = Bench(clock, never)
    in_flight: list[float | None] = []
    bench.run(50, lambda: in_flight.append(bench.value("requests_in_flight")))
    assert in_flight == [50]
    assert bench.value("requests_in_flight") == 0
    assert bench.value("request_seconds_count") == 0
    # Too many without an answer are skipped and counted.
    bench = Bench(FakeClock(), never, most_in_flight=3)
    bench.run(10)
    assert bench.value("requests_skipped_total") == 7


def test_latency_counts_from_the_time_the_request_was_meant_to_be_sent(clock: Any) -> None:
    async def slow(url: str) -> int:
        clock.now += 2.0
        return 200

    bench = Bench(clock, slow)
    bench.run(1)
    assert bench.value("request_seconds_sum") == pytest.approx(2.0)


def raising(failure: Exception) -> Handler:
    async def answer(url: str) -> int:
        raise failure

    return answer


async def busy(url: str) -> int:
    return 503


@pytest.mark.parametrize(
    ("outcome", "answer", "observed"),
    [
        ("http_error", busy, 0),
        ("timeout", raising(TimeoutError("late")), 1),
        ("error", raising(ConnectionRefusedError("refused")), 0),
        ("error", raising(h11.RemoteProtocolError("cut")), 0),
    ],
)
def test_outcomes_are_different(outcome: str, answer: Handler, observed: int) -> None:
    bench = Bench(FakeClock(), answer)
    bench.run(1)
    assert bench.value("requests_total", outcome=outcome) == 1
    assert bench.value("requests_total", outcome="ok") == 0
    assert bench.value("request_seconds_count") == observed


def test_a_failure_of_another_kind_breaks_the_probe_where_it_is_seen(clock: Any) -> None:
    bench = Bench(clock, raising(ValueError("a bug")))
    broken: list[bool] = []
    bench.run(1, lambda: broken.append(bench.probe.is_broken))
    assert broken == [True]
