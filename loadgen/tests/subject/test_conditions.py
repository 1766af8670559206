"""The lab is changed for a trial, only as far as it differs, and found again as it was."""

from collections.abc import Mapping
from random import Random
from unittest.mock import Mock

import pytest

from lab.errors import Interrupted, LabError, LabUnreachable
from lab.model import AS_IT_IS, Condition
from lab.model.knobs import starting
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
    """Does what is asked: another JVM where it takes one. `refuses` is the host's answer, `halfway`
    whether it had done it all the same."""

    def __init__(self, lab: FakeLab) -> None:
        super().__init__(None)
        self.lab = lab
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.refuses: str | None = None
        self.halfway = False
        self.has: dict[str, dict[str, str]] = {}

    def change(self, server: str, settings: Mapping[str, str], clock: Clock) -> None:
        self.asked.append((server, dict(settings)))
        if self.refuses is None or self.halfway:
            had, self.has[server] = self.has.get(server, {}), dict(settings)
            if server != "generator" and starting(had) != starting(settings):
                self.lab.new_jvm(server)
                if server == "a":
                    self.lab.pool_sizes[server] = int(settings.get("SERVER_POOL_SIZE", 200))
        if self.refuses is not None:
            raise LabError(self.refuses)


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


TRIALS = (
    AS_IT_IS,
    SMALL,
    SLOWED,
    LIMITED,
    Condition(knobs={"downstream_connections": 30}),
    # One of the user's is changed by its name.
    Condition(toxics=(SECOND, SLOW, {"NAME": "own", "LATENCY": "100"})),
    Condition(host={"SERVER_BACKLOG": "1", "SERVER_CPUS": "0.5"}, knobs={"pool_size": 20}),
    Condition(host={"SERVER_BACKLOG": "1"}, toxics=(SLOW,)),
    Condition(generator_cpus=0.05),
)
OWN = toxic("own", latency=5)


def in_force(lab: FakeLab, host: FakeHost) -> tuple[object, ...]:
    knobs = lab.pool_sizes["a"], lab.settings.get("a", {}).get("downstream_connections", 20_000)
    toxics = {toxic["name"]: toxic["attributes"]["latency"] for toxic in lab.toxics}
    return knobs, toxics, {name: has for name, has in host.has.items() if has}


def planned(server: str, condition: Condition) -> tuple[object, ...]:
    """What is to be in force in a trial of this server."""
    knobs = {"pool_size": 123, "downstream_connections": 20_000, **condition.knobs}
    toxics = {"own": 5, **{words["NAME"]: int(words["LATENCY"]) for words in condition.toxics}}
    host = {server: dict(condition.host)} if condition.host else {}
    if condition.generator_cpus:
        host["generator"] = {"GENERATOR_CPUS": "0.05"}
    return tuple(knobs.values()), toxics, host


@pytest.mark.parametrize("seed", range(40))
def test_a_trial_has_its_condition_whatever_failed_before_and_in_the_end_all_is_as_found(
    conditions: Conditions, lab: FakeLab, host: FakeHost, seed: int
) -> None:
    random = Random(seed)
    lab.toxics, lab.pool_sizes["a"] = [OWN], 123
    found = in_force(lab, host)
    for _ in range(8):
        condition = random.choice(TRIALS)
        server = random.choice("a" if condition.knobs else "ab")
        fails = random.random() < 0.4
        # Toxiproxy takes one or no change more, and the host does it, and yet does not say so.
        lab.stuck_from = len(lab.toxic_calls) + random.randrange(2) if fails else None
        host.refuses, host.halfway = "no" if fails else None, random.random() < 0.5
        try:
            conditions.bring(server, condition)
        except LabError:
            assert fails
            continue
        assert in_force(lab, host) == planned(server, condition)
        assert not conditions.recreates(server, condition)
        asked = len(host.asked), len(lab.patches)
        if not fails:
            conditions.bring(server, condition)
            assert (len(host.asked), len(lab.patches)) == asked
    lab.stuck_from = host.refuses = None
    conditions.free_generator()
    assert "generator" not in in_force(lab, host)[-1]
    assert conditions.restore() == []
    assert (in_force(lab, host), lab.toxics) == (found, [OWN])
    assert conditions.as_it_is


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
    lab.toxics.append(OWN)
    conditions.keep_toxics()
    conditions.bring("a", SLOWED)
    lab.toxics.clear()
    with pytest.raises(LabUnreachable, match=r"in force is none; trials before had downstream/own"):
        conditions.bring("a", following)
    # Nothing of the lab's own is in force, so there is nothing to put back.
    assert conditions.restore() == []
    lab.toxics.append(OWN)
    conditions.bring("a", following)


def test_a_server_that_is_away_costs_its_own_trials(conditions: Conditions, lab: FakeLab) -> None:
    conditions.bring("a", SMALL)
    lab.down.add("a")
    conditions.bring("b", SLOWED)
    assert names(lab) == ["planted"]
    lab.down.clear()
    conditions.bring("b", SLOWED)
    assert lab.pool_sizes["a"] == 200


CPUS, BACKLOG = {"SERVER_CPUS": "0.5"}, {"SERVER_BACKLOG": "1"}


@pytest.mark.parametrize(
    ("condition", "start"),
    [
        (Condition(host=CPUS), AS_IT_IS),
        (Condition(host=BACKLOG | CPUS, knobs={"pool_size": 20}), Condition(host=BACKLOG)),
        (Condition(host=BACKLOG, toxics=(SLOW,)), Condition(host=BACKLOG)),
    ],
)
def test_a_jvm_is_replaced_if_it_must_be_started_so(
    conditions: Conditions, lab: FakeLab, condition: Condition, start: Condition
) -> None:
    lab.pool_sizes["a"], began_ms = 123, lab.identities["a"].start_time_ms
    another = start != AS_IT_IS
    assert conditions.recreates("a", condition) == another
    assert at_start(condition) == start
    conditions.bring("a", condition)
    assert not conditions.recreates("a", condition)
    assert lab.identities["a"].start_time_ms == began_ms + another
    assert conditions.restore() == []
    assert lab.identities["a"].start_time_ms == began_ms + 2 * another
    assert lab.pool_sizes["a"] == 123


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


@pytest.mark.parametrize("failure", [OSError(28, "No space left"), KeyError("a bug")])
def test_whatever_fails_the_rest_is_put_back(
    conditions: Conditions, lab: FakeLab, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    conditions.bring("a", Condition(knobs={"pool_size": 20}, toxics=(SLOW,), generator_cpus=0.05))
    monkeypatch.setattr("lab.subject.changes.Change.undo", Mock(side_effect=failure))
    codes = [remark.code for remark in conditions.restore()]
    # Toxics and knobs; what these left is in the journal.
    assert codes == ["not-restored", "not-restored", "left-changed"]
    assert (lab.toxics, lab.pool_sizes["a"]) == ([], 200)


def test_a_change_is_cut_short_and_putting_back_not(
    conditions: Conditions, lab: FakeLab, host: FakeHost
) -> None:
    conditions.bring("a", Condition(host=BACKLOG))
    lab.system.interrupt_at = 0.0
    assert conditions.restore() == []
    assert lab.identities["a"].start_time_ms == 1002
    # It waits for the JVM, which is not there yet.
    change = host.change
    host.change = lambda *asked: (change(*asked), lab.down.add("a"))
    with pytest.raises(Interrupted):
        conditions.bring("a", Condition(host=BACKLOG))
    host.change = change
    lab.down.clear()
    assert conditions.restore() == []
