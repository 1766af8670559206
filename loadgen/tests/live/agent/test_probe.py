"""The probe over a fake clock and a fake server."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import h11
import pytest
from prometheus_client import CollectorRegistry

from lab.live.agent.client import Client
from lab.live.agent.metrics import ClientMetrics
from lab.live.agent.probe import Probe, ProbeSettings
from lab.live.agent.trial import Trial
from live.agent.conftest import ANNOUNCED, FakeClock

TRIAL = Trial(**ANNOUNCED)
WHERE = {"server": "fixed-pool", "route": "/downstream", "mode": "open", "source": "probe"}
Handler = Callable[[str], Awaitable[int]]


class Answers(Client):
    """A client that asks no server."""

    def __init__(self, handler: Handler) -> None:
        super().__init__()
        self._handler = handler

    async def get(self, url: str) -> int:
        return await self._handler(url)


class Bench:
    """A probe over a fake clock and a fake server."""

    def __init__(self, clock: Any, handler: Handler, most_in_flight: int = 2000) -> None:
        self.registry = CollectorRegistry()
        metrics = ClientMetrics(clock, lambda: TRIAL, lambda: ())
        self.registry.register(metrics)
        self.clock = clock
        settings = ProbeSettings(20, most_in_flight)
        self.probe = Probe(settings, clock, metrics, lambda: Answers(handler), random.Random(7))

    def run(
        self, sends: int, trial: Trial = TRIAL, seen: Callable[[], None] = lambda: None
    ) -> None:
        """Let ``sends`` requests fall due, call ``seen``, then stop."""

        async def run() -> None:
            self.clock.stop_after = sends
            await self.probe.start(trial)
            while sends and self.clock.waits <= sends:
                await asyncio.sleep(0)
            for _ in range(20):
                await asyncio.sleep(0)
            seen()
            await self.probe.stop()

        asyncio.run(run())

    def value(self, name: str, **labels: str) -> float | None:
        counted = {"phase": "", "since": "due"} if "seconds" in name else {}
        return self.registry.get_sample_value(f"lab_client_{name}", WHERE | counted | labels)


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


def test_a_trial_of_little_capacity_is_probed_less() -> None:
    for most, gap_s in ((1.0, 1.0), (100.0, 0.05), (None, 0.05)):
        clock = FakeClock()
        Bench(clock, ok).run(4000, replace(TRIAL, probe_rps=most))
        # 5 standard errors of the mean of 4000 exponential gaps are 8 % of it.
        assert (clock.now - 1000) / 4000 == pytest.approx(gap_s, rel=0.08), most


def test_a_trial_that_allows_no_probe_is_sent_none(clock: Any) -> None:
    bench = Bench(clock, ok)
    running: list[bool] = []
    bench.run(0, replace(TRIAL, probe_rps=0), lambda: running.append(bench.probe.running))
    # It is no probe that broke down: the agent's health looks at this.
    assert running == [True]
    assert clock.waits == 0


async def never(url: str) -> int:
    await asyncio.Event().wait()
    raise AssertionError


def test_a_request_does_not_wait_for_the_one_before(clock: Any) -> None:
    bench = Bench(clock, never)
    in_flight: list[float | None] = []
    bench.run(50, seen=lambda: in_flight.append(bench.value("requests_in_flight")))
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


def test_outcomes_are_different() -> None:
    for outcome, answer, observed in (
        ("http_error", busy, 0),
        ("timeout", raising(TimeoutError("late")), 1),
        ("error", raising(ConnectionRefusedError("refused")), 0),
        ("error", raising(h11.RemoteProtocolError("cut")), 0),
    ):
        bench = Bench(FakeClock(), answer)
        bench.run(1)
        assert bench.value("requests_total", outcome=outcome) == 1, outcome
        assert bench.value("requests_total", outcome="ok") == 0
        assert bench.value("request_seconds_count") == observed, outcome


@pytest.mark.parametrize("rate", [0, -1, 1001, float("nan")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="allowed above 0 to 1000"):
        ProbeSettings(rate)
