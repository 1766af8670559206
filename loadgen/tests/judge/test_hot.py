"""The methods in which a recording spends its samples, and what two recordings of one load say of
each, on figures derived by hand."""

import copy
from typing import Any

import pytest

from lab.judge.hot import (
    Change,
    Hot,
    Side,
    callers,
    changes,
    hot,
    interval,
    named,
    side_of,
    waits,
    why_not,
)
from lab.model import ALLOC, CPU, LOCK, Recording, Row
from support.fakes import plan
from support.planned import row


def recording(stacks: dict[str, int], kind: str = CPU, **changes: Any) -> Recording:
    of = Recording(kind, ("jdk.CPUTimeSample",), sum(stacks.values()), whole=True, stacks=stacks)
    return copy.replace(of, **changes)


BEGIN = "java.lang.Thread.run:9;lab.Routes.answer:5;lab.Primes.sum"
MIXED = recording({
    f"{BEGIN}:20;lab.Primes.isPrime:31": 300,
    f"{BEGIN}:20;lab.Primes.isPrime:32": 100,
    f"{BEGIN}:21": 50,
    "java.lang.Thread.run:9;lab.Loop.poll:3;sun.nio.ch.Net.poll": 40,
    "[no stack]": 10,
})  # fmt: skip


def test_a_method_has_its_share_alone_and_with_what_it_calls_and_its_hottest_line() -> None:
    found = hot(MIXED)
    assert found[:2] == (
        Hot("lab.Primes.isPrime", 0.8, 0.8, 31, 0.6), Hot("lab.Primes.sum", 0.1, 0.9, 21, 0.1),
    )  # fmt: skip
    by_name = {method.method: method for method in found}
    # Never innermost: the line is the one it was called through. Without a line there is none.
    assert by_name["java.lang.Thread.run"] == Hot("java.lang.Thread.run", 0.0, 0.98, 9, 0.98)
    assert by_name["sun.nio.ch.Net.poll"].line is None
    # What is no code counts in the whole, and is not named.
    assert "[no stack]" not in by_name
    # It calls itself, and counts once in a stack.
    [itself] = hot(recording({"a.B.walk:1;a.B.walk:2;a.B.walk:2": 7}))
    assert itself == Hot("a.B.walk", 1.0, 1.0, 2, 1.0)


def test_callers_are_code_outside_the_jdk_and_not_only_the_way_to_other_code() -> None:
    stacks = {
        "lab.A.work:1;java.util.List.add:2": 60,
        "lab.B.work:1;java.util.Map.get:2;lab.Key.hash:3": 26,
        "lab.B.work:1;java.util.Map.get:2": 4,
        "lab.A.alone:4": 10,
    }
    begin = "java.lang.Thread.run:9;lab.Loop.run:1;lab.Server.handle:1"
    of = recording({f"{begin};{stack}": weight for stack, weight in stacks.items()})
    # All of the loop goes to the handler, which parts it; 26 of 30 are not nearly all.
    assert [(one.method, one.total) for one in callers(of)] == [
        ("lab.Server.handle", 1.0), ("lab.A.work", 0.6), ("lab.B.work", 0.3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "samples", "enough"),
    [(CPU, 99, False), (CPU, 100, True), (ALLOC, 99, False), (LOCK, 1, True), (LOCK, 0, False)],
)
def test_few_samples_name_nothing_and_any_wait_does(kind: str, samples: int, enough: bool) -> None:
    stacks = {"a.B.c:1": 5} if samples else {}
    assert named(recording(stacks, kind, samples=samples)) == enough


def test_waits_are_told_apart_and_nothing_names_nothing() -> None:
    assert hot(recording({})) == ()
    assert waits(recording({}, LOCK)) == {}
    of = recording({"[lock];a.B.c:1": 30, "[lock];a.D.e:2": 45, "[monitor];a.B.c:1": 25}, LOCK)
    assert waits(of) == {"lock": 0.75, "monitor": 0.25}
    assert hot(of)[0] == Hot("a.B.c", 0.55, 0.55, 1, 0.55)


def test_the_interval_of_a_share_is_wilsons() -> None:
    # E. B. Wilson's for 50 of 100, and for 0 of 100.
    half, none = (interval(share, recording({"a.B.c:1": 100})) for share in (0.5, 0.0))
    assert half == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert none == pytest.approx((0.0, 0.0370), abs=1e-4)
    # Bytes and waits are not alike in weight.
    assert interval(0.5, recording({"a.B.c:1": 100}, ALLOC)) is None


# --- Two recordings. ------------------------------------------------------------------------------

A = {"lab.Routes.answer:5;lab.Primes.isPrime:31": 300, "lab.Routes.answer:5;lab.Sum.of:9": 100}
# Another version: other lines, a method less and one more.
B = {"lab.Routes.answer:6;lab.Primes.isPrime:40": 300, "lab.Routes.answer:6;lab.Log.write:2": 200}


def two(x: int, y: int) -> dict[str, int]:
    return {"lab.A.x:1": x, "lab.A.y:1": y}


def trial(**changes: Any) -> Row:
    figures = {"achieved_rps": 1000.0, "window_s": 10.0, "cpu_server_us": 100.0}
    return row(plan("closed"), **{**figures, **changes})


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


LESS = {"lab.A.x:1": 50_000_000}


@pytest.mark.parametrize(
    ("a", "b", "changed"),
    [
        # The same work in less time: half of the time is gone, all of it from one method.
        (side({"lab.A.slow:1": 1000, "lab.A.same:1": 1000}),
         side({"lab.A.same:1": 1000}, cpu_server_us=50.0), {"lab.A.slow": -50}),
        # What is explained by chance is not named, nor what is below 1 % of the whole.
        (side(two(80, 80)), side(two(85, 75)), {}),
        (side(A), side(A), {}),
        (side(LESS, ALLOC), side(two(50_000_000, 400_000), ALLOC), {}),
        # 55 and 85 of 1,000 samples differ at 99 % …
        (side(two(55, 945)), side(two(85, 915)), {"lab.A.x": 3, "lab.A.y": -3}),
        # … which is not enough for one of 22 methods.
        (side({**two(55, 45), **{f"lab.M.m{n}:1": 45 for n in range(20)}}),
         side({**two(85, 45), **{f"lab.M.m{n}:1": 43 + n % 2 for n in range(20)}}), {}),
    ],
)  # fmt: skip
def test_what_surely_differs_is_named(a: Side, b: Side, changed: dict[str, float]) -> None:
    assert {each.method: each.more for each in changes(a, b)} == pytest.approx(changed)


def test_bytes_and_waits_are_those_of_an_answer_and_have_no_interval() -> None:
    # 10,000 answers.
    found = changes(side(LESS, ALLOC), side({"lab.A.x:1": 60_000_000}, ALLOC))
    assert found == (Change("lab.A.x", 5000, 6000, None),)
    assert side({"[lock];lab.A.x:1": 20_000_000_000}, LOCK).cost == 2000  # µs


@pytest.mark.parametrize(
    ("of", "changed", "code"),
    [
        (recording(A, whole=False), {}, "outgrown"),
        (recording({"lab.A.x:1": 99}), {}, "few"),
        (recording(A), {"cpu_server_us": None}, "cost"),
        (recording(A, ALLOC), {"achieved_rps": 0.0}, "cost"),
        (recording(A, LOCK), {"window_s": None}, "cost"),
    ],
)
def test_what_tells_nothing_is_no_side(of: Recording, changed: dict[str, Any], code: str) -> None:
    assert side_of(trial(**changed), of) == code


def test_only_the_same_events_are_compared() -> None:
    one = side(A)
    older = copy.replace(one.recording, events=("jdk.ExecutionSample",))
    others = (side(B), side(B, ALLOC), copy.replace(one, recording=older))
    assert [why_not(one, other) for other in others] == ["", "kinds", "events"]
