"""What experiments at their own length left (SUITE=long): all of it there, and judged."""

import json
import tomllib

import pytest

from lab.kinds.planted import right, wrong_and_sure
from lab.store import manifest
from support.planted_run import judged
from support.repo import REPO
from support.stored import run_of
from support.table import read_rows

# What `every_verb` of .ci/own-service.sh measures; these only leave rows.
LOADS = ("bench", "again", "sweep")
OWN_VERBS = (*LOADS, "capacity", "stress", "explain", "spike", "faults", "endurance")


@pytest.mark.parametrize("name", ["planted", "routes", "demonstrations", "explained", "sweep"])
def test_it_ended_with_a_report_and_a_verdict_for_every_trial(name: str) -> None:
    run = run_of(f"long-{name}")
    assert manifest.read(run).status == "complete"
    rows = read_rows(run / "trials.csv")
    assert {row.trial for row in rows} == {raw.parent.name for raw in run.glob("raw/*/trial.json")}
    for row in rows:
        assert row.bottleneck, row.trial
    assert (run / "report.html").stat().st_size > 0


@pytest.mark.parametrize("name", ["routes", "demonstrations"])
def test_every_route_was_asked_for_and_answered(name: str) -> None:
    asked = tomllib.loads((REPO / f"experiments/{name}.toml").read_text())["load"]["routes"]
    rows = read_rows(run_of(f"long-{name}") / "trials.csv")
    assert {row.route for row in rows} == set(asked)
    assert [row.trial for row in rows if not row.ok or row.http_errors] == []


def test_what_was_planted_is_named() -> None:
    cases = judged("long-planted")
    assert [(case.name, row.bottleneck) for case, row in cases if wrong_and_sure(case, row)] == []
    assert sum(right(case, row) for case, row in cases) >= 0.9 * len(cases)


@pytest.mark.parametrize("verb", OWN_VERBS)
@pytest.mark.parametrize(
    ("subject", "server"), [("node-calls", "shop"), ("tomcat-calls", "tomcat")]
)
def test_every_verb_judged_another_service(subject: str, server: str, verb: str) -> None:
    run = run_of(f"own-{subject}-{verb}")
    assert manifest.read(run).status == "complete"
    rows = read_rows(run / "trials.csv")
    assert {row.server for row in rows} == {server}
    assert [row.trial for row in rows if not row.bottleneck] == []
    assert (run / "report.html").stat().st_size > 0
    if verb not in LOADS:
        assert json.loads((run / "findings.json").read_text())
