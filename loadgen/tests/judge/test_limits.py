"""What a gate says of known values."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from lab.judge.compare import compare_all
from lab.model import Row
from support.sides import CPU, GATE, answers, backlog, fails, rows

GONE = {"valid": False, "invalid_reasons": "mostly-errors"}
AWAY = {"valid": False, "invalid_reasons": "machine-away"}
CLOSED, OPEN = rows(), rows("open")
P99_LATE = rows("open", p99_ms=220.0, raw_p99_ms=220.0, late_p99_ms=0.0)
LONG_LATE = {"p99_ms": 300.0, "raw_p99_ms": 220.0}
HUNG_99 = {"window_ok": 9950, "window_http_errors": 0, "window_lost": 50, "p99_ms": 220.0}
NINE = rows(launches=9)
NINE_DEAR = rows(launches=9, cpu_server_us=60.0)


def spoiled(trials: Sequence[Row], *at: int) -> list[Row]:
    return [copy.replace(each, **({"cpu_server_us": 1.0, "valid": False} if n in at else {}))
            for n, each in enumerate(trials)]  # fmt: skip


# (A, B, places by figure) of a gate.
GATED: list[tuple[list[Row], list[Row], dict[str, str]]] = [
    # A closed load is judged on goodput, an open one on p99, and both on cost.
    (CLOSED, rows(), {"goodput": "within", "cpu": "within", "memory": "within"}),
    (OPEN, rows("open", p99_ms=300.0), {"p99": "worse", "cpu": "within", "memory": "within"}),
    (OPEN, rows("open", cpu_server_us=60.0), {"p99": "within", "cpu": "worse", "memory": "within"}),
    # Of six against none of six, 4 are chance with a probability of 0.03, and 3 with 0.09.
    (OPEN, rows("open", first=4, **GONE), {"p99": "worse"}),
    (OPEN, rows("open", first=3, **GONE), {"p99": "cannot tell"}),
    # Of a load that broke the base, too, nothing is known, nor where it did so once.
    (rows("open", first=4, **GONE), rows("open", first=4, **GONE), {"p99": "cannot tell"}),
    (rows("open", first=1, **GONE), rows("open", first=4, **GONE), {"p99": "cannot tell"}),
    *((rows(first=base, **fails(300)), rows(first=candidate, **fails(300)), {"goodput": place})
      for base, candidate, place in (
          (3, 3, "within"), (3, 2, "within"), (0, 1, "cannot tell"), (1, 2, "cannot tell"),
          (1, 6, "worse"), (0, 4, "worse"), (0, 3, "cannot tell"))),
    # One bad launch of the base does not switch p99 off, and few answers do not.
    (rows("open", first=1, **fails(30)), rows("open", p99_ms=900.0), {"p99": "cannot tell"}),
    (OPEN, rows("open", p99_ms=None, **fails(30)), {"p99": "worse"}),
    # Quick errors are no quick answers; where the base fails, too, its latencies are unknown.
    (OPEN, rows("open", p99_ms=150.0, **fails(30)), {"p99": "worse"}),
    (rows("open", p99_ms=150.0, **fails(30)), rows("open", p99_ms=150.0, **fails(30)),
     {"goodput": "cannot tell"}),
    # 9,950 answers and 50 requests without one: p99 is the answer of rank 9,900, not 9,851.
    (OPEN, rows("open", **HUNG_99, slo_p99_ms=300.0), {"p99": "worse"}),
    (OPEN, rows("open", **HUNG_99, slo_p99_ms=225.0), {"p99": "within"}),
    # What is in part the generator's own is not judged.
    (P99_LATE, rows("open", late_p99_ms=100.0, **LONG_LATE), {"p99": "cannot tell"}),
    (P99_LATE, rows("open", late_p99_ms=29.0, **LONG_LATE), {"p99": "worse"}),
    # Quick errors of a closed load cost no goodput: nothing else passes at that load.
    (CLOSED, rows(**fails(300)), {"goodput": "worse", "cpu": "cannot tell"}),
    (CLOSED, rows(first=2, **fails(300)), {"goodput": "cannot tell"}),
    # What is usual of the base counts, and not what befell one launch.
    (rows(**fails(300)), rows(**fails(300)), {"goodput": "within"}),
    (rows(first=1, **fails(15)), rows(**fails(300)), {"goodput": "worse"}),
    (rows(**fails(8)), rows(**fails(15)), {"goodput": "within"}),
    (CLOSED, rows(**fails(15)), {"goodput": "worse"}),
    # So few launches prove nothing.
    (CLOSED[:2], rows(**fails(300))[:2], {"goodput": "cannot tell"}),
    (CLOSED[:3], rows(**fails(300))[:3], {"goodput": "worse"}),
    # One launch that ends is no pass though the others would do; what others did is not its own.
    (rows(launches=8), rows(launches=8, first=1, **GONE), {"goodput": "cannot tell"}),
    (rows(launches=8), rows(launches=8, first=1, valid=False,
                            invalid_reasons="mostly-errors; wrong-server"), {"goodput": "within"}),
    # A launch that says nothing is no launch that did not fail.
    (CLOSED, rows(first=4, **GONE), {"goodput": "worse"}),
    ([CLOSED[0], *rows(**AWAY)[1:]], rows(first=4, **GONE), {"goodput": "cannot tell"}),
    (rows(**AWAY), rows(first=4, **GONE), {"goodput": "cannot tell"}),
    # What failed while other work took the CPUs is not the candidate's; one that went well in spite
    # of it did not fail.
    (CLOSED, rows(others_cpu=0.5, **GONE), {"goodput": "cannot tell"}),
    (CLOSED, rows(others_cpu=0.5), {"goodput": "within"}),
    # Of overloaded sides goodput is judged: 8 % less is a p99 that is 8 % longer, and 0.5 % less of
    # a load that is nearly kept is one that is a third longer.
    (backlog(225.0), backlog(207.0), {"goodput": "worse"}),
    (backlog(443.0), backlog(441.0), {"goodput": "within"}),
    (backlog(225.0), OPEN, {"p99": "within"}),
    (OPEN, backlog(207.0), {"p99": "worse"}),
    # Goodput of a base that keeps up is no pass: a p99 that is ten times as long is not judged.
    (rows("open", **fails(30)), rows("open", p99_ms=2000.0, **fails(30)),
     {"goodput": "cannot tell"}),
    (rows("open", **fails(30)), rows("open", achieved_rps=300.0, **fails(30)),
     {"goodput": "worse"}),
    # A figure that fewer launches of one side have is not judged.
    (rows("open", first=3, p99_ms=None), OPEN, {"p99": "cannot tell", "cpu": "within"}),
    # A candidate that mends errors costs more and is not worse for it.
    (rows(cpu_server_us=68.0, **fails(400)), rows(cpu_server_us=100.0),
     {"goodput": "within", "cpu": "cannot tell", "memory": "cannot tell"}),
    # Invalid trials never count, and a side that loses more of them is not judged.
    (NINE, spoiled(NINE_DEAR, 0), {"cpu": "worse"}),
    (NINE, spoiled(NINE_DEAR, 0, 1, 2), dict.fromkeys(("goodput", "cpu", "memory"), "cannot tell")),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "expected"), GATED)
def test_a_gate(a: list[Row], b: list[Row], expected: dict[str, str]) -> None:
    places = {answer.question.figure: answer.place for answer in answers(a, b, GATE)}
    assert {figure: places.get(figure) for figure in expected} == expected


def test_what_decides_a_gate_is_named() -> None:
    def decided(a: list[Row], b: list[Row], figure: str, limits: Any = GATE) -> tuple[str, ...]:
        [found] = [one for one in answers(a, b, limits) if one.question.figure == figure]
        return found.place, found.why, found.question.instead

    both = rows("open", p99_ms=150.0, **fails(30)), rows("open", p99_ms=150.0, **fails(30))
    assert decided(*both, "goodput") == ("cannot tell", "kept up", "errors")
    # Without a limit of goodput the one of p99 does not vanish.
    without = {figure: limit for figure, limit in GATE.items() if figure != "goodput"}
    assert decided(*both, "p99", without)[:2] == ("cannot tell", "no limit")
    assert decided(backlog(225.0), backlog(207.0), "goodput")[2] == "overloaded"
    # A candidate that gives way is worse whatever has a limit.
    assert decided(CLOSED, rows(**GONE), "cpu", {"cpu": CPU})[:2] == ("worse", "failures")
    # Loads of one side only, and figures without a limit, are not judged.
    assert answers(OPEN, rows(), GATE) == []
    assert [one.question.figure for one in answers(OPEN, OPEN, {"cpu": CPU})] == ["cpu"]


def test_all_loads_of_all_lanes_share_what_chance_may_say() -> None:
    # Of six against none of six, 4 are chance with a probability of 0.03.
    pair = ("a", OPEN), ("b", rows("open", first=4, **GONE))
    places = [compare_all([pair] * count, GATE)[0].answers[0].place for count in (1, 2)]
    assert places == ["worse", "cannot tell"]
