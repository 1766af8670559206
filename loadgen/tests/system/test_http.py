"""Whatever a part answers, a call ends in time, within its bytes, and with one line."""

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

import httpx
import pytest

from lab.errors import LabUnreachable
from lab.system.http import MOST_BYTES, Http, NoAnswer
from lab.system.prometheus import QUERY_BYTES
from lab.system.stack import Stack, Urls
from support.fakes import FakeLab, toxic

CALLS: dict[str, Callable[[Stack], object]] = {
    "http://a:8081/identity": lambda stack: stack.management.identity("a"),
    "http://a:8081/settings": lambda stack: stack.management.settings("a"),
    "http://a:8081/metrics": lambda stack: stack.management.in_flight("a"),
    "http://a:8081/recording/end": lambda stack: stack.management.end_recording(
        "a", "cpu", (0.0, 1.0)
    ),
    "http://a:9404/metrics": lambda stack: stack.exporter.resident_bytes("a"),
    "http://a:8080/x": lambda stack: stack.traffic.check_route("a", "/x"),
    "http://downstream:8081/settings": lambda stack: stack.downstream_delay(),
    "http://toxiproxy:8475/proxies": lambda stack: stack.toxics(),
    "http://toxiproxy:8475/metrics": lambda stack: stack.toxiproxy.files(),
    "http://loadgen:9464/toxics": lambda stack: stack.agent.toxics_seen(),
    "http://prometheus:9090/api/v1/query": lambda stack: stack.prometheus.series("up[1m]", 60.0),
    "http://prometheus:9090/api/v1/targets?state=active": lambda stack: stack.prometheus.targets(),
}


class Body(httpx.SyncByteStream):
    """Sends the chunk again and again; counts what was taken of it."""

    def __init__(self, chunk: bytes, count: int = 1 << 30) -> None:
        self.chunk, self.count, self.taken = chunk, count, 0

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self.count):
            self.taken += len(self.chunk)
            yield self.chunk


def stack_of(body: bytes | Body, *, status: int = 200, **headers: str) -> Stack:
    """A lab whose every part answers with this body; its clock goes on by a second each time that
    somebody looks at it."""

    def answer(_: httpx.Request) -> httpx.Response:
        stream = httpx.ByteStream(body) if isinstance(body, bytes) else body
        return httpx.Response(status, headers=headers, stream=stream)

    seconds = map(float, range(1 << 40))
    return Stack(Urls.read({}), httpx.MockTransport(answer), monotonic=seconds.__next__)


@pytest.mark.parametrize("url", CALLS)
def test_an_answer_that_drips_for_ever_ends_with_the_deadline(url: str) -> None:
    drip = Body(b" ")
    with pytest.raises(LabUnreachable) as refused:
        CALLS[url](stack_of(drip))
    assert f"{url} does not answer: not all of it came (in " in str(refused.value)
    assert drip.taken <= 60


@pytest.mark.parametrize("url", CALLS)
def test_an_answer_of_a_gigabyte_is_not_kept(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    most = QUERY_BYTES if "/query" in url else MOST_BYTES
    large = Body(bytes(1 << 22), 1 << 8)
    stack = stack_of(large)
    stack._http._monotonic = lambda: 0.0
    with pytest.raises(LabUnreachable, match=rf"answers with more than {most} bytes") as refused:
        CALLS[url](stack)
    assert url in str(refused.value)
    assert large.taken <= most + len(large.chunk)


@pytest.mark.parametrize(
    "body",
    [
        b'{"settings":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        # Decoders take it, and whatever calls itself afterwards does not.
        b'{"settings":{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}}",
        b'{"settings":{"a":1' + b"0" * 400 + b"}}",
        b'{"settings":{"a":NaN}}',
        b'{"settings":{"a":"\xff"}}',
        b'{"settings":{"a":"\\ud800"}}',
        b"",
    ],
)
def test_json_that_would_fail_later_is_none(body: bytes) -> None:
    for url, call in CALLS.items():
        if not url.endswith(("/metrics", "/x")):
            with pytest.raises(LabUnreachable):
                call(stack_of(body))


def test_what_is_packed_is_not_unpacked() -> None:
    packed = gzip.compress(json.dumps({"settings": {}}).encode())
    headers = {"Content-Encoding": "gzip"}
    with pytest.raises(LabUnreachable, match="does not answer with a JSON object"):
        stack_of(packed, **headers).management.settings("a")


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e999"])
def test_a_metric_that_is_no_number_is_refused(value: str) -> None:
    page = f"process_resident_memory_bytes {value}\n".encode()
    with pytest.raises(LabUnreachable, match="process_resident_memory_bytes is"):
        stack_of(page).exporter.resident_bytes("a")
    for body in (b'{"data": []}', b'{"data": 1}', b"{}"):
        assert stack_of(body).prometheus.version() == "unknown"


@pytest.mark.parametrize(
    "location",
    [
        *("localhost:8080/login", "urn:ietf:wg:oauth:2.0:oob", "data:text/plain,x"),
        *("http://[::1", "http://10.0.0.256:8080/", "http://xn--/x", "http://a:99999/", "/a%zz"),
        "http://a\x1b]52;c;x\x07/",
    ],
)
def test_where_an_answer_sends_its_client_is_not_read(location: str) -> None:
    stack = stack_of(b"", status=302, Location=location)
    stack.adopt("my-service", "http://my-service:8080", "/x")
    said = stack.traffic.check_route("my-service", "/x")
    assert said == "/x answers 302: redirects are measured, not followed"
    stack.check_foreign("my-service")
    assert stack.traffic.answers("my-service", 5.0)


class Dripping:
    """A server that sends a byte every 5 ms, after `first`, until its client leaves it: for 20 s at
    the most, and then the rest of a whole answer."""

    def __init__(self, first: bytes) -> None:
        self._first = first
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/settings"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with self._socket, self._socket.accept()[0] as client:
            client.recv(65_536)
            client.sendall(self._first)
            try:
                for _ in range(4_000):
                    client.sendall(b"x")
                    time.sleep(0.005)
                client.sendall(b"\r\nContent-Length: 0\r\n\r\n")
            except OSError:
                return


@pytest.fixture
def http() -> Iterator[Http]:
    asked = Http()
    yield asked
    asked.close()


@pytest.mark.parametrize(
    "first",
    [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"],
    ids=["head", "body"],
)
def test_a_real_server_that_drips_has_no_more_than_the_deadline(http: Http, first: bytes) -> None:
    """httpx counts its own deadline again from each byte."""
    with pytest.raises(LabUnreachable, match=r"does not answer: .* \(in 0\.3 s\)$"):
        http.get("a", Dripping(first).url, deadline_s=0.3)


@pytest.mark.parametrize(
    "url", ["http://10.0.0.256:8080/", "http://my..service/", "http://xn--/", "http://a:x/"]
)
def test_an_address_that_is_none_gives_no_answer(http: Http, url: str) -> None:
    with pytest.raises(NoAnswer) as refused, http.stream("GET", url, 1.0):
        pass
    assert str(refused.value).startswith(f"{url} does not answer: ")


VALUES = (None, True, [], {}, "", "x", -1, 0, 1e300, 1 << 63, [[]], [None], {"a": 1}, "\u202e")
SIGNS = ("NaN", "1e999", "{", "}", '{a="', "\n", "# EOF\n", "{} ", '{="x"} ', "\\", "-1", "\0")


def changed(random: Random, body: bytes) -> bytes:
    """A right answer with one value, or one sign, that is wrong."""
    if not body.startswith(b"{"):
        at = random.randrange(len(body) + 1)
        return body[:at] + random.choice(SIGNS).encode() + body[at + random.randrange(9) :]
    whole = json.loads(body)
    inside = whole
    while isinstance(inside, dict | list) and inside:
        keys = [*inside] if isinstance(inside, dict) else range(len(inside))
        key = random.choice(keys)
        if random.random() < 0.4 or not isinstance(inside[key], dict | list):
            inside[key] = random.choice(VALUES)
            break
        inside = inside[key]
    return json.dumps(whole).encode()


def test_no_answer_of_a_part_ends_in_anything_but_a_value_or_one_line(lab: FakeLab) -> None:
    random, refused = Random(49), 0

    def answer(request: httpx.Request) -> httpx.Response:
        right = lab.answer(request)
        body = changed(random, right.read()) if random.random() < 0.5 else right.content
        return httpx.Response(right.status_code, content=body)

    stack = Stack(Urls.read({}), httpx.MockTransport(answer))
    stack.traffic.check_route = lambda *_: None
    more = (
        lambda: stack.management.work("a", "/downstream"),
        lambda: stack.prometheus.values("up", 1.0),
        lambda: stack.toxiproxy.answers(1.0),
        lambda: stack.snapshot("a"),
        lambda: stack.exporter.times("a"),
    )
    calls = (*(partial(call, stack) for call in CALLS.values()), *more)
    for _ in range(3_000):
        lab.toxics = [toxic()]
        try:
            random.choice(calls)()
        except LabUnreachable as failure:
            said = str(failure)
            assert said.isprintable()
            refused += 1
    assert 300 < refused < 2_000
