"""How long threads ran and waited, from samples made by hand in a window of ten seconds."""

from msgspec.structs import asdict

from lab.judge.thread_times import PROCESS_RUN, PROCESS_RUNQ, RUN, RUNQ, thread_times
from lab.model import Observation, Series, ThreadTimes
from support.series import CLOSES, OPENS, counter

WAITS = {"worker": 0.2, "carrier": 0.0, "compiler": 0.15, "collector": 0.01}


def waits(front: float = 0.1, **classes: float) -> list[Series]:
    """Run-queue time a second by class, and of each of two fronts."""
    fronts = [
        counter(RUNQ, front, server="a", threads="front", front=f"front-{number}")
        for number in (1, 2)
    ]
    each = (WAITS | classes).items()
    return [counter(RUNQ, wait, server="a", threads=name) for name, wait in each] + fronts


def times(*series: Series) -> ThreadTimes:
    return thread_times("a", Observation((OPENS, CLOSES), series))


def rounded(found: ThreadTimes) -> dict[str, float | str]:
    """What is known."""
    return {
        name: round(value, 6) if isinstance(value, float) else value
        for name, value in asdict(found).items()
        if value is not None
    }


def test_a_part_has_the_sum_of_its_threads_over_the_window() -> None:
    other = (counter(RUN, 9.0, server="b", threads="worker"),)
    parts = [
        counter(name, each, job="downstream", process=process)
        for process, (run, queue) in {"toxiproxy": (0.3, 0.6), "downstream": (0.1, 0.02)}.items()
        for name, each in ((PROCESS_RUN, run), (PROCESS_RUNQ, queue))
    ]
    run = (counter(RUN, rate, server="a", threads=str(rate)) for rate in (0.75, 0.0, 0.05))
    assert rounded(times(*run, *other, *waits(), *parts)) == {
        "server_run_s": 8.0,
        "server_runq_s": 5.6,
        # 0.1 of each front.
        "server_runq_class": "front",
        "proxy_run_s": 3.0,
        "proxy_runq_s": 6.0,
        "downstream_run_s": 1.0,
        "downstream_runq_s": 0.2,
    }


def test_the_class_that_waited_longest_is_named() -> None:
    assert times(*waits(front=0.09)).server_runq_class == "worker"
    assert times(*waits(compiler=0.3)).server_runq_class == "compiler"
    none = times(*waits(front=0.0, **dict.fromkeys(WAITS, 0.0)))
    assert (none.server_runq_s, none.server_runq_class) == (0.0, None)


def test_a_server_that_shows_nonsense_shows_nothing() -> None:
    waits_of_none = [counter(RUNQ, 0.5, server="a", threads="=\x1b[31m\n")]
    assert rounded(times(*waits_of_none)) == {"server_runq_s": 5.0}
    endless = [counter(RUN, 7e306, server="a", threads=name) for name in "abc"]
    assert times(*endless) == ThreadTimes()


def test_what_is_not_told_is_unknown_and_not_0() -> None:
    assert thread_times("a", None) == ThreadTimes() == times()
    # Another JVM began in the window: nobody knows what the first one waited.
    at = tuple(OPENS - 2 + second for second in range(15))
    again = tuple(float(second % 7) for second in range(15))
    fell = Series({"__name__": RUNQ, "server": "a", "threads": "loop"}, at, again)
    assert times(*waits(), fell) == ThreadTimes()
