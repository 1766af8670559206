"""A service that is not the lab's, as it is reached."""

import re
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from lab.errors import LabUnreachable
from lab.model import Exported
from lab.system.observe import selectors
from lab.system.stack import Stack, Urls
from lab.system.traffic import BODY_BYTES
from support.fakes import FakeLab, plan
from support.foreign import URL


def test_a_snapshot_has_what_an_exporter_tells(outside: FakeLab) -> None:
    now = outside.stack.snapshot("my-service")
    assert now.foreign
    assert now.exported == Exported(1_000_000, "21.0.1", 1_048_576_000, 200, scraped=True)
    assert now.jvm_started_ms == 1_000_000
    assert now.settings == {"url": URL}
    assert not outside.stack.snapshot("a").foreign
    assert outside.stack.traffic.url("my-service", "/x") == f"{URL}/x"
    # Nobody asks a management port that it does not have.
    assert ("my-service", 8081) not in outside.asked


def test_a_snapshot_has_what_the_recorder_in_its_jvm_was_told(outside: FakeLab) -> None:
    outside.foreign_tells = "lab_lock_watch_ms 10.0\nlab_virtual_thread_scheduler_parallelism 2.0\n"
    now = outside.stack.snapshot("my-service")
    assert (now.lock_watch_ms, now.carriers, now.pool_size) == (10, 2, 200)


def test_an_exporter_that_is_not_listed_proves_nothing(outside: FakeLab) -> None:
    outside.scraped_jvms = set()
    outside.stack.adopt("my-service", URL)
    assert outside.stack.snapshot("my-service").exported is None
    with pytest.raises(LabUnreachable, match=r"that prometheus/own\.json lists"):
        outside.stack.exporter.cpu_s("my-service")


def test_an_answer_that_never_ends_is_not_read_to_its_end(lab: FakeLab) -> None:
    class Endless(httpx.SyncByteStream):
        def __init__(self, chunk: bytes) -> None:
            self.chunk, self.read = chunk, 0

        def __iter__(self) -> Iterator[bytes]:
            while True:
                self.read += len(self.chunk)
                yield self.chunk

    paths: list[str] = []

    def stack_of(stream: Endless, monotonic: Callable[[], float] = time.monotonic) -> Stack:
        def answer(request: httpx.Request) -> httpx.Response:
            if request.url.host != "my-service":
                return lab.answer(request)
            paths.append(request.url.path)
            return httpx.Response(200, stream=stream)

        made = Stack(Urls.read({}), httpx.MockTransport(answer), monotonic=monotonic)
        made.adopt("my-service", URL, "/events")
        return made

    large = Endless(b"x" * 1000)
    assert stack_of(large).traffic.check_route("my-service", "/events") is None
    assert large.read < BODY_BYTES + 10_000
    slow = Endless(b".")
    stack = stack_of(slow, map(float, range(1000)).__next__)
    assert "/events still answers after 10 s" in (
        stack.traffic.check_route("my-service", "/events") or ""
    )
    assert slow.read <= 20
    # Whether it answers at all is asked where it was loaded.
    paths.clear()
    assert stack.traffic.answers("my-service", 1.0)
    assert paths == ["/events"]


def test_without_an_exporter_none_is_asked_again(lab: FakeLab) -> None:
    lab.foreign, lab.no_exporter = {"my-service"}, True
    lab.stack.adopt("my-service", URL)
    lab.asked.clear()
    assert lab.stack.snapshot("my-service").exported is None
    with pytest.raises(LabUnreachable, match="no JMX exporter on port 9404"):
        lab.stack.exporter.compilation_s("my-service")
    with pytest.raises(LabUnreachable, match="does not tell the CPU time of its JIT"):
        lab.stack.management.jit("my-service")
    assert not {("my-service", 9404), ("my-service", 8081)} & set(lab.asked)


def test_an_exporter_on_a_host_with_others_counts_only_where_it_is_listed(lab: FakeLab) -> None:
    host = "host.docker.internal"
    lab.foreign = {host}
    lab.stack.adopt(host, f"http://{host}:3000")
    assert lab.stack.snapshot(host).exported is None
    lab.scraped_jvms = {host}
    lab.stack.adopt(host, f"http://{host}:3000")
    assert lab.stack.snapshot(host).scraped


def test_one_that_does_not_answer_is_refused_with_what_to_do(lab: FakeLab) -> None:
    host = "host.docker.internal"
    lab.stack.adopt(host, f"http://{host}:3000")
    lab.down.add(host)
    with pytest.raises(LabUnreachable, match="listen on an address that containers can reach"):
        lab.stack.traffic.check_route(host, "/x")


def test_an_answer_that_is_no_success_is_a_warning_and_a_missing_path_a_refusal(
    outside: FakeLab,
) -> None:
    assert outside.stack.traffic.check_route("my-service", "/x") is None
    outside.route_status = 500
    assert outside.stack.traffic.check_route("my-service", "/x") == "/x answers 500"
    outside.route_status = 302
    assert "not followed" in (outside.stack.traffic.check_route("my-service", "/x") or "")
    outside.route_status = 404
    with pytest.raises(LabUnreachable, match="answers 404: not served"):
        outside.stack.traffic.check_route("my-service", "/x")


def test_a_path_is_taken_as_it_is_in_queries() -> None:
    asked = selectors("my-service", "/a.b*(c)?d=1", foreign=True)
    pattern = re.findall(r'route=~"([^"]*)\|"', asked[1])[0].replace("\\\\", "\\")
    assert re.fullmatch(pattern, "/a.b*(c)")
    assert not re.fullmatch(pattern, "/aXb*(c)")
    assert not any("downstream" in one or 'job="server"' in one for one in asked)


def test_nothing_is_probed_where_the_light_load_told_nothing(outside: FakeLab) -> None:
    outside.stack.agent.mark(
        "run", plan("closed", server="my-service", predicted_rps=None), "warmup", 60
    )
    assert outside.probe_rates == {0.0}
