"""CPU time per answered request, from samples made by hand in a window of ten seconds."""

import copy
from collections.abc import Sequence

import pytest
from msgspec.structs import asdict

from lab.judge.cpu_split import CPUS, USED, cpu_split
from lab.model import (
    CpuSplit,
    Measurement,
    Observation,
    Remark,
    Series,
    Spike,
    Usage,
    around_server_us,
)
from support.fakes import measurement, plan, reading, record
from support.series import CLOSES, OPENS, counter, gauge

# Of 1,000 req/s: a CPU is 1,000 µs per request.
RPS = 1000.0
PER_SECOND = {
    "a": 0.1, "toxiproxy": 0.07, "downstream": 0.04, "driver": 0.035,
    "prometheus": 0.01, "cadvisor": 0.002, "loadgen": 0.008,
}  # fmt: skip
USAGE = Usage(1.0, window_cpu_s=0.3, host_busy=0.2, host_steal=0.01)


def used(service: str, per_second: float, **labels: str) -> Series:
    return counter(USED, per_second, job="cadvisor", service=service, cpu="total", **labels)


def seen(*more: Series, without: str = "") -> Observation:
    """What cAdvisor tells of each service, but that of one."""
    usual = (used(name, rate) for name, rate in PER_SECOND.items() if name != without)
    return Observation((OPENS, CLOSES), (gauge(CPUS, 2), *usual, *more))


def trial(usage: Usage = USAGE, rps: float = RPS, spike: Spike | None = None) -> Measurement:
    return measurement(record(plan("closed", spike=spike), usage=usage), reading(rps, 10.0))


def rounded(split: CpuSplit) -> dict[str, float | None]:
    parts = asdict(split).items()
    return {name: value if value is None else round(value, 6) for name, value in parts}


def test_each_part_has_its_share() -> None:
    assert rounded(cpu_split(trial(), seen())) == {
        "cpu_server_us": 100,
        "cpu_proxy_us": 70,
        "cpu_downstream_us": 40,
        "cpu_generator_us": 30,
        # The driver beside its engine: 5 of 35.
        "cpu_observation_us": 10 + 2 + 8 + 5,
    }
    assert around_server_us(cpu_split(trial(), seen())) == pytest.approx(165)


def test_grafana_counts_where_it_runs_and_the_cpus_of_a_container_are_added_up() -> None:
    split = cpu_split(trial(), seen(used("grafana", 0.006)))
    assert split.cpu_observation_us == pytest.approx(31)
    rates = {"cpu00": 0.1, "cpu01": 0.2}
    each = (counter(USED, rate, service="a", cpu=cpu) for cpu, rate in rates.items())
    assert cpu_split(trial(), seen(*each, without="a")).cpu_server_us == pytest.approx(300)


@pytest.mark.parametrize(
    ("without", "unknown"),
    [
        ("a", "cpu_server_us"),
        ("toxiproxy", "cpu_proxy_us"),
        ("downstream", "cpu_downstream_us"),
        ("prometheus", "cpu_observation_us"),
        ("cadvisor", "cpu_observation_us"),
        ("loadgen", "cpu_observation_us"),
        ("driver", "cpu_observation_us"),
    ],
)
def test_only_an_unseen_part_is_unknown(without: str, unknown: str) -> None:
    split = rounded(cpu_split(trial(), seen(without=without)))
    assert {name for name, value in split.items() if value is None} == {unknown}


def test_what_the_engine_does_not_tell_is_unknown() -> None:
    assert cpu_split(trial(), None) == CpuSplit(cpu_generator_us=pytest.approx(30))
    split = cpu_split(trial(Usage(1.0, None, None, None)), seen())
    assert (split.cpu_generator_us, split.cpu_observation_us) == (None, None)
    assert split.cpu_server_us == pytest.approx(100)
    # A driver that rests uses no less than nothing.
    busy = copy.replace(USAGE, window_cpu_s=0.36)
    assert cpu_split(trial(busy), seen()).cpu_observation_us == pytest.approx(20)


def test_a_spinner_is_no_part_of_the_lab() -> None:
    # 5 % of 2 CPUs, in the driver's container, and in the machine's.
    spun = copy.replace(USAGE, spun=0.05, host_busy=0.25)
    observed = seen(used("driver", 0.135), without="driver")
    split = cpu_split(trial(spun), observed)
    assert rounded(split) == rounded(cpu_split(trial(), seen()))
    used_only = tuple(one for one in observed.all if one.labels["__name__"] == USED)
    blind = Observation(observed.window, used_only)
    assert cpu_split(trial(spun), blind).cpu_observation_us is None


SPIKE = Spike(10, None, calm_s=4, peak_s=2, repeats=1, tolerance=0.1, steady_s=1)


@pytest.mark.parametrize("of", [trial(rps=0.0), trial(spike=SPIKE)])
def test_nothing_is_known_without_answers_and_beside_spikes(of: Measurement) -> None:
    assert cpu_split(of, seen()) == CpuSplit()
    assert (
        cpu_split(copy.replace(of, reading=None, problem=Remark("damaged")), seen()) == CpuSplit()
    )


def server(times: tuple[float, ...], values: tuple[float, ...]) -> float | None:
    """The server's µs per request where these are its samples."""
    labels = {"__name__": USED, "service": "a", "name": "lab-a-1"}
    return cpu_split(trial(), seen(Series(labels, times, values), without="a")).cpu_server_us


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
    ],
)
def test_the_window_has_what_the_samples_allow(
    times: Sequence[float], values: tuple[float, ...], us: float
) -> None:
    assert server(tuple(OPENS + at for at in times), values) == pytest.approx(us)


@pytest.mark.parametrize(
    ("times", "values"),
    [
        ((999.0, 1003.0, 1007.0, 1011.0), (5.0, 5.4, 0.4, 0.8)),  # Started again in the window,
        ((999.0, 1005.0, 1011.0), (5.0, 5.4, 0.4)),  # after the last sample in it,
        ((999.0, 1005.0, 1011.0), (5.0, 0.4, 0.8)),  # or before the first.
        ((1001.0, 1003.0, 1007.0, 1011.0), (0.0, 0.4, 0.8, 1.2)),  # Began in it.
        ((997.0, 999.0, 1003.0, 1009.0), (0.0, 0.4, 0.8, 1.2)),  # Ended in it.
        ((998.0, 1000.0, 1012.0), (0.0, 0.2, 1.4)),  # Has no sample in it,
        ((998.05, 1000.05, 1010.05), (0.0, 0.2, 1.2)),  # one just after its start,
        ((999.0, 1004.9, 1011.0), (0.0, 0.59, 1.2)),  # or none in its second half.
        ((991.0, 1009.0, 1011.0), (0.0, 1.8, 2.0)),  # Half of what the last one tells was before.
    ],
)
def test_a_window_not_seen_whole(times: tuple[float, ...], values: tuple[float, ...]) -> None:
    assert server(times, values) is None


@pytest.mark.parametrize(
    ("length", "first", "known"),
    [
        (3.0, 0.05, True),
        (3.0, 0.9, True),
        (3.0, 1.1, False),  # The next one is after the window,
        (3.0, 1.5, False),
        (3.0, 1.9, True),  # and this one tells of more than half of it.
        *((length, first, True) for length in (4.0, 5.0) for first in (0.05, 1.0, 1.95)),
    ],
)
def test_samples_cover_half_a_short_window(length: float, first: float, known: bool) -> None:
    """Samples every two seconds, as Prometheus takes them, of 1.5 CPUs from the start on."""
    times = tuple(OPENS + first + at for at in range(-4, 9, 2))
    used_s = tuple(1.5 * max(0.0, at - OPENS) for at in times)
    one = Series({"__name__": USED}, times, used_s)
    rate = Observation((OPENS, OPENS + length), (one,)).rate(USED)
    assert (rate is not None) == known
    if rate is not None:
        assert 0.75 <= rate <= 1.5 + 1e-9


def test_another_container_of_the_service_counts_only_in_the_window() -> None:
    of = {"__name__": USED, "service": "driver"}
    gone = Series({**of, "name": "first"}, (990.0, 999.0), (0.0, 50.0))
    later = Series({**of, "name": "third"}, (1010.5, 1012.0), (0.0, 50.0))
    assert cpu_split(trial(), seen(gone, later)) == cpu_split(trial(), seen())
    meanwhile = Series({**of, "name": "second"}, (1003.0, 1005.0), (0.5, 0.6))
    assert cpu_split(trial(), seen(meanwhile)).cpu_observation_us is None
