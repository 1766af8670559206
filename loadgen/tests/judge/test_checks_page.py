"""The tables of docs/invalid.md follow from the checks, and each check has its text."""

from lab.judge.checks import CHECKS, QUESTIONS, checks_of
from lab.model import Remark
from lab.report.remarks import FAILURES, TEXTS, action, text, text_of
from support.fakes import judged_row, measurement, record
from support.repo import REPO, script

checks = script("checks")
PAGE = (REPO / "docs/invalid.md").read_text(encoding="utf-8")


def test_the_page_has_the_tables_of_the_checks() -> None:
    """The wording of every remark is there. `python .ci/checks.py page` writes it."""
    assert checks.with_tables(PAGE) == PAGE
    verdicts = (REPO / "docs/verdict.md").read_text(encoding="utf-8")
    assert checks.with_resources(verdicts) == verdicts


def test_every_check_has_a_text_and_a_condition_and_every_reason_says_what_to_do() -> None:
    assert TEXTS.keys() <= CHECKS.keys()
    made = [check for modules in QUESTIONS.values() for check in checks_of(modules)]
    assert FAILURES.keys() == {check.code for check in made if check.server_failed}
    assert len(made) == len(CHECKS), "two checks have the same code"
    for code, check in CHECKS.items():
        assert check.when or code in TEXTS, code
        if code in TEXTS:
            assert bool(action(code)) == (check.severity == "invalidates"), code


def test_a_text_has_the_values_that_are_there() -> None:
    late = Remark("generator-late", {"figure": "mean", "late_ms": 21.4, "allowed_ms": 20.0})
    said = "the generator sent late, by 21.4 ms (mean; allowed 20.0 ms)"
    assert text(late) == said
    assert text(Remark(late.code, {**late.values, "machine": "b"})) == f"{said}: machine b"
    part = Remark("part-full", {"part": "toxiproxy", "cpus": 2})
    assert text(part) == "the proxy used all of its 2 CPUs"
    # Of a file that another version wrote.
    assert text(Remark("generator-late")) == "generator-late"
    assert text(Remark("unheard-of", {"x": 1})) == "unheard-of x=1"
    assert FAILURES["server-gone"] == "the server did not answer after the load"
    row = judged_row("run", measurement(record(jit_share=0.3)))
    assert text_of(row).startswith("cold JVM: the JIT compiler ran for 0.30 s per second of")
