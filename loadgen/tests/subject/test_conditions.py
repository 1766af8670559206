"""The lab is changed for a trial, only as far as it differs, and found again as it was."""

from collections.abc import Mapping

import pytest

from lab.errors import Interrupted, LabError, LabUnreachable
from lab.model import AS_IT_IS, Condition
from lab.subject.changes import Journal
from lab.subject.conditions import Conditions, at_start
from lab.system.host import Clock
from lab.system.host_changes import HostChanges
from support.fakes import FakeLab, toxic
from support.system import FakeSystem

SLOW = {"TYPE": "latency", "LATENCY": "800", "NAME": "planted"}
SECOND = {"TYPE": "latency", "LATENCY": "9", "NAME": "second"}
SLOWED, SMALL = Condition(toxics=(SLOW,)), Condition(knobs={"pool_size": 20})
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
    lab.foreign, lab.identities["shop"] = {"shop"}, lab.identities["a"]
    subjects = {name: lab.subject(name, host) for name in ("a", "b", "shop")}
    return Conditions(lab.stack, subjects, host, Journal(None), lab.system, FakeSystem())


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
        conditions.bring("b", SMALL)
    assert conditions.restore() == []


def test_knobs_change_and_change_back(conditions: Conditions, lab: FakeLab) -> None:
    lab.pool_sizes["a"] = 123
    conditions.bring("a", SMALL)
    conditions.bring("a", SMALL)
    assert lab.patches == [("a", {"pool_size": 20})]
    conditions.bring("a", Condition(knobs={"downstream_connections": 30}))
    assert (lab.pool_sizes["a"], lab.settings["a"]["downstream_connections"]) == (123, 30)
    assert conditions.restore() == []
    assert lab.settings["a"]["downstream_connections"] == 20_000
    assert conditions.as_it_is


def test_the_last_server_is_restored(conditions: Conditions, lab: FakeLab, host: FakeHost) -> None:
    conditions.bring("a", Condition(knobs={"pool_size": 20}, host={"SERVER_CPUS": "0.5"}))
    conditions.bring("b", AS_IT_IS)
    assert lab.pool_sizes["a"] == 200
    assert host.asked == [("a", {"SERVER_CPUS": "0.5"}), ("a", {})]


def test_toxics_come_and_go_and_the_user_s_stay(conditions: Conditions, lab: FakeLab) -> None:
    own = toxic("own", latency=5)
    lab.toxics.append(own)
    for _ in range(2):
        conditions.bring("a", SLOWED)
        assert names(lab) == ["own", "planted"]
    # One of the user's is changed by its name, and then as it was.
    conditions.bring("a", Condition(toxics=({"NAME": "own", "LATENCY": "100"},)))
    assert [toxic["attributes"] for toxic in lab.toxics] == [{"latency": 100, "jitter": 0}]
    assert conditions.restore() == []
    assert lab.toxics == [own]


def test_toxics_that_are_gone_are_brought_again(conditions: Conditions, lab: FakeLab) -> None:
    conditions.bring("a", SLOWED)
    # Toxiproxy was restarted: it has none.
    lab.toxics.clear()
    conditions.bring("a", SLOWED)
    lab.toxics[0]["attributes"] = {"latency": 1, "jitter": 0}
    conditions.bring("a", SLOWED)
    assert [toxic["attributes"] for toxic in lab.toxics] == [{"latency": 800, "jitter": 0}]
    assert conditions.restore() == []
    assert names(lab) == []


@pytest.mark.parametrize("following", [SLOWED, AS_IT_IS])
def test_a_trial_without_the_toxics_that_others_had_does_not_begin(
    conditions: Conditions, lab: FakeLab, following: Condition
) -> None:
    lab.toxics.append(toxic("own", latency=5))
    conditions.keep_toxics()
    conditions.bring("a", SLOWED)
    lab.toxics.clear()
    with pytest.raises(LabUnreachable, match=r"in force is none; trials before had downstream/own"):
        conditions.bring("a", following)
    # Nothing of the lab's own is in force, so there is nothing to put back.
    assert conditions.restore() == []
    lab.toxics.append(toxic("own", latency=5))
    conditions.bring("a", following)


def test_a_server_that_is_away_costs_its_own_trials(conditions: Conditions, lab: FakeLab) -> None:
    conditions.bring("a", SMALL)
    lab.down.add("a")
    conditions.bring("b", SLOWED)
    assert names(lab) == ["planted"]
    lab.down.clear()
    conditions.bring("b", SLOWED)
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
    assert (lab.identities["a"].start_time_ms, lab.pool_sizes["a"]) == (1001, 123)
    assert conditions.restore() == []
    assert (lab.identities["a"].start_time_ms, lab.pool_sizes["a"]) == (1002, 123)


def test_a_knob_that_the_container_sets_stays(conditions: Conditions, lab: FakeLab) -> None:
    conditions.bring("a", Condition(host={"SERVER_POOL_SIZE": "50"}))
    assert lab.pool_sizes["a"] == 50
    assert conditions.restore() == []
    assert lab.pool_sizes["a"] == 200


def test_a_service_has_its_levers(conditions: Conditions, lab: FakeLab, host: FakeHost) -> None:
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
    for _ in range(2):
        conditions.bring("shop", condition)
        assert not conditions.recreates("shop", condition)
    assert host.asked[2:] == [changed]
    # Its own port is asked until it answers, and it has no management port.
    assert {of for of in lab.asked if of[0] == "shop"} == {("shop", 8080)}
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
    failed, left = conditions.restore()
    assert (failed.code, failed.values) == ("not-restored", {"problem": "no engine"})
    # Knobs need no engine.
    assert (left.code, left.values) == ("left-changed", {"back": "pool_size of a"})
    assert lab.toxics == []


@pytest.mark.parametrize(
    "failure", [OSError(28, "No space left on device"), KeyError("a bug"), LabError("no")]
)
def test_the_rest_is_put_back(
    conditions: Conditions, lab: FakeLab, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def refuse(*_: object) -> None:
        raise failure

    conditions.bring("a", Condition(knobs={"pool_size": 20}, toxics=(SLOW,), generator_cpus=0.05))
    monkeypatch.setattr("lab.subject.changes.Change.undo", refuse)
    codes = [remark.code for remark in conditions.restore()]
    # Toxics and knobs; what these left is in the journal.
    assert codes == ["not-restored", "not-restored", "left-changed"]
    assert (lab.toxics, lab.pool_sizes["a"]) == ([], 200)


def test_half_of_the_toxics_are_brought_again(conditions: Conditions, lab: FakeLab) -> None:
    slow = Condition(toxics=(SLOW, SECOND))
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
    assert not conditions.as_it_is
    lab.stuck_from = None
    conditions.bring("a", AS_IT_IS)
    assert (lab.toxics, conditions.as_it_is) == ([], True)


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


def test_a_change_is_cut_short_and_putting_back_not(conditions: Conditions, lab: FakeLab) -> None:
    conditions.bring("a", Condition(host={"SERVER_BACKLOG": "1"}))
    lab.system.interrupt_at = 0.0
    assert conditions.restore() == []
    assert lab.identities["a"].start_time_ms == 1002
    with pytest.raises(Interrupted):
        conditions.bring("a", Condition(host={"SERVER_BACKLOG": "1"}))
    assert conditions.restore() == []
