"""Whatever a part answers, a call ends in time, within its bytes, and with one line."""

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

import httpcore
import httpx
import pytest

from lab.errors import LabUnreachable
from lab.subject.lab_server import LabServer
from lab.system import http
from lab.system.exporter import Exporter
from lab.system.http import MOST_BYTES, Http, NoAnswer, Part
from lab.system.management import Management
from lab.system.prometheus import QUERY_BYTES
from lab.system.stack import Stack, Urls
from support.fakes import FakeLab, toxic


def management(stack: Stack) -> Management:
    return Management(stack.http, "a")


def exporter(stack: Stack) -> Exporter:
    return Exporter(stack.http, "a")


CALLS: dict[str, Callable[[Stack], object]] = {
    "http://a:8081/identity": lambda stack: management(stack).identity(),
    "http://a:8081/settings": lambda stack: management(stack).settings(),
    "http://a:8081/metrics": lambda stack: management(stack).in_flight(),
    "http://a:8081/recording/end": lambda stack: management(stack).end_recording("cpu", (0.0, 1.0)),
    "http://a:9404/metrics": lambda stack: exporter(stack).resident_bytes(),
    "http://a:8080/x": lambda stack: LabServer("a", stack).check_route("/x"),
    "http://downstream:8081/settings": lambda stack: stack.downstream.delay(),
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


def stack_of(body: bytes | Body, **headers: str) -> Stack:
    """A lab whose every part answers with this body."""

    def answer(_: httpx.Request) -> httpx.Response:
        stream = httpx.ByteStream(body) if isinstance(body, bytes) else body
        return httpx.Response(200, headers=headers, stream=stream)

    return Stack(Urls.read({}), httpx.MockTransport(answer))


@pytest.mark.parametrize("url", CALLS)
def test_an_answer_without_an_end_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock goes on by a second each time that somebody looks at it.
    seconds = map(float, range(1 << 40))
    monkeypatch.setattr(http, "time", type("Time", (), {"monotonic": seconds.__next__}))
    drip = Body(b" ")
    with pytest.raises(LabUnreachable) as refused:
        CALLS[url](stack_of(drip))
    assert f"{url} does not answer: not all of it came (in " in str(refused.value)
    assert drip.taken <= 62
    monkeypatch.undo()
    large, most = Body(bytes(1 << 22), 1 << 8), QUERY_BYTES if "/query" in url else MOST_BYTES
    with pytest.raises(LabUnreachable, match=f"it has more than {most} bytes"):
        CALLS[url](stack_of(large))
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
        if not url.endswith(("/metrics", "/x", "/toxics")):
            with pytest.raises(LabUnreachable):
                call(stack_of(body))


def test_what_is_packed_is_not_unpacked() -> None:
    packed = gzip.compress(json.dumps({"settings": {}}).encode())
    headers = {"Content-Encoding": "gzip"}
    with pytest.raises(LabUnreachable, match="has a wrong JSON"):
        management(stack_of(packed, **headers)).settings()


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e999"])
def test_a_metric_that_is_no_number_is_refused(value: str) -> None:
    page = f"process_resident_memory_bytes {value}\n".encode()
    with pytest.raises(LabUnreachable, match="process_resident_memory_bytes is"):
        exporter(stack_of(page)).resident_bytes()


@pytest.fixture
def dripping() -> str:
    """A server that sends a byte every 5 ms until its client leaves it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener, listener.accept()[0] as client:
            client.recv(65_536)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            try:
                while True:
                    client.sendall(b"x")
                    time.sleep(0.005)
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def real() -> Iterator[Http]:
    asked = Http()
    yield asked
    asked.close()


def test_a_real_server_that_drips_has_no_more_than_the_deadline(real: Http, dripping: str) -> None:
    """httpx counts its own deadline again from each byte."""
    with pytest.raises(LabUnreachable, match=r"^a: .* does not answer: .* \(in 0\.3 s\)$"):
        Part(real, "a", dripping).get("/settings", dict, deadline_s=0.3)


@pytest.mark.parametrize("begin", [b"HTTP/1.1", b"HTTP/1.1 200 OK\r\nX: ", b""])
def test_a_head_that_drips_has_no_more_than_the_deadline(
    real: Http, begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds, bytes_sent = map(float, range(1 << 40)), [begin or b"x", *[b"x"] * 10_000]

    class Drip(httpcore.MockStream):
        def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
            return bytes_sent.pop(0)

    monkeypatch.setattr(http, "time", type("Time", (), {"monotonic": seconds.__next__}))
    monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", lambda *_, **__: Drip([]))
    with pytest.raises(NoAnswer, match=r"^a: .* does not answer: not all of it came \(in 5 s\)$"):
        Part(real, "a", "http://a:1").get("/settings", dict)
    assert len(bytes_sent) > 9_990


@pytest.mark.parametrize(
    "url", ["http://10.0.0.256:8080", "http://my..service", "http://xn--", "http://a:x"]
)
def test_an_address_that_is_none_gives_no_answer(real: Http, url: str) -> None:
    with pytest.raises(NoAnswer) as refused:
        Part(real, "a", url).ask("GET", "/", deadline_s=1.0)
    assert str(refused.value).startswith(f"a: {url}/ does not answer: ")


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
    random, refused = Random(49), list[str]()

    def answer(request: httpx.Request) -> httpx.Response:
        right = lab.answer(request)
        body = changed(random, right.read()) if random.random() < 0.5 else right.content
        return httpx.Response(right.status_code, content=body)

    stack = Stack(Urls.read({}), httpx.MockTransport(answer))
    more = (
        lambda: management(stack).work("/downstream"),
        lambda: stack.prometheus.values("up", 1.0),
        lambda: stack.toxiproxy.answers(1.0),
        lambda: LabServer("a", stack).snapshot(),
        lambda: exporter(stack).times(),
    )
    calls = (*(partial(call, stack) for call in CALLS.values()), *more)
    for _ in range(3_000):
        lab.toxics = [toxic()]
        try:
            random.choice(calls)()
        except LabUnreachable as failure:
            refused.append(str(failure))
    assert all(text.isprintable() for text in refused)
    assert 300 < len(refused) < 2_000
