"""The HTTP calls of all clients of the lab's parts, from any thread. Every call has a deadline for
all of it, and a longest answer.

A part that does not answer, or not as its contract says, is a LabUnreachable that names the part.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx
import msgspec
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from lab.errors import LabUnreachable
from lab.system.tokens import TokenAuth

DEADLINE_S = 5.0
# Of a counter that is read at the edges of a trial's window: late is worse than not at all.
COUNTER_DEADLINE_S = 2.0
# The longest answer of a server is a recording of its JVM: so much are 14,000 different stacks of
# 64 frames, the most that Flight Recorder keeps of one.
MOST_BYTES = 64 << 20
# Of the lab's own answers none has more than four levels.
MOST_LEVELS = 32
MOST_WHOLE = 1 << 64
# Toxiproxy refuses user agents that start with Mozilla/ (it guards against browsers).
USER_AGENT = "concurrency-lab"


class NoAnswer(LabUnreachable):
    """Nothing at `url` answers, or what answers is not HTTP. `late`: not in time."""

    def __init__(self, url: str, failure: Exception) -> None:
        self.late = isinstance(failure, httpx.TimeoutException)
        # Some failures of httpx have no text of their own.
        super().__init__(f"{url} does not answer: {str(failure) or type(failure).__name__}")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that was read to its end."""

    url: str
    status_code: int
    headers: httpx.Headers
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status_code < 300

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        try:
            return msgspec.json.decode(self.body)
        except RecursionError:
            raise ValueError("nested too deeply") from None


class Http:
    """`transport` is the seam for tests (httpx.MockTransport), and so is the clock. The tokens of
    the lab's parts follow from `secret`."""

    def __init__(
        self,
        transport: httpx.BaseTransport | None = None,
        secret: str = "",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        # Until when the call of each thread may last.
        self._until = threading.local()
        self._client = httpx.Client(
            transport=transport or self._network(),
            auth=TokenAuth(secret),
            timeout=DEADLINE_S,
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            event_hooks={"response": [_plain]},
            trust_env=False,
        )

    def close(self) -> None:
        self._client.close()

    @contextmanager
    def stream(
        self, method: str, url: str, deadline_s: float, **request: Any
    ) -> Iterator[httpx.Response]:
        """The head of an answer, whatever its status; its body is for `read`. Raises NoAnswer."""
        self._until.s = self._monotonic() + deadline_s
        try:
            with self._client.stream(method, url, timeout=deadline_s, **request) as answer:
                yield answer
        # Beside its own errors httpx lets through those of idna, of codecs and of numbers.
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, OverflowError) as failure:
            raise NoAnswer(url, failure) from None

    def read(
        self, answer: httpx.Response, most_bytes: int, deadline_s: float | None = None
    ) -> bytes | None:
        """The body, as it is sent; None if it is longer. Raises httpx.ReadTimeout where it does not
        end in time: in that of the call, or with a deadline of its own."""
        if deadline_s is not None:
            self._until.s = self._monotonic() + deadline_s
        body = bytearray()
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > most_bytes:
                return None
            if self._monotonic() >= self._until.s:
                raise httpx.ReadTimeout("not all of it came")
        return bytes(body)

    def ask(
        self,
        who: str,
        method: str,
        url: str,
        json: object = None,
        deadline_s: float = DEADLINE_S,
        content: str | None = None,
        most_bytes: int = MOST_BYTES,
        form: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer, whatever its status. The body is `json`, `content` as it is, or a `form`.
        Raises LabUnreachable when there is none, or not all of it in time."""
        request = {"json": json, "content": content, "data": form}
        try:
            with self.stream(method, url, deadline_s, **request) as answer:
                body = self.read(answer, most_bytes)
        except NoAnswer as failure:
            late = f" (in {deadline_s:g} s)" if failure.late else ""
            raise LabUnreachable(f"{failure}{late}", who) from None
        if body is None:
            raise LabUnreachable(f"{url} answers with more than {most_bytes} bytes", who)
        return Answer(url, answer.status_code, answer.headers, body)

    def call(
        self,
        who: str,
        method: str,
        url: str,
        json: object = None,
        deadline_s: float = DEADLINE_S,
        content: str | None = None,
    ) -> Answer:
        """As `ask`. Also raises LabUnreachable for an answer that is no success."""
        answer = self.ask(who, method, url, json, deadline_s, content)
        if not answer.is_success:
            raise LabUnreachable(f"{url} answers {answer.status_code}", who)
        return answer

    def get(self, who: str, url: str, deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        """The JSON object that a GET returns. Raises LabUnreachable."""
        return json_object(who, self.call(who, "GET", url, deadline_s=deadline_s))

    def samples(
        self, who: str, url: str, *names: str, deadline_s: float = DEADLINE_S
    ) -> list[Sample]:
        """The samples of these names on a page of metrics. Raises LabUnreachable."""
        return samples(who, url, self.call(who, "GET", url, None, deadline_s).text, names)

    def _network(self) -> httpx.HTTPTransport:
        # Only a service of the user's own speaks TLS, often with a certificate of its own making.
        # Nothing secret is sent to it.
        transport = httpx.HTTPTransport(verify=False, trust_env=False)
        # httpx has no seam for it, and counts a deadline anew with each read of a few bytes.
        transport._pool._network_backend = _Network(self._left_s)
        return transport

    def _left_s(self, most_s: float | None) -> float:
        """What is left of this thread's call. Raises httpcore.ReadTimeout when nothing is."""
        left_s: float = self._until.s - self._monotonic()
        if left_s <= 0:
            raise httpcore.ReadTimeout("timed out")
        return min(left_s, math.inf if most_s is None else most_s)


_Left = Callable[[float | None], float]


class _Network(httpcore.NetworkBackend):
    """Connections on which each step has only the time that the call has left."""

    def __init__(self, left_s: _Left) -> None:
        self._left_s = left_s

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left_s, backend = self._left_s, httpcore.SyncBackend()
        stream = backend.connect_tcp(host, port, left_s(timeout), local_address, socket_options)
        return _Connection(stream, left_s)


class _Connection(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, left_s: _Left) -> None:
        self._stream, self._left_s = stream, left_s

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._left_s(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left_s(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._left_s(timeout))
        return _Connection(stream, self._left_s)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _plain(answer: httpx.Response) -> None:
    """Headers that httpx would act on: it makes the next request out of a Location, also where it
    is to follow none, and fails where that is no address; and what it unpacks has no bound."""
    for header in ("Location", "Content-Encoding"):
        answer.headers.pop(header, None)


def json_object(who: str, answer: Answer) -> dict[str, Any]:
    """The JSON object of an answer. Raises LabUnreachable for anything else."""
    try:
        body = answer.json()
    except ValueError:
        body = None
    if not isinstance(body, dict) or not _is_plain(body):
        raise LabUnreachable(f"{answer.url} does not answer with a JSON object", who)
    return body


def _is_plain(value: dict[str, Any]) -> bool:
    """Whether it has no more levels than code that calls itself may meet, and no whole number that
    is too large for a float."""
    level: list[Any] = [value]
    for _ in range(MOST_LEVELS):
        inside = [
            item for one in level for item in (one.values() if isinstance(one, dict) else one)
        ]
        if any(isinstance(item, int) and abs(item) > MOST_WHOLE for item in inside):
            return False
        level = [item for item in inside if isinstance(item, dict | list)]
        if not level:
            return True
    return False


def number(who: str, answer: Mapping[str, Any], name: str) -> float:
    """A number of an answer's JSON object. Raises LabUnreachable where it is none."""
    value = answer.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LabUnreachable(f"its answer holds no {name}", who)
    return float(value)


def samples(who: str, page: str, text: str, names: tuple[str, ...]) -> list[Sample]:
    """The samples of these names in the text of a page of metrics; `who` and `page` name it for
    errors. Raises LabUnreachable, also for a value that is no number.

    Only lines that may be wanted are parsed: a server's page of 1,200 lines takes 10 ms as a
    whole and 0.1 ms so, and it is read while the lab measures.
    """
    wanted = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(names))
    try:
        families = text_string_to_metric_families(wanted)
        found = [one for family in families for one in family.samples if one.name in names]
    except ValueError as failure:
        raise LabUnreachable(f"{page} is no page of metrics: {failure}", who) from None
    for one in found:
        if not math.isfinite(one.value):
            raise LabUnreachable(f"{page}: {one.name} is {one.value}", who)
    return found
