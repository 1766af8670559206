"""docs/reliability.md says of the cells of faults what the list and the results say."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from support.repo import REPO, script

cells = script("cells")


def test_the_page_has_the_table_of_the_list_and_of_what_passed() -> None:
    page = (REPO / "docs/reliability.md").read_text()
    assert cells.with_table(page) == page


def test_forty_cells_and_more_twelve_of_them_in_the_full_suite() -> None:
    listed = cells.read(REPO / ".ci/cells.csv")
    keys = [(cell["fault"], cell["phase"]) for cell in listed]
    assert len(set(keys)) == len(keys) >= 40
    full = [cell for cell in listed if cell["suite"] not in ("long", "own")]
    assert len(full) >= 12
    smoke = (REPO / ".ci/smoke.sh").read_text()
    for cell in listed:
        assert cell["phase"] in cells.PHASES
        assert cell["after"] in ("goes-on", "ends", "either")
        # The step of the smoke test that plants it already.
        if cell["suite"] not in ("full", "long", "own"):
            assert f"step {cell['suite']} " in smoke, cell
    assert {(cell["fault"], cell["phase"]) for cell in cells.read(cells.PASSED)} <= set(keys)


def test_every_fault_can_be_injected_and_is_explained() -> None:
    script = (REPO / ".ci/cells.sh").read_text()
    inject = script.partition("\ninject() {")[2].partition("\n}\n")[0]
    patterns = re.findall(r"^    ([a-z0-9*-]+)\)", inject, re.MULTILINE)
    page = (REPO / "docs/reliability.md").read_text()
    for fault in {cell["fault"] for cell in cells.read(REPO / ".ci/cells.csv")}:
        assert any(re.fullmatch(cell.replace("*", ".*"), fault) for cell in patterns if cell != "*")
        names = (f"| {fault} |", f"| {fault.partition('-')[0]}-… |")
        assert any(name in page.partition("What the names mean")[2] for name in names), fault


def row(**other: Any) -> Mapping[str, Any]:
    plain = {"trial": "01-event-loop-closed-c40", "valid": True, "achieved_rps": 196.0}
    return {**plain, "raw_p50_ms": 202.0, "reasons": [], "notes": [], **other}


HIT = row(achieved_rps=120.0, valid=False, reasons=[{"code": "hit", "values": {}}])
PROXY = {"code": "part-restarted", "values": {"part": "toxiproxy"}}
RESTARTED = row(valid=False, reasons=[PROXY])
NAMED = "part-restarted part=toxiproxy|part-restarted part=downstream"
TWICE = ["the run is running", "a trial is there twice", "c40 is there 2 times"]
NEVER = ["c50 is there 0 times", "no trial says: jvm-restarted/x"]


@pytest.mark.parametrize(
    ("status", "rows", "keys", "said", "found"),
    [
        ("complete", [row()], ["c40"], "", []),
        ("complete", [row(achieved_rps=120.0)], ["c40"], "", ["is valid, and says 120 req/s"]),
        ("complete", [row(achieved_rps=260.0)], ["c40"], "", ["is valid, and says 260 req/s"]),
        ("complete", [row(raw_p50_ms=900.0)], ["c40"], "", ["a p50 of 900 ms"]),
        ("complete", [HIT], ["c40"], "", []),
        # A trial or its reason is lacking, or that of one of several faults.
        ("running", [row(), row()], ["c40", "c50"], "jvm-restarted/x", [*TWICE, *NEVER]),
        (
            "complete",
            [RESTARTED],
            ["c40"],
            NAMED,
            ["no trial says: part-restarted part=downstream"],
        ),
    ],
)
def test_what_cannot_be_and_what_is_lacking_is_found(
    status: str, rows: list[Mapping[str, Any]], keys: list[str], said: str, found: list[str]
) -> None:
    problems = cells.problems(status, rows, keys, said)
    assert all(text in problem for text, problem in zip(found, problems, strict=True))
