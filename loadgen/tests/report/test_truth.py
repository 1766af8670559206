"""The page of `make truth`: every trial is counted once, and every wrong one is listed."""

import dataclasses
from datetime import UTC, datetime

from lab.model import Fairness
from lab.report.truth import Planted, share, text
from lab.store.manifest import Manifest
from support.planned import experiment, planner, row

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
OF: Manifest = Manifest(
    run="r", status="complete", started_at=AT, ended_at=AT, experiment=None,
    versions={"lab": "1", "commit": "abc"}, host={"cpu_model": "a CPU", "cores": 2}, limits={},
    servers={}, fairness=Fairness({}, {}, {}),
)  # fmt: skip


def trial(
    name: str, resource: str, expected: str, named: str | None, *, strong: bool = True,
    severity: float | None = None,
) -> Planted:  # fmt: skip
    of = planner(experiment(servers=("a",)))
    plan = of.plan("a", of.engine_for("closed"), "closed", 100, None)
    mine = dataclasses.replace(row(plan, bottleneck=named, achieved_rps=500.0), trial=name)
    return Planted(resource, severity, "closed", "as it is", (expected,), mine, strong)


ALL = (
    trial("01-right", "worker pool", "worker pool", "worker pool", severity=2),
    trial("02-missed", "worker pool", "worker pool", "unknown", severity=2, strong=False),
    trial("03-weak", "worker pool", "worker pool", "host CPU", severity=2, strong=False),
    trial("04-below", "worker pool", "none", "none", severity=0.9),
    trial("05-lock", "a lock (novel)", "unknown", "worker pool", severity=2),
    trial("06-null", "nothing", "none", None, strong=False),
)


def line(page: str, start: str) -> str:
    (found,) = [one for one in page.splitlines() if one.startswith(start)]
    return found


def test_what_is_wrong_and_strong_is_counted_and_listed() -> None:
    page = text(OF, ALL)
    assert line(page, "| wrong with strong").endswith("| 0 | 1 of 6: 17% [0%, 64%] |")
    wrong, others = page.split("## By resource")[0], page.split("## Every other")[1]
    assert "05-lock" in wrong
    assert [one for one in ALL if one.row.trial in others] == [ALL[1], ALL[2], ALL[5]]
    assert "None of 5." in text(OF, [one for one in ALL if one is not ALL[4]])


def test_recall_stands_beside_precision() -> None:
    page = text(OF, ALL)
    # 3 planted so that it limits, of which 1 was named; named twice, of which 1 was right.
    assert line(page, "| worker pool | 1 of 3").split(" | ")[1:4] == [
        "1 of 3: 33% [1%, 91%]", "1", "1 of 2: 50% [1%, 99%]",
    ]  # fmt: skip
    assert line(page, "| recall from a severity").endswith("| ≥ 90% | 1 of 3: 33% [1%, 91%] |")
    # One without a severity is in no line of a severity.
    pair = trial("07-pair", "a pair", "worker pool", "worker pool")
    page = text(OF, [*ALL, pair])
    assert line(page, "| recall from a severity").endswith("| ≥ 90% | 1 of 3: 33% [1%, 91%] |")
    assert line(page, "| recall at every severity").endswith("| 1 of 3: 33% [1%, 91%] |")
    assert line(page, "| recall without a severity").endswith("| 1 of 1: 100% [3%, 100%] |")
    assert line(page, "| novel fault").endswith("| 0 of 1: 0% [0%, 98%] |")
    assert line(page, "| nothing planted").endswith("| 0 of 1: 0% [0%, 98%] |")


def test_every_trial_is_in_the_table_of_what_was_expected_and_named() -> None:
    page = text(OF, ALL).split("## Expected and named")[1].split("##")[0]
    counts = [
        int(cell or 0)
        for one in page.splitlines()[4:]
        for cell in one.strip("|").split("|")[2:]
        if one
        for cell in [cell.strip()]
    ]
    assert sum(counts) == len(ALL)


def test_severities_are_told_apart_with_what_was_named_instead() -> None:
    page = text(OF, ALL)
    assert "| worker pool | 0.9 | closed | 1 of 1 | 1 |  |" in page
    assert "| worker pool | 2 | closed | 1 of 3 | 1 | host CPU 1×, unknown 1× |" in page


def test_the_page_says_what_it_comes_from() -> None:
    page = text(OF, ALL)
    assert "Run `r` (complete)" in page
    assert "commit abc" in page
    assert "a CPU, 2 cores" in page
    assert "2 (33%) plant nothing" in page


def test_an_interval_is_exact() -> None:
    # C. J. Clopper and E. S. Pearson: 0 of 60 may be 6 %.
    assert share(0, 60) == "0 of 60: 0% [0%, 6%]"
    assert share(0, 0) == "0 of 0"
