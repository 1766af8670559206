"""What a request's CPU time and mean time are made of, from samples made by hand in a window of ten
seconds; and how long threads ran and waited."""

import copy
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest
from msgspec.structs import asdict

from lab.judge.metrics import CALLS, CPUS, PROCESS_RUN, PROCESS_RUNQ, REQUESTS, RUN, RUNQ, USED
from lab.judge.splits import (
    ACCEPT_QUEUE,
    ANSWERED,
    LAG,
    TOOK,
    UNREAD,
    allowed_ms,
    cpu_split,
    thread_times,
    time_split,
)
from lab.judge.trial import Trial
from lab.model import (
    Counts,
    CpuSplit,
    Measurement,
    Mode,
    Observation,
    Remark,
    Series,
    Spike,
    ThreadTimes,
    TimeSplit,
    Usage,
    around_server_us,
)
from support.fakes import flat, measurement, plan, reading, record
from support.series import CLOSES, OPENS, counter, gauge, mean_time

SPIKE = Spike(10, None, calm_s=4, peak_s=2, repeats=1, tolerance=0.1, steady_s=1)


def seen(*series: Series) -> Observation:
    return Observation((OPENS, CLOSES), series)


def rounded(split: Any) -> dict[str, Any]:
    """What is known."""
    return {
        name: round(value, 6) if isinstance(value, float) else value
        for name, value in asdict(split).items()
        if value is not None
    }


# --- CPU time. Of 1,000 req/s: a CPU is 1,000 µs per request. -------------------------------------

PER_SECOND = {
    "a": 0.1, "toxiproxy": 0.07, "downstream": 0.04, "driver": 0.035,
    "prometheus": 0.01, "cadvisor": 0.002, "loadgen": 0.008,
}  # fmt: skip
CPU_PARTS = {
    "cpu_server_us": 100, "cpu_proxy_us": 70, "cpu_downstream_us": 40, "cpu_generator_us": 30,
    # The driver beside its engine: 5 of 35.
    "cpu_observation_us": 10 + 2 + 8 + 5,
}  # fmt: skip


def used(service: str, per_second: float, **labels: str) -> Series:
    return counter(USED, per_second, job="cadvisor", service=service, cpu="total", **labels)


def containers(*more: Series, without: str = "") -> Observation:
    """What cAdvisor reports of each service, but that of one."""
    usual = (used(name, rate) for name, rate in PER_SECOND.items() if name != without)
    return seen(gauge(CPUS, 2), *usual, *more)


def spent(rps: float = 1000.0, spike: Spike | None = None, **changes: Any) -> Measurement:
    usage = copy.replace(Usage(1.0, 0.3, 0.2, 0.01), **changes)
    return measurement(record(plan("closed", spike=spike), usage=usage), reading(rps, 10.0))


def test_each_part_has_its_share_of_cpu_time() -> None:
    split = cpu_split(Trial(spent(), containers()))
    assert rounded(split) == CPU_PARTS
    assert around_server_us(split) == pytest.approx(165)


@pytest.mark.parametrize(
    ("trial", "without", "more", "changed"),
    [
        (spent(), "", [used("grafana", 0.006)], {"cpu_observation_us": 31}),
        # The CPUs of a container are added up.
        (spent(), "a", [counter(USED, 0.1, service="a", cpu="0"), counter(USED, 0.2, service="a")],
         {"cpu_server_us": 300}),
        # Only an unseen part is unknown.
        (spent(), "a", [], {"cpu_server_us": None}),
        (spent(), "toxiproxy", [], {"cpu_proxy_us": None}),
        (spent(), "downstream", [], {"cpu_downstream_us": None}),
        *((spent(), name, [], {"cpu_observation_us": None})
          for name in ("prometheus", "cadvisor", "loadgen", "driver")),
        (spent(window_cpu_s=None), "", [],
         {"cpu_generator_us": None, "cpu_observation_us": None}),
        # A driver that rests uses no less than nothing.
        (spent(window_cpu_s=0.36), "", [], {"cpu_generator_us": 36, "cpu_observation_us": 20}),
        # A spinner is no part of the lab: 5 % of 2 CPUs, in the driver's container.
        (spent(spun=0.05), "driver", [used("driver", 0.135)], {}),
        # Another container of the service counts only in the window.
        (spent(), "", [Series({"__name__": USED, "service": "driver"}, (990.0, 999.0), (0, 50)),
                       Series({"__name__": USED, "service": "driver"}, (1010.5, 1012.0), (0, 50))],
         {}),
        (spent(), "", [Series({"__name__": USED, "service": "driver"}, (1003.0, 1005.0), (0, 1))],
         {"cpu_observation_us": None}),
    ],
)  # fmt: skip
def test_what_changes_a_cpu_split(
    trial: Measurement, without: str, more: list[Series], changed: dict[str, float | None]
) -> None:
    expected = {
        name: value for name, value in {**CPU_PARTS, **changed}.items() if value is not None
    }
    assert rounded(cpu_split(Trial(trial, containers(*more, without=without)))) == expected


def test_of_a_trial_without_figures_no_cpu_time_is_known() -> None:
    assert rounded(cpu_split(Trial(spent()))) == {"cpu_generator_us": 30}
    blind = seen(*(series for series in containers().all if series.labels["__name__"] == USED))
    assert cpu_split(Trial(spent(spun=0.05), blind)).cpu_observation_us is None
    unread = copy.replace(spent(), reading=None, problem=Remark("damaged"))
    for trial in (spent(0.0), spent(spike=SPIKE), unread):
        assert cpu_split(Trial(trial, containers())) == CpuSplit()


@pytest.mark.parametrize(
    ("times", "values", "us"),
    [
        # 0.1 CPUs until the load and the window end, at a time between two samples, then nothing.
        ((-0.5, 1.5, 3.5, 5.5, 7.5, 9.5, 11.5), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.05), 100),
        # The load ended early: all of the rise was in the window.
        ((0, 6, 11), (0.0, 0.6, 0.7), 60 + 10),
        ((0, 6, 11), (0.0, 0.6, 1.0), 60 + 40),
        # What came after the window is other work.
        ((0, 6, 11), (0.0, 0.6, 1.6), 60 + 40),
        # The load before the window is not in its rate.
        ((-2, 0, 4, 10), (0.0, 5.0, 5.4, 6.0), 100),
        ((-4, 4, 10), (0.0, 0.8, 1.4), 100),
        # A container that began again outside the window is known.
        ((-6, -4, -2, 4, 10, 12, 14), (9.0, 0.1, 0.3, 0.9, 1.5, 1.6, 0.2), 100),
        ((-1, 3, 7, 11), (5.0, 5.4, 0.4, 0.8), None),  # started again in the window,
        ((-1, 5, 11), (5.0, 5.4, 0.4), None),  # after the last sample in it,
        ((-1, 5, 11), (5.0, 0.4, 0.8), None),  # or before the first
        ((1, 3, 7, 11), (0.0, 0.4, 0.8, 1.2), None),  # began in it
        ((-3, -1, 3, 9), (0.0, 0.4, 0.8, 1.2), None),  # ended in it
        ((-2, 0, 12), (0.0, 0.2, 1.4), None),  # has no sample in it,
        ((-1.95, 0.05, 10.05), (0.0, 0.2, 1.2), None),  # one just after its start,
        ((-1, 4.9, 11), (0.0, 0.59, 1.2), None),  # or none in its second half
        ((-9, 9, 11), (0.0, 1.8, 2.0), None),  # half of what the last one shows was before
    ],
)
def test_the_window_has_what_the_samples_allow(
    times: Sequence[float], values: tuple[float, ...], us: float | None
) -> None:
    labels = {"__name__": USED, "service": "a", "name": "lab-a-1"}
    series = Series(labels, tuple(OPENS + at for at in times), values)
    found = cpu_split(Trial(spent(), containers(series, without="a"))).cpu_server_us
    assert found == (None if us is None else pytest.approx(us))


@pytest.mark.parametrize(
    ("length", "first", "is_known"),
    [
        (3.0, 0.05, True),
        (3.0, 0.9, True),
        (3.0, 1.1, False),  # the next one is after the window,
        (3.0, 1.5, False),
        (3.0, 1.9, True),  # and this one covers more than half of it
        *((length, first, True) for length in (4.0, 5.0) for first in (0.05, 1.0, 1.95)),
    ],
)
def test_samples_cover_half_a_short_window(length: float, first: float, is_known: bool) -> None:
    """Samples every two seconds, as Prometheus takes them, of 1.5 CPUs from the start on."""
    times = tuple(OPENS + first + at for at in range(-4, 9, 2))
    used_s = tuple(1.5 * max(0.0, at - OPENS) for at in times)
    rate = Observation((OPENS, OPENS + length), (Series({"__name__": USED}, times, used_s),)).rate(
        USED
    )
    assert (rate is not None) == is_known
    assert rate is None or 0.75 <= rate <= 1.5 + 1e-9


# --- Mean time. -----------------------------------------------------------------------------------

RPS = 100.0
# generator, connect, queue, own, pending, path, downstream, unexplained.
WHOLE = [7.0, 0.0, 5.0, 8.0, 12.0, 8.5, 201.5, 5.0]


def timed(name: str, rps: float, ms: Mapping[str, float], **labels: str) -> list[Series]:
    """The mean times of `a` by phase."""
    return [
        series
        for phase, mean_ms in ms.items()
        for series in mean_time(name, mean_ms / 1000, rps, server="a", phase=phase, **labels)
    ]


def served(route: str = "/downstream", **ms: float) -> list[Series]:
    return timed(REQUESTS, RPS, ms, route=route)


def called(rps: float = RPS, **ms: float) -> list[Series]:
    return timed(CALLS, rps, ms)


def answered(drawn_ms: float, lag_ms: float) -> list[Series]:
    parts = zip(TOOK, (drawn_ms, lag_ms), strict=True)
    return [counter(ANSWERED, RPS), *(counter(name, RPS * ms / 1000) for name, ms in parts)]


def summary(name: str, ms: float) -> list[Series]:
    return mean_time(name, ms / 1000, RPS, server="a")


SERVED, CALLED = served(queue=5.0, service=230.0), called(pending=12.0, call=210.0)
ANSWERS = answered(200.0, 1.5)
KNOWN = [*SERVED, *CALLED, *ANSWERS]
UNHANDED = [*served(queue=0.0, service=230.0), *CALLED, *ANSWERS]


def trial(mode: Mode = "open", route: str = "/downstream", **changes: Any) -> Measurement:
    load = plan("closed") if mode == "closed" else plan("open", offered_rps=100)
    corrected = None if mode == "closed" else flat(247.0)
    spike = changes.pop("spike", None)
    answers = reading(RPS, 10.0, raw=flat(240.0), corrected=corrected, **changes)
    return measurement(record(copy.replace(load, route=route, spike=spike)), answers)


@pytest.mark.parametrize(
    ("measured", "series", "parts"),
    [
        (trial(), KNOWN, WHOLE),
        # 0.5 % were quick errors: 199 answers of 240 ms and one of 40 ms.
        (trial(counts=Counts(None, 995, 5, 0, 0, None, 10.0), all_ms=239.0), KNOWN,
         [*WHOLE[:-1], 4.0]),
        # An answer that an event loop left unread was in its queue.
        (trial(), [*KNOWN, *summary(UNREAD, 3.0)], [7.0, 0.0, 8.0, 8.0, 12.0, 5.5, 201.5, 5.0]),
        # A virtual thread that goes on late was in the server's queue.
        (trial(), [*KNOWN, *summary(LAG, 4.0)], [7.0, 0.0, 9.0, 8.0, 12.0, 4.5, 201.5, 5.0]),
        # Nothing hands its requests over: it is late for the request, and for the answer.
        (trial(), [*UNHANDED, *summary(LAG, 4.0)], [7.0, 0.0, 8.0, 8.0, 12.0, 4.5, 201.5, 6.0]),
        # Its event loops read the answers, and report that.
        (trial(), [*KNOWN, *summary(LAG, 4.0), *summary(UNREAD, 0.0)], WHOLE),
        # It is unknown for how long requests of an event loop lay unread.
        (trial(), UNHANDED, [7.0, 0.0, None, 8.0, 12.0, 8.5, 201.5, 10.0]),
        # 0.3 connections in the accept queue on average, and 100 requests a second: 3 ms of the 5.
        (trial(), [*KNOWN, gauge(ACCEPT_QUEUE, 0.3, server="a"),
                   gauge(ACCEPT_QUEUE, 9, server="b")],
         [7.0, 3.0, *WHOLE[2:-1], 2.0]),
        # Parts that are more than the client saw are shown as they are.
        (trial(), [*served(queue=5.0, service=250.0), *CALLED, *ANSWERS],
         [7.0, 0.0, 5.0, 28.0, 12.0, 8.5, 201.5, -15.0]),
        # An engine reports its lateness or not.
        (trial("closed"), KNOWN, [0.0, *WHOLE[1:]]),
        (trial("closed", late=flat(3.0)), KNOWN, [3.0, *WHOLE[1:]]),
        # Sent 7 ms after they were due: 2 ms late by itself, 5 ms without a connection.
        (trial(late=flat(2.0)), KNOWN, [2.0, 5.0, *WHOLE[2:]]),
        # A route without a call has its service for its own.
        (trial(route="/block?wait_ms=200"),
         [*served("/block", queue=5.0, service=230.0), *ANSWERS],
         [7.0, 0.0, 5.0, 230.0, None, None, None, 5.0]),
        # Nothing is known where a part is missing.
        *((trial(), series, None)
          for series in ([], [*CALLED, *ANSWERS], [*SERVED, *CALLED],
                         [*SERVED, *CALLED, *ANSWERS[:2]],
                         [*SERVED, *called(call=210.0), *ANSWERS],
                         # Three calls a request: they may be made at once.
                         [*SERVED, *called(3 * RPS, pending=12.0, call=210.0), *ANSWERS])),
        (trial(counts=Counts(None, 900, 100, 0, None, None, 10.0)), KNOWN, None),
        (trial(spike=SPIKE), KNOWN, None),
    ],
)  # fmt: skip
def test_parts_follow_each_other_and_add_up_to_what_the_client_saw(
    measured: Measurement, series: list[Series], parts: list[float | None] | None
) -> None:
    split = time_split(Trial(measured, seen(*series)))
    if parts is None:
        assert split == TimeSplit()
        return
    assert [None if part is None else round(part, 6) for part in split.parts] == parts
    client_ms = (parts[0] or 0.0) + (parts[1] or 0.0) + (measured.reading.answer_ms or 0.0)
    accepting_ms = 3.0 if parts[1] == 3.0 else 0.0
    assert split.whole_ms == pytest.approx(client_ms - accepting_ms)


@pytest.mark.parametrize("mode", ["open", "closed"])
def test_whatever_is_measured_the_parts_and_what_is_left_are_the_client_s_mean(mode: Mode) -> None:
    random = Random(1)
    for _ in range(200):
        call, pending, own, queue, late = (random.uniform(0, 300) for _ in range(5))
        series = (
            *served(queue=queue, service=call + pending + own),
            *called(pending=pending, call=call),
            *answered(random.uniform(0, 300), random.uniform(0, 5)),
            gauge(ACCEPT_QUEUE, random.uniform(0, 9), server="a"),
        )
        of = trial(mode, late=flat(late))
        client_ms = of.reading.corrected.mean_ms if of.reading.corrected else 240.0 + late
        split = time_split(Trial(of, seen(*series)))
        assert split.whole_ms == pytest.approx(client_ms)
        # What the parts say does not depend on what the client saw; only the rest does.
        slow = copy.replace(of.reading.raw, mean_ms=of.reading.raw.mean_ms + 90)
        corrected = of.reading.corrected and copy.replace(slow, mean_ms=client_ms + 90)
        slower = copy.replace(of.reading, raw=slow, corrected=corrected)
        other = time_split(Trial(copy.replace(of, reading=slower), seen(*series)))
        assert other.parts[:-1] == pytest.approx(split.parts[:-1])
        assert other.time_unexplained_ms - split.time_unexplained_ms == pytest.approx(90)


# The mean is 40 ms above the downstream's, or 1 ms.
@pytest.mark.parametrize(
    ("own_ms", "rest_ms", "allowed"), [(36.0, 4.0, 4.0), (44.0, -4.0, 4.0), (0.7, 0.3, 0.3)]
)
def test_a_tenth_may_be_unexplained(own_ms: float, rest_ms: float, allowed: float) -> None:
    split = TimeSplit(time_own_ms=own_ms, time_downstream_ms=200.0, time_unexplained_ms=rest_ms)
    assert allowed_ms(split) == pytest.approx(allowed)
    assert time_split(Trial(trial())) == TimeSplit()


# --- Threads. -------------------------------------------------------------------------------------

WAITS = {"worker": 0.2, "carrier": 0.0, "compiler": 0.15, "collector": 0.01}


def waits(front: float = 0.1, **classes: float) -> list[Series]:
    """Run-queue time a second by class, and of each of two fronts."""
    each = (WAITS | classes).items()
    classed = [counter(RUNQ, wait, server="a", threads=name) for name, wait in each]
    fronts = (counter(RUNQ, front, server="a", threads="front", front=at) for at in ("f-1", "f-2"))
    return [*classed, *fronts]


def fell() -> Series:
    """Another JVM began in the window: what the first one waited is unknown."""
    at = tuple(OPENS - 2 + second for second in range(15))
    labels = {"__name__": RUNQ, "server": "a", "threads": "loop"}
    return Series(labels, at, tuple(float(second % 7) for second in range(15)))


PROCESSES = {"toxiproxy": (0.3, 0.6), "downstream": (0.1, 0.02)}
EVERY = [
    *(counter(RUN, rate, server="a", threads=str(rate)) for rate in (0.75, 0.0, 0.05)),
    counter(RUN, 9.0, server="b", threads="worker"),
    *waits(),
    *(counter(name, rate, job="downstream", process=process)
      for process, rates in PROCESSES.items()
      for name, rate in zip((PROCESS_RUN, PROCESS_RUNQ), rates, strict=True)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("series", "known"),
    [
        # A part has the sum of its threads over the window: 0.1 of each front.
        (EVERY, {"server_run_s": 8.0, "server_runq_s": 5.6, "server_runq_class": "front",
                 "proxy_run_s": 3.0, "proxy_runq_s": 6.0, "downstream_run_s": 1.0,
                 "downstream_runq_s": 0.2}),
        (waits(front=0.09), {"server_runq_s": 5.4, "server_runq_class": "worker"}),
        (waits(compiler=0.3), {"server_runq_s": 7.1, "server_runq_class": "compiler"}),
        (waits(front=0.0, **dict.fromkeys(WAITS, 0.0)), {"server_runq_s": 0.0}),
        # A server that shows nonsense shows nothing.
        ([counter(RUNQ, 0.5, server="a", threads="=\x1b[31m\n")], {"server_runq_s": 5.0}),
        ([counter(RUN, 7e306, server="a", threads=name) for name in "abc"], {}),
        ([], {}),
        ([*waits(), fell()], {}),
    ],
)  # fmt: skip
def test_threads_ran_and_waited(series: list[Series], known: dict[str, Any]) -> None:
    assert rounded(thread_times(Trial(spent(), seen(*series)))) == known
    assert thread_times(Trial(spent())) == ThreadTimes()
