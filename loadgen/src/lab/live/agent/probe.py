"""The live probe: a slow Poisson stream of requests to the route under test.

wrk2 tells its latencies only when it ends. Requests whose arrivals form a Poisson
process see the time average of the system's state, under any load (R. W. Wolff, "Poisson Arrivals
See Time Averages", Operations Research 30(2), 1982). So a few requests per second show the latency
of a client while a trial runs. An engine that tells while it runs needs no probe (`load`).

This holds only as long as arrivals do not wait for answers. Requests are sent at their drawn times,
each as its own task, on as many connections as that takes. A latency counts from the time the
request was *meant* to be sent, so a late probe does not look fast.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import h11

from lab.live.agent.client import Client
from lab.live.agent.metrics import ClientMetrics
from lab.live.agent.trial import Trial
from lab.live.clock import Clock

TIMEOUT_S = 30.0
MOST_IN_FLIGHT = 2_000


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """``rate_rps`` is the mean rate of the Poisson stream, unless a trial allows less. With
    ``most_in_flight`` unanswered requests, further requests are skipped and counted. Then the probe
    understates latency."""

    rate_rps: float
    most_in_flight: int = MOST_IN_FLIGHT

    def __post_init__(self) -> None:
        if not 0 < self.rate_rps <= 1000:
            raise ValueError(f"probe rate {self.rate_rps}: allowed above 0 to 1000 per second")
        if self.most_in_flight < 1:
            raise ValueError(f"most in flight {self.most_in_flight}: allowed from 1")


class Probe:
    """Sends requests for one trial after the other. Lives in one event loop.

    ``start`` replaces the stream that runs. ``stop`` ends the stream and abandons its requests in
    flight. They are not counted, as they would be filed under a trial that is over.
    """

    def __init__(
        self,
        settings: ProbeSettings,
        clock: Clock,
        metrics: ClientMetrics,
        client: Callable[[], Client] = Client,
        draw: random.Random | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._new_client = client
        self._draw = draw or random.Random()  # noqa: S311 - arrivals, not secrets
        self._sender: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._sender is not None and not self._sender.done()

    async def start(self, trial: Trial) -> None:
        """Send to ``trial.url`` from now on, and end the stream before."""
        await self.stop()
        if trial.probe_rps != 0:
            self._metrics.probes(trial)
        self._sender = asyncio.create_task(self._send(trial), name="probe")

    async def stop(self) -> None:
        """End the stream and its requests in flight; returns when they are gone."""
        sender, self._sender = self._sender, None
        if sender is None:
            return
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)

    async def _send(self, trial: Trial) -> None:
        most_rps = math.inf if trial.probe_rps is None else trial.probe_rps
        if not most_rps:
            await asyncio.Event().wait()  # Nothing may be sent. Wait to be stopped.
        rate_rps = min(self._settings.rate_rps, most_rps)
        in_flight: set[asyncio.Task[None]] = set()
        async with self._new_client() as client:
            try:
                due = self._clock.monotonic()
                while True:
                    due += self._draw.expovariate(rate_rps)
                    await self._clock.sleep_until(due)
                    if len(in_flight) >= self._settings.most_in_flight:
                        self._metrics.skipped(trial)
                        continue
                    request = asyncio.create_task(self._request(client, trial, due))
                    in_flight.add(request)
                    request.add_done_callback(in_flight.discard)
            finally:
                for request in tuple(in_flight):
                    request.cancel()
                await asyncio.gather(*in_flight, return_exceptions=True)

    async def _request(self, client: Client, trial: Trial, due: float) -> None:
        self._metrics.sent(trial)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                status = await client.get(trial.url)
            outcome = "ok" if status < 400 else "http_error"
        except TimeoutError:
            outcome = "timeout"
        except (h11.ProtocolError, OSError):
            outcome = "error"
        finally:
            self._metrics.gone(trial)
        self._metrics.answered(trial, outcome, self._clock.monotonic() - due)
