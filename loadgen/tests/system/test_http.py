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
from lab.subject.lab_server import LabServer
from lab.system.exporter import Exporter
from lab.system.http import MOST_BYTES, Http, NoAnswer, Part
from lab.system.management import Management
from lab.system.prometheus import QUERY_BYTES
from lab.system.stack import Stack
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


def stack_of(body: bytes | httpx.SyncByteStream, **headers: str) -> Stack:
    """A lab whose every part answers with this body."""
    stream = httpx.ByteStream(body) if isinstance(body, bytes) else body
    answer = httpx.MockTransport(lambda _: httpx.Response(200, headers=headers, stream=stream))
    return Stack("", answer)


@pytest.mark.parametrize(
    ("url", "most"),
    [
        ("http://a:8081/identity", MOST_BYTES),
        ("http://prometheus:9090/api/v1/query", QUERY_BYTES),
    ],
)
def test_an_answer_without_an_end_is_refused(url: str, most: int) -> None:
    taken: list[int] = []

    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                taken.append(1 << 22)
                yield bytes(1 << 22)

    with pytest.raises(LabUnreachable, match=f"it has more than {most} bytes"):
        CALLS[url](stack_of(Endless()))
    assert sum(taken) <= most + (1 << 22)


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


@pytest.fixture(params=["body", "head"])
def dripping(request: pytest.FixtureRequest) -> str:
    """A server that sends a byte every 5 ms until its client leaves it."""
    listener = socket.create_server(("127.0.0.1", 0))
    begins = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n"

    def serve() -> None:
        with listener, listener.accept()[0] as client:
            client.recv(65_536)
            client.sendall(begins + (b"\r\n" if request.param == "body" else b"X: "))
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
    until = time.monotonic() + 30
    with pytest.raises(LabUnreachable, match=r"^a: .* does not answer: .* \(in 0\.3 s\)$"):
        Part(real, "a", dripping).get("/settings", dict, deadline_s=0.3)
    assert time.monotonic() < until


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

    stack = Stack("", httpx.MockTransport(answer))
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
