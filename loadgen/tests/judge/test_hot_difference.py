"""What two recordings of the same load say of each method, on figures derived by hand."""

import copy
from typing import Any

import pytest

from lab.judge.hot_difference import Change, Side, changes, side_of, why_not
from lab.model import ALLOC, CPU, LOCK, Recording, Row
from support.fakes import plan
from support.planned import row

A = {"lab.Routes.answer:5;lab.Primes.isPrime:31": 300, "lab.Routes.answer:5;lab.Sum.of:9": 100}
# Another version: other lines, a method less and one more.
B = {"lab.Routes.answer:6;lab.Primes.isPrime:40": 300, "lab.Routes.answer:6;lab.Log.write:2": 200}


def two(x: int, y: int) -> dict[str, int]:
    return {"lab.A.x:1": x, "lab.A.y:1": y}


def trial(**changes: Any) -> Row:
    figures = {"achieved_rps": 1000.0, "window_s": 10.0, "cpu_server_us": 100.0}
    return row(plan("closed"), **{**figures, **changes})


def recording(stacks: dict[str, int], kind: str = CPU, **changes: Any) -> Recording:
    of = Recording(kind, ("jdk.CPUTimeSample",), sum(stacks.values()), whole=True, stacks=stacks)
    return copy.replace(of, **changes)


def side(stacks: dict[str, int], kind: str = CPU, **of_row: Any) -> Side:
    found = side_of(trial(**of_row), recording(stacks, kind))
    assert isinstance(found, Side), found
    return found


def test_a_method_costs_its_share_of_what_an_answer_costs() -> None:
    new, gone, more = changes(side(A), side(B, cpu_server_us=150.0))
    assert (new.method, new.a, new.b, new.more) == ("lab.Log.write", 0, 60, 60)
    assert (gone.method, gone.a, gone.b, gone.more) == ("lab.Sum.of", 25, 0, -25)
    assert (more.method, more.a, more.b, more.more) == ("lab.Primes.isPrime", 75, 90, 15)
    # Wilson at 98.33 %, for one of three methods: 300 of 400 are 0.6949 to 0.7982, 300 of 500 are
    # 0.5465 to 0.6512. So 75 is 69.49 to 79.82 µs, 90 is 81.98 to 97.68 µs, and
    # 15 - √(8.02² + 4.82²) to 15 + √(7.68² + 5.51²).
    assert more.interval == pytest.approx((5.67, 24.43), abs=0.05)


def test_the_same_work_in_less_time_changes_what_costs_less_and_nothing_else() -> None:
    # Half of the time is gone, all of it from one method: the share of the other doubled.
    before = {"lab.A.slow:1": 1000, "lab.A.same:1": 1000}
    after = {"lab.A.same:1": 1000}
    found = changes(side(before), side(after, cpu_server_us=50.0))
    assert [one.method for one in found] == ["lab.A.slow"]
    assert found[0].more == -50


def test_what_is_small_or_explained_by_chance_is_not_named() -> None:
    assert changes(side(two(80, 80)), side(two(85, 75))) == ()
    assert changes(side(A), side(A)) == ()
    # It is below 1 % of the whole.
    less = {"lab.A.x:1": 50_000_000}
    assert changes(side(less, ALLOC), side(two(50_000_000, 400_000), ALLOC)) == ()


def test_of_many_methods_each_must_differ_by_more() -> None:
    """55 and 85 of 1,000 samples differ at 99 %, which is not enough for one of 22 methods."""
    found = changes(side(two(55, 945)), side(two(85, 915)))
    assert {one.method for one in found} == {"lab.A.x", "lab.A.y"}
    many = [f"lab.M.m{n}:1" for n in range(20)]
    before = {**two(55, 45), **dict.fromkeys(many, 45)}
    after = {**two(85, 45), **{name: 43 + n % 2 for n, name in enumerate(many)}}
    assert sum(before.values()) == sum(after.values())
    assert changes(side(before), side(after)) == ()


def test_bytes_and_waits_are_those_of_an_answer_and_have_no_interval() -> None:
    # 10,000 answers.
    found = changes(side({"lab.A.x:1": 50_000_000}, ALLOC), side({"lab.A.x:1": 60_000_000}, ALLOC))
    assert found == (Change("lab.A.x", 5000, 6000, None),)
    assert side({"[lock];lab.A.x:1": 20_000_000_000}, LOCK).each == 2000  # µs


@pytest.mark.parametrize(
    ("of", "changed", "says"),
    [
        (recording(A, whole=False), {}, "it outgrew its room"),
        (recording({"lab.A.x:1": 99}), {}, "it has too few samples"),
        (recording(A), {"cpu_server_us": None}, "what an answer cost in all is not known"),
        (recording(A, ALLOC), {"achieved_rps": 0.0}, "what an answer cost in all is not known"),
        (recording(A, LOCK), {"window_s": None}, "what an answer cost in all is not known"),
    ],
)
def test_what_tells_nothing_says_why(of: Recording, changed: dict[str, Any], says: str) -> None:
    assert side_of(trial(**changed), of) == says


def test_only_the_same_events_are_compared() -> None:
    one = side(A)
    assert why_not(one, side(B)) == ""
    assert why_not(one, side(B, ALLOC)) == "A was recorded by cpu, B by alloc"
    older = copy.replace(one.recording, events=("jdk.ExecutionSample",))
    assert "by other events" in why_not(one, copy.replace(one, recording=older))
