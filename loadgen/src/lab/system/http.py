"""HTTP calls to the lab's parts, from any thread, each with a deadline and a longest answer.

A part that does not answer, or not as its contract says, is a LabUnreachable that names the part.
"""

import math
import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from ssl import SSLContext
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
# Of a counter that is read at the edges of a trial's window: late is worse than not at all.
COUNTER_DEADLINE_S = 2.0
# The longest answer of a server is a recording of its JVM: 14,000 different stacks of 64 frames,
# the most that Flight Recorder keeps of one.
MOST_BYTES = 64 << 20
# Toxiproxy refuses user agents that start with Mozilla/ (it guards against browsers).
USER_AGENT = "concurrency-lab"
# When the call of this thread must have ended.
_until_s: ContextVar[float] = ContextVar("_until_s", default=math.inf)


class NoAnswer(LabUnreachable):
    """Nothing at `url` answers, or what answers is not HTTP. `late`: not in time."""

    def __init__(self, part: str, url: str, failure: Exception, deadline_s: float) -> None:
        self.late = isinstance(failure, httpx.TimeoutException)
        # Some failures of httpx have no text of their own.
        text = str(failure) or type(failure).__name__
        late = f" (in {deadline_s:g} s)" if self.late else ""
        super().__init__(f"{url} does not answer: {text}{late}", part)


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


class Stream(httpcore.NetworkStream):
    """A connection each step of which ends with the call: httpx counts its own deadline again from
    each byte, and a head may come byte by byte."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left_s(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left_s(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return Stream(self._stream.start_tls(ssl_context, server_hostname, _left_s(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore.SyncBackend):
    def connect_tcp(self, *args: Any, **options: Any) -> httpcore.NetworkStream:
        return Stream(super().connect_tcp(*args, **options))


class _Transport(httpx.HTTPTransport):
    def __init__(self) -> None:
        # Only a service of the user's own speaks TLS, often with a certificate of its own making.
        # Nothing secret is sent to it.
        context = httpx.create_ssl_context(verify=False, trust_env=False)
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=100,
            max_keepalive_connections=20,
            keepalive_expiry=5.0,
            network_backend=_Backend(),
        )


def _left_s(most_s: float | None) -> float:
    left_s = _until_s.get() - time.monotonic()
    if left_s <= 0:
        raise httpcore.ReadTimeout("not all of it came")
    return min(left_s, most_s or left_s)


class Http:
    """The connections to all parts. `transport` is the seam for tests (httpx.MockTransport). The
    tokens of the lab's parts follow from `secret`."""

    def __init__(self, transport: httpx.BaseTransport | None = None, secret: str = "") -> None:
        self._client = httpx.Client(
            transport=transport or _Transport(),
            auth=TokenAuth(secret),
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            event_hooks={"response": [_plain]},
            trust_env=False,
        )

    def close(self) -> None:
        self._client.close()

    def ask(
        self, part: str, method: str, url: str, deadline_s: float, most_bytes: int, **request: Any
    ) -> httpx.Response:
        """The whole answer, whatever its status. Raises NoAnswer."""
        until_s, body = time.monotonic() + deadline_s, bytearray()
        until = _until_s.set(until_s)
        try:
            with self._client.stream(method, url, timeout=deadline_s, **request) as answer:
                for chunk in answer.iter_bytes():
                    body += chunk
                    if len(body) > most_bytes:
                        raise httpx.ReadError(f"it has more than {most_bytes} bytes")
                    if time.monotonic() > until_s:
                        raise httpx.ReadTimeout("not all of it came")
        # Beside its own errors httpx lets through those of idna, of codecs and of numbers.
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, OverflowError) as failure:
            raise NoAnswer(part, url, failure, deadline_s) from None
        finally:
            _until_s.reset(until)
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
        json: object = None,
        deadline_s: float = DEADLINE_S,
        *,
        content: str | None = None,
        form: Mapping[str, str] | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> httpx.Response:
        """The answer, whatever its status, to `json`, to `content` as it is, or to a `form`."""
        sent = {"json": json, "content": content, "data": form}
        return self._http.ask(self.name, method, self.url + path, deadline_s, most_bytes, **sent)

    def call(
        self,
        method: str,
        path: str,
        json: object = None,
        deadline_s: float = DEADLINE_S,
        content: str | None = None,
    ) -> httpx.Response:
        """As `ask`. Raises Refused, with the part's own words, for an answer that is no success."""
        answer = self.ask(method, path, json, deadline_s, content=content)
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

    def samples(self, path: str, *names: str, deadline_s: float = DEADLINE_S) -> list[Sample]:
        """The samples of these names on a page of metrics, all of them finite.

        Only lines that may be wanted are parsed: a server's page of 1,200 lines takes 10 ms as a
        whole and 0.1 ms so, and it is read while the lab measures.
        """
        answer = self.call("GET", path, None, deadline_s)
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
        return samples


def _plain(answer: httpx.Response) -> None:
    """Takes headers away that httpx would act on: it makes the next request out of a Location, even
    where it is to follow none, and what it unpacks has no bound."""
    for header in ("Location", "Content-Encoding"):
        answer.headers.pop(header, None)
