from pathlib import Path

import pytest

from lab.errors import RawDataError
from lab.model import Experiment, Fairness, TrialPlan, TrialRecord, WarmCycle, Warmth
from lab.store.records import from_json, read_json, read_object, to_json, write_json
from support.fakes import plan, record, snapshot


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "trial.json"
    warmth = Warmth(True, (WarmCycle(0.0, 5.0, 90.0, None, 1.5), WarmCycle(5, 5, 99, 2.0, 0)))
    for written in (
        record(),
        record(plan("closed"), after=None, after_problem="gone"),
        record(warmth=warmth, jit_share=0.01),
    ):
        write_json(path, written)
        assert read_json(path, TrialRecord) == written


def test_no_temporary_file_stays(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", snapshot())
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ValueError, match="no field colour"):
        from_json(TrialPlan, {**to_json(plan()), "colour": "red"})
    nested = to_json(record(warmth=Warmth(True, (WarmCycle(0.0, 5.0, 90.0, None, 1.5),))))
    nested["warmth"]["cycles"][0]["colour"] = "red"
    with pytest.raises(ValueError, match=r"TrialRecord.warmth.cycles has no field colour"):
        from_json(TrialRecord, nested)


def test_a_missing_or_mistyped_field_is_refused() -> None:
    whole = to_json(plan())
    with pytest.raises(ValueError, match=r"Expected `int`, got `str` - at `\$\.concurrency`"):
        from_json(TrialPlan, {**whole, "concurrency": "100"})
    with pytest.raises(ValueError, match=r"Expected `int`, got `float`"):
        from_json(TrialPlan, {**whole, "concurrency": 100.0})
    with pytest.raises(ValueError, match="concurrency, duration and cores start at 1"):
        from_json(TrialPlan, {**whole, "concurrency": 0})
    del whole["trial"]
    with pytest.raises(ValueError, match="trial"):
        from_json(TrialPlan, whole)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_broken_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trial.json"
    path.write_text(text)
    with pytest.raises(RawDataError, match=r"trial\.json"):
        read_json(path, TrialRecord)


def test_host_facts_are_optional_and_opaque(tmp_path: Path) -> None:
    assert read_object(tmp_path / "host.json") == {}
    (tmp_path / "host.json").write_text('{"cores": 2}')
    assert read_object(tmp_path / "host.json") == {"cores": 2}
    (tmp_path / "host.json").write_text("no")
    with pytest.raises(RawDataError):
        read_object(tmp_path / "host.json")


def test_an_experiment_comes_back_with_what_belongs_to_its_kind() -> None:
    own = {"objective": {"p95_ms": 1000.0}, "first": 100, "cases": ["a", None]}
    whole = Experiment("x", ("a",), ("/",), (1,), ("closed",), None, 15, None, kind="s", own=own)
    assert from_json(Experiment, to_json(whole)) == whole


def test_mappings_come_back_with_their_kinds_and_json_as_it_is() -> None:
    fairness = Fairness({"gc": ["G1"], "n": 1}, {"pool": {"a": 200, "b": None}}, {})
    assert from_json(Fairness, to_json(fairness)) == fairness
    with pytest.raises(ValueError, match=r"Fairness: Expected `object`, got `int` - at `\$\.own"):
        from_json(Fairness, {"equal": {}, "own": {"pool": 200}, "unequal": {}})
