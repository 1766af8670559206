"""What other servers left with Toxiproxy: cut when it is much, and when nothing answers."""

import pytest

from lab.system.proxy_reset import LOOK_S, clear_proxy
from lab.system.undo_log import UndoLog
from support.fakes import FakeLab


def changes(lab: FakeLab) -> int:
    return len(lab.toxic_calls)


def test_a_proxy_with_few_connections_is_left_alone(lab: FakeLab) -> None:
    lab.proxy_files = 900
    assert clear_proxy(lab.stack, lab.system, UndoLog(None)) is None
    assert changes(lab) == 0
    assert lab.system.elapsed_s == 0


def test_many_connections_are_cut_and_the_agent_has_time_to_see_it(lab: FakeLab) -> None:
    lab.proxy_files = 16_229
    assert clear_proxy(lab.stack, lab.system, UndoLog(None)) is None
    assert (changes(lab), lab.enabled, lab.proxy_files) == (2, True, 12)
    assert lab.system.elapsed_s == pytest.approx(LOOK_S)


def test_a_proxy_that_accepts_nothing_is_revived_and_said(lab: FakeLab) -> None:
    lab.proxy_deaf = True
    assert "did not answer any more" in (clear_proxy(lab.stack, lab.system, UndoLog(None)) or "")
    assert lab.enabled
    assert not lab.proxy_deaf


def test_a_toxiproxy_that_is_busy_cutting_brings_its_proxy_up_later(lab: FakeLab) -> None:
    lab.proxy_files = 16_229
    # It takes the proxy down, and then does as little as it says for a while.
    lab.stuck_from = 1
    lab.system.at(5.0, lambda: setattr(lab, "stuck_from", None))
    assert clear_proxy(lab.stack, lab.system, UndoLog(None)) is None
    assert lab.enabled
    assert lab.system.elapsed_s >= 5


def test_a_proxy_that_is_down_stays_down(lab: FakeLab) -> None:
    lab.enabled, lab.proxy_files = False, 16_000
    assert clear_proxy(lab.stack, lab.system, UndoLog(None)) is None
    assert changes(lab) == 0
    assert not lab.enabled


def test_without_an_answer_from_toxiproxy_nothing_is_changed(lab: FakeLab) -> None:
    lab.down.add("toxiproxy")
    assert clear_proxy(lab.stack, lab.system, UndoLog(None)) is None
