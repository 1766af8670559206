"""The running lab: a client for each of its parts, and what a trial depends on, read back at once.

Everything is read back from the parts themselves; nothing is assumed from configuration. One
thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

import httpx

from lab.errors import LabUnreachable, WordError
from lab.model import TO_CALLED, TO_SERVER, ClockOffset, Snapshot, Spread, ToxicState, Way, address
from lab.model.routes import EXPORTER_PORT
from lab.system.agent import Agent
from lab.system.exporter import Exporter
from lab.system.http import DEADLINE_S, Http, number
from lab.system.management import PORT, TIME_MS, Management
from lab.system.network import Reach, reach
from lab.system.prometheus import Prometheus
from lab.system.toxiproxy import Toxiproxy, toxic_state
from lab.system.traffic import Foreign, Traffic

# The quickest of these tells best.
CLOCK_QUESTIONS = 3


def project_of(environ: Mapping[str, str]) -> str:
    """The name of this lab, which Compose calls its project."""
    return environ.get("LAB_PROJECT") or "concurrency-lab"


def part_url(environ: Mapping[str, str], name: str, default: str) -> str:
    """The address of a part of the lab, without a slash at its end. Raises WordError."""
    try:
        found = address.parse(environ.get(name, default))
    except ValueError as failure:
        raise WordError(f"{name}={failure}") from None
    return f"{found.url}{found.path}".rstrip("/")


@dataclass(frozen=True, slots=True)
class Urls:
    """Where the parts of the lab are, besides the servers (which are reached by name), and the
    secret that their tokens follow from."""

    prometheus: str
    toxiproxy: str
    downstream: str
    agent: str
    secret: str = field(default="", repr=False)

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Urls:
        """From LAB_*_URL and LAB_SECRET; the defaults are the names inside the lab's network.
        Raises WordError."""

        def url(name: str, default: str) -> str:
            return part_url(environ, f"LAB_{name}_URL", default)

        return cls(
            prometheus=url("PROMETHEUS", "http://prometheus:9090"),
            toxiproxy=url("TOXIPROXY", "http://toxiproxy:8475"),
            downstream=url("DOWNSTREAM", "http://downstream:8081"),
            agent=url("AGENT", "http://loadgen:9464"),
            secret=environ.get("LAB_SECRET", ""),
        )


class Stack:
    """The running lab, on one machine or on `several`. `transport` (httpx.MockTransport), `reach`
    and `monotonic` are the seams for tests."""

    def __init__(
        self,
        urls: Urls,
        transport: httpx.BaseTransport | None = None,
        *,
        several: bool = False,
        reach: Reach = reach,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._urls = urls
        self._several, self._reach = several, reach
        self._http = Http(transport, urls.secret, monotonic)
        self._foreign: dict[str, Foreign] = {}
        self.traffic = Traffic(self._http, self._foreign)
        self.management = Management(self._http, self._foreign)
        self.exporter = Exporter(self._http, self._foreign)
        self.agent = Agent(self._http, urls.agent)
        self.prometheus = Prometheus(urls.prometheus, self._http)
        self.toxiproxy = Toxiproxy(self._http, urls.toxiproxy)

    def close(self) -> None:
        self._http.close()

    def adopt(self, server: str, url: str, route: str = "/") -> None:
        """From now on `server` is a foreign service at `url` (scheme, host and port), asked on
        `route`. Whether a JMX exporter answers on its host is asked once, here: a host may run
        other JVMs beside the service, so it counts only where the user has listed the host for
        Prometheus."""
        exporter = scraped = False
        with suppress(LabUnreachable):
            instance = f"{server}:{EXPORTER_PORT}"
            targets = self.prometheus.targets()
            scraped = any(one.job == "jvm" and one.instance == instance for one in targets)
        with suppress(LabUnreachable):
            if scraped:
                self.exporter.started_s(server)
                exporter = True
        self._foreign[server] = Foreign(url, route, exporter, scraped)

    def check_foreign(self, server: str) -> None:
        """Raises LabUnreachable unless an adopted service answers with no error of its own, and its
        JMX exporter where it has one."""
        foreign = self._foreign[server]
        self.traffic.ready(server)
        if foreign.exporter:
            self.exporter.started_s(server)

    def is_foreign(self, server: str) -> bool:
        return server in self._foreign

    def downstream_delay(self) -> tuple[float, Spread | None]:
        """The delay the downstream says it has, in ms; its mean and its spread, where it draws one
        for each call. Raises LabUnreachable."""
        answer = self._http.get("downstream", f"{self._urls.downstream}/settings")
        words = answer.get("delay_ms")

        told = partial(number, "downstream", answer)
        if not isinstance(words, str):
            return told("delay_ms"), None
        names = ("sd_ms", "median_ms", "p95_ms", "p99_ms", "longest_ms")
        return told("mean_ms"), Spread(words, *map(told, names))

    def toxics(self) -> ToxicState:
        """The toxics in force. Raises LabUnreachable."""
        return toxic_state(self.toxiproxy.in_force())

    def away(self) -> tuple[str, ...]:
        """The machines of a lab on several from which Prometheus gets no answer now. None where it
        answers nothing itself."""
        with suppress(LabUnreachable):
            found = self.prometheus.values('up{job="cadvisor",machine!=""} == 0', DEADLINE_S)
            return tuple(sorted(labels["machine"] for labels, _ in found))
        return ()

    def clocks(self, server: str, now: Callable[[], datetime]) -> tuple[ClockOffset, ...]:
        """The clocks of the lab beside that of `now`: that of Prometheus, and on several machines
        those of the server and the downstream. Of CLOCK_QUESTIONS answers the quickest counts,
        which is the surest. Without those that do not answer."""
        asked: dict[str, Callable[[], float]] = {
            "Prometheus": lambda: self.prometheus.time_s(DEADLINE_S)
        }
        if self._several:
            asked["the server"] = lambda: self.management.time_s(server)
            asked["the downstream"] = self._downstream_time_s
        told = []
        for part, time_s in asked.items():
            found = []
            with suppress(LabUnreachable):
                for _ in range(CLOCK_QUESTIONS):
                    sent_s = now().timestamp()
                    told_s = time_s()
                    half_s = (now().timestamp() - sent_s) / 2
                    found.append(ClockOffset(told_s - sent_s - half_s, half_s, part))
            told += sorted(found, key=lambda one: one.uncertainty_s)[:1]
        return tuple(told)

    def _downstream_time_s(self) -> float:
        answer = self._http.get("downstream", f"{self._urls.downstream}/time")
        return number("downstream", answer, TIME_MS) / 1000

    def _ways(self, server: str) -> tuple[Way, ...]:
        if not self._several:
            return ()
        there, called_ms = self._reach(server, PORT), None
        with suppress(LabUnreachable):
            called_ms = self.management.round_trip_ms(server)
        to_server = Way(TO_SERVER, there.ms, there.mtu) if there else Way(TO_SERVER)
        return to_server, Way(TO_CALLED, called_ms)

    def snapshot(self, server: str) -> Snapshot:
        """All that a trial on this server depends on. Raises LabUnreachable."""
        foreign = self._foreign.get(server)
        if foreign is None:
            identity, settings = self.management.identity(server), self.management.settings(server)
        else:
            identity, settings = None, {"url": foreign.url}
        delay_ms, spread = self.downstream_delay()
        found = Snapshot(
            identity=identity,
            settings=settings,
            toxics=self.toxics(),
            downstream_delay_ms=delay_ms,
            exported=self.exporter.exported(server) if foreign and foreign.exporter else None,
            spread=spread,
            ways=self._ways(server),
        )
        return replace(found, toxics=ToxicState()) if found.direct else found
