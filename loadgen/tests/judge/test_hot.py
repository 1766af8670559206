"""The methods in which a recording spends its samples."""

import pytest

from lab.judge.hot import Hot, callers, hot, interval, named, waits
from lab.model import ALLOC, CPU, LOCK, Recording


def recording(stacks: dict[str, int], kind: str = CPU, samples: int | None = None) -> Recording:
    count = sum(stacks.values()) if samples is None else samples
    return Recording(kind, ("jdk.CPUTimeSample",), count, whole=True, stacks=stacks)


MIXED = recording({
    "java.lang.Thread.run:9;lab.Routes.answer:5;lab.Primes.sum:20;lab.Primes.isPrime:31": 300,
    "java.lang.Thread.run:9;lab.Routes.answer:5;lab.Primes.sum:20;lab.Primes.isPrime:32": 100,
    "java.lang.Thread.run:9;lab.Routes.answer:5;lab.Primes.sum:21": 50,
    "java.lang.Thread.run:9;lab.Loop.poll:3;sun.nio.ch.Net.poll": 40,
    "[no stack]": 10,
})  # fmt: skip


def test_a_method_has_its_share_alone_and_with_what_it_calls_and_its_hottest_line() -> None:
    found = hot(MIXED)
    assert found[0] == Hot("lab.Primes.isPrime", 0.8, 0.8, 31, 0.6)
    assert found[1] == Hot("lab.Primes.sum", 0.1, 0.9, 21, 0.1)
    by_name = {one.method: one for one in found}
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
    assert named(recording({"a.B.c:1": 5} if samples else {}, kind, samples)) == enough


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
