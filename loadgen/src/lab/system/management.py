"""A server of the lab on its management port: identity, settings, counters and recordings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from lab.errors import LabUnreachable
from lab.judge.metrics import RUN, RUNQ
from lab.model import Count, Identity, Recording
from lab.store.records import from_json
from lab.system.http import COUNTER_DEADLINE_S, Http, Part

PORT = 8081
# For a full collection, thousands of new threads, or a recording, on a busy machine.
SLOW_DEADLINE_S = 60.0
IN_FLIGHT = "lab_http_requests_in_flight"
REQUESTS = "lab_http_requests_total"
BUCKETS = "lab_http_request_seconds_bucket"
Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Plain = Whole | float | str | bool | None
Settings = dict[str, Plain | list[Plain] | dict[str, Plain]]


@dataclass(frozen=True, slots=True)
class RouteWork:
    """A server's counters of one route since its start. `buckets` are pairs of an upper bound in
    seconds and the requests that took no longer."""

    requests: float
    buckets: tuple[tuple[float, float], ...]
    failed: float = 0.0


class Timed(Part):
    """A part that shows the clock of its machine: the servers and the downstream."""

    def time_s(self) -> float:
        """Seconds since 1970, to a millisecond."""
        return self.field(self.call("GET", "/time"), "unix_ms", float) / 1000


class Recorder(Part):
    """Records a JVM: a server of the lab, or the agent in a user's JVM. Every method raises
    LabUnreachable, Refused if it records already or not at all."""

    def start_recording(self, kind: str, most_s: int) -> None:
        """`kind` is one of lab.model.UNITS. It ends after `most_s` seconds."""
        self.call("POST", f"/recording/{kind}", {"seconds": most_s}, SLOW_DEADLINE_S)

    def end_recording(self, kind: str, window: tuple[float, float]) -> tuple[Recording, str]:
        """The recording of the window (seconds since 1970), and the page of the flame graph, as
        untrusted as the JVM."""
        opens, closes = (round(at * 1000) for at in window)
        span = {"from_ms": opens, "to_ms": closes}
        answer = self.call("POST", "/recording/end", span, SLOW_DEADLINE_S)
        fields = self.decoded(answer, dict[str, Any])
        graph = str(fields.pop("flamegraph", ""))
        try:
            return from_json(Recording, {**fields, "kind": kind}), graph
        except ValueError as failure:
            raise LabUnreachable(f"its recording is wrong: {failure}", self.name) from None


class Management(Recorder, Timed):
    """The management port of one of the lab's servers. Every method raises LabUnreachable."""

    def __init__(self, http: Http, server: str) -> None:
        super().__init__(http, server, f"http://{server}:{PORT}")

    def identity(self) -> Identity:
        return self.get("/identity", Identity)

    def routes(self) -> tuple[str, ...]:
        return self.field(self.call("GET", "/identity"), "routes", tuple[str, ...])

    def settings(self) -> Mapping[str, Any]:
        return self.field(self.call("GET", "/settings"), "settings", Settings)

    def change_knobs(self, wanted: Mapping[str, int]) -> None:
        """Change knobs, all or none, and read them back. Raises Refused."""
        self.call("PATCH", "/settings", dict(wanted), SLOW_DEADLINE_S)
        now = self.settings()
        for name, value in wanted.items():
            if now.get(name) != value:
                raise LabUnreachable(f"{name} reads back {now.get(name)}, not {value}", self.name)

    def round_trip_ms(self) -> float:
        """A network round trip between the server and the service that it calls."""
        return self.field(self.call("GET", "/round-trip"), "microseconds", float) / 1000

    def restart(self) -> None:
        self.call("POST", "/restart")

    def collect_garbage(self) -> int:
        """Run a full collection; the live heap after it, in bytes."""
        answer = self.call("POST", "/gc", deadline_s=SLOW_DEADLINE_S)
        return self.field(answer, "heap_used_bytes", Count)

    def in_flight(self) -> int:
        """Requests in work or in the queue."""
        return round(sum(self.metrics(IN_FLIGHT).values(IN_FLIGHT)))

    def jit(self) -> tuple[float, float]:
        """CPU seconds of the JIT compiler's threads, and the seconds in which they waited for a
        CPU."""
        page = self.metrics(RUN, RUNQ, deadline_s=COUNTER_DEADLINE_S)
        return page.value(RUN, threads="compiler"), page.value(RUNQ, threads="compiler")

    def work(self, route: str) -> RouteWork:
        """The query of the route is ignored."""
        path = route.partition("?")[0]
        page = self.metrics(REQUESTS, BUCKETS)
        requests = sum(page.values(REQUESTS, route=path))
        ok = sum(page.values(REQUESTS, route=path, outcome="ok"))
        total = {"route": path, "phase": "total"}.items()
        try:
            buckets = sorted(
                (float(sample.labels["le"]), float(sample.value))
                for sample in page.samples
                if sample.name == BUCKETS and total <= sample.labels.items()
            )
        except (KeyError, ValueError):
            raise LabUnreachable(f"{page.url} has a wrong {BUCKETS}", self.name) from None
        return RouteWork(requests, tuple(buckets), requests - ok)
