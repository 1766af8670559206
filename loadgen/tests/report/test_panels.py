"""The twelve figures over time: what each asks of an observation, and the lines that it gives."""

import json
import math

import pytest

from lab.judge.metrics import RUN
from lab.model import Observation, Series, SeriesError
from lab.report.page.panels import PANELS, Line, observed
from support.repo import REPO
from support.series import CLOSES, OPENS, counter, gauge

VOCABULARY = REPO / "prometheus" / "vocabulary.json"
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}


def lines(title: str, *series: Series) -> dict[str, Line]:
    """The lines of one panel, by name; no other panel has any."""
    found = observed(Observation((OPENS, CLOSES), series), "a", "/downstream?wait_ms=5")
    assert [panel.title for panel, _ in found] == [title]
    named = {line.label: line for line in found[0][1]}
    assert len(named) == len(found[0][1])
    return named


def values(line: Line) -> list[float]:
    return [pytest.approx(value) for value in line.values]


class Asked:
    """An observation of nothing, which hears what it is asked for."""

    window = (OPENS, CLOSES)
    all = ()

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {}

    def series(self, name: str, /, **labels: str) -> tuple[Series, ...]:
        self.names.setdefault(name, set()).update(labels)
        return ()

    steps = series


def test_there_are_twelve_and_each_asks_for_series_that_are_exported() -> None:
    asked = Asked()
    assert observed(asked, "a", "/downstream") == ()
    assert len(PANELS) == 12
    assert all(len(panel.text) > 30 for panel in PANELS)
    by_job = json.loads(VOCABULARY.read_text())
    known: dict[str, set[str]] = {"machine:machine_cpu_cores:max": set()}
    for metrics in by_job.values():
        for name, metric in metrics.items():
            for suffix in SUFFIXES.get(metric["type"], ("",)):
                known.setdefault(name + suffix, set()).update(metric["labels"])
    assert set(asked.names) - set(known) == set()
    # The rest the scrape adds.
    scraped = {"job", "server", "service"}
    assert [name for name, labels in asked.names.items() if labels - known[name] - scraped] == []
    apart = {label for panel in PANELS for source in panel.lines for label in source.by}
    assert apart - set.union(*known.values()) <= {"service", "machine"}


def test_a_counter_is_drawn_as_its_rise_per_second_in_the_window() -> None:
    kinds = ((100.0, "/downstream", "ok"), (7.0, "/downstream", "rejected"), (1.0, "/health", "ok"))
    ended = [
        counter("lab_http_requests_total", rate, route=route, outcome=outcome)
        for rate, route, outcome in kinds
    ]
    found = lines("Throughput", *ended[::2], gauge("lab_trial_offered_rps", 120.0, server="a"))
    assert [at for at, _ in found["ended by the server"].points] == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert values(found["ended by the server"]) == [100.0] * 5
    assert (found["offered"].is_set, values(found["offered"])) == (True, [120.0] * 6)
    # Of every outcome; errors are those of this server.
    assert values(lines("Throughput", *ended)["ended by the server"]) == [107.0] * 5
    of_server = [
        Series({**one.labels, "server": "a", "route": "/x"}, one.times, one.values) for one in ended
    ]
    assert [*lines("Errors by kind", *of_server)] == ["answered: rejected"]


def test_a_p95_is_of_some_seconds_of_a_histogram() -> None:
    name = "lab_http_request_seconds_bucket"
    buckets = [
        counter(name, rate, server="a", phase=phase, le=le)
        for phase, bound in (("queue", "0.1"), ("total", "0.4"))
        for le, rate in (("0.05", 0.0), (bound, 50.0), ("+Inf", 50.0))
    ]
    found = lines("p95 latency: client beside server", *buckets)
    assert [at for at, _ in found["server queue"].points] == [6.0]
    assert values(found["server queue"]) == [50 + 50 * 0.95]
    assert values(found["server total"]) == [50 + 350 * 0.95]
    idle = [counter(name, 0.0, server="a", phase="queue", le=le) for le in ("0.1", "+Inf")]
    assert observed(Observation((OPENS, CLOSES), (*idle,)), "a", "/x") == ()
    with pytest.raises(SeriesError, match="without a bound: 'wide'"):
        lines("", counter(name, 1.0, server="a", phase="queue", le="wide"))


def container(metric: str, per_second: float, service: str, **labels: str) -> Series:
    return counter(metric, per_second, service=service, **labels)


def test_a_container_has_a_line_and_a_shared_network_is_drawn_once() -> None:
    cpu = "container_cpu_usage_seconds_total"
    found = lines(
        "CPU of containers and host",
        container(cpu, 0.5, "a", cpu="cpu00"),
        container(cpu, 0.25, "a", cpu="cpu01"),
        container(cpu, 0.9, "idle-server"),
        counter("host_cpu_usage_seconds_total", 1.5, cpu="total"),
        gauge("machine:machine_cpu_cores:max", 2.0),
    )
    assert list(found) == ["a", "host", "machine"]
    assert values(found["a"]) == [75.0] * 5

    def drawn(*services: str, **labels: str) -> list[str]:
        received, port = "container_network_receive_bytes_total", {"interface": "eth0"}
        each = (container(received, 9.0, service, **port, **labels) for service in services)
        return list(lines("Network", *each))

    shared = drawn("downstream-network", "toxiproxy", "downstream")
    assert shared == ["downstream-network in"]
    # On several machines each has its own, and there is no downstream-network.
    assert drawn("toxiproxy", "downstream", machine="called") == ["downstream in", "toxiproxy in"]


def test_lines_are_told_apart_and_what_is_told_of_nobody_is_not_drawn() -> None:
    connector = {"connector": "http-8080"}
    size = gauge("lab_worker_pool_size", -1.0, **connector)
    found = lines("Threads", gauge("lab_worker_pool_active", 3.0, **connector), size)
    assert list(found) == ["busy workers http-8080"]
    cycles = ("ZGC Major Cycles", "ZGC Major Pauses")
    gc = [counter("jvm_gc_collection_seconds_sum", 0.1, gc=name) for name in cycles]
    assert list(lines("Shares of the time", *gc)) == ["ZGC Major Pauses"]
    fronts = [
        counter(RUN, share, server="a", threads="front", front=front)
        for front, share in (("front-1", 0.9), ("front-2", 0.3))
    ]
    found = lines("Shares of the time", *fronts, counter(RUN, 0.7, server="a", threads="worker"))
    assert {label: values(line)[-1] for label, line in found.items()} == {
        "front-1 on a CPU": 90.0,
        "front-2 on a CPU": 30.0,
    }


def test_a_long_window_has_no_more_samples_than_a_figure_shows_and_gaps_are_kept() -> None:
    times = tuple(float(at) for at in range(5000))
    compiler = {"__name__": RUN, "threads": "compiler"}
    risen = Series(compiler, times, tuple(at / 2 for at in times))
    queued = Series({"__name__": "lab_worker_pool_queue_depth"}, times, times)
    found = observed(Observation((100.0, 4900.0), (risen, queued)), "a", "/x")
    drawn = [line for _, lines in found for line in lines]
    assert [200 < len(line.points) <= 241 for line in drawn] == [True, True]
    assert all(math.isclose(value, 50.0) for value in drawn[1].values)
    late = Series({"__name__": "lab_worker_pool_queue_depth"}, (1000.0, 1009.0), (1.0, 2.0))
    assert lines("What waits, and for what", late)["for a worker"].points == [
        (0.0, 1.0), (9.0, None), (9.0, 2.0),
    ]  # fmt: skip
