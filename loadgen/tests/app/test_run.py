"""Whole benches: what is on disk, and when."""

import copy
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from lab.app.call import Call
from lab.app.sides import read_sides
from lab.errors import LabError, LabUnreachable, WordError
from lab.model import Row
from lab.report import page
from support.bench import RUN, Bench
from support.fakes import FakeLab, of_model, toxic
from support.runs import HOST_FILE

TWO_OPEN: dict[str, object] = {"concurrencies": (100, 200), "modes": ("open",)}
AGGREGATE: dict[str, object] = {"routes": ("/downstream", "/aggregate?wait_ms=5")}
WITHOUT_AGGREGATE = ("/", "/downstream")


def test_every_combination_is_a_row_and_servers_alternate(ready: Bench) -> None:
    assert ready.run(concurrencies=(100, 200)) == 0
    loads = [f"{conc} {mode}" for conc in (100, 200) for mode in ("open", "closed")]
    cells = [f"{load} {server} true" for load in loads for server in ("a", "b")]
    assert ready.cells("concurrency", "mode", "server", "valid") == ", ".join(cells)


def test_a_row_has_the_documented_columns_and_the_agent_each_phase(ready: Bench) -> None:
    row, trial = ready.run_one(), "01-a-open-c200"
    assert tuple(row) == Row.columns()
    expected = {
        "run": RUN, "trial": trial, "engine": "wrk2",
        # 90 % of 200 connections / 0.2 s; the pool of 200 allows 1000.
        "offered_rps": "323", "predicted_rps": "323.000", "achieved_rps": "323.000",
        # Unknown is empty.
        "sent": "", "timeouts": "", "bottleneck": "unknown",
        # The window opens 10 s after the start and lasts 15 s.
        "started_at": "2026-01-31T12:00:10.000Z", "ended_at": "2026-01-31T12:00:25.000Z",
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert ready.lab.marks == [(trial, "warmup"), (trial, "measure"), ("", "end")]


def test_the_manifest_has_what_the_run_was_made_with_and_what_was_equal(ready: Bench) -> None:
    ready.place = copy.replace(ready.place, settings=("NOFILE=300",))
    ready.run()
    manifest = ready.manifest
    assert (manifest["format"], manifest["status"]) == (1, "complete")
    assert manifest["host"] == HOST_FILE
    assert manifest["limits"] == {"open_files": 20_000, "generator_cores": 2}
    assert manifest["settings"] == ["NOFILE=300"]
    versions, servers = manifest["versions"], manifest["servers"]
    assert (versions["commit"], versions["engine"]) == ("c0ffee", "fake 1.0")
    assert [servers[name]["settings"]["pool_size"] for name in ("a", "b")] == [200, None]
    fairness = manifest["fairness"]
    assert fairness["equal"]["downstream_connections"] == 20_000
    assert (fairness["own"], fairness["unequal"]) == ({"pool_size": {"a": 200, "b": None}}, {})
    # Progress on no terminal: a line a trial.
    lines = ready.text.getvalue().splitlines()
    begin = [line[:11] for line in lines if line.startswith("[")]
    assert begin == ["[1/4] a ope", "[2/4] b ope", "[3/4] a clo", "[4/4] b clo"]


def test_a_bench_of_five_servers_fits_a_screen_and_has_a_line_for_each_trial(ready: Bench) -> None:
    names = ("fixed-pool", "virtual-threads", "event-loop", "thread-per-connection", "netty")
    ready.lab.identities = {name: of_model(name) for name in names}
    ready.lab.pool_sizes = dict.fromkeys(names, None) | {"fixed-pool": 200}
    assert ready.run(servers=names) == 0
    lines = ready.text.getvalue().splitlines()
    assert len(lines) <= 40
    assert len([line for line in lines if re.match(r"\[\d+/10\] ", line)]) == 10


# What others do: the share that a thread waits, and that of the CPUs that are busy beside it.
QUIET, STOLEN, BUSY = (0.09, 0.29), (0.1, 0.0), (0.0, 0.3)


@pytest.mark.parametrize(
    ("crowds", "patience_s", "looks_left", "warnings"),
    [
        ([BUSY, STOLEN, QUIET, QUIET, BUSY], 300, 1, 0),
        # Without patience nothing is looked at, and what is unknown is not waited for.
        ([BUSY], 0, 1, 0),
        ([None, None], 300, 0, 0),
        # The first trial waits 5 s, the second the 7 that are left, which are two pauses.
        ([STOLEN, QUIET, *[BUSY] * 9], 12, 7, 1),
    ],
)
def test_trials_wait_until_others_leave_the_cpus_or_the_patience_of_all_has_ended(
    ready: Bench, crowds: list[Any], patience_s: float, looks_left: int, warnings: int
) -> None:
    ready.lab.system.crowds = crowds
    ready.run(servers=("a",), patience_s=patience_s)
    assert len(crowds) == looks_left
    assert ready.text.getvalue().count("(PATIENCE)") == warnings


def test_the_agent_is_told_the_path_of_a_route_and_one_percent_of_the_bound(ready: Bench) -> None:
    ready.lab.pool_sizes["a"] = 20
    ready.run(routes=("/block?wait_ms=100", "/compute"), servers=("a",), modes=("closed",))
    assert ready.column("route") == ["/block?wait_ms=100", "/compute"]
    # As the servers label it.
    assert ready.lab.marked_routes == {"/block", "/compute"}
    # 20 threads / 0.1 s; nothing is known of what computes.
    assert ready.lab.probe_rates == {2.0, None}


def test_without_the_agent_one_line_warns_and_no_trial_is_believed(ready: Bench) -> None:
    ready.lab.agent_up = False
    assert ready.run() == 1
    assert ready.text.getvalue().count("no live view") == 1
    # Two were repeated, in vain: that is no accident.
    assert len(ready.rows) == 6
    assert all("toxics-unwatched " in row["invalid_reasons"] for row in ready.rows)


def test_a_run_has_a_new_folder_and_latest_is_a_relative_link_to_it(ready: Bench) -> None:
    results = ready.place.results
    (results / RUN).mkdir()
    ready.run()
    assert (results / f"{RUN}-2" / "trials.csv").exists()
    assert not (results / RUN / "trials.csv").exists()
    first = (results / "latest").readlink()
    assert first == Path(f"{RUN}-2")
    ready.run()  # the fake clock has moved on
    assert (results / "latest").readlink() != first


def test_an_interrupt_ends_the_load_and_keeps_what_was_measured(ready: Bench) -> None:
    ready.interrupt()
    assert ready.column("trial") == ["01-a-open-c200", "02-b-open-c200"]
    assert ready.manifest["status"] == "interrupted"
    assert [process.stopped_early for process in ready.lab.system.processes] == [False, False, True]
    [row] = ready.listed
    assert row["run"] == RUN
    assert row["answer"].startswith("the run is interrupted, not complete; a: reached ")
    assert ready.resume() == 0
    [row] = ready.listed
    assert row["answer"].startswith("a: reached ")
    assert row["report"] == f"{RUN}/report.html"


def test_a_server_that_goes_away_costs_its_own_trials(ready: Bench) -> None:
    ready.lab.system.at(20.0, lambda: ready.lab.down.add("b"))
    assert ready.run(concurrencies=(100, 200)) == 1
    assert ready.column("server", "valid") == [("a", "true"), ("b", "false")] * 4
    [reason] = {row["invalid_reasons"] for row in ready.rows if row["server"] == "b"}
    assert reason.startswith("server-not-back problem=b:")
    assert ready.manifest["status"] == "complete"
    # Its trials wait for it; those of the other server are not held up each time.
    assert ready.lab.system.elapsed_s < 4 * 25 + (4 + 1) * 31
    # Judged again it says the same, and it is known of each trial what was planned.
    assert "trials.csv" not in ready.derived_again()
    assert {one["offered_rps"] for one in ready.trials if one["mode"] == "open"} == {148, 323}


@pytest.mark.parametrize(
    ("part", "machine", "away_s", "changes", "reason", "cells"),
    [
        ("b", "", (20, 90), TWO_OPEN, "server-not-back problem=b:%20", "a true, b false"),
        (
            *("downstream", "", (30, 120), {}),
            *("not-begun problem=downstream:%20", "a true, b false, a false"),
        ),
        ("b", "tested", (20, 60), TWO_OPEN, "not-begun problem=b:%20", "a true, b false, b true"),
    ],
    ids=["a server", "what all need", "a machine"],
)
def test_what_was_away_for_a_while_is_measured_again(
    ready: Bench,
    part: str,
    machine: str,
    away_s: tuple[float, float],
    changes: dict[str, object],
    reason: str,
    cells: str,
) -> None:
    lab = ready.lab
    lab.system.at(away_s[0], lambda: lab.down.add(part) or (machine and lab.away.add(machine)))
    lab.system.at(away_s[1], lambda: lab.down.clear() or lab.away.clear())
    assert ready.run(**changes) == 1
    assert ready.cells("server", "valid") == f"{cells}, a true, b true"
    *_, last = [row["invalid_reasons"] for row in ready.rows if row["valid"] == "false"]
    assert last.startswith(reason)


def test_a_part_that_stays_away_ends_the_run_which_goes_on_later(ready: Bench) -> None:
    ready.lab.system.at(30.0, lambda: ready.lab.down.add("downstream"))
    with pytest.raises(LabUnreachable, match="downstream: "):
        ready.run(concurrencies=(100, 200))
    before = ready.csv
    assert len(ready.rows) == 4
    assert ready.manifest["status"] == "failed"
    ready.lab.down.clear()
    ready.resume()
    # Those that could not begin stay rows, and one of them is measured again, too.
    assert ready.csv.startswith(before)
    assert len(ready.rows) == 9
    assert ready.column("valid")[4:] == ["true"] * 5


def test_a_fresh_jvm_that_does_not_come_up_is_tried_again_by_the_next_trial(ready: Bench) -> None:
    ready.lab.never_back = {"b"}
    ready.lab.system.at(150.0, ready.lab.never_back.clear)
    ready.run(launches=1, modes=("closed",), concurrencies=(100, 200))
    assert ready.lab.restarts == ["a", "b", "b"]
    assert ready.cells("server", "valid") == "a true, b false, a true, b true"


def back_with_another_jvm(lab: FakeLab) -> None:
    lab.down.add("a")
    lab.system.at(lab.system.elapsed_s + 10, lab.down.clear)
    lab.system.at(lab.system.elapsed_s + 10, lambda: lab.new_jvm("a"))


IN_FORCE = "downstream/latency latency jitter=0 latency=300 stream=downstream toxicity=1"


ONE, THREE, BOTH = (200,), (100, 200, 300), ("a", "b")


@pytest.mark.parametrize(
    ("at_s", "fault", "servers", "loads", "reason"),
    [
        # Within a trial …
        (15, back_with_another_jvm, "a", ONE, "jvm-restarted"),
        (15, lambda lab: setattr(lab, "enabled", False), "a", ONE, "changed what=toxics .*"),
        (15, lambda lab: lab.pool_sizes.update(a=300), "a", ONE, "changed what=pool_size .*"),
        (
            *(15, lambda lab: lab.settings.update(a={"downstream_connections": None}), "a", ONE),
            "settings-unread settings=downstream_connections.*",
        ),
        (15, lambda lab: lab.down.add("a"), "a", ONE, "server-gone .*"),
        # … and between two, which makes all later ones invalid.
        (
            *(30, lambda lab: lab.toxics.append(toxic()), BOTH, THREE),
            f".*differs what=toxics was=none now={IN_FORCE}.*",
        ),
        (
            *(30, lambda lab: lab.pool_sizes.update(a=20), "a", THREE),
            ".*differs what=pool_size was=200 now=20.*",
        ),
        # While a is measured: its own read-back, before and after, cannot see it.
        (
            *(15, lambda lab: lab.settings.update(b={"downstream_connections": 7}), BOTH, THREE),
            ".*limit=downstream_connections servers=a=20000 b=7.*",
        ),
    ],
)
def test_what_changes_makes_the_rows_from_then_on_invalid(
    ready: Bench,
    at_s: float,
    fault: Callable[[FakeLab], None],
    servers: Sequence[str],
    loads: tuple[int, ...],
    reason: str,
) -> None:
    ready.lab.system.at(at_s, lambda: fault(ready.lab))
    ready.run(servers=tuple(servers), modes=("open",), concurrencies=loads)
    first, *_, last = [ready.rows[0], *ready.rows]
    assert (first["valid"] == "true", last["valid"]) == (loads == THREE, "false")
    assert re.fullmatch(reason, unquote(last["invalid_reasons"]))
    # Judged again from what is stored it says the same.
    assert "trials.csv" not in ready.derived_again()


def test_a_knob_turned_before_the_run_is_no_fault_of_fresh_jvms(ready: Bench) -> None:
    ready.without_knobs()
    ready.run(modes=("open",), launches=2, rate_rps=450)
    assert ready.column("valid") == ["true"] * 4
    # Nor is it in what brings the run again, or in what other runs are compared with.
    assert ready.manifest["servers"]["a"]["settings"]["pool_size"] == 20
    assert "SERVER_POOL_SIZE" not in ready.report
    home = {"LAB_HOME": str(ready.place.results.parent)}
    call = Call("compare", {"A": f"{RUN}:a", "B": f"{RUN}:b"}, home)
    side, _ = read_sides(call, [ready.lab.engine], "A", "B")
    assert side.record.servers["a"].settings["pool_size"] == 200


def test_a_toxic_left_in_force_is_said_wherever_people_look(ready: Bench) -> None:
    ready.lab.toxics.append(toxic())
    assert ready.run_one()["valid"] == "true"
    page = (ready.run_dir / "report.html").read_text()
    for text in (ready.said, str(ready.manifest["notes"]), ready.report, page):
        assert f"toxics in force: {IN_FORCE}" in text


def test_the_answer_comes_before_the_figures(ready: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, said = page.build, []

    def build(*args: Any) -> Any:
        said.append(ready.said)
        return draw(*args)

    monkeypatch.setattr(page, "build", build)
    ready.run_one()
    [before] = said
    assert "expected" in before
    assert "report.html" not in before


def test_a_queue_left_behind_is_waited_for_and_said(ready: Bench) -> None:
    ready.lab.in_flight = 5000
    ready.run_one()
    assert ready.lab.system.elapsed_s >= 55
    assert "still had requests in flight" in ready.report


@pytest.mark.parametrize(
    ("given", "changes", "says"),
    [
        # The management port of another server would answer 403, without a name.
        ({"answering_model": "b"}, {}, "8080/health is answered by b"),
        ({"declared": {"b": WITHOUT_AGGREGATE}}, AGGREGATE, "^ROUTE=/aggregate: b .*; SERVER=a"),
        (
            {"declared": dict.fromkeys(("a", "b"), WITHOUT_AGGREGATE)},
            *(AGGREGATE, "^ROUTE=/aggregate: a, b has no such route$"),
        ),
        ({"delay_ms": 0}, {"modes": ("open",)}, "RATE=auto"),
    ],
    ids=["another server", "a route of a", "a route of none", "no wait"],
)
def test_what_cannot_be_measured_is_refused_before_any_load(
    ready: Bench, given: dict[str, object], changes: dict[str, object], says: str
) -> None:
    for name, value in given.items():
        setattr(ready.lab, name, value)
    refusal = LabUnreachable if "answering_model" in given else WordError
    with pytest.raises(refusal, match=says):
        ready.run(**changes)
    assert ready.lab.system.started == []
    assert not ready.run_dir.exists()


def test_a_setting_that_a_server_lacks_is_a_note_and_one_that_all_lack_refused(
    ready: Bench,
) -> None:
    ready.lab.settings["a"] = {"pool_order": "lifo", "local_ports": None}
    ready.lab.settings["b"] = {"pool_order": None, "local_ports": None}
    words = ("SERVER_POOL_ORDER=lifo", "SERVER_PORTS=10000 10299")
    ready.place = copy.replace(ready.place, read_back=words)
    assert ready.run() == 0
    (note,) = [note for note in ready.manifest["notes"] if "no such setting" in note]
    assert note.startswith("SERVER_POOL_ORDER=lifo: b has ")
    assert note in ready.said
    ready.place = copy.replace(ready.place, read_back=("FRONTS=2",))
    with pytest.raises(WordError, match=r"^FRONTS=2: a, b has no such setting$"):
        ready.run(name="again")


def test_an_unequal_limit_makes_every_row_invalid(ready: Bench) -> None:
    ready.lab.settings["b"] = {"backlog": 50}
    ready.lab.settings["a"] = {"backlog": 4096}
    assert ready.run() == 1
    cell = "unequal-limits limit=backlog servers=a=4096%20b=50"
    assert ready.column("invalid_reasons") == [cell] * 4
    # It is known beforehand, and a run without a valid trial ends with one line.
    assert "warning: no row will be valid: " in ready.text.getvalue()
    assert ready.text.getvalue().count("none of the 4 trials is valid") == 1
    assert ready.manifest["status"] == "complete"


def test_results_that_cannot_be_written_are_one_line(ready: Bench) -> None:
    ready.place.results.rmdir()
    with pytest.raises(LabError, match="cannot use"):
        ready.run()


def test_every_change_of_server_is_looked_at(ready: Bench) -> None:
    ready.lab.proxy_files = 16_000
    assert ready.run(servers=("a",)) == 0
    assert len(ready.lab.toxic_calls) == 2
    ready.lab.proxy_deaf = True
    ready.run(name="again", servers=("b",))
    assert "did not answer any more" in ready.text.getvalue()


def test_prometheus_turns_to_the_server_of_the_next_trial_early(ready: Bench) -> None:
    ready.run(modes=("closed",), concurrencies=(100, 200))
    # While a trial is read; they take turns: a, b, a, b.
    turns = [(one, [one], [one, after]) for one, after in ("ab", "ba", "ab", "bb")]
    assert ready.lab.attended == [list(servers) for turn in turns for servers in turn] + [[]]
