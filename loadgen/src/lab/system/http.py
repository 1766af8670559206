"""HTTP calls to the lab's parts, from any thread, each with a deadline and a longest answer.

A part that does not answer, or not as its contract says, is a LabUnreachable that names the part.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx
import msgspec
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from lab.errors import LabUnreachable, Refused
from lab.model.routes import RECORDER_PORT
from lab.system.tokens import HEADER, PORTS, RECORDER, token

DEADLINE_S = 5.0
# For counters at the edges of a trial's window: late is worse than none.
COUNTER_DEADLINE_S = 2.0
# The longest answer of a server is a recording of its JVM: 14,000 different stacks of 64 frames,
# the most that Flight Recorder keeps of one.
MOST_BYTES = 64 << 20
# So much of an answer shows that a route works.
BEGINNING_BYTES = 1 << 20
# Toxiproxy refuses user agents that start with Mozilla/ (it guards against browsers).
USER_AGENT = "concurrency-lab"


class TokenAuth(httpx.Auth):
    """Sends each part of the lab its own token, and nothing without a secret."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        port, host = request.url.port, request.url.host
        if self._secret and port in PORTS:
            part = RECORDER if port == RECORDER_PORT else host
            request.headers[HEADER] = token(self._secret, part)
        yield request


class _Network(httpcore.SyncBackend):
    """Connections whose reads end with the deadline of their thread's call, however slowly bytes
    drip: httpx counts its timeout again from each byte."""

    def __init__(self) -> None:
        self.call = threading.local()

    def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore.NetworkStream:
        return self._timed(super().connect_tcp(*args, **kwargs))

    def _timed(self, stream: httpcore.NetworkStream) -> httpcore.NetworkStream:
        read, start_tls = stream.read, stream.start_tls

        def read_in_time(most_bytes: int, timeout: float | None = None) -> bytes:
            left_s = self.call.until_s - time.monotonic()
            if left_s <= 0:
                raise httpcore.ReadTimeout("not all of it came")
            return read(most_bytes, left_s if timeout is None else min(left_s, timeout))

        def start_timed_tls(*args: Any, **kwargs: Any) -> httpcore.NetworkStream:
            return self._timed(start_tls(*args, **kwargs))

        vars(stream).update(read=read_in_time, start_tls=start_timed_tls)
        return stream


class NoAnswer(LabUnreachable):
    """No HTTP answer from `url`. `late`: not in time."""

    def __init__(self, part: str, url: str, failure: Exception, deadline_s: float) -> None:
        self.late = isinstance(failure, httpx.TimeoutException)
        # Some failures of httpx have no text of their own.
        text = str(failure) or type(failure).__name__
        late = f" (in {deadline_s:g} s)" if self.late else ""
        super().__init__(f"{url} does not answer: {text}{late}", part)


class Http:
    """The connections to all parts. `transport` is the seam for tests (httpx.MockTransport). The
    tokens of the lab's parts follow from `secret`."""

    def __init__(self, transport: httpx.BaseTransport | None = None, secret: str = "") -> None:
        # Only a user's service speaks TLS, often with a self-signed certificate. It gets no token.
        self._network = _Network()
        if transport is None:
            transport = httpx.HTTPTransport(verify=False, trust_env=False)
            transport._pool._network_backend = self._network
        self._client = httpx.Client(
            transport=transport,
            auth=TokenAuth(secret),
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            event_hooks={"response": [_plain]},
            trust_env=False,
        )

    def close(self) -> None:
        self._client.close()

    def ask(
        self,
        part: str,
        method: str,
        url: str,
        deadline_s: float,
        most_bytes: int,
        cut: bool = False,
        **request: Any,
    ) -> httpx.Response:
        """The whole answer, whatever its status; `cut`: of a longer one its beginning. Raises
        NoAnswer."""
        self._network.call.until_s = time.monotonic() + deadline_s
        body = bytearray()
        try:
            with self._client.stream(method, url, timeout=deadline_s, **request) as answer:
                for chunk in answer.iter_bytes():
                    body += chunk
                    if len(body) > most_bytes and cut:
                        break
                    if len(body) > most_bytes:
                        raise httpx.ReadError(f"it has more than {most_bytes} bytes")
        # httpx also lets through errors of idna, codecs and numbers.
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, OverflowError) as failure:
            raise NoAnswer(part, url, failure, deadline_s) from None
        status, headers = answer.status_code, answer.headers
        return httpx.Response(status, headers=headers, content=bytes(body), request=answer.request)


class Part:
    """One part of the lab: its name for errors, and its address. Every method raises
    LabUnreachable."""

    def __init__(self, http: Http, name: str, url: str) -> None:
        self._http = http
        self.name = name
        self.url = url.rstrip("/")

    def ask(
        self,
        method: str,
        path: str,
        deadline_s: float = DEADLINE_S,
        most_bytes: int = MOST_BYTES,
        **request: Any,
    ) -> httpx.Response:
        """The answer, whatever its status."""
        return self._http.ask(self.name, method, self.url + path, deadline_s, most_bytes, **request)

    def beginning(self, path: str, deadline_s: float) -> httpx.Response:
        """Of the answer on a path no more than BEGINNING_BYTES, whatever its status."""
        return self.ask("GET", path, deadline_s, BEGINNING_BYTES, cut=True)

    def call(
        self,
        method: str,
        path: str,
        json: object = None,
        deadline_s: float = DEADLINE_S,
        **request: Any,
    ) -> httpx.Response:
        """As `ask`. Raises Refused, with the part's own words, for an answer that is no success."""
        answer = self.ask(method, path, deadline_s, json=json, **request)
        if answer.is_success:
            return answer
        problem = f"{self.url}{path} answers {answer.status_code}"
        with suppress(LabUnreachable):
            problem = self.field(answer, "error", str)
        raise Refused(problem, self.name)

    def get[T](self, path: str, kind: type[T], deadline_s: float = DEADLINE_S) -> T:
        return self.decoded(self.call("GET", path, None, deadline_s), kind)

    def field[T](self, answer: httpx.Response, name: str, kind: type[T]) -> T:
        fields = self.decoded(answer, dict[str, msgspec.Raw])
        return self._decoded(answer, fields.get(name, b"null"), kind, name)

    def decoded[T](self, answer: httpx.Response, kind: type[T]) -> T:
        """The JSON of an answer; what is not of this type is ignored."""
        return self._decoded(answer, answer.content, kind, "JSON")

    def _decoded[T](self, answer: httpx.Response, json: bytes, kind: type[T], what: str) -> T:
        try:
            return msgspec.json.decode(json, type=kind)
        except (msgspec.MsgspecError, ValueError, RecursionError) as failure:
            raise LabUnreachable(f"{answer.url} has a wrong {what}: {failure}", self.name) from None

    def metrics(self, *names: str, deadline_s: float = DEADLINE_S) -> Metrics:
        """The samples of these names on its page of metrics, all of them finite.

        Only lines that may be wanted are parsed: a server's page of 1,200 lines takes 10 ms as a
        whole and 0.1 ms so, and it is read while the lab measures.
        """
        answer = self.call("GET", "/metrics", None, deadline_s)
        lines = answer.content.decode("utf-8", "replace").splitlines()
        wanted = "".join(f"{line}\n" for line in lines if line.startswith(names))
        try:
            families = text_string_to_metric_families(wanted)
            samples = [each for family in families for each in family.samples if each.name in names]
        except ValueError as failure:
            problem = f"{answer.url} is no page of metrics: {failure}"
            raise LabUnreachable(problem, self.name) from None
        for sample in samples:
            if not math.isfinite(sample.value):
                problem = f"{answer.url}: {sample.name} is {sample.value}"
                raise LabUnreachable(problem, self.name)
        return Metrics(self.name, f"{answer.url}", samples)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Samples of a part."""

    part: str
    url: str
    samples: list[Sample]

    def values(self, name: str, **labels: str) -> list[float]:
        return [
            float(sample.value)
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def value(self, name: str, **labels: str) -> float:
        """The first of them. Raises LabUnreachable without any."""
        for value in self.values(name, **labels):
            return value
        raise LabUnreachable(f"{self.url} has no {name}", self.part)


def _plain(answer: httpx.Response) -> None:
    """Removes headers that httpx acts on: it parses a Location even if it follows none, and it
    unpacks without a limit."""
    for header in ("Location", "Content-Encoding"):
        answer.headers.pop(header, None)
