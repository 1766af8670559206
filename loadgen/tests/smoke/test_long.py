"""What experiments at their own length left (SUITE=long): all of it there, and judged."""

import tomllib

import pytest

from lab.kinds.planted import right, wrong_and_sure
from support.planted_run import judged
from support.repo import REPO
from support.stored import Run

# What `every_verb` of .ci/own-service.sh measures; these only leave rows.
LOADS = ("bench", "again", "sweep")
OWN_VERBS = (*LOADS, "capacity", "stress", "explain", "spike", "faults", "endurance")


def judged_run(name: str) -> Run:
    """A run that ended, with a report and a verdict for every trial."""
    run = Run(name)
    assert run.manifest.status == "complete"
    assert [row.trial for row in run.every_row if not row.bottleneck] == []
    assert (run.folder / "report.html").stat().st_size > 0
    return run


@pytest.mark.parametrize("name", ["planted", "routes", "demonstrations", "explained", "sweep"])
def test_it_ended_with_a_report_and_a_verdict_for_every_trial(name: str) -> None:
    run = judged_run(f"long-{name}")
    measured = {raw.parent.name for raw in run.folder.glob("raw/*/trial.json")}
    assert {row.trial for row in run.every_row} == measured


@pytest.mark.parametrize("name", ["routes", "demonstrations"])
def test_every_route_was_asked_for_and_answered(name: str) -> None:
    asked = tomllib.loads((REPO / f"experiments/{name}.toml").read_text())["load"]["routes"]
    rows = Run(f"long-{name}").every_row
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
    run = judged_run(f"own-{subject}-{verb}")
    assert {row.server for row in run.every_row} == {server}
    if verb not in LOADS:
        assert run.json("findings.json")
