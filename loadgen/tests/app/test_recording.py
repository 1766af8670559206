"""RECORD=: a load of each server once more with a recording, beside the trials of a run."""

import json
from typing import Any

import pytest

from lab.app.call import Call
from lab.app.compare import compare
from lab.app.derive import derive
from lab.app.gate import judge
from lab.kinds.explain import Explain
from lab.kinds.objective import Objective
from lab.kinds.search import Search
from lab.model import RECORDED
from lab.store.records import to_json
from support.bench import WARM, Bench

CPU: dict[str, Any] = {"own": {"record": "cpu"}}
CLOSED: dict[str, Any] = {"servers": ("a",), "modes": ("closed",)}
TRIALS = ["01-a-open-c200", "02-b-open-c200", "03-a-closed-c200", "04-b-closed-c200"]
LAST = {"a": TRIALS[2], "b": TRIALS[3]}
BOTH = [f"{trial}{RECORDED}" for trial in LAST.values()]


def recorded(ready: Bench) -> list[str]:
    return sorted(path.name for path in (ready.run_dir / "recorded").iterdir())


def loaded(ready: Bench) -> list[str]:
    """The trials of both kinds, in the order of their loads."""
    return list(dict.fromkeys(trial for trial, _ in ready.lab.marks if trial))


def sides(ready: Bench) -> list[str | None]:
    """The trial beside which each recording is judged."""
    found = derive(ready.run_dir, [ready.lab.engine]).recorded
    return [trial.beside and trial.beside.trial for trial in found]


def test_each_servers_last_load_is_recorded_once_and_beside_the_trials(ready: Bench) -> None:
    assert ready.run(**CPU) == 0
    assert ready.column("trial") == TRIALS
    assert recorded(ready) == BOTH
    # Each as soon as its server has no other trial.
    a, b = TRIALS[2:]
    assert loaded(ready) == [*TRIALS[:2], a, f"{a}{RECORDED}", b, f"{b}{RECORDED}"]
    for server, trial in LAST.items():
        before, after = ready.record(trial), ready.record(f"{trial}{RECORDED}", "recorded")
        # The same load on the same JVM, which is then replaced.
        same = ("server", "url", "mode", "concurrency", "offered_rps", "duration_s", "warmup_s")
        assert [before["plan"][name] for name in same] == [after["plan"][name] for name in same]
        assert before["before"] == after["before"]
        assert ready.lab.restarts.count(server) == 1
    # No other part of the run knows of it, and judged again it says the same.
    for name in ("trials.csv", "trials.jsonl", "findings.json", "comparison.json"):
        assert RECORDED not in (ready.run_dir / name).read_text(), name
    assert ready.derived_again() == set()


def test_a_search_records_the_last_rate_that_each_server_met(ready: Bench) -> None:
    own = Search((Objective(p99_ms=500.0),), "rate", 100, 400, 0.08, 10_000)
    search = {"kind": "capacity", "own": {**to_json(own), "record": "cpu"}, "modes": ("open",)}
    assert ready.run(**search) == 0
    last = {row["server"]: row["trial"] for row in ready.rows if row["offered_rps"] == "400"}
    assert recorded(ready) == sorted(f"{trial}{RECORDED}" for trial in last.values())
    # Server b holds on while the one that ended first is recorded, on the JVM that was searched.
    order = loaded(ready)
    assert order.index(f"{last['a']}{RECORDED}") < order.index(last["b"])
    assert sides(ready) == [*last.values()]


def test_an_inquiry_records_the_load_as_it_is_before_it_changes_anything(ready: Bench) -> None:
    own = {**to_json(Explain(1, 1)), "record": "cpu"}
    assert ready.run(kind="explain", own=own, modes=("closed",)) == 0
    first = [row["trial"] for row in ready.rows if row["arm"] == "1-named"]
    assert recorded(ready) == sorted(f"{trial}{RECORDED}" for trial in first)
    order = loaded(ready)
    for trial in first:
        assert order[order.index(trial) + 1] == f"{trial}{RECORDED}"
    # Both on the JVM that was named.
    assert sides(ready) == first


def test_it_is_bounded_in_time_and_read_for_its_window(ready: Bench) -> None:
    ready.run(**CPU, **CLOSED)
    (started, ended) = ready.lab.recordings
    # Warm-up of 10 s, window of 15 s, and 120 s for an engine that is late.
    assert started == ("a", "cpu", {"seconds": 145})
    began = ready.record(recorded(ready)[0], "recorded")["run_started_at"]
    assert ended[:2] == ("a", "end")
    assert ended[2]["to_ms"] - ended[2]["from_ms"] == 15_000
    # It began right after the first trial of 25 s, and 10 s before its window.
    assert began.startswith("2026-01-31T12:00:2")
    assert ended[2]["from_ms"] % 60_000 == round(float(began[17:23]) * 1000) + 10_000


def test_its_stacks_and_flame_graph_are_kept_and_linked(ready: Bench) -> None:
    ready.run(**CPU)
    graph = f"recorded/{LAST['a']}{RECORDED}/flamegraph.html"
    assert (
        "a, /downstream closed 200, recorded: CPU time by CPUTimeSample, 400 samples; with "
        "recording / without: CPU per answer not known, answers ×1.00 (one pair, the recorded one "
        f"second). Flame graph: {graph} method "
    ) in ready.said
    stacks = (ready.run_dir / graph).with_name("collapsed.txt").read_text()
    assert stacks == "a.B.run:1;a.C.hot:7 400\n"
    assert "title&amp;gt;drawn" in (ready.run_dir / graph).read_text()
    for page in (ready.report, (ready.run_dir / "report.html").read_text()):
        assert graph in page


def no_room(ready: Bench) -> None:
    ready.lab.recording["a"] = "lock"


def lost(ready: Bench) -> None:
    """Its JVM is another one in the end."""
    ready.lab.system.at(85.0, ready.lab.recording.clear)


@pytest.mark.parametrize(("fault", "kept"), [(no_room, BOTH[1:]), (lost, BOTH)])
def test_what_cannot_be_recorded_costs_a_warning_and_no_trial(
    ready: Bench, fault: Any, kept: list[str]
) -> None:
    fault(ready)
    assert ready.run(**CPU) == 0
    assert ready.column("valid") == ["true"] * 4
    assert recorded(ready) == kept
    assert f"warning: {BOTH[0]}: a: " in ready.said


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("recording.json", "{}"),
        ("collapsed.txt", "a.B.run:1;a.C.hot:7 many\n"),
        ("collapsed.txt", "a.B.run:1;a.C.hot:7 -400\n"),
    ],
)
def test_a_damaged_recording_costs_itself_only(ready: Bench, name: str, content: str) -> None:
    ready.run(**CPU)
    (ready.run_dir / "recorded" / BOTH[0] / name).write_text(content)
    derived = derive(ready.run_dir, [ready.lab.engine])
    assert [one.recording is None for one in derived.recorded] == [True, False]
    assert name in derived.recorded[0].problem
    assert len(derived.rows) == 4


def test_the_cost_is_not_said_of_two_jvms(ready: Bench) -> None:
    ready.run(**CPU)
    record = ready.record(LAST["a"])
    record["before"]["identity"]["start_time_ms"] += 1
    (ready.run_dir / "raw" / LAST["a"] / "trial.json").write_text(json.dumps(record))
    assert sides(ready) == [None, LAST["b"]]


@pytest.mark.parametrize(
    ("at_s", "calls"), [(90.0, "a a b"), (110.0, "a b")], ids=["while it is made", "after it"]
)
def test_a_run_that_goes_on_has_each_recording_once(ready: Bench, at_s: float, calls: str) -> None:
    with_a_knob(ready)
    before = ready.interrupt(at_s, **CPU)
    # The JVM that was interrupted has the user's knobs, too.
    assert ready.lab.pool_sizes["a"] == 20
    assert ready.resume() == 0
    assert ready.csv.startswith(before)
    assert ready.column("trial") == TRIALS
    assert recorded(ready) == BOTH
    assert " ".join(call[0] for call in ready.lab.recordings if call[1] == "cpu") == calls


def test_one_that_was_not_read_back_is_made_again(ready: Bench) -> None:
    # In the fourth trial, after the recorded one of server a.
    ready.interrupt(110.0, **CPU)
    (ready.run_dir / "recorded" / BOTH[0] / "recording.json").unlink()
    assert ready.resume() == 0
    assert (ready.run_dir / "recorded" / BOTH[0] / "recording.json").exists()
    assert [*ready.run_dir.glob(f"abandoned/*/{BOTH[0]}/trial.json")]


def with_a_knob(ready: Bench) -> None:
    """The user has set server a's pool, which a new JVM does not know."""
    restart = ready.lab.new_jvm

    def new_jvm(server: str) -> None:
        restart(server)
        ready.lab.pool_sizes[server] = 200

    ready.lab.new_jvm = new_jvm
    ready.lab.pool_sizes["a"] = 20


def test_the_jvm_after_it_has_the_users_knobs(ready: Bench) -> None:
    ready.without_knobs()
    with_a_knob(ready)
    ready.warm = lambda plan, *_: WARM
    ready.run(**CPU, servers=("a",))
    assert ready.lab.patches == [("a", {"pool_size": 20})]


# 1,000 answers a second for 15 s.
BEFORE, AFTER = {"a.B.run:1;a.C.hot:7": 15_000_000}, {"a.B.run:1;a.C.hot:9": 30_000_000}


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ("alloc", "alone a.C.hot +1,000 (1,000 → 2,000)"),
        ("lock", "not compared: A was recorded by alloc, B by lock"),
        ("", ""),
    ],
)
def test_runs_recorded_alike_say_what_code_costs_more(
    ready: Bench, capsys: pytest.CaptureFixture[str], record: str, says: str
) -> None:
    for ready.lab.stacks, event in ((BEFORE, "alloc"), (AFTER, record)):
        ready.run(**CLOSED, own={"record": event} if event else {})
    a, b = sorted(path.name for path in ready.place.results.glob("2026*"))
    home = {"LAB_HOME": str(ready.place.results.parent)}
    compare(Call("compare", {"A": a, "B": b}, home), [ready.lab.engine])
    said = capsys.readouterr().out
    assert ("recorded of " in said) == (says != "")
    assert says in said
    home["LAB_LIMITS"] = "[goodput]\nat_least = 0.95"
    judge(Call("gate", {"BASE": a, "CANDIDATE": b}, home), [ready.lab.engine])
    [told] = (ready.place.results / b / "gates").glob("*/gate.json")
    notes = [note for note in json.loads(told.read_text())["notes"] if "recorded of " in note]
    assert [says in note for note in notes] == [True] * (says != "")
