"""Runs that change the lab on purpose: explanations, planted bottlenecks."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from lab.app.derive import start_of
from lab.errors import LabUnreachable, WordError
from lab.kinds.cases import Case
from lab.kinds.explain import Explain
from lab.kinds.loads import Loads
from lab.kinds.planted import Planted
from lab.model import AS_IT_IS, Condition, Snapshot, TrialPlan, Warmth
from lab.store import manifest
from lab.store.records import to_json
from lab.subject.changes import Change, Journal, Toxics
from support.bench import WARM, Bench
from support.fakes import toxic
from support.felt import planned
from support.runs import rejudged, write_manifest

CLOSED: dict[str, Any] = {"servers": ("a",), "modes": ("closed",)}
EXPLAIN = {**CLOSED, "kind": "explain", "own": to_json(Explain(1, 1))}
TRIALS = [
    "001-a-1-named-closed-c200", "002-a-1-before-closed-c200", "003-a-1-after-closed-c200",
]  # fmt: skip


def test_a_trial_begins_with_its_knobs_and_the_runs_way_to_the_downstream(tmp_path: Path) -> None:
    measured = manifest.read(write_manifest(tmp_path))
    (way, own) = measured.servers["a"], measured.servers["b"]

    def start(**changes: Any) -> Snapshot | None:
        return start_of(measured, planned("01-b", server="b", condition=Condition(**changes)))

    assert start() == copy.replace(way, settings=own.settings)
    turned = start(knobs={"pool_size": 400})
    assert turned == copy.replace(way, settings={**own.settings, "pool_size": 400})
    assert start(host={"SERVER_CPUS": "2"}) is None


def test_an_inquiry_changes_what_was_named(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    rejudged(monkeypatch, lambda raw: {"bottleneck": "worker pool", "strength": "strong"})
    ready.interrupt(**EXPLAIN)
    assert ready.resume() == 0
    assert ready.column("trial") == TRIALS
    plans = [ready.record(trial)["plan"] for trial in TRIALS]
    assert [plan["condition"]["knobs"] for plan in plans] == [{}, {}, {"pool_size": 400}]
    assert json.loads((ready.run_dir / "comparison.json").read_text())["comparisons"] == []
    assert "step 1, worker pool" in ready.said
    # Knobs take no other JVM.
    assert {*ready.column("launch")} == {"0"}


def jvms(ready: Bench) -> list[tuple[str, int, int]]:
    """The arm of each trial, with the start time of its JVM and the pool that this has."""
    before = [(arm, ready.record(name)["before"]) for arm, name in ready.column("arm", "trial")]
    return [
        (arm, at["identity"]["start_time_ms"], at["settings"]["pool_size"]) for arm, at in before
    ]


def test_a_step_of_settings_has_a_jvm_for_each_trial_with_the_users_knobs(
    ready: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rejudged(monkeypatch, lambda raw: {"bottleneck": "accept queue", "strength": "strong"})
    ready.lab.settings["a"] = {"backlog": 1}
    ready.lab.pool_sizes["a"] = 300
    restart = ready.lab.new_jvm

    def new_jvm(server: str) -> None:
        restart(server)
        ready.lab.pool_sizes[server] = 200
        deep = "SERVER_BACKLOG=16" in "".join(asked[-1:])
        ready.lab.settings[server] = {"backlog": 16 if deep else 1}

    ready.lab.new_jvm = new_jvm
    asked = ready.hosted(tmp_path)
    assert ready.run(**{**EXPLAIN, "own": to_json(Explain(4, 1))}) == 0
    made = jvms(ready)
    a, b = "1-before", "1-after"
    assert [arm for arm, *_ in made] == ["1-named", a, b, b, a, a, b, b, a]
    # The one that ran already is of no pair.
    assert len({started for _, started, _ in made}) == 9
    assert {pool for *_, pool in made} == {300}
    assert ready.column("launch") == [str(at) for at in range(9)]
    # None is replaced that has just begun.
    assert asked == ["SERVER=a\nSERVER_BACKLOG=16\n", "SERVER=a\n"] * 2
    assert ready.lab.restarts == ["a"] * 4


BACKLOG = Condition(host={"SERVER_BACKLOG": "1"})
LIMITED = Condition(knobs={"pool_size": 20}, toxics=({"TYPE": "latency", "LATENCY": "300"},))


def planted(*conditions: Condition) -> dict[str, object]:
    """What makes a run one of planted bottlenecks."""
    plain = [(f"c{at}", condition) for at, condition in enumerate(conditions, 1)]
    cases = [Case(name, "a", "/downstream", 100, ("none",), condition=how) for name, how in plain]
    return {"kind": "planted", "modes": ("closed",), "own": to_json(Planted(tuple(cases)))}


def test_a_trial_is_made_under_its_condition_and_the_lab_is_put_back(ready: Bench) -> None:
    warm: list[tuple[object, int]] = []

    def seen(plan: TrialPlan, *_: object) -> Warmth:
        warm.append((ready.lab.pool_sizes[plan.server], len(ready.lab.toxics)))
        return WARM

    ready.warm = seen
    # Conditions are unlike on purpose.
    ready.lab.settings["b"] = {"downstream_timeout_ms": 1}
    assert ready.run(**planted(LIMITED, AS_IT_IS, LIMITED)) == 0
    assert "unequal" not in ready.rows[0]["invalid_reasons"]
    # Warmed up once, on the lab as it is.
    assert warm == [(200, 0)]
    # 20 threads / 0.5 s; 100 connections / 0.2 s.
    assert ready.column("predicted_rps") == ["40.000", "500.000", "40.000"]
    assert (ready.lab.pool_sizes["a"], ready.lab.toxics) == (200, [])


def test_a_server_needs_only_the_routes_of_its_own_cases(ready: Bench) -> None:
    ready.lab.declared = {"a": ("/downstream",), "b": ("/compute",)}
    loads = (("c1", "a", "/downstream", 100), ("c2", "b", "/compute", 9))
    own = {
        **planted(AS_IT_IS),
        "own": to_json(Planted(tuple(Case(*of, ("none",)) for of in loads))),
    }
    assert ready.run(**own, routes=("/downstream", "/compute")) == 0
    assert ready.cells("server", "route") == "a /downstream, b /compute"


def test_on_several_machines_what_needs_the_host_is_refused_before_any_load(ready: Bench) -> None:
    ready.place = copy.replace(ready.place, one_machine=False)
    two = {"launches": 1, "arms": ("x",), "own": to_json(Loads(images={"x": "lab/x:1"}))}
    for of in (EXPLAIN, two, planted(BACKLOG)):
        with pytest.raises(WordError, match=r"not allowed on several \(LAB_MACHINES\)"):
            ready.run(**of)
    assert ready.lab.system.started == []
    assert not ready.run_dir.exists()
    # What a server changes itself needs no host.
    ready.run(**planted(LIMITED))
    assert ready.column("predicted_rps") == ["40.000"]


def test_arms_of_a_setting_are_containers_with_it(
    ready: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ready.hosted(tmp_path)
    monkeypatch.setattr("lab.subject.conditions.Clock", lambda: ready.lab.system)
    settings = Loads(settings={"1": "FRONTS", "2": "FRONTS"})
    ready.run(**CLOSED, launches=2, arms=("1", "2"), own=to_json(settings))
    assert ready.cells("launch", "arm") == "1 1, 1 2, 2 2, 2 1"
    assert asked == [*(f"SERVER=a\nFRONTS={fronts}\n" for fronts in "121"), "SERVER=a\n"]


def test_a_container_that_cannot_start_costs_its_trial(ready: Bench, tmp_path: Path) -> None:
    ready.hosted(tmp_path, refuses="SERVER_BACKLOG")
    assert ready.run(**planted(BACKLOG, AS_IT_IS)) == 1
    bad, good = ready.column("invalid_reasons")
    assert bad.startswith("not-begun problem=the%20host%20refused%20a%20with%20SERVER_BACKLOG")
    assert good == ""


def test_what_cannot_be_put_back_is_one_warning(ready: Bench) -> None:
    ready.lab.system.at(12.0, lambda: ready.lab.down.add("toxiproxy"))
    assert ready.run(**planted(LIMITED, LIMITED)) == 1
    assert ready.text.getvalue().count("put back") == 1
    assert ready.lab.pool_sizes["a"] == 200


def test_a_jvm_of_a_changed_host_is_warmed_up_with_few(ready: Bench, tmp_path: Path) -> None:
    asked = ready.hosted(tmp_path)
    seen: list[object] = []

    def warm(plan: TrialPlan, connections: int, *_: object) -> Warmth:
        seen.append((connections, ready.lab.identities[plan.server].start_time_ms))
        return WARM

    ready.warm = warm
    # In the end nobody is there to answer: what is asked then is for test_conditions.
    ready.run(**planted(BACKLOG, BACKLOG, AS_IT_IS))
    assert seen == [(80, 1001), (200, 1002)]
    assert asked == ["SERVER=a\nSERVER_BACKLOG=1\n", "SERVER=a\n"]


def test_what_a_script_left_is_taken_back_before_the_next_run(ready: Bench, tmp_path: Path) -> None:
    lab, path = ready.lab, tmp_path / "changed.json"
    ready.place = copy.replace(ready.place, journal=path)
    left = Change(Toxics(lab.stack.toxiproxy), Journal(path))
    left.apply({("downstream", "left"): toxic("left")})
    ready.run(**CLOSED)
    assert lab.toxics == []
    assert "downstream/left" in ready.said


def test_a_run_that_changes_the_lab_does_not_go_on_without_the_users_toxics(ready: Bench) -> None:
    lab = ready.lab
    lab.toxics.append(toxic("own", latency=5))
    # Toxiproxy is restarted while the second trial runs, and the third has the same condition.
    lab.system.at(30.0, lab.toxics.clear)
    with pytest.raises(LabUnreachable, match="in force is none; trials before had downstream/own"):
        ready.run(**planted(*[AS_IT_IS] * 6))
    valid = ready.column("valid")
    assert valid.count("true") < 3
    *_, last = [row["invalid_reasons"] for row in ready.rows if row["valid"] != "true"]
    assert "in%20force%20is%20none" in last
