"""What other servers left with Toxiproxy: cut when it is much, and when nothing answers."""

import pytest

from campaign.test_run import Bench
from lab.system.proxy_reset import LOOK_S, clear_proxy
from lab.system.stack import Stack
from lab.system.undo_log import UndoLog
from support.fakes import FakeLab, FakeSystem

pytest_plugins = ("campaign.test_run",)


def changes(fake_lab: FakeLab) -> int:
    return len(fake_lab.toxic_calls)


def test_a_proxy_with_few_connections_is_left_alone(
    stack: Stack, fake_lab: FakeLab, system: FakeSystem
) -> None:
    fake_lab.proxy_files = 900
    assert clear_proxy(stack, system, UndoLog(None)) is None
    assert changes(fake_lab) == 0
    assert system.elapsed_s == 0


def test_many_connections_are_cut_and_the_agent_has_time_to_see_it(
    stack: Stack, fake_lab: FakeLab, system: FakeSystem
) -> None:
    fake_lab.proxy_files = 16_229
    assert clear_proxy(stack, system, UndoLog(None)) is None
    assert (changes(fake_lab), fake_lab.enabled, fake_lab.proxy_files) == (2, True, 12)
    assert system.elapsed_s == pytest.approx(LOOK_S)


def test_a_proxy_that_accepts_nothing_is_revived_and_said(
    stack: Stack, fake_lab: FakeLab, system: FakeSystem
) -> None:
    fake_lab.proxy_deaf = True
    assert "did not answer any more" in (clear_proxy(stack, system, UndoLog(None)) or "")
    assert fake_lab.enabled
    assert not fake_lab.proxy_deaf


def test_a_proxy_that_is_down_stays_down(
    stack: Stack, fake_lab: FakeLab, system: FakeSystem
) -> None:
    fake_lab.enabled, fake_lab.proxy_files = False, 16_000
    assert clear_proxy(stack, system, UndoLog(None)) is None
    assert changes(fake_lab) == 0
    assert not fake_lab.enabled


def test_without_an_answer_from_toxiproxy_nothing_is_changed(
    stack: Stack, fake_lab: FakeLab, system: FakeSystem
) -> None:
    fake_lab.down.add("toxiproxy")
    assert clear_proxy(stack, system, UndoLog(None)) is None


def test_every_change_of_server_is_looked_at(ready: Bench, fake_lab: FakeLab) -> None:
    fake_lab.proxy_files = 16_000
    assert ready.run(servers=("a",)) == 0
    assert changes(fake_lab) == 2
    fake_lab.proxy_deaf = True
    ready.run(name="again", servers=("b",))
    assert "did not answer any more" in ready.text.getvalue()
