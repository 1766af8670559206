"""The lab is changed for a trial, only as far as it differs, and found again as it was."""

from collections.abc import Mapping
from pathlib import Path
from unittest.mock import Mock

import pytest

from lab.errors import Interrupted, LabError, LabUnreachable, Refused
from lab.model import AS_IT_IS, Condition
from lab.model.toxic_script import WHOLE_PROXY
from lab.system.conditions import Conditions, at_start
from lab.system.host import Clock
from lab.system.host_changes import REFUSALS, WITHDRAWN, HostChanges
from lab.system.undo_log import UndoLog
from support.fakes import FakeLab, toxic
from support.system import FakeSystem

SLOW = {"TYPE": "latency", "LATENCY": "800", "NAME": "planted"}
LIMITED = Condition(knobs={"pool_size": 20}, toxics=(SLOW,), host={"SERVER_CPUS": "0.5"})


class FakeHost(HostChanges):
    """Does what is asked: another JVM where it takes one. `refuses` is the host's answer."""

    def __init__(self, lab: FakeLab) -> None:
        super().__init__(None)
        self.lab = lab
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.refuses: str | None = None
        self._had: dict[str, dict[str, str]] = {}

    def change(self, server: str, settings: Mapping[str, str], clock: Clock) -> None:
        self.asked.append((server, dict(settings)))
        if self.refuses is not None:
            raise LabError(self.refuses)
        starts = {name: value for name, value in settings.items() if name != "SERVER_CPUS"}
        if server != "generator" and starts != self._had.get(server, {}):
            self._had[server] = starts
            self.lab.new_jvm(server)
            self.lab.pool_sizes[server] = int(settings.get("SERVER_POOL_SIZE", 200))


@pytest.fixture
def host(lab: FakeLab) -> FakeHost:
    return FakeHost(lab)


@pytest.fixture
def conditions(lab: FakeLab, host: FakeHost) -> Conditions:
    return Conditions(lab.stack, host, lab.system, FakeSystem())


def names(lab: FakeLab) -> list[object]:
    return [toxic["name"] for toxic in lab.toxics]


def test_as_it_is_and_a_missing_knob_change_nothing(conditions: Conditions, lab: FakeLab) -> None:
    lab.down |= {"a", "toxiproxy"}
    conditions.bring("a", AS_IT_IS)
    assert conditions.as_it_is
    assert conditions.restore() == []
    lab.down.clear()
    # A knob that the model does not have.
    with pytest.raises(LabError, match="b: 'pool_size' cannot be changed"):
        conditions.bring("b", Condition(knobs={"pool_size": 20}))
    assert conditions.restore() == []


def test_knobs_change_and_change_back(conditions: Conditions, lab: FakeLab) -> None:
    lab.pool_sizes["a"] = 123
    conditions.bring("a", Condition(knobs={"pool_size": 20}))
    assert lab.pool_sizes["a"] == 20
    conditions.bring("a", Condition(knobs={"downstream_connections": 30}))
    assert lab.pool_sizes["a"] == 123
    assert lab.settings["a"]["downstream_connections"] == 30
    assert conditions.restore() == []
    assert lab.settings["a"]["downstream_connections"] == 20_000
    assert conditions.as_it_is


def test_what_is_in_force_is_not_brought_again(conditions: Conditions, lab: FakeLab) -> None:
    conditions.bring("a", LIMITED)
    patched, called = len(lab.patches), len(lab.toxic_calls)
    conditions.bring("a", LIMITED)
    assert (len(lab.patches), len(lab.toxic_calls)) == (patched, called)


def test_the_last_server_is_restored(conditions: Conditions, lab: FakeLab, host: FakeHost) -> None:
    conditions.bring("a", Condition(knobs={"pool_size": 20}, host={"SERVER_CPUS": "0.5"}))
    conditions.bring("b", AS_IT_IS)
    assert lab.pool_sizes["a"] == 200
    assert host.asked == [("a", {"SERVER_CPUS": "0.5"}), ("a", {})]


def test_toxics_come_and_go_and_the_user_s_stay(conditions: Conditions, lab: FakeLab) -> None:
    own = toxic("own", latency=5)
    lab.toxics.append(own)
    conditions.bring("a", Condition(toxics=(SLOW,)))
    assert names(lab) == ["own", "planted"]
    # One of the user's is changed by its name, and then as it was.
    conditions.bring("a", Condition(toxics=({"NAME": "own", "LATENCY": "100"},)))
    assert [toxic["attributes"] for toxic in lab.toxics] == [{"latency": 100, "jitter": 0}]
    assert conditions.restore() == []
    assert lab.toxics == [own]


def test_toxics_that_are_gone_are_brought_again(conditions: Conditions, lab: FakeLab) -> None:
    slow = Condition(toxics=(SLOW,))
    conditions.bring("a", slow)
    # Toxiproxy was restarted: it has none.
    lab.toxics.clear()
    conditions.bring("a", slow)
    assert names(lab) == ["planted"]
    lab.toxics[0]["attributes"] = {"latency": 1, "jitter": 0}
    conditions.bring("a", slow)
    assert [toxic["attributes"] for toxic in lab.toxics] == [{"latency": 800, "jitter": 0}]
    assert conditions.restore() == []
    assert names(lab) == []


@pytest.mark.parametrize("next_one", [Condition(toxics=(SLOW,)), AS_IT_IS])
def test_a_trial_without_the_toxics_that_others_had_does_not_begin(
    conditions: Conditions, lab: FakeLab, next_one: Condition
) -> None:
    lab.toxics.append(toxic("own", latency=5))
    conditions.keep_toxics()
    conditions.bring("a", Condition(toxics=(SLOW,)))
    lab.toxics.clear()
    with pytest.raises(LabUnreachable, match=r"in force is none; trials before had downstream/own"):
        conditions.bring("a", next_one)
    with pytest.raises(LabUnreachable, match="in force is none"):
        conditions.keep_toxics()
    # Nothing of the lab's own is in force, so there is nothing to put back.
    assert conditions.restore() == []
    lab.toxics.append(toxic("own", latency=5))
    conditions.bring("a", next_one)


def test_a_server_that_is_away_costs_its_own_trials(conditions: Conditions, lab: FakeLab) -> None:
    conditions.bring("a", Condition(knobs={"pool_size": 20}))
    lab.down.add("a")
    conditions.bring("b", Condition(toxics=(SLOW,)))
    assert names(lab) == ["planted"]
    lab.down.clear()
    conditions.bring("b", Condition(toxics=(SLOW,)))
    assert lab.pool_sizes["a"] == 200


def test_a_cpu_limit_keeps_the_jvm(conditions: Conditions, lab: FakeLab) -> None:
    condition = Condition(host={"SERVER_CPUS": "0.5"})
    before = lab.identities["a"]
    assert not conditions.recreates("a", condition)
    assert at_start(condition) == AS_IT_IS
    conditions.bring("a", condition)
    assert lab.identities["a"] == before
    both = Condition(host={"SERVER_BACKLOG": "1", "SERVER_CPUS": "0.5"}, knobs={"pool_size": 20})
    assert at_start(both) == Condition(host={"SERVER_BACKLOG": "1"})


def test_other_settings_take_another_jvm(conditions: Conditions, lab: FakeLab) -> None:
    lab.pool_sizes["a"] = 123
    condition = Condition(host={"SERVER_BACKLOG": "1"}, toxics=(SLOW,))
    assert conditions.recreates("a", condition)
    assert at_start(condition) == Condition(host=condition.host)
    conditions.bring("a", condition)
    assert not conditions.recreates("a", condition)
    assert lab.identities["a"].start_time_ms == 1001
    assert lab.pool_sizes["a"] == 123
    assert lab.system.elapsed_s > 0
    assert conditions.restore() == []
    assert (lab.identities["a"].start_time_ms, lab.pool_sizes["a"]) == (1002, 123)


def test_a_knob_that_the_container_sets_stays(conditions: Conditions, lab: FakeLab) -> None:
    conditions.bring("a", Condition(host={"SERVER_POOL_SIZE": "50"}))
    assert lab.pool_sizes["a"] == 50
    assert conditions.restore() == []
    assert lab.pool_sizes["a"] == 200


def test_a_service_has_its_levers(conditions: Conditions, lab: FakeLab, host: FakeHost) -> None:
    lab.foreign, lab.identities["shop"] = {"shop"}, lab.identities["a"]
    lab.stack.adopt("shop", "http://shop:8080")
    condition = Condition(host={"ENV_POOL_SIZE": "40"})
    changed, restored = ("shop", {"ENV_POOL_SIZE": "40"}), ("shop", {})
    lab.down.add("shop")
    with pytest.raises(LabUnreachable, match="does not answer"):
        conditions.bring("shop", condition)
    lab.down.clear()
    assert conditions.restore() == []
    assert host.asked == [changed, restored]
    lab.asked.clear()
    assert conditions.recreates("shop", condition)
    assert at_start(condition) == condition
    conditions.bring("shop", condition)
    assert not conditions.recreates("shop", condition)
    conditions.bring("shop", condition)
    assert host.asked[2:] == [changed]
    # Its own port is asked until it answers, and it has no management port.
    assert lab.asked == [("shop", 8080)]
    assert conditions.restore() == []
    assert host.asked[3:] == [restored]
    assert conditions.as_it_is


def test_the_generator_is_limited_and_freed(conditions: Conditions, host: FakeHost) -> None:
    conditions.bring("a", Condition(generator_cpus=0.05))
    conditions.free_generator()
    conditions.free_generator()
    assert host.asked == [("generator", {"GENERATOR_CPUS": "0.05"}), ("generator", {})]
    assert conditions.as_it_is


def test_what_cannot_be_put_back_is_said_and_the_rest_is(
    conditions: Conditions, lab: FakeLab, host: FakeHost
) -> None:
    conditions.bring("a", LIMITED)
    host.refuses = "no engine"
    assert conditions.restore() == [
        "the lab could not be put back as it was: no engine",
        # Knobs need no engine.
        "what a run had left changed: put back as they were: pool_size of a",
    ]
    assert lab.toxics == []


@pytest.mark.parametrize(
    "failure", [OSError(28, "No space left on device"), KeyError("a bug"), LabError("no")]
)
def test_the_rest_is_put_back(conditions: Conditions, lab: FakeLab, failure: Exception) -> None:
    conditions.bring("a", Condition(knobs={"pool_size": 20}, toxics=(SLOW,), generator_cpus=0.05))
    lab.stack.toxiproxy.restore = Mock(side_effect=failure)
    # What that left is in the undo log.
    assert conditions.restore() == [
        f"the lab could not be put back as it was: {failure}",
        "what a run had left changed: put back as they were: downstream/planted",
    ]
    assert lab.toxics == []
    assert lab.pool_sizes["a"] == 200


def test_half_of_the_toxics_are_brought_again(conditions: Conditions, lab: FakeLab) -> None:
    second = {"TYPE": "latency", "LATENCY": "9", "NAME": "second"}
    lab.system.elapsed_s = 1.0
    slow = Condition(toxics=(SLOW, second))
    lab.stuck_from = 1
    with pytest.raises(LabUnreachable):
        conditions.bring("a", slow)
    assert names(lab) == ["planted"]
    assert not conditions.as_it_is
    lab.stuck_from = None
    conditions.bring("a", slow)
    assert names(lab) == ["planted", "second"]
    lab.stuck_from = len(lab.toxic_calls) + 1
    with pytest.raises(LabUnreachable):
        conditions.bring("a", AS_IT_IS)
    lab.stuck_from = None
    conditions.bring("a", AS_IT_IS)
    assert lab.toxics == []
    assert conditions.as_it_is


@pytest.mark.parametrize("server", ["a", "generator"])
def test_what_the_host_may_have_done_by_half_is_asked_for_again(
    conditions: Conditions, host: FakeHost, server: str
) -> None:
    limited, setting = {
        "a": (Condition(host={"SERVER_CPUS": "0.5"}), {"SERVER_CPUS": "0.5"}),
        "generator": (Condition(generator_cpus=0.05), {"GENERATOR_CPUS": "0.05"}),
    }[server]
    for condition, wanted in ((limited, setting), (AS_IT_IS, {})):
        host.refuses = "no answer in time"
        for _ in range(2):
            with pytest.raises(LabError, match="no answer in time"):
                conditions.bring("a", condition)
        # It may have another JVM meanwhile.
        assert conditions.recreates("a", condition) == (server == "a")
        host.refuses = None
        conditions.bring("a", condition)
        assert not conditions.recreates("a", condition)
        assert host.asked == [(server, wanted)] * 3
        host.asked.clear()
    assert conditions.as_it_is


def test_in_the_end_what_else_a_run_left_changed_is_put_back(lab: FakeLab, tmp_path: Path) -> None:
    undo_log = UndoLog(tmp_path / "changed.json")
    conditions = Conditions(lab.stack, FakeHost(lab), lab.system, FakeSystem(), undo_log)
    # A proxy that was taken down, as to cut what it had open, and did not come up again.
    before = lab.stack.toxiproxy.in_force()
    lab.enabled = False
    undo_log.toxic(("downstream", WHOLE_PROXY), before, lab.stack.toxiproxy.in_force())
    assert conditions.restore() == [
        "what a run had left changed: put back as they were: downstream"
    ]
    assert lab.enabled
    assert not (tmp_path / "changed.json").exists()


def test_a_change_is_cut_short_and_putting_back_not(conditions: Conditions, lab: FakeLab) -> None:
    conditions.bring("a", Condition(host={"SERVER_BACKLOG": "1"}))
    lab.system.interrupt_at = 0.0
    assert conditions.restore() == []
    assert lab.identities["a"].start_time_ms == 1002
    with pytest.raises(Interrupted):
        conditions.bring("a", Condition(host={"SERVER_BACKLOG": "1"}))
    assert conditions.restore() == []


def test_with_nobody_on_the_host_a_setting_of_the_host_is_refused(lab: FakeLab) -> None:
    alone = Conditions(lab.stack, HostChanges(None), lab.system, FakeSystem())
    with pytest.raises(LabError, match="host settings need `make`: nobody on the host answers"):
        alone.bring("a", Condition(host={"SERVER_CPUS": "0.5"}))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What the driver and the host share."""
    for name in ("requests", "answers"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_a_request_is_a_link_and_an_answer_is_a_code(home: Path, system: FakeSystem) -> None:
    def answer(number: int, code: str) -> None:
        (home / "answers" / str(number)).write_text(f"{code}\n")

    host_changes = HostChanges(home)
    system.at(0.1, lambda: answer(1, "ok"))
    host_changes.change("a", {"SERVER_CPUS": "0.5", "NOFILE": "300"}, system)
    assert str((home / "requests/1").readlink()) == "SERVER=a\nSERVER_CPUS=0.5\nNOFILE=300"
    codes = [*REFUSALS, "something else"]
    for number, code in enumerate(codes, 2):
        system.at(number, lambda number=number, code=code: answer(number, code))
        with pytest.raises(Refused) as refused:
            host_changes.change("a", {}, system)
        why = REFUSALS.get(code, "the change failed")
        log = ".lab/<project>/logs/changes.log"
        assert str(refused.value) == f"the host refused a with its defaults: {why} ({log})"


def test_a_request_that_fails_says_why(home: Path, system: FakeSystem) -> None:
    host_changes = HostChanges(home)
    with pytest.raises(LabError, match="the host cannot be asked: File name too long"):
        host_changes.change("a", {"SERVER_JVM_FLAGS": "-Xmx64m " * 1000}, system)
    for number in (2, 3):
        with pytest.raises(LabError, match="did not answer within 90 s: a with NOFILE=300"):
            host_changes.change("a", {"NOFILE": "300"}, system)
        # What the host reads late is no change, and the next request has another number.
        assert str((home / "requests" / str(number)).readlink()) == WITHDRAWN
