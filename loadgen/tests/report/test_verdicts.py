"""What limited a load: which trials decide it."""

from copy import replace
from typing import Any

import pytest

from lab.model import NONE, STRONG, UNKNOWN, WEAK, Excess, Missing, Row, Standing, Verdict
from lab.report.remarks import CATALOGUE
from lab.report.result import loads
from lab.report.verdicts import limit, missing_text, section
from support.fakes import plan
from support.planned import row
from support.results import result, table, verdict

SURE, UNSURE = verdict("worker pool", STRONG), verdict("worker pool", WEAK)
LATE = Standing(0.5, 2, "CPUs", resource="generator", share=0.6)
GENERATOR = Verdict("generator", WEAK, "excess", Excess(200.0, 900.0, 10.0, {}), (LATE,))


def trial(number: int, **changes: Any) -> Row:
    of = plan("closed", trial=f"{number:02d}", launch=number, server=changes.pop("server", "a"))
    return row(of, **{"achieved_rps": 990.0 + number, **changes})


def limited(*given: tuple[Row, Verdict]) -> list[dict[str, str]]:
    rows = [one for one, _ in given]
    found = result(rows, {one.trial: verdict for one, verdict in given})
    return table(section(found).blocks, "What limited")


@pytest.mark.parametrize(
    ("verdicts", "limit", "evidence", "trials"),
    [
        ((SURE, GENERATOR, SURE), "worker pool", STRONG, "2 of 3"),
        # Only if most of all trials are sure.
        ((SURE, UNSURE), "worker pool", WEAK, "2 of 2"),
        ((UNSURE, UNSURE, SURE), "worker pool", WEAK, "3 of 3"),
        # Of two named as often, the one with strong evidence.
        ((GENERATOR, SURE), "worker pool", WEAK, "1 of 2"),
        ((verdict(UNKNOWN), SURE, verdict(UNKNOWN)), UNKNOWN, "–", "2 of 3"),
    ],
)
def test_the_limit_is_what_most_trials_name(
    verdicts: tuple[Verdict, ...], limit: str, evidence: str, trials: str
) -> None:
    [found] = limited(*((trial(at), each) for at, each in enumerate(verdicts)))
    assert (found["limit"], found["evidence"], found["trials"]) == (limit, evidence, trials)


def test_a_load_quotes_its_valid_trial_nearest_the_median() -> None:
    rates = (900.0, 960.0, 970.0, 961.0)
    given = [
        (
            trial(at, achieved_rps=rps, valid=at < 3),
            replace(UNSURE, excess=Excess(200.0, rps, 10.0, {})),
        )
        for at, rps in enumerate(rates)
    ]
    [found] = limited(*given)
    assert "960 ms above R0" in found["why"]
    assert (found["trials"], found["other verdicts"]) == ("4 of 4, 3 valid", "–")
    [found] = limited((trial(1), GENERATOR), (trial(2), SURE), (trial(3), SURE))
    assert found["other verdicts"] == "generator (1)"


def test_a_resource_that_limits_comes_first() -> None:
    each = (verdict(NONE, STRONG), verdict(UNKNOWN), SURE)
    found = limited(*((trial(at, server="abc"[at]), of) for at, of in enumerate(each)))
    assert [cells["load"] for cells in found] == ["c, closed 100", "b, closed 100", "a, closed 100"]


def test_a_code_without_a_text_is_shown_itself() -> None:
    assert missing_text(Missing("unheard of")) == "not known: unheard of"
    assert missing_text(Missing("R0")).endswith("of the whole time")
    assert "" not in CATALOGUE["missing"].values()


def test_a_limit_has_what_is_in_use() -> None:
    [load] = loads([trial(1)], {"01": SURE})
    assert limit(load, use=True) == "worker pool, 200 of 200 threads (strong)"
    assert limit(load) == "worker pool (strong)"
    [load] = loads([trial(1)], {})
    assert limit(load) == "–"
