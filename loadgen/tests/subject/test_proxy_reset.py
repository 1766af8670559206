"""What other servers left with Toxiproxy: cut when it is much, and when nothing answers."""

import pytest

from lab.model import Remark
from lab.subject.changes import Journal
from lab.subject.proxy_reset import LOOK_S, clear_proxy
from support.fakes import FakeLab


def cleared(lab: FakeLab) -> Remark | None:
    return clear_proxy(lab.stack, lab.system, Journal(None))


def test_nothing_is_changed() -> None:
    few, down = {"proxy_files": 900}, {"proxy_files": 16_000, "enabled": False}
    for changes, waits_s in ((few, 0), (down, LOOK_S), ({"down": {"toxiproxy"}}, 0)):
        lab = FakeLab(**changes)
        assert cleared(lab) is None
        assert lab.toxic_calls == [], changes
        assert lab.enabled == changes.get("enabled", True)
        assert lab.system.elapsed_s == pytest.approx(waits_s)


def test_many_connections_are_cut_and_the_agent_has_time_to_see_it(lab: FakeLab) -> None:
    lab.proxy_files = 16_229
    assert cleared(lab) is None
    assert (len(lab.toxic_calls), lab.enabled, lab.proxy_files) == (2, True, 12)
    assert lab.system.elapsed_s == pytest.approx(LOOK_S)


def test_a_proxy_that_accepts_nothing_is_revived_and_said(lab: FakeLab) -> None:
    lab.proxy_deaf = True
    assert cleared(lab).code == "proxy-deaf"
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
