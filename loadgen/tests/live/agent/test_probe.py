"""The probe over a fake clock and a fake server."""

import asyncio
import random
import statistics
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import httpcore
import pytest
from msgspec.structs import replace

from lab.live.agent.probe import Probe
from live.conftest import TRIAL, FakeClock, metrics_of, value_of

Handler = Callable[[object, str], Awaitable[int]]


def answering(status: int = 200, failure: Exception | None = None) -> Handler:
    async def answer(_: object, url: str) -> int:
        assert url == TRIAL.url
        if failure is not None:
            raise failure
        return status

    return answer


async def never(_: object, url: str) -> int:
    await asyncio.Event().wait()
    raise AssertionError


class Bench:
    """A probe over a fake clock, whose client asks no server."""

    def __init__(self, clock: Any, answer: Handler, most_in_flight: int = 2000) -> None:
        self.clock = clock
        self.metrics = metrics_of(clock)
        self.probe = Probe(20, clock, self.metrics, answer, random.Random(7), most_in_flight)

    def run(self, sends: int, see: Callable[[], object] = str, rps: float | None = None) -> object:
        """Let ``sends`` requests fall due; what ``see`` gives before the probe is stopped."""

        async def run() -> object:
            self.clock.stop_after = sends
            self.probe.start(replace(TRIAL, probe_rps=rps))
            while self.clock.waits <= sends:
                await asyncio.sleep(0)
            await asyncio.sleep(0.01)
            seen = see()
            self.probe.stop()
            await asyncio.sleep(0.01)
            return seen

        return asyncio.run(run())

    def value(self, name: str, **labels: str) -> float | None:
        return value_of(self.metrics, f"lab_client_{name}", source="probe", **labels)


def test_requests_leave_as_a_poisson_stream_of_the_rate_asked_for(clock: Any) -> None:
    due: list[float] = [clock.now]

    async def note(_: object, url: str) -> int:
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
    async def slow(_: object, url: str) -> int:
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
        ("error", answering(failure=httpcore.RemoteProtocolError("cut")), 0),
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
