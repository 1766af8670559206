"""A service that is not the lab's, as it is reached."""

import re
import time
from collections.abc import Callable

import httpx
import pytest

from lab.errors import LabUnreachable
from lab.load.agent_marks import AgentMarks
from lab.model import Exported
from lab.system.observe import selectors
from lab.system.stack import Stack, Urls
from lab.system.traffic import BODY_BYTES
from support.fakes import FakeLab, plan
from support.foreign import URL
from system.test_http import Body


def test_a_snapshot_has_what_an_exporter_tells(outside: FakeLab) -> None:
    now = outside.stack.snapshot("my-service")
    assert now.foreign
    assert now.exported == Exported(1_000_000, "21.0.1", 1_048_576_000, 200, scraped=True)
    assert now.jvm_started_ms == 1_000_000
    assert now.settings == {"url": URL}
    assert not outside.stack.snapshot("a").foreign
    assert outside.stack.traffic.url("my-service", "/x") == f"{URL}/x"
    # It has no management port, and none is asked.
    assert ("my-service", 8081) not in outside.asked
    # With the recorder in its JVM.
    outside.foreign_tells = "lab_lock_watch_ms 10.0\nlab_virtual_thread_scheduler_parallelism 2.0\n"
    now = outside.stack.snapshot("my-service")
    assert (now.lock_watch_ms, now.carriers, now.pool_size) == (10, 2, 200)


def test_an_answer_that_never_ends_is_not_read_to_its_end(lab: FakeLab) -> None:
    paths: list[str] = []

    def stack_of(body: Body, monotonic: Callable[[], float] = time.monotonic) -> Stack:
        def answer(request: httpx.Request) -> httpx.Response:
            if request.url.host != "my-service":
                return lab.answer(request)
            paths.append(request.url.path)
            return httpx.Response(200, stream=body)

        made = Stack(Urls.read({}), httpx.MockTransport(answer), monotonic=monotonic)
        made.adopt("my-service", URL, "/events")
        return made

    large, slow = Body(b"x" * 1000), Body(b".")
    assert stack_of(large).traffic.check_route("my-service", "/events") is None
    assert large.taken < BODY_BYTES + 10_000
    traffic = stack_of(slow, map(float, range(1000)).__next__).traffic
    assert "/events still answers after 10 s" in traffic.check_route("my-service", "/events")
    assert slow.taken <= 20
    # Whether it answers at all is asked where it was loaded.
    paths.clear()
    assert traffic.answers("my-service", 1.0)
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


@pytest.mark.parametrize("host", ["host.docker.internal", "my-service"])
def test_an_exporter_counts_only_where_it_is_listed(lab: FakeLab, host: str) -> None:
    url = f"http://{host}:3000"
    lab.foreign = {host}
    lab.stack.adopt(host, url)
    assert lab.stack.snapshot(host).exported is None
    with pytest.raises(LabUnreachable, match=r"that prometheus/own\.json lists"):
        lab.stack.exporter.cpu_s(host)
    lab.scraped_jvms = {host}
    lab.stack.adopt(host, url)
    assert lab.stack.snapshot(host).scraped


def test_a_service_that_does_not_answer_is_refused_with_what_to_do(lab: FakeLab) -> None:
    host = "host.docker.internal"
    lab.stack.adopt(host, f"http://{host}:3000")
    lab.down.add(host)
    with pytest.raises(LabUnreachable, match="listen on an address that containers can reach"):
        lab.stack.traffic.check_route(host, "/x")


def test_an_error_is_a_warning_and_a_missing_path_a_refusal(outside: FakeLab) -> None:
    route = ("my-service", "/x")
    redirect = "/x answers 302: redirects are measured, not followed"
    for status, warning in ((200, None), (500, "/x answers 500"), (302, redirect)):
        outside.route_status = status
        assert outside.stack.traffic.check_route(*route) == warning
    outside.route_status = 404
    with pytest.raises(LabUnreachable, match="answers 404: not served"):
        outside.stack.traffic.check_route(*route)


def test_a_path_is_taken_as_it_is_in_queries() -> None:
    asked = selectors("my-service", "/a.b*(c)?d=1", foreign=True)
    pattern = re.findall(r'route=~"([^"]*)\|"', asked[1])[0].replace("\\\\", "\\")
    assert re.fullmatch(pattern, "/a.b*(c)")
    assert not re.fullmatch(pattern, "/aXb*(c)")
    assert not any("downstream" in one or 'job="server"' in one for one in asked)


def test_a_trial_without_a_prediction_is_not_probed(outside: FakeLab) -> None:
    trial = plan("closed", server="my-service", predicted_rps=None)
    with AgentMarks("run", outside.stack, print).trial(trial, 60, None):
        assert outside.probe_rates == {0.0}
