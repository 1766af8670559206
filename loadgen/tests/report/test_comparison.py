"""The words of a comparison, and how its figures are rounded."""

from lab.judge.compare import Comparison, compare, compare_all
from lab.report.comparison import legend
from lab.report.table import rate
from support.fakes import plan
from support.planned import row


def test_a_rate_has_its_digits() -> None:
    rates = (None, 0.0, 0.0412, 0.94, 0.96, 99.94, 99.96)
    assert [*map(rate, rates)] == ["–", "0.0", "0.041", "0.94", "1.0", "99.9", "100"]


def of_launches(launches: int, loads: int) -> tuple[Comparison, ...]:
    sides = [
        [
            row(plan("closed", concurrency=load, launch=n), achieved_rps=rps + n % 3)
            for n in range(1, launches + 1)
            for load in range(1, loads + 1)
        ]
        for rps in (1000.0, 1002.0)
    ]
    return compare_all([(("a", sides[0]), ("b", sides[1]))])


def test_the_legend_says_how_sure_all_answers_are_together() -> None:
    assert legend(of_launches(7, 2))[1] == (
        "2 answers: they hold together in at least 95% of cases, so each takes an interval of "
        "97.5 % or more, and 7 launches of each side."
    )
    assert len(legend(of_launches(1, 2))) == 2
    assert legend([compare([], [], "a", "b")]) == []
