"""The running lab around the servers: a client for each part. All state is read back from the
parts; nothing is assumed from configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

import httpx
import msgspec

from lab.errors import LabUnreachable
from lab.model import TO_CALLED, TO_SERVER, ClockOffset, Spread, ToxicState, Way
from lab.system.agent import Agent
from lab.system.http import DEADLINE_S, Http
from lab.system.management import PORT, Management, Timed
from lab.system.network import Reach, reach
from lab.system.prometheus import Prometheus
from lab.system.toxiproxy import Toxiproxy, toxic_state

# The quickest answer is the most exact.
CLOCK_QUESTIONS = 3


def project_of(environ: Mapping[str, str]) -> str:
    """The name of this lab: its Compose project."""
    return environ.get("LAB_PROJECT") or "concurrency-lab"


class Downstream(Timed):
    """Every method raises LabUnreachable."""

    def __init__(self, http: Http) -> None:
        super().__init__(http, "downstream", "http://downstream:8081")

    def delay(self) -> tuple[float, Spread | None]:
        """The delay in ms; its mean and its spread if each call has another one."""
        answer = self.call("GET", "/settings")
        facts = self.decoded(answer, dict[str, float | str])
        words = facts.get("delay_ms")
        if not isinstance(words, str):
            return self.field(answer, "delay_ms", float), None
        try:
            spread = msgspec.convert({**facts, "words": words}, Spread)
        except (msgspec.MsgspecError, ValueError) as failure:
            raise LabUnreachable(f"its delay is wrong: {failure}", self.name) from None
        return self.field(answer, "mean_ms", float), spread


class Stack:
    """The running lab, on one machine or on `several`. `secret` gives the tokens of the parts.
    Tests replace `transport` (httpx.MockTransport) and `reach`."""

    def __init__(
        self,
        secret: str = "",
        transport: httpx.BaseTransport | None = None,
        *,
        several: bool = False,
        reach: Reach = reach,
    ) -> None:
        self._several, self._reach = several, reach
        self.http = Http(transport, secret)
        self.agent = Agent(self.http)
        self.prometheus = Prometheus(self.http)
        self.toxiproxy = Toxiproxy(self.http)
        self.downstream = Downstream(self.http)

    def close(self) -> None:
        self.http.close()

    def toxics(self) -> ToxicState:
        return toxic_state(self.toxiproxy.in_force())

    def away(self) -> tuple[str, ...]:
        """The machines from which Prometheus gets no answer now; empty if it does not answer."""
        with suppress(LabUnreachable):
            found = self.prometheus.values('up{job="cadvisor",machine!=""} == 0', DEADLINE_S)
            return tuple(sorted(labels["machine"] for labels, _ in found))
        return ()

    def clocks(self, server: str, now: Callable[[], datetime]) -> tuple[ClockOffset, ...]:
        """How far the clock of Prometheus is from `now`; on several machines also those of the
        server and the downstream. Only of parts that answer."""
        asked: dict[str, Callable[[], float]] = {"Prometheus": self.prometheus.time_s}
        if self._several:
            asked["the server"] = Management(self.http, server).time_s
            asked["the downstream"] = self.downstream.time_s
        clocks = []
        for part, time_s in asked.items():
            offsets = []
            with suppress(LabUnreachable):
                for _ in range(CLOCK_QUESTIONS):
                    sent_s = now().timestamp()
                    answered_s = time_s()
                    half_s = (now().timestamp() - sent_s) / 2
                    offsets.append(ClockOffset(answered_s - sent_s - half_s, half_s, part))
            clocks += sorted(offsets, key=lambda offset: offset.uncertainty_s)[:1]
        return tuple(clocks)

    def ways(self, server: str) -> tuple[Way, ...]:
        """The network between several machines."""
        if not self._several:
            return ()
        there, called_ms = self._reach(server, PORT), None
        with suppress(LabUnreachable):
            called_ms = Management(self.http, server).round_trip_ms()
        to_server = Way(TO_SERVER, there.ms, there.mtu) if there else Way(TO_SERVER)
        return to_server, Way(TO_CALLED, called_ms)
