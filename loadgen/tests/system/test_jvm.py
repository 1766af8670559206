import pytest

from lab.errors import LabUnreachable
from lab.system.jvm import RESTART_S, SETTLE_S, fresh_jvm, settled
from lab.system.stack import Stack
from support.fakes import FakeLab, FakeSystem


def test_a_fresh_jvm_is_one_that_started_later(
    stack: Stack, fake_lab: FakeLab, system: FakeSystem
) -> None:
    before = stack.management.identity("a").start_time_ms
    assert fresh_jvm("a", stack, system).start_time_ms != before
    assert fake_lab.restarts == ["a"]


def test_a_jvm_that_goes_on_is_refused(stack: Stack, fake_lab: FakeLab, system: FakeSystem) -> None:
    fake_lab.comes_back = False
    with pytest.raises(LabUnreachable, match="did not end when told to"):
        fresh_jvm("a", stack, system)
    assert system.elapsed_s == pytest.approx(RESTART_S, abs=1)


def test_it_waits_for_a_jvm_that_is_away(
    stack: Stack, fake_lab: FakeLab, system: FakeSystem
) -> None:
    system.at(0.2, lambda: fake_lab.down.add("a"))
    system.at(9.0, lambda: fake_lab.down.clear())
    fresh_jvm("a", stack, system)
    assert system.elapsed_s == pytest.approx(9, abs=0.5)


def test_it_must_answer_traffic_as_itself(
    stack: Stack, fake_lab: FakeLab, system: FakeSystem
) -> None:
    fake_lab.answering_model = "b"
    with pytest.raises(LabUnreachable, match="answered by another server"):
        fresh_jvm("a", stack, system)


def test_settled_waits_for_the_queue_but_not_for_ever(
    stack: Stack, fake_lab: FakeLab, system: FakeSystem
) -> None:
    fake_lab.in_flight = 800
    system.at(3.0, lambda: setattr(fake_lab, "in_flight", 1))
    assert settled("a", stack, system)
    assert system.elapsed_s == pytest.approx(3, abs=0.5)
    fake_lab.in_flight = 2
    assert not settled("a", stack, system)
    assert system.elapsed_s == pytest.approx(3 + SETTLE_S, abs=1)
    fake_lab.down.add("a")
    assert settled("a", stack, system)
