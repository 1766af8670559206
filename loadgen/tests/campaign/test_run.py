"""Whole benches on a fake lab, a fake engine and a fake clock: what is on disk, and when."""

import csv
import dataclasses
import io
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.campaign.derive import Trial, derive, read_trial
from lab.campaign.engine_choice import choose_engines
from lab.campaign.resume import resume
from lab.campaign.run import run
from lab.campaign.sides import read_pools
from lab.campaign.tools import Lab, Place, Stages
from lab.errors import EngineError, Interrupted, LabError, LabUnreachable, WordError
from lab.experiments.cases import Case
from lab.experiments.explain import Explain
from lab.experiments.planted import Planted
from lab.experiments.stress import Objective, Stress
from lab.model import (
    AS_IT_IS,
    Condition,
    Demand,
    Experiment,
    Row,
    TrialPlan,
    WarmCycle,
    Warmth,
)
from lab.store.records import to_json
from lab.store.series import NAME as SERIES
from lab.system.jvm import fresh_jvm
from lab.system.observe import observe
from lab.system.stack import Stack
from support.fakes import START, FakeEngine, FakeLab, FakeSystem
from support.runs import HOST_FILE, IMAGES

RUN = "20260131T120000Z-bench"
WARM = Warmth(True, (WarmCycle(2.0, 2.0, 500.0, 200.0, 0.01),))


@dataclasses.dataclass
class Bench:
    """A bench ready to be run; `rows` and `manifest` are read back from the disk."""

    place: Place
    stack: Stack
    system: FakeSystem
    engine: FakeEngine
    text: io.StringIO = dataclasses.field(default_factory=io.StringIO)
    warmed: list[str] = dataclasses.field(default_factory=list)
    warmth: Warmth = WARM
    demand: Demand | None = None
    measured: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    observe: Callable[..., str | None] = lambda *_: None

    def warm(self, plan: TrialPlan, *_: object) -> Warmth:
        self.warmed.append(plan.server)
        return self.warmth

    def light_load(self, plan: TrialPlan, *_: object) -> Demand | None:
        self.measured.append((plan.server, plan.route))
        return self.demand

    @property
    def stages(self) -> Stages:
        return Stages(fresh=fresh_jvm, warm=self.warm, demand=self.light_load, observe=self.observe)

    def resume(self) -> int:
        console = Console(file=self.text, width=120)
        lab = Lab(self.place, self.stack, self.system, console)
        return resume(self.run_dir, lab, [self.engine], self.stages)

    def run(self, **changes: object) -> int:
        whole = Experiment(
            name="bench",
            servers=("a", "b"),
            routes=("/downstream",),
            concurrencies=(200,),
            modes=("open", "closed"),
            rate_rps=None,
            duration_s=15,
            warmup_s=None,
            words=("CONC=200",),
        )
        experiment = dataclasses.replace(whole, **changes)  # type: ignore[arg-type]
        console = Console(file=self.text, width=120)
        lab = Lab(self.place, self.stack, self.system, console)
        return run(experiment, lab, (), [self.engine], self.stages)

    def on(self, **facts: object) -> None:
        """A host with these facts; None: not recorded."""
        known = {name: fact for name, fact in {**HOST_FILE, **facts}.items() if fact is not None}
        self.place.host_file.write_text(json.dumps(known))

    @property
    def run_dir(self) -> Path:
        return self.place.results / RUN

    @property
    def rows(self) -> list[dict[str, str]]:
        path = self.run_dir / "trials.csv"
        return list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []

    @property
    def manifest(self) -> dict[str, object]:
        loaded = json.loads((self.run_dir / "manifest.json").read_text())
        assert isinstance(loaded, dict)
        return loaded


@pytest.fixture
def ready(tmp_path: Path, stack: Stack, system: FakeSystem, engine: FakeEngine) -> Bench:
    (tmp_path / "results").mkdir()
    (tmp_path / "host.json").write_text(json.dumps(HOST_FILE))
    place = Place(tmp_path / "results", tmp_path / "host.json", 20_000, 2)
    return Bench(place, stack, system, engine)


def test_every_combination_is_a_row_and_servers_alternate(ready: Bench) -> None:
    assert ready.run(concurrencies=(100, 200)) == 0
    cells = [(r["concurrency"], r["mode"], r["server"]) for r in ready.rows]
    assert cells == [
        (conc, mode, server)
        for conc in ("100", "200")
        for mode in ("open", "closed")
        for server in ("a", "b")
    ]
    assert all(row["valid"] == "true" for row in ready.rows)


def test_a_row_has_the_documented_columns_and_empty_cells_for_the_unknown(ready: Bench) -> None:
    ready.run(servers=("a",), modes=("open",))
    row = ready.rows[0]
    assert tuple(row) == Row.columns()
    assert row["run"] == RUN
    assert row["trial"] == "01-a-open-c200"
    assert row["engine"] == "wrk2"
    # 90 % of 200 connections / 0.2 s; the pool of 200 allows 1000.
    assert (row["offered_rps"], row["predicted_rps"]) == ("900", "900.000")
    assert row["achieved_rps"] == "900.000"
    assert (row["sent"], row["timeouts"], row["bottleneck"]) == ("", "", "unknown")
    # The window opens 10 s after the start and lasts 15 s.
    assert row["started_at"] == "2026-01-31T12:00:10.000Z"
    assert row["ended_at"] == "2026-01-31T12:00:25.000Z"


def test_the_manifest_says_what_the_run_was_made_with(ready: Bench) -> None:
    ready.place = dataclasses.replace(ready.place, settings=("NOFILE=300",))
    ready.run()
    manifest = ready.manifest
    assert manifest["format_version"] == 2
    assert manifest["status"] == "complete"
    assert manifest["host"] == HOST_FILE
    assert manifest["limits"] == {"open_files": 20_000, "generator_cores": 2}
    assert manifest["settings"] == ["NOFILE=300"]
    versions = manifest["versions"]
    assert isinstance(versions, dict)
    assert versions["commit"] == "c0ffee"
    assert versions["engine"] == "fake 1.0"
    servers = manifest["servers"]
    assert isinstance(servers, dict)
    assert servers["a"]["settings"]["pool_size"] == 200
    assert servers["b"]["settings"]["pool_size"] is None


def test_the_agent_is_told_of_warm_up_measurement_and_end(ready: Bench, fake_lab: FakeLab) -> None:
    ready.run(servers=("a",), modes=("open",))
    trial = "01-a-open-c200"
    assert fake_lab.marks == [(trial, "warmup"), (trial, "measure"), ("", "end")]


def test_the_probe_may_use_one_percent_of_the_bound(ready: Bench, fake_lab: FakeLab) -> None:
    fake_lab.pool_sizes["a"] = 20
    ready.run(servers=("a",), modes=("closed",))
    # 20 threads / 0.2 s.
    assert fake_lab.probe_rates == {1.0}
    fake_lab.probe_rates.clear()
    ready.run(servers=("a",), routes=("/compute",))
    assert fake_lab.probe_rates == {None}


def test_without_the_agent_one_line_warns_and_no_trial_is_believed(
    ready: Bench, fake_lab: FakeLab
) -> None:
    fake_lab.agent_up = False
    assert ready.run() == 0
    assert ready.text.getvalue().count("no live view") == 1
    assert len(ready.rows) == 4
    assert all("nobody watched the toxics" in row["invalid_reasons"] for row in ready.rows)


def test_latest_points_to_the_run_by_a_relative_link(ready: Bench) -> None:
    ready.run()
    latest = ready.place.results / "latest"
    assert latest.readlink() == Path(RUN)
    first = latest.readlink()
    ready.run()  # the fake clock has moved on
    assert latest.readlink() != first


def test_a_run_never_overwrites_another(ready: Bench) -> None:
    (ready.place.results / RUN).mkdir()
    ready.run()
    assert (ready.place.results / f"{RUN}-2" / "trials.csv").exists()
    assert not (ready.place.results / RUN / "trials.csv").exists()


def test_an_interrupt_ends_the_load_and_keeps_what_was_measured(ready: Bench) -> None:
    ready.system.interrupt_at = 60.0  # in the third trial of 25 s
    with pytest.raises(Interrupted):
        ready.run()
    assert [row["trial"] for row in ready.rows] == ["01-a-open-c200", "02-b-open-c200"]
    assert ready.manifest["status"] == "interrupted"
    assert [process.stopped_early for process in ready.system.processes] == [False, False, True]
    assert "trials.csv" in ready.text.getvalue()


def test_a_server_lost_between_trials_fails_the_run_and_keeps_its_rows(
    ready: Bench, fake_lab: FakeLab
) -> None:
    ready.system.at(20.0, lambda: fake_lab.down.add("b"))
    with pytest.raises(LabUnreachable, match="b: "):
        ready.run()
    assert len(ready.rows) == 1
    assert ready.manifest["status"] == "failed"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (
            lambda lab: lab.identities.update(
                a=dataclasses.replace(lab.identities["a"], start_time_ms=9)
            ),
            "the JVM restarted during the trial",
        ),
        (lambda lab: setattr(lab, "enabled", False), "toxics changed during the trial"),
        (lambda lab: lab.pool_sizes.update(a=300), "settings changed during the trial: pool_size"),
        (lambda lab: lab.down.add("a"), "could not be read back"),
    ],
)
def test_a_fault_planted_in_a_trial_makes_its_row_invalid(
    ready: Bench, fake_lab: FakeLab, fault: Callable[[FakeLab], None], reason: str
) -> None:
    ready.system.at(15.0, lambda: fault(fake_lab))
    ready.run(servers=("a",), modes=("open",))
    assert ready.rows[0]["valid"] == "false"
    assert reason in ready.rows[0]["invalid_reasons"]
    assert "invalid 01-a-open-c200" in ready.text.getvalue()


def test_a_server_that_comes_back_has_restarted(ready: Bench, fake_lab: FakeLab) -> None:
    def come_back() -> None:
        fake_lab.down.clear()
        identity = dataclasses.replace(fake_lab.identities["a"], start_time_ms=9, pid=9)
        fake_lab.identities["a"] = identity

    ready.system.at(20.0, lambda: fake_lab.down.add("a"))
    ready.system.at(30.0, come_back)
    ready.run(servers=("a",), modes=("open",))
    assert ready.rows[0]["invalid_reasons"] == "the JVM restarted during the trial"


@pytest.mark.parametrize(("seconds", "valid"), [(-1, "true"), (1, "true"), (12, "false")])
def test_a_toxic_added_and_removed_again_in_the_trial_is_caught(
    ready: Bench, fake_lab: FakeLab, seconds: int, valid: str
) -> None:
    # The agent looks every second: what it sees in the first may be older than the load.
    since = (START + timedelta(seconds=seconds)).isoformat()
    change = {"proxy": "downstream", "toxic": "latency", "since": since}
    ready.system.at(15.0, lambda: fake_lab.toxic_changes.append(change))
    ready.run(servers=("a",), modes=("open",))
    assert ready.rows[0]["valid"] == valid


LATENCY = {
    "name": "latency",
    "type": "latency",
    "stream": "downstream",
    "toxicity": 1.0,
    "attributes": {"latency": 300, "jitter": 0},
}
IN_FORCE = "downstream/latency latency jitter=0 latency=300 stream=downstream toxicity=1"


def test_a_toxic_that_comes_between_trials_makes_those_after_it_invalid(
    ready: Bench, fake_lab: FakeLab
) -> None:
    def warm(plan: TrialPlan, *_: object) -> Warmth:
        if plan.server == "b":
            fake_lab.toxics.append(LATENCY)
        return WARM

    ready.warm = warm  # type: ignore[method-assign]
    ready.run(modes=("open",))
    assert [row["valid"] for row in ready.rows] == ["true", "false"]
    reason = f"toxics are not those the run began with: none became {IN_FORCE}"
    assert ready.rows[1]["invalid_reasons"].startswith(reason)
    # Judged again from what is stored it says the same.
    assert "trials.csv" not in derive(ready.run_dir, [ready.engine]).changed


def test_another_delay_of_the_downstream_between_trials_does_too(
    ready: Bench, fake_lab: FakeLab
) -> None:
    ready.system.at(30.0, lambda: setattr(fake_lab, "delay_ms", 100))
    ready.run(modes=("open",), servers=("a",), concurrencies=(100, 200, 300))
    reason = "the downstream's delay is not what the run began with: 200 became 100 ms"
    assert reason not in ready.rows[0]["invalid_reasons"]
    assert reason in ready.rows[2]["invalid_reasons"]


def test_a_knob_turned_between_trials_makes_those_after_it_invalid(
    ready: Bench, fake_lab: FakeLab
) -> None:
    ready.system.at(30.0, lambda: fake_lab.pool_sizes.update(a=20))
    ready.run(modes=("open",), servers=("a",), concurrencies=(100, 200, 300))
    reason = "settings are not those of the server's first trial: pool_size 200 became 20"
    assert reason not in ready.rows[0]["invalid_reasons"]
    assert reason in ready.rows[2]["invalid_reasons"]
    assert "trials.csv" not in derive(ready.run_dir, [ready.engine]).changed


def without_knobs(ready: Bench, fake_lab: FakeLab) -> None:
    """A knob turned before the run is gone with the first fresh JVM."""

    def warm(plan: TrialPlan, *_: object) -> Warmth:
        fake_lab.pool_sizes[plan.server] = 200
        return WARM

    fake_lab.pool_sizes["a"] = 20
    ready.warm = warm  # type: ignore[method-assign]


def test_a_knob_turned_before_the_run_is_no_fault_of_fresh_jvms(
    ready: Bench, fake_lab: FakeLab
) -> None:
    without_knobs(ready, fake_lab)
    ready.run(modes=("open",), launches=2, rate_rps=450)
    assert [row["valid"] for row in ready.rows] == ["true"] * 4
    # Nor is it in what brings the run again, or in what other runs are compared with.
    assert ready.manifest["servers"]["a"]["settings"]["pool_size"] == 20
    assert "SERVER_POOL_SIZE" not in (ready.run_dir / "REPORT.md").read_text()
    name = ready.run_dir.name
    side, *_ = read_pools({"A": f"{name}:a", "B": f"{name}:b"}, ready.run_dir.parent)
    assert side.runs[0].record.servers["a"].settings["pool_size"] == 200


def test_a_toxic_left_in_force_is_said_wherever_people_look(
    ready: Bench, fake_lab: FakeLab
) -> None:
    fake_lab.toxics.append(LATENCY)
    ready.run(servers=("a",), modes=("open",))
    assert ready.rows[0]["valid"] == "true"
    said = f"toxics in force: {IN_FORCE}"
    assert said in ready.text.getvalue().replace("\n", " ")
    assert said in str(ready.manifest["notes"])
    for report in ("REPORT.md", "report.html"):
        assert said in (ready.run_dir / report).read_text()


def test_output_that_cannot_be_read_is_an_invalid_row_and_exit_1(ready: Bench) -> None:
    ready.engine.broken = "ends before the spectrum"
    assert ready.run(servers=("a",), modes=("open",)) == 1
    row = ready.rows[0]
    assert (row["valid"], row["achieved_rps"], row["p95_ms"]) == ("false", "", "")
    assert row["invalid_reasons"] == "fake.txt:7: ends before the spectrum"


def test_a_saturated_generator_is_caught(ready: Bench) -> None:
    ready.system.engine_cores = 2.0
    ready.run(servers=("a",), modes=("open",))
    assert "the generator was the limit" in ready.rows[0]["invalid_reasons"]


def test_a_busy_host_is_said_under_the_table(ready: Bench) -> None:
    ready.system.busy = 0.98
    ready.run(servers=("a",), modes=("open",))
    assert ready.rows[0]["valid"] == "true"
    assert "98% busy" in ready.text.getvalue()


def test_a_queue_left_behind_is_waited_for_and_said(ready: Bench, fake_lab: FakeLab) -> None:
    fake_lab.in_flight = 5000
    ready.run(servers=("a",), modes=("open",))
    assert ready.system.elapsed_s >= 55
    assert "still had requests in flight" in ready.text.getvalue()


def test_a_warm_up_run_goes_before_the_measured_one(ready: Bench) -> None:
    ready.engine.warm_up_s = 7
    ready.run(servers=("a",), modes=("closed",))
    assert ready.system.started == [("fake", "7"), ("fake", "25")]
    assert ready.rows[0]["started_at"] > f"{START:%Y-%m-%dT%H:%M:%S}"


def test_an_engine_that_never_ends_is_ended(ready: Bench) -> None:
    def hang(argv: object, output: Path) -> object:
        return original(("fake", "100000"), output)

    original = ready.system.start
    ready.system.start = hang  # type: ignore[method-assign, assignment]
    assert ready.run(servers=("a",)) == 1
    assert ready.system.processes[0].stopped_early
    # Each is kept as invalid, and the run goes on.
    assert [row["valid"] for row in ready.rows] == ["false", "false"]
    assert "wrk2 did not end within 120 s" in ready.rows[0]["invalid_reasons"]
    assert ready.manifest["status"] == "complete"


def test_a_wrong_server_on_the_name_stops_before_any_load(ready: Bench, fake_lab: FakeLab) -> None:
    fake_lab.answering_model = "b"
    with pytest.raises(LabUnreachable, match="answered by b"):
        ready.run()
    assert ready.system.started == []
    assert not ready.run_dir.exists()


def test_auto_without_any_wait_is_refused_before_any_load(ready: Bench, fake_lab: FakeLab) -> None:
    fake_lab.delay_ms = 0
    with pytest.raises(WordError, match="RATE=auto"):
        ready.run(modes=("open",))
    assert not ready.run_dir.exists()


def test_auto_without_any_wait_leaves_the_closed_load_and_says_so(ready: Bench) -> None:
    assert ready.run(routes=("/compute",)) == 0
    assert [(row["mode"], row["predicted_rps"]) for row in ready.rows] == [("closed", "")] * 2
    line = "closed load only: RATE=auto is a share of connections / wait, and /compute does not"
    assert line in ready.text.getvalue().replace("\n", " ")
    notes = ready.manifest["notes"]
    assert isinstance(notes, list)
    assert notes[0].startswith(line)


def test_a_given_rate_is_offered_to_a_route_without_a_wait(ready: Bench) -> None:
    assert ready.run(routes=("/compute",), rate_rps=300) == 0
    assert [(row["mode"], row["predicted_rps"]) for row in ready.rows] == [
        ("open", "300.000"),
        ("open", "300.000"),
        ("closed", ""),
        ("closed", ""),
    ]


def test_the_agent_is_told_the_path_as_the_servers_label_it(
    ready: Bench, fake_lab: FakeLab
) -> None:
    ready.run(routes=("/block?wait_ms=100",), servers=("a",), modes=("closed",))
    assert ready.rows[0]["route"] == "/block?wait_ms=100"
    assert fake_lab.marked_routes == {"/block"}


def test_what_is_equal_stands_under_the_table_and_in_the_manifest(ready: Bench) -> None:
    ready.run()
    text = ready.text.getvalue()
    assert "equal for all: downstream_connections 20000" in text
    assert "the model's own: pool_size a 200, b –" in text
    fairness = ready.manifest["fairness"]
    assert isinstance(fairness, dict)
    assert fairness["equal"]["downstream_connections"] == 20_000
    assert fairness["own"] == {"pool_size": {"a": 200, "b": None}}
    assert fairness["unequal"] == {}


def test_an_unequal_limit_makes_every_row_invalid(ready: Bench, fake_lab: FakeLab) -> None:
    fake_lab.settings["b"] = {"backlog": 50}
    fake_lab.settings["a"] = {"backlog": 4096}
    ready.run()
    reason = "unequal limits: backlog a=4096 b=50"
    assert [row["invalid_reasons"] for row in ready.rows] == [reason] * 4
    assert f"warning: no row will be valid: {reason}" in ready.text.getvalue()
    assert "unequal: backlog a 4096, b 50" in ready.text.getvalue()


def test_another_jvm_makes_every_row_invalid(ready: Bench, fake_lab: FakeLab) -> None:
    identity = dataclasses.replace(fake_lab.identities["b"], max_heap_bytes=2**30)
    fake_lab.identities["b"] = identity
    ready.run()
    assert {row["valid"] for row in ready.rows} == {"false"}


def test_a_knob_of_one_server_turned_between_trials_ends_the_comparison(
    ready: Bench, fake_lab: FakeLab
) -> None:
    # While a is measured: its own read-back, before and after, cannot see it.
    ready.system.at(15.0, lambda: fake_lab.settings.update(b={"downstream_connections": 7}))
    ready.run(modes=("closed",), concurrencies=(100, 200))
    assert [row["valid"] for row in ready.rows] == ["true", "false", "false", "false"]
    assert "downstream_connections a=20000 b=7" in ready.rows[3]["invalid_reasons"]


def test_one_server_alone_is_no_comparison(ready: Bench, fake_lab: FakeLab) -> None:
    fake_lab.settings["b"] = {"backlog": 50}
    ready.run(servers=("a",))
    assert {row["valid"] for row in ready.rows} == {"true"}


def test_results_that_cannot_be_written_are_one_line(ready: Bench) -> None:
    ready.place.results.rmdir()
    with pytest.raises(LabError, match="cannot use"):
        ready.run()


def test_plain_progress_says_trial_phase_and_time_left(ready: Bench) -> None:
    ready.run()
    text = ready.text.getvalue()
    assert "[1/4] a open CONC=200 warm-up, 1m40s left" in text
    assert "[4/4] b closed CONC=200 measuring" in text


def test_a_search_says_how_much_is_left_at_most(ready: Bench) -> None:
    of = Stress(Objective(500.0, 0.01), first=100, step=100, most=300, resolution=60, fall=0.1)
    ready.run(kind="stress", own=to_json(of), concurrencies=(100,), modes=("open",), servers=("b",))
    text = ready.text.getvalue()
    # 100, 200, 300, and one more should 300 not be held.
    assert "at most 4 trials (invalid ones once more), each of 25 s" in " ".join(text.split())
    assert "[1] b open CONC=100 warm-up, at most 4 trials and 1m40s left" in text
    assert "[3] b open CONC=300 measuring, at most 2 trials and" in text


class Second(FakeEngine):
    name = "oha"


def test_the_first_engine_that_runs_is_taken_and_another_one_is_said() -> None:
    first, second = FakeEngine(), Second()
    assert list(choose_engines((), [first, second]).engines.values()) == [first]
    first.here = False
    chosen = choose_engines((), [first, second])
    assert list(chosen.engines.values()) == [second]
    assert chosen.notes == ("wrk2 does not run on this machine: oha is the load engine",)


def test_a_named_engine_that_does_not_run_is_refused() -> None:
    first, second = FakeEngine(), Second()
    second.here = False
    with pytest.raises(EngineError, match=r"ENGINE=oha does not run.*here run: wrk2"):
        choose_engines(("oha",), [first, second])
    first.here = False
    with pytest.raises(EngineError, match="no load engine"):
        choose_engines((), [first, second])


def test_of_several_engines_those_that_do_not_run_are_left_out_and_said() -> None:
    first, second = FakeEngine(), Second()
    first.here = False
    chosen = choose_engines(("wrk2", "oha"), [first, second])
    assert list(chosen.engines) == ["oha"]
    assert chosen.notes == ("wrk2 does not run on this machine: left out",)


def test_a_jvm_is_proven_warm_once_for_each_route(ready: Bench) -> None:
    ready.run(concurrencies=(100, 200))
    assert ready.warmed == ["a", "b"]


def test_a_cold_jvm_makes_its_rows_invalid(ready: Bench) -> None:
    ready.warmth = Warmth(False, WARM.cycles, "not steady within 60 s")
    ready.run(servers=("a",))
    assert {row["valid"] for row in ready.rows} == {"false"}
    assert "not steady within 60 s" in ready.rows[0]["invalid_reasons"]


def replaced(ready: Bench, fake_lab: FakeLab, times: int) -> Bench:
    """Its JVM is replaced in the light load, after the proof, so many times."""

    def light_load(plan: TrialPlan, *_: object) -> Demand:
        if len(ready.measured) < times:
            old = fake_lab.identities["a"]
            fake_lab.identities["a"] = dataclasses.replace(old, start_time_ms=old.start_time_ms + 1)
        ready.measured.append((plan.server, plan.route))
        return Demand(100, 2000, 0.004, 0.01)

    ready.light_load = light_load  # type: ignore[method-assign]
    return ready


def test_a_jvm_that_was_replaced_after_its_proof_is_warmed_up_again(
    ready: Bench, fake_lab: FakeLab
) -> None:
    assert replaced(ready, fake_lab, 1).run(servers=("a",)) == 0
    assert ready.warmed == ["a", "a"]
    assert [row["valid"] for row in ready.rows] == ["true", "true"]
    assert "a: its JVM was replaced after it was warmed up: warming" in ready.text.getvalue()


def test_one_that_is_replaced_again_is_cold(ready: Bench, fake_lab: FakeLab) -> None:
    replaced(ready, fake_lab, 2).run(servers=("a",), modes=("closed",), concurrencies=(100, 200))
    assert ready.warmed == ["a", "a", "a"]
    # The next trial finds a JVM that stays, and warms it up.
    assert [row["invalid_reasons"] for row in ready.rows] == [
        "cold JVM: its JVM was replaced after it was warmed up",
        "",
    ]
    # Nor is anything known of what a request costs there.
    assert [row["binding"] for row in ready.rows] == ["connections", "host CPU"]


def test_every_launch_is_a_fresh_jvm_and_launches_take_turns(
    ready: Bench, fake_lab: FakeLab
) -> None:
    ready.run(launches=2, modes=("closed",), concurrencies=(100, 200))
    assert [(r["launch"], r["server"], r["concurrency"]) for r in ready.rows] == [
        ("1", "a", "100"),
        ("1", "b", "100"),
        ("1", "a", "200"),
        ("1", "b", "200"),
        ("2", "b", "100"),
        ("2", "a", "100"),
        ("2", "b", "200"),
        ("2", "a", "200"),
    ]
    assert fake_lab.restarts == ["a", "b", "b", "a"]
    assert ready.warmed == ["a", "b", "b", "a"]


def test_arms_of_a_server_are_fresh_jvms_of_their_own(ready: Bench, fake_lab: FakeLab) -> None:
    ready.run(launches=2, arms=("x", "y"), servers=("a",), modes=("closed",))
    assert [(r["launch"], r["arm"]) for r in ready.rows] == [
        ("1", "x"),
        ("1", "y"),
        ("2", "y"),
        ("2", "x"),
    ]
    assert len(fake_lab.restarts) == 4


def test_a_scaled_run_says_so(ready: Bench) -> None:
    ready.run(scale=0.1)
    assert "durations × 0.1 (a quick look, not a result)" in ready.text.getvalue()
    assert "0.1" in (ready.run_dir / "REPORT.md").read_text()


# --- going on with a run -----------------------------------------------------------------


def interrupted(ready: Bench, **changes: object) -> str:
    """A run stopped in its third trial; the CSV as it was left."""
    ready.system.interrupt_at = 60.0
    with pytest.raises(Interrupted):
        ready.run(**changes)
    ready.system.interrupt_at = None
    return (ready.run_dir / "trials.csv").read_text()


def test_a_resumed_run_neither_loses_nor_repeats_a_trial(ready: Bench) -> None:
    before = interrupted(ready)
    assert ready.resume() == 0
    after = (ready.run_dir / "trials.csv").read_text()
    assert after.startswith(before)
    assert [row["trial"] for row in ready.rows] == [
        "01-a-open-c200",
        "02-b-open-c200",
        "03-a-closed-c200",
        "04-b-closed-c200",
    ]
    assert len(ready.system.started) == 5  # the third trial twice
    assert ready.manifest["status"] == "complete"
    assert "RESUME=" in ready.text.getvalue()


def test_what_an_unfinished_trial_left_is_kept_aside(ready: Bench) -> None:
    interrupted(ready)
    ready.resume()
    assert (ready.run_dir / "abandoned" / "03-a-closed-c200-1" / "fake.txt").exists()


def test_a_trial_that_ended_without_its_row_is_not_run_again(ready: Bench) -> None:
    # Killed between the raw data and the row.
    lines = interrupted(ready).splitlines(keepends=True)
    (ready.run_dir / "trials.csv").write_text("".join(lines[:2]))
    ready.resume()
    assert (ready.run_dir / "trials.csv").read_text().startswith("".join(lines))
    assert len(ready.system.started) == 5


TWO_LOADS: dict[str, Any] = {"launches": 1, "modes": ("closed",), "concurrencies": (100, 200)}


def test_a_launch_goes_on_with_its_jvms_after_a_resume(ready: Bench, fake_lab: FakeLab) -> None:
    interrupted(ready, **TWO_LOADS)
    ready.resume()
    assert fake_lab.restarts == ["a", "b"]
    assert ready.warmed == ["a", "b"] * 2
    lines = (ready.run_dir / "trials.jsonl").read_text().splitlines()
    started = {(one["server"], one["jvm_started_ms"]) for one in map(json.loads, lines)}
    assert len(started) == 2


def test_a_jvm_that_is_another_now_is_made_fresh_after_a_resume(
    ready: Bench, fake_lab: FakeLab
) -> None:
    interrupted(ready, **TWO_LOADS)
    old = fake_lab.identities["b"]
    fake_lab.identities["b"] = dataclasses.replace(old, start_time_ms=old.start_time_ms + 1)
    ready.resume()
    assert fake_lab.restarts == ["a", "b", "b"]


def test_the_next_launch_is_fresh_after_a_resume_too(ready: Bench, fake_lab: FakeLab) -> None:
    interrupted(ready, launches=2, modes=("closed",))
    restarts = list(fake_lab.restarts)
    ready.resume()
    # The third trial, b in its second launch, had its JVM, and no row yet.
    assert restarts == ["a", "b", "b"]
    assert fake_lab.restarts == ["a", "b", "b", "b", "a"]


def test_a_run_of_fresh_jvms_goes_on_without_the_knob_it_began_with(
    ready: Bench, fake_lab: FakeLab
) -> None:
    without_knobs(ready, fake_lab)
    interrupted(ready, **TWO_LOADS)
    assert ready.resume() == 0
    assert [row["valid"] for row in ready.rows] == ["true"] * 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r, lab: lab.settings.update(b={"downstream_connections": 7}), "b: downstream_conn"),
        (lambda r, lab: setattr(lab, "delay_ms", 100), "the downstream's delay"),
        (lambda r, lab: r.on(commit="beef"), "commit changed"),
        (lambda r, lab: r.on(commit_dirty=True), "commit_dirty changed"),
        (lambda r, lab: r.on(kernel="7"), "the host's kernel changed"),
        (lambda r, lab: r.on(kernel=None), "the host's kernel was not recorded"),
        (
            lambda r, lab: r.on(cpusets={"loadgen": "", "toxiproxy": "1", "downstream": "0"}),
            "CPU set of toxiproxy",
        ),
        (
            lambda r, lab: r.on(images={**IMAGES, "x/toxiproxy:2": {"id": "2"}}),
            "image of toxiproxy",
        ),
        (
            lambda r, lab: setattr(r, "place", dataclasses.replace(r.place, file_limit=1024)),
            "open_files",
        ),
    ],
)
def test_a_run_does_not_go_on_in_another_lab(
    ready: Bench, fake_lab: FakeLab, change: Callable[[Bench, FakeLab], None], said: str
) -> None:
    before = interrupted(ready)
    change(ready, fake_lab)
    with pytest.raises(LabError, match=said):
        ready.resume()
    assert (ready.run_dir / "trials.csv").read_text() == before


@pytest.mark.parametrize("fact", ["commit", "commit_dirty", "kernel", "cpusets", "images"])
def test_a_run_does_not_go_on_where_neither_lab_recorded_a_fact(ready: Bench, fact: str) -> None:
    ready.on(**{fact: None})
    interrupted(ready)
    with pytest.raises(LabError, match="was not recorded, so nothing tells whether it changed"):
        ready.resume()


@pytest.mark.parametrize("code", [{"commit_dirty": True}, {"commit": "unknown"}])
def test_code_that_no_commit_tells_goes_on_with_the_images_it_began_with(
    ready: Bench, code: dict[str, object]
) -> None:
    ready.on(**code)
    interrupted(ready)
    assert ready.resume() == 0


@pytest.mark.parametrize("image", ["a", "loadgen"])
def test_code_that_no_commit_tells_does_not_go_on_with_another_image(
    ready: Bench, image: str
) -> None:
    ready.on(commit_dirty=True)
    interrupted(ready)
    images = {tag: {"id": "new"} if f"/{image}:" in tag else of for tag, of in IMAGES.items()}
    ready.on(commit_dirty=True, images={**images, "ghcr.io/x/toxiproxy:2": {"id": "sha256:t"}})
    with pytest.raises(LabError, match=f"the image of {image} changed"):
        ready.resume()


def test_a_complete_run_has_nothing_left(ready: Bench) -> None:
    ready.run()
    with pytest.raises(LabError, match="nothing is left"):
        ready.resume()


def test_the_derived_files_are_there_and_say_what_the_rows_said(ready: Bench) -> None:
    ready.run()
    for name in ("trials.jsonl", "findings.json", "comparison.json", "REPORT.md"):
        assert (ready.run_dir / name).stat().st_size > 0
    lines = (ready.run_dir / "trials.jsonl").read_text().splitlines()
    assert [json.loads(line)["trial"] for line in lines] == [row["trial"] for row in ready.rows]


def test_what_a_request_costs_is_measured_once_for_a_jvm_and_route(ready: Bench) -> None:
    ready.demand = Demand(100, 2000, 0.004, 0.01)
    ready.run(concurrencies=(100, 200), modes=("closed",))
    assert ready.measured == [("a", "/downstream"), ("b", "/downstream")]
    # 2 CPUs of the host at 10 ms a request.
    assert {(r["expected_rps"], r["binding"]) for r in ready.rows} == {("200.000", "host CPU")}
    assert [r["expected_p95_ms"] for r in ready.rows] == ["500.000"] * 2 + ["1000.000"] * 2
    # Faster than an estimate is not faster than possible.
    assert {(r["valid"], r["predicted_rps"]) for r in ready.rows[:2]} == {("true", "500.000")}
    said = (
        "prediction: a /downstream 200 closed: ≤ 1,000 req/s (connections: 200 / 0.2 s); "
        "host CPU ≈ 200 req/s (estimate: 2 / 10 ms); server CPU ≈ 500 req/s (estimate: 2 / 4 ms)"
    )
    assert ready.text.getvalue().count(said) == 1


def test_a_demand_that_cannot_be_told_is_not_asked_for_again(ready: Bench) -> None:
    ready.run(servers=("a",))
    assert ready.measured == [("a", "/downstream")]
    assert [r["binding"] for r in ready.rows] == ["offered load", "connections"]
    assert [r["expected_p95_ms"] for r in ready.rows] == ["200.000"] * 2


def test_a_cold_jvm_has_no_demand(ready: Bench) -> None:
    ready.warmth = Warmth(False, (), "not steady within 60 s")
    ready.run(servers=("a",))
    assert ready.measured == []


def test_an_explanation_asks_for_trials_by_what_the_last_one_named(
    ready: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = read_trial

    def names_the_pool(*args: Any) -> Trial:
        trial = real(*args)
        row = dataclasses.replace(trial.row, bottleneck="worker pool", confidence=0.9)
        return dataclasses.replace(trial, row=row)

    monkeypatch.setattr("lab.campaign.derive.read_trial", names_the_pool)
    monkeypatch.setattr("lab.campaign.loop.read_trial", names_the_pool)
    changes = {
        "kind": "explain",
        "own": to_json(Explain(1, 1)),
        "servers": ("a",),
        "modes": ("closed",),
    }
    ready.system.interrupt_at = 60.0
    with pytest.raises(Interrupted):
        ready.run(**changes)
    ready.system.interrupt_at = None
    assert ready.resume() == 0
    assert [row["trial"] for row in ready.rows] == [
        "001-a-1-named-closed-c200", "002-a-1-before-closed-c200", "003-a-1-after-closed-c200",
    ]  # fmt: skip
    conditions = [
        json.loads((ready.run_dir / "raw" / row["trial"] / "trial.json").read_text())["plan"]
        for row in ready.rows
    ]
    assert [plan["condition"]["knobs"] for plan in conditions] == [{}, {}, {"pool_size": 400}]
    said = ready.text.getvalue()
    assert "a: step 1, worker pool (named, confidence 0.90): inconclusive: pool_size 200" in said
    assert "no interval: 1 and 1 trials" in said
    assert json.loads((ready.run_dir / "comparison.json").read_text())["comparisons"] == []
    assert "step 1, worker pool" in (ready.run_dir / "report.html").read_text()


def test_a_resumed_run_decides_by_the_series_it_fetched(
    ready: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = read_trial

    def names_what_was_seen(record: Any, raw: Path, engines: Any) -> Trial:
        trial = real(record, raw, engines)
        seen = "worker pool" if (raw / SERIES).exists() else "unknown"
        return dataclasses.replace(trial, row=dataclasses.replace(trial.row, bottleneck=seen))

    def stopped(*_: object) -> str | None:
        raise Interrupted

    monkeypatch.setattr("lab.campaign.derive.read_trial", names_what_was_seen)
    monkeypatch.setattr("lab.campaign.loop.read_trial", names_what_was_seen)
    ready.observe = stopped
    with pytest.raises(Interrupted):
        ready.run(kind="explain", own=to_json(Explain(1, 1)), servers=("a",), modes=("closed",))
    assert ready.rows == []
    ready.observe = observe
    assert ready.resume() == 0
    assert [row["trial"] for row in ready.rows] == [
        "001-a-1-named-closed-c200", "002-a-1-before-closed-c200", "003-a-1-after-closed-c200",
    ]  # fmt: skip
    assert [row["bottleneck"] for row in ready.rows] == ["worker pool"] * 3


LIMITED = Condition(knobs={"pool_size": 20}, toxics=({"TYPE": "latency", "LATENCY": "300"},))


def planted(*conditions: Condition, server: str = "a") -> dict[str, object]:
    """What makes a run one of planted bottlenecks."""
    cases = [
        Case(f"c{at}", server, "/downstream", 100, ("none",), condition)
        for at, condition in enumerate(conditions, 1)
    ]
    return {"kind": "planted", "modes": ("closed",), "own": to_json(Planted(tuple(cases)))}


def test_a_trial_is_made_under_its_condition_and_the_lab_is_put_back(
    ready: Bench, fake_lab: FakeLab
) -> None:
    warm: list[tuple[object, int]] = []

    def seen(plan: TrialPlan, *_: object) -> Warmth:
        warm.append((fake_lab.pool_sizes[plan.server], len(fake_lab.toxics)))
        return WARM

    ready.warm = seen  # type: ignore[method-assign]
    assert ready.run(**planted(LIMITED, AS_IT_IS, LIMITED)) == 0
    # Warmed up once, on the lab as it is.
    assert warm == [(200, 0)]
    # 20 threads / 0.5 s; 100 connections / 0.2 s.
    assert [row["predicted_rps"] for row in ready.rows] == ["40.000", "500.000", "40.000"]
    assert (fake_lab.pool_sizes["a"], fake_lab.toxics) == (200, [])


def test_conditions_are_unlike_on_purpose(ready: Bench, fake_lab: FakeLab) -> None:
    fake_lab.settings["b"] = {"downstream_timeout_ms": 1}
    ready.run(**planted(LIMITED))
    assert "unequal" not in ready.rows[0]["invalid_reasons"]
    assert "no row will be valid" not in ready.text.getvalue()


def test_an_interrupted_run_leaves_the_lab_as_it_was(
    ready: Bench, fake_lab: FakeLab, system: FakeSystem
) -> None:
    system.interrupt_at = 5.0
    with pytest.raises(Interrupted):
        ready.run(**planted(LIMITED))
    assert (fake_lab.pool_sizes["a"], fake_lab.toxics) == (200, [])
    assert [fake_lab.patches[0], fake_lab.patches[-1]] == [
        ("a", {"pool_size": 20}),
        ("a", {"pool_size": 200}),
    ]


def test_what_cannot_be_put_back_is_one_warning(
    ready: Bench, fake_lab: FakeLab, system: FakeSystem
) -> None:
    system.at(12.0, lambda: fake_lab.down.add("toxiproxy"))
    with pytest.raises(LabUnreachable):
        ready.run(**planted(LIMITED, LIMITED))
    warnings = [line for line in ready.text.getvalue().splitlines() if "put back" in line]
    assert len(warnings) == 1
    assert fake_lab.pool_sizes["a"] == 200


def test_a_setting_of_the_host_needs_somebody_there(ready: Bench) -> None:
    with pytest.raises(LabError, match="host settings need `make`"):
        ready.run(**planted(Condition(host={"SERVER_CPUS": "0.5"})))


def test_the_host_is_asked_and_another_jvm_is_warmed_up_with_few(
    ready: Bench, fake_lab: FakeLab, system: FakeSystem, tmp_path: Path
) -> None:
    folder = tmp_path / "host-changes"
    folder.mkdir()
    ready.place = dataclasses.replace(ready.place, host_changes=folder)
    asked: list[str] = []

    def host() -> None:
        for request in folder.glob("*.request"):
            asked.append(request.read_text())
            request.unlink()
            (folder / f"{request.name.split('.')[0]}.answer").write_text("ok\n")
            old = fake_lab.identities["a"]
            fake_lab.identities["a"] = dataclasses.replace(old, start_time_ms=old.start_time_ms + 1)
        system.at(system.elapsed_s + 0.05, host)

    seen: list[object] = []

    def warm(plan: TrialPlan, connections: int, *_: object) -> Warmth:
        seen.append((connections, fake_lab.identities[plan.server].start_time_ms))
        return WARM

    ready.warm = warm  # type: ignore[method-assign]
    host()
    # In the end nobody is there to answer: what is asked then is for test_conditions.
    condition = Condition(host={"SERVER_BACKLOG": "1"})
    ready.run(**planted(condition, condition, AS_IT_IS))
    assert seen == [(50, 1001), (100, 1002)]
    assert asked == ["SERVER=a\nSERVER_BACKLOG=1\n", "SERVER=a\n"]
