"""docs/reliability.md says of the cells of faults what the list and the results say."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from support.repo import REPO, program

cells = program("cells")


def test_the_page_has_the_table_of_the_list_and_of_what_passed() -> None:
    page = (REPO / "docs/reliability.md").read_text()
    assert cells.with_table(page) == page


def test_forty_cells_and_more_twelve_of_them_in_the_full_suite() -> None:
    listed = cells.read(REPO / ".ci/cells.csv")
    keys = [(one["fault"], one["phase"]) for one in listed]
    assert len(set(keys)) == len(keys) >= 40
    full = [one for one in listed if one["suite"] not in ("long", "own")]
    assert len(full) >= 12
    smoke = (REPO / ".ci/smoke.sh").read_text()
    for one in listed:
        assert one["phase"] in cells.PHASES
        assert one["after"] in ("goes-on", "ends", "either")
        # The step of the smoke test that plants it already.
        if one["suite"] not in ("full", "long", "own"):
            assert f"step {one['suite']} " in smoke, one
    assert {(one["fault"], one["phase"]) for one in cells.read(cells.PASSED)} <= set(keys)


def test_every_fault_can_be_injected_and_is_explained() -> None:
    script = (REPO / ".ci/cells.sh").read_text()
    inject = script.partition("\ninject() {")[2].partition("\n}\n")[0]
    patterns = re.findall(r"^    ([a-z0-9*-]+)\)", inject, re.MULTILINE)
    page = (REPO / "docs/reliability.md").read_text()
    for fault in {one["fault"] for one in cells.read(REPO / ".ci/cells.csv")}:
        assert any(re.fullmatch(one.replace("*", ".*"), fault) for one in patterns if one != "*")
        names = (f"| {fault} |", f"| {fault.partition('-')[0]}-… |")
        assert any(name in page.partition("What the names mean")[2] for name in names), fault


def row(**other: Any) -> Mapping[str, Any]:
    plain = {"trial": "01-event-loop-closed-c40", "valid": True, "achieved_rps": 196.0}
    return {**plain, "raw_p50_ms": 202.0, "reasons": [], "notes": [], **other}


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ({}, None),
        ({"achieved_rps": 120.0}, "is valid, and says 120 req/s"),
        ({"achieved_rps": 260.0}, "is valid, and says 260 req/s"),
        ({"raw_p50_ms": 900.0}, "a p50 of 900 ms"),
        ({"achieved_rps": 120.0, "valid": False, "reasons": ["it was hit"]}, None),
    ],
)
def test_a_valid_row_with_figures_that_cannot_be_is_found(of: dict[str, Any], said: str) -> None:
    (found,) = [*cells.problems("complete", [row(**of)], ["c40"], "")] or [None]
    assert (found is None) if said is None else (said in found)


def test_a_run_that_lacks_a_trial_or_its_reason_is_found() -> None:
    found = [*cells.problems("running", [row(), row()], ["c40", "c50"], "the JVM restarted")]
    assert [re.sub(r":.*", "", one) for one in found] == [
        "the run is running",
        "a trial is there twice",
        "c40 is there 2 times",
        "c50 is there 0 times",
        "no trial says",
    ]


def test_each_of_several_faults_has_a_trial_that_says_so() -> None:
    rows = [row(valid=False, reasons=["restarted: the proxy"])]
    said = "restarted: the proxy|restarted: the downstream"
    found = [*cells.problems("complete", rows, ["c40"], said)]
    assert found == ["no trial says: restarted: the downstream"]
