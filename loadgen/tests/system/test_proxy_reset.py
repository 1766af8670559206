"""What other servers left with Toxiproxy: cut when it is much, and when nothing answers."""

from typing import Any

import pytest

from lab.system.proxy_reset import LOOK_S, clear_proxy
from lab.system.undo_log import UndoLog
from support.fakes import FakeLab


def cleared(lab: FakeLab) -> str | None:
    return clear_proxy(lab.stack, lab.system, UndoLog(None))


@pytest.mark.parametrize(
    ("changes", "waits_s"),
    [
        ({"proxy_files": 900}, 0),
        ({"proxy_files": 16_000, "enabled": False}, LOOK_S),
        ({"down": {"toxiproxy"}}, 0),
    ],
    ids=["few connections", "a proxy that is down", "no Toxiproxy"],
)
def test_nothing_is_changed(changes: dict[str, Any], waits_s: float) -> None:
    lab = FakeLab(**changes)
    enabled = lab.enabled
    assert cleared(lab) is None
    assert (lab.toxic_calls, lab.enabled) == ([], enabled)
    assert lab.system.elapsed_s == pytest.approx(waits_s)


def test_many_connections_are_cut_and_the_agent_has_time_to_see_it(lab: FakeLab) -> None:
    lab.proxy_files = 16_229
    assert cleared(lab) is None
    assert (len(lab.toxic_calls), lab.enabled, lab.proxy_files) == (2, True, 12)
    assert lab.system.elapsed_s == pytest.approx(LOOK_S)


def test_a_proxy_that_accepts_nothing_is_revived_and_said(lab: FakeLab) -> None:
    lab.proxy_deaf = True
    assert "did not answer any more" in cleared(lab)
    assert lab.enabled
    assert not lab.proxy_deaf


def test_a_toxiproxy_that_is_busy_cutting_brings_its_proxy_up_later(lab: FakeLab) -> None:
    lab.proxy_files = 16_229
    # It takes the proxy down, and then does as little as it says for a while.
    lab.stuck_from = 1
    lab.system.at(5.0, lambda: setattr(lab, "stuck_from", None))
    assert cleared(lab) is None
    assert lab.enabled
    assert lab.system.elapsed_s >= 5
