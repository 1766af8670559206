"""Asks a server of the lab on its management port: who it is, its settings, what it counted; and a
foreign service's JVM, by its recorder, what it recorded."""

from collections.abc import Mapping
from dataclasses import dataclass

from lab.errors import LabUnreachable, Refused
from lab.judge.metrics import RUN, RUNQ
from lab.model import Identity, Json, Recording
from lab.model.routes import RECORDER_PORT
from lab.store.records import from_json
from lab.system.http import COUNTER_DEADLINE_S, Http, json_object, number
from lab.system.traffic import ForeignServices

PORT = 8081
# In the answer of the servers and of the downstream to GET /time: ms since 1970.
TIME_MS = "unix_ms"
FORBIDDEN = 403
# A full collection of a large heap, thousands of threads to start, or a recording to start or to
# read, on a busy machine.
SLOW_DEADLINE_S = 60.0
IN_FLIGHT = "lab_http_requests_in_flight"
REQUESTS = "lab_http_requests_total"
BUCKETS = "lab_http_request_seconds_bucket"


@dataclass(frozen=True, slots=True)
class RouteWork:
    """A server's counters of one route since its start. `buckets` are (upper bound in seconds,
    requests that took no longer) pairs; `failed` requests had another outcome than ok."""

    requests: float
    buckets: tuple[tuple[float, float], ...]
    failed: float = 0.0


class Management:
    """The management ports of the lab's servers. Every method raises LabUnreachable."""

    def __init__(self, http: Http, foreign: ForeignServices | None = None) -> None:
        self._http = http
        self._foreign = {} if foreign is None else foreign

    def identity(self, server: str) -> Identity:
        answer = self._http.get(server, _url(server, "/identity"))
        try:
            known = {name: answer[name] for name in Identity.__dataclass_fields__}
            return from_json(Identity, known)
        except KeyError as failure:
            raise LabUnreachable(f"its identity has no {failure}", server) from None
        except ValueError as failure:
            raise LabUnreachable(f"its identity is wrong: {failure}", server) from None

    def routes(self, server: str) -> tuple[str, ...]:
        routes = self._http.get(server, _url(server, "/identity")).get("routes")
        try:
            return from_json(tuple[str, ...], routes)
        except ValueError as failure:
            raise LabUnreachable(f"its routes are wrong: {failure}", server) from None

    def settings(self, server: str) -> Mapping[str, Json]:
        settings = self._http.get(server, _url(server, "/settings")).get("settings")
        if not isinstance(settings, dict):
            raise LabUnreachable("its settings hold no object 'settings'", server)
        return settings

    def change_knobs(self, server: str, wanted: Mapping[str, int]) -> None:
        """Change knobs of a running server, all or none, and read them back. Raises Refused with
        the server's own words."""
        self._ask(server, "PATCH", "/settings", wanted)
        now = self.settings(server)
        for name, value in wanted.items():
            if now.get(name) != value:
                raise LabUnreachable(f"{name} reads back {now.get(name)}, not {value}", server)

    def time_s(self, server: str) -> float:
        """What the clock of its machine says, in seconds since 1970, to a millisecond."""
        return number(server, self._http.get(server, _url(server, "/time")), TIME_MS) / 1000

    def round_trip_ms(self, server: str) -> float:
        """One round trip of the network between it and what it calls."""
        answer = self._http.get(server, _url(server, "/round-trip"))
        return number(server, answer, "microseconds") / 1000

    def restart(self, server: str) -> None:
        """Tell the server's JVM to end; Docker starts the next."""
        self._http.call(server, "POST", _url(server, "/restart"))

    def collect_garbage(self, server: str) -> int:
        """Make the server's JVM collect everything; the bytes of heap that are live then."""
        url = _url(server, "/gc")
        answer = self._http.call(server, "POST", url, deadline_s=SLOW_DEADLINE_S)
        used = json_object(server, answer).get("heap_used_bytes")
        if isinstance(used, bool) or not isinstance(used, int):
            raise LabUnreachable("its answer to /gc holds no heap_used_bytes", server)
        return used

    def check_recorder(self, server: str) -> None:
        """Raises LabUnreachable, with what to do, where nobody can record the server's JVM."""
        if server not in self._foreign:
            return
        try:
            self._http.get(server, _url(server, "/health", RECORDER_PORT))
        except LabUnreachable:
            raise LabUnreachable(
                f"no recorder answers on port {RECORDER_PORT}; its JVM needs "
                f"-javaagent:/jmx/lab-recorder.jar={RECORDER_PORT} (docs/your-own-service.md)",
                server,
            ) from None
        # There is no such call: whoever has the token gets a 404.
        answer = self._http.ask(server, "GET", _url(server, "/", RECORDER_PORT))
        if answer.status_code == FORBIDDEN:
            raise LabUnreachable(
                "its recorder does not know this lab's token: its jar must be in the "
                "folder that make up fills (docs/your-own-service.md)",
                server,
            )

    def start_recording(self, server: str, kind: str, most_s: int) -> None:
        """Make the server's JVM record (lab.model.UNITS), for at most so many seconds. Raises
        Refused with the server's own words, as while it records."""
        self._ask(server, "POST", f"/recording/{kind}", {"seconds": most_s})

    def end_recording(
        self, server: str, kind: str, window: tuple[float, float]
    ) -> tuple[Recording, str]:
        """What it recorded in the window (seconds since 1970), and the page of the flame graph, as
        untrusted as the server is. Raises Refused, as where it was not recording: its JVM may be
        another."""
        opens, closes = (round(at * 1000) for at in window)
        told = self._ask(server, "POST", "/recording/end", {"from_ms": opens, "to_ms": closes})
        try:
            graph = str(told.pop("flamegraph", ""))
            return from_json(Recording, {**told, "kind": kind}), graph
        except ValueError as failure:
            raise LabUnreachable(f"its recording is wrong: {failure}", server) from None

    def _ask(self, server: str, method: str, path: str, body: Mapping[str, int]) -> dict[str, Json]:
        """The answer to a call that may take long. Raises Refused with the server's own words."""
        url = _url(server, path, RECORDER_PORT if server in self._foreign else PORT)
        answer = self._http.ask(server, method, url, dict(body), deadline_s=SLOW_DEADLINE_S)
        told = json_object(server, answer)
        if not answer.is_success:
            raise Refused(f"{told.get('error', answer.status_code)}", server)
        return told

    def in_flight(self, server: str) -> int:
        """Requests the server still works on, queued ones included."""
        found = self._http.samples(server, _url(server, "/metrics"), IN_FLIGHT)
        return round(sum(sample.value for sample in found))

    def jit(self, server: str) -> tuple[float, float]:
        """The CPU seconds that the threads of its JIT compiler used so far, and the seconds in
        which they waited for a CPU. A service that is not the lab's does not tell."""
        if server in self._foreign:
            raise LabUnreachable("it does not tell the CPU time of its JIT compiler", server)
        url = _url(server, "/metrics")
        found = self._http.samples(server, url, RUN, RUNQ, deadline_s=COUNTER_DEADLINE_S)
        compiler = [one for one in found if one.labels.get("threads") == "compiler"]
        told = {one.name: float(one.value) for one in compiler}
        if len(told) < 2:
            raise LabUnreachable(f"{url} has no {RUN} of the compiler", server)
        return told[RUN], told[RUNQ]

    def work(self, server: str, route: str) -> RouteWork:
        """The server's counters of a route (its query is ignored)."""
        path = route.partition("?")[0]
        requests, failed, buckets = 0.0, 0.0, []
        for sample in self._http.samples(server, _url(server, "/metrics"), REQUESTS, BUCKETS):
            if sample.labels.get("route") != path:
                continue
            if sample.name == REQUESTS:
                requests += sample.value
                failed += sample.value if sample.labels.get("outcome") != "ok" else 0.0
            elif sample.labels.get("phase") == "total":
                buckets.append((float(sample.labels["le"]), float(sample.value)))
        return RouteWork(requests, tuple(sorted(buckets)), failed)


def _url(server: str, path: str, port: int = PORT) -> str:
    return f"http://{server}:{port}{path}"
