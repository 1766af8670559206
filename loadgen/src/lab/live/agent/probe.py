"""The live probe: a slow Poisson stream of requests to the route under test.

wrk2 shows its latencies only when it ends. Requests whose arrivals form a Poisson process see the
time average of the system's state, under any load (R. W. Wolff, "Poisson Arrivals See Time
Averages", Operations Research 30(2), 1982). A few requests per second show the latency of a client
while a trial runs. An engine that streams its figures needs no probe (`load`).

Arrivals must not wait for answers: each request is a task at its drawn time, on as many connections
as that needs. A latency counts from the time the request was *meant* to be sent, so a late probe
does not look fast.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from contextlib import closing

import h11

from lab.live.agent.client import Client
from lab.live.agent.metrics import KEPT_S, AgentMetrics, Figures
from lab.live.clock import Clock
from lab.system.agent import Trial

RATE_RPS = 20.0
TIMEOUT_S = 30.0
# With so many unanswered, further requests are skipped and counted; latency is then understated.
MOST_IN_FLIGHT = 2_000
# The same requests in both phases.
NO_PHASE = ""


class Probe:
    """Sends requests for one trial after the other, at RATE_RPS unless a trial allows less. Lives
    in one event loop."""

    def __init__(
        self,
        clock: Clock,
        metrics: AgentMetrics,
        client: Callable[[str], Client] = Client,
        draw: random.Random | None = None,
        most_in_flight: int = MOST_IN_FLIGHT,
    ) -> None:
        self._clock = clock
        self._metrics = metrics
        self._new_client = client
        self._draw = draw or random.Random()  # noqa: S311 - arrivals, not secrets
        self._most_in_flight = most_in_flight
        self._stream: tuple[asyncio.Task[None], Figures] | None = None

    @property
    def is_broken(self) -> bool:
        """True if the stream ended before it was stopped."""
        return self._stream is not None and self._stream[0].done()

    def start(self, trial: Trial) -> None:
        """Send to ``trial.url`` from now on, and end the stream before."""
        self.stop()
        rate_rps = RATE_RPS if trial.probe_rps is None else min(RATE_RPS, trial.probe_rps)
        if rate_rps > 0:
            counts = ("requests_in_flight", "requests_skipped")
            figures = self._metrics.begin(trial, "probe", counts, ("due",))
            # Its rate may be low: its series last as long as it runs.
            figures.keep(NO_PHASE, math.inf)
            sending = self._send(trial.url, rate_rps, figures)
            self._stream = asyncio.create_task(sending, name="probe"), figures

    def stop(self) -> None:
        """End the stream. Its requests in flight are abandoned, and counted nowhere."""
        if self._stream is not None:
            task, figures = self._stream
            task.cancel()
            figures.keep(NO_PHASE, self._clock.monotonic() + KEPT_S)
            self._stream = None

    async def _send(self, url: str, rate_rps: float, figures: Figures) -> None:
        due = self._clock.monotonic()
        with closing(self._new_client(url)) as client:
            async with asyncio.TaskGroup() as requests:
                while True:
                    due += self._draw.expovariate(rate_rps)
                    await self._clock.sleep_until(due)
                    if figures.counts["requests_in_flight"] >= self._most_in_flight:
                        figures.counts["requests_skipped"] += 1
                    else:
                        requests.create_task(self._request(client, figures, due))

    async def _request(self, client: Client, figures: Figures, due: float) -> None:
        figures.counts["requests_in_flight"] += 1
        try:
            async with asyncio.timeout(TIMEOUT_S):
                status = await client.get()
            outcome = "ok" if status < 400 else "http_error"
        except TimeoutError:
            outcome = "timeout"
        except (h11.ProtocolError, OSError):
            outcome = "error"
        finally:
            figures.counts["requests_in_flight"] -= 1
        figures.outcomes[outcome] += 1
        # Neither a failed connection nor an error status has the latency of an answer.
        if outcome in ("ok", "timeout"):
            latencies = figures.phases[NO_PHASE]["due"]
            latency_s = self._clock.monotonic() - due
            latencies.add(latency_s)
            latencies.sum_s += latency_s
