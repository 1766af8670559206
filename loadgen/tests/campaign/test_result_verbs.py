"""Tables, reports and comparisons of stored runs, and what cannot be read of them."""

import csv
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.campaign import gate
from lab.campaign.derive import derive
from lab.campaign.result_verbs import compare_verb, report_verb
from lab.errors import LabError, RawDataError, WordError
from lab.judge.checks.state import server_gone
from lab.model import Counts, Fairness, Latency, Peak, Row
from lab.store import csv as report_csv
from lab.store import manifest
from lab.store.records import read_object, write_json
from support.fakes import START, FakeEngine, judged_row, measurement, plan, reading, record, rounded
from support.runs import EXPERIMENT, NAME, Jittery, plans, write_manifest, write_raw


def row(trial: str = "01-a", engine: str = "wrk2", **changes: Any) -> Row:
    load = {"concurrency": 10_000, "offered_rps": 45_000, "predicted_rps": 45_000.0}
    slowest = record(plan(trial=trial, engine=engine, server="virtual-threads", **load))
    slow = Latency(12_000, 12_345, 23_456, 34_567, 45_678)
    counts = Counts(None, 999_999, 123, 123_456, None, None, 9)
    whole = measurement(slowest, reading(44_950.0, corrected=slow, raw=slow, counts=counts))
    return dataclasses.replace(judged_row("run", whole), **changes)


def test_of_a_load_with_spikes_no_p95_is_predicted() -> None:
    calm = dataclasses.replace(record(), expected_p95_ms=200.0)
    spiked = dataclasses.replace(calm, peaks=(Peak(12.0, 15.0),))
    rows = [judged_row("run", measurement(of, reading())) for of in (calm, spiked)]
    assert [one.expected_p95_ms for one in rows] == [200.0, None]


QUOTED = 'gone, with "quotes", and; more'


def test_rows_are_appended_under_one_header_and_read_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    invalid = measurement(record(after=None, after_problem=server_gone.remark(problem=QUOTED)))
    closed = measurement(record(plan("closed", launch=3, arm="left")), reading(corrected=None))
    judged = [judged_row("run", whole) for whole in (invalid, closed)]
    rows = [row(), row(trial="02-a"), *judged]
    for one in rows:
        report_csv.append(path, one)
    assert report_csv.read(path) == tuple(map(rounded, rows))
    assert path.read_text() == report_csv.text(rows)
    first, second, *_ = csv.DictReader(path.read_text().splitlines())
    assert (first["trial"], second["trial"]) == ("01-a", "02-a")
    assert tuple(first) == Row.columns()
    for kind in ("", "raw_"):
        told = [first[f"{kind}{name}_ms"] for name in ("p50", "p95", "p99")]
        assert told == ["12345.000", "23456.000", "34567.000"]
    assert first["sent"] == ""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("run,trial", "run,colour", "colour, trial"),
        (",true,", ",perhaps,", "trials.csv:2"),
        (",450,", ",many,", "trials.csv:2"),
        (",15,,false,,", ",", "trials.csv:2"),
    ],
)
def test_a_table_that_is_not_one_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path, text = tmp_path / "trials.csv", report_csv.text([judged_row("run", measurement())])
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(RawDataError, match=said):
        report_csv.read(path)


def test_a_manifest_comes_back_as_it_was(tmp_path: Path) -> None:
    run_dir = write_manifest(tmp_path)
    read = manifest.read(run_dir)
    assert read.experiment == EXPERIMENT
    assert (read.run, read.started_at, read.status) == (NAME, START, "complete")
    assert read.servers["a"].identity.model == "a"
    manifest.write(tmp_path, read)
    assert (tmp_path / "manifest.json").read_bytes() == (run_dir / "manifest.json").read_bytes()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 2}, "has format 2; the lab reads format 1 only"),
        ({"format": None}, "has format None; the lab reads format 1 only"),
        ({"format": ...}, "has no format; the lab reads format 1 only"),
        ({"experiment": {"connections": 8000}}, "is not a run of trials"),
        ({"experiment": None}, "is not a run of trials"),
        (
            {"experiment": {"concurrencies": [1]}},
            "manifest.json: Manifest: Object missing required field",
        ),
        ({"status": "asleep"}, r"Invalid enum value 'asleep' - at `\$\.status`"),
        ({"colour": "red"}, "no field colour"),
        (None, "is not a run of the lab"),
    ],
)
def test_a_manifest_that_cannot_be_read_says_why(
    tmp_path: Path, changes: dict[str, object] | None, said: str
) -> None:
    """A value of `...` is no field at all, and None no file."""
    path = write_manifest(tmp_path) / "manifest.json"
    fields = {**read_object(path), **(changes or {})}
    write_json(path, {name: value for name, value in fields.items() if value is not ...})
    if changes is None:
        path.unlink()
    with pytest.raises(LabError, match=said) as failure:
        manifest.read(path.parent)
    assert "\n" not in str(failure.value)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    run_dir = write_manifest(tmp_path)
    write_raw(run_dir, plans())
    derive(run_dir, [Jittery()])
    (tmp_path / "latest").symlink_to(run_dir.name)
    return tmp_path


def report(results: Path) -> str:
    return (results / NAME / "REPORT.md").read_text()


def test_the_report_starts_with_what_was_asked_and_what_is_answered(results: Path) -> None:
    text = report(results)
    assert text.startswith(f"# aa: {NAME}\n\n28 trials, 0 of them invalid, 2026-01-31, host cpu")
    assert "\n\n- **a**: reached " in text.partition("## Question")[0]
    assert "\n\n## Question\n\nDoes a differ from b?\n\n### Hypothesis\n\n" in text
    assert "SCALE" not in text
    for said in (
        "28 trials, 28 of them valid, from 2026-01-31T12:00:00.000Z",
        "7 fresh JVMs of every server, interleaved",
        "| load engines | fake 1.0 |",
        "commit c0ffee |",
        "Abacus, 2 cores, 8.0 GiB, Linux 6.1, Docker 26.1",
        "open_files 20000",
        "make run EXP=aa LAUNCHES=7",
        f"make report RUN={NAME}",
        "each takes an interval of 97.5 % or more, and 7 launches of each side.",
    ):
        assert said in text
    assert text.count("**within**") == 2


def told_first(results: Path) -> list[str]:
    """The notices between the answer and the question."""
    above, _, _ = report(results).partition("## Question")
    return [line for line in above.splitlines() if line.startswith("> ")]


def report_of(results: Path, broken: str | None = None, **changes: object) -> str:
    """The report of one launch, with a manifest of these values."""
    run_dir, engine = write_manifest(results, **changes), FakeEngine()
    engine.broken = broken
    derive(write_raw(run_dir, plans(launches=1)), [engine])
    return report(results)


def test_a_scaled_or_unfinished_run_says_so_first(tmp_path: Path) -> None:
    quick = dataclasses.replace(EXPERIMENT, scale=0.1)
    text = report_of(tmp_path, experiment=quick, status="interrupted")
    scaled, unfinished = told_first(tmp_path)
    assert scaled.startswith("> SCALE=0.1: every duration was multiplied by 0.1.")
    assert unfinished == "> The run is interrupted, not complete: 4 trials."
    # Of one launch each there is nothing to say but what it would take.
    assert "cannot tell" not in text
    assert (
        "Nothing is called better or worse: 2 comparisons would take 7 launches of each side, and "
        "there is one (make run EXP=… LAUNCHES=7)."
    ) in text


def test_unequal_limits_are_told_first(tmp_path: Path) -> None:
    unequal = Fairness({}, {}, {"max_heap_bytes": {"a": 2**30, "b": 2**29}})
    assert "512 MiB" in report_of(tmp_path, fairness=unequal)
    assert told_first(tmp_path) == [
        "> max_heap_bytes is not equal for all servers: see Fairness manifest."
    ]


def test_every_invalid_trial_is_there_with_its_reasons(tmp_path: Path) -> None:
    text = report_of(tmp_path, broken="no | such line")
    assert text.splitlines()[4:6] == ["- **a**: no valid trial", "- **b**: no valid trial"]
    assert told_first(tmp_path) == [
        "> 4 of 4 trials invalid, and what was measured in them is in no median: see Validity."
    ]
    assert text.count("fake.txt:7: no | such line") == 4
    assert text.count("| 0 of 1 | 0 |") == 4


def shown_by(verb: str, results: Path, **words: str) -> str:
    text = io.StringIO()
    run = {"report": report_verb, "compare": compare_verb}[verb]
    assert run(words, results, Console(file=text, width=80), [Jittery()]) == 0
    return text.getvalue()


def test_report_says_what_was_rebuilt_and_what_was_not(results: Path) -> None:
    said = shown_by("report", results)
    assert f"results/{NAME}: 28 trials, 28 of them valid" in said
    assert "unchanged, byte for byte: trials.csv, trials.jsonl, findings.json" in said
    assert "rebuilt" not in said
    (results / NAME / "REPORT.md").write_text("edited")
    assert "rebuilt: REPORT.md" in shown_by("report", results, RUN=NAME)
    for words in ({"RUN": "nowhere"}, {"A": "b"}):
        with pytest.raises(WordError):
            shown_by("report", results, **words)


NESTED = "[" * 100_000


@pytest.mark.parametrize("manifest_text", [NESTED, f'{{"experiment": {NESTED}'])
def test_a_nested_manifest_is_one_line_for_every_verb(results: Path, manifest_text: str) -> None:
    damaged = results / "20260201T120000Z-damaged"
    write_raw(write_manifest(results, damaged.name), plans(launches=1))
    (damaged / "manifest.json").write_text(manifest_text)
    limits = gate.LimitsFile("[cpu]\nat_most = 1.05\n")
    a, b, console = f"{NAME}:a", f"{damaged.name}:a", Console(file=io.StringIO())
    for verb in (
        lambda: report_verb({"RUN": damaged.name}, results, console),
        lambda: compare_verb({"A": a, "B": b}, results, console),
        lambda: gate.gate_verb({"BASE": a, "CANDIDATE": b}, results, limits, console, START),
    ):
        with pytest.raises(LabError) as refused:
            verb()
        assert "damaged/manifest.json" in str(refused.value)
        assert "\n" not in str(refused.value)
    # The list of runs is made all the same.
    shown_by("report", results, RUN=NAME)
    assert damaged.name in (results / "index.html").read_text()


def test_compare_prints_a_table_that_fits_and_what_it_means(results: Path) -> None:
    said = shown_by("compare", results, A="latest:a", B="latest:b")
    assert f"{NAME}:b (B) against {NAME}:a (A): 2 × within" in said
    assert said.count("within") >= 2
    assert "2 answers: they hold together" in " ".join(said.split())
    lines = [line for line in said.splitlines() if line.startswith(("load", "closed", "open"))]
    assert len(lines) == 3
    assert max(map(len, lines)) <= 80
    # The file of the run has every cell with its numbers.
    told = json.loads((results / NAME / "comparison.json").read_text())
    assert (told["margin"], told["confidence"]) == (0.05, 0.95)
    [of] = told["comparisons"]
    assert (of["a"], of["b"], len(of["answers"])) == ("a", "b", 2)
    # 7 rounds have 128 signs, of which k = 1 leaves out 2.
    assert of["answers"][0]["ratio"]["interval"]["coverage"] == 1 - 2 / 128
    assert of["answers"][0]["paired"]
