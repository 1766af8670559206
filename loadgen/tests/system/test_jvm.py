"""A JVM or a container that is replaced, and a server that settles."""

from collections.abc import Mapping

import pytest

from lab.errors import LabUnreachable
from lab.system.host import Clock
from lab.system.host_changes import FRESH, HostChanges
from lab.system.jvm import RESTART_S, SETTLE_S, fresh_container, fresh_jvm, settled
from support.fakes import FakeLab
from support.foreign import URL


def test_a_fresh_jvm_is_one_that_started_later_and_answers_as_itself(lab: FakeLab) -> None:
    before = lab.stack.management.identity("a").start_time_ms
    assert fresh_jvm("a", lab.stack, lab.system).start_time_ms != before
    assert lab.restarts == ["a"]
    lab.answering_model = "b"
    with pytest.raises(LabUnreachable, match="answered by b"):
        fresh_jvm("a", lab.stack, lab.system)


def test_a_jvm_that_goes_on_is_refused(lab: FakeLab) -> None:
    lab.never_back = {"a"}
    with pytest.raises(LabUnreachable, match="did not end when told to"):
        fresh_jvm("a", lab.stack, lab.system)
    assert lab.system.elapsed_s == pytest.approx(RESTART_S, abs=1)


def test_it_waits_for_a_jvm_that_is_away(lab: FakeLab) -> None:
    lab.system.at(0.2, lambda: lab.down.add("a"))
    lab.system.at(9.0, lambda: lab.down.clear())
    fresh_jvm("a", lab.stack, lab.system)
    assert lab.system.elapsed_s == pytest.approx(9, abs=0.5)


class Host(HostChanges):
    """Takes the service away with its old container, and brings it back at `back_s`."""

    def __init__(self, lab: FakeLab, back_s: float) -> None:
        super().__init__(None)
        self.lab, self.back_s = lab, back_s

    def change(self, server: str, settings: Mapping[str, str], clock: Clock) -> None:
        assert (server, settings) == ("my-service", {FRESH: "yes"})
        self.lab.down.add(server)
        self.lab.system.at(self.back_s, lambda: self.lab.down.remove(server))


@pytest.mark.parametrize("scraped", [True, False])
def test_a_fresh_container_is_one_that_answers(lab: FakeLab, scraped: bool) -> None:
    lab.foreign, lab.scraped_jvms = {"my-service"}, {"my-service"} if scraped else set()
    lab.stack.adopt("my-service", URL, "/x")
    fresh_container("my-service", Host(lab, 9.0), lab.stack, lab.system)
    assert lab.system.elapsed_s == pytest.approx(9, abs=0.5)
    # One that answers errors is still starting.
    lab.route_status = 503
    lab.system.at(21.0, lambda: setattr(lab, "route_status", 200))
    fresh_container("my-service", Host(lab, 12.0), lab.stack, lab.system)
    assert lab.system.elapsed_s == pytest.approx(21, abs=0.5)
    # The message begins with the server, so that its row says that it did not come back.
    with pytest.raises(LabUnreachable, match=r"^my-service: .* does not answer"):
        fresh_container("my-service", Host(lab, 1e6), lab.stack, lab.system)
    assert lab.system.elapsed_s == pytest.approx(21 + RESTART_S, abs=1.5)


def test_settled_waits_for_the_queue_but_not_for_ever(lab: FakeLab) -> None:
    lab.in_flight = 800
    lab.system.at(3.0, lambda: setattr(lab, "in_flight", 1))
    assert settled("a", lab.stack, lab.system)
    assert lab.system.elapsed_s == pytest.approx(3, abs=0.5)
    lab.in_flight = 2
    assert not settled("a", lab.stack, lab.system)
    assert lab.system.elapsed_s == pytest.approx(3 + SETTLE_S, abs=1)
    lab.down.add("a")
    assert settled("a", lab.stack, lab.system)
