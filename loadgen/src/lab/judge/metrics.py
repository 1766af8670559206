"""Figures of the series in a window, each noted with the query that it is in Prometheus."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.model import Evidence, Observation, Series

# cgroup v1 may count each CPU, version 2 the total: the sum over the series is right for both.
USED = "container_cpu_usage_seconds_total"
CPUS = "machine:machine_cpu_cores:max"
# Of each of several machines: its CPUs, and what all work on it uses.
CPUS_OF_EACH = "machine:machine_cpu_cores:each"
HOST_CPU = "host_cpu_usage_seconds_total"
# How many CPUs a Go process uses at most: each loop of the downstream uses one.
MOST_CPUS = {"downstream": "lab_downstream_loops", "toxiproxy": "go_sched_gomaxprocs_threads"}
# Threads of the server by class, and processes behind it: on a CPU, and waiting for one.
RUN, RUNQ = "lab_thread_run_seconds_total", "lab_thread_runq_seconds_total"
PROCESS_RUN, PROCESS_RUNQ = "lab_process_run_seconds_total", "lab_process_runq_seconds_total"
REQUESTS, CALLS = "lab_http_request_seconds", "lab_downstream_call_seconds"
# Of a JVM, by pool: the heap in use, and that after the last collection.
HEAP_AFTER = "jvm_memory_pool_collection_used_bytes"
HEAP_USED = "jvm_memory_pool_used_bytes"
# Pools of old objects: "G1 Old Gen", "PS Old Gen", "Tenured Gen", "ZGC Old Generation".
OLD_WORDS = ("Old", "Tenured")
# Prometheus scrapes every exporter so often.
SCRAPE_S = 2.0


def without_none[T](*figures: T | None) -> tuple[T, ...]:
    return tuple(figure for figure in figures if figure is not None)


def machine_cpus(observation: Observation) -> float | None:
    return max((max(series.values) for series in observation.series(CPUS)), default=None)


def machine_busy(observation: Observation, machine: str) -> float | None:
    """The share of its time that the CPUs of one of several machines were busy."""
    cpus = [max(series.values) for series in observation.series(CPUS_OF_EACH, machine=machine)]
    used = observation.rate(HOST_CPU, machine=machine)
    return None if used is None or not cpus else min(1.0, used / max(cpus))


def mean_of(
    observation: Observation, name: str, labels: Mapping[str, str], times: float = 1.0
) -> float | None:
    """So many times the mean of a histogram's observations in the window."""
    total = observation.increase(f"{name}_sum", **labels)
    count = observation.increase(f"{name}_count", **labels)
    return times * total / count if total is not None and count else None


def heap_after_collections(seen: Observation, **labels: str) -> tuple[tuple[float, float], ...]:
    """The heap in use, without the objects allocated since the last collection: bytes by time, of
    the one JVM with these labels. The same as the recorded
    server:jvm_memory_heap_after_collection_bytes:sum (prometheus/rules).

    A young collection leaves its survivors in the young pools. The old generation's usage after
    collection may be hours old, or never was (G1 then has 0), so its usage now counts: it changes
    only by collections, and by objects too large to be young. Dead old objects count until an old
    collection finds them.
    """
    after = seen.series(HEAP_AFTER, job="jvm", **labels)
    old = [pool for pool in seen.series(HEAP_USED, job="jvm", **labels) if is_old(pool)]
    if not old and any(map(is_old, after)):
        return ()
    return summed((*(pool for pool in after if not is_old(pool)), *old))


def summed(parts: Sequence[Series]) -> tuple[tuple[float, float], ...]:
    """The sum of these series at the times that all of them have; nothing of none."""
    if not parts:
        return ()
    values = [dict(part.points) for part in parts]
    times = sorted(set.intersection(*(set(part) for part in values)))
    return tuple((at, sum(part[at] for part in values)) for at in times)


def is_old(series: Series) -> bool:
    name = series.labels.get("pool", "")
    return any(word in name for word in OLD_WORDS)


@dataclass(frozen=True, slots=True)
class Metrics:
    """The series with these labels. A figure is None if unknown, else it is added to `evidence`
    under the name `what` with its `unit`."""

    observation: Observation
    labels: Mapping[str, str]
    evidence: list[Evidence]

    def mean(self, what: str, unit: str, name: str) -> float | None:
        """The mean of a gauge, its series summed."""
        means = [statistics.fmean(values) for values in self._samples(name)]
        mean = sum(means) if means else None
        return self.note(what, mean, unit, f"sum(avg_over_time({self.range_of(name)}))")

    def peak(self, what: str, unit: str, name: str) -> float | None:
        peak = max(map(max, self._samples(name)), default=None)
        return self.note(what, peak, unit, f"max(max_over_time({self.range_of(name)}))")

    def total(self, what: str, unit: str, name: str) -> float | None:
        """By how much counters rose, in sum."""
        rise = self.observation.increase(name, **self.labels)
        return self.note(what, rise, unit, f"sum(increase({self.range_of(name)}))")

    def rate(self, what: str, unit: str, name: str) -> float | None:
        """By how much counters rose per second, in sum."""
        rise = self.observation.increase(name, **self.labels)
        rate = None if rise is None else rise / self.observation.window_s
        return self.note(what, rate, unit, f"sum(rate({self.range_of(name)}))")

    def mean_time(self, what: str, name: str) -> float | None:
        """The mean of a histogram's observations, in seconds."""
        mean = mean_of(self.observation, name, self.labels)
        sums, counts = (self.range_of(f"{name}_{part}") for part in ("sum", "count"))
        return self.note(what, mean, "s", f"sum(increase({sums})) / sum(increase({counts}))")

    def values_of(self, label: str, name: str) -> list[str]:
        """The values of a label among a metric's series, sorted."""
        every = self.observation.series(name, **self.labels)
        return sorted({series.labels.get(label, "") for series in every})

    def note(self, what: str, value: float | None, unit: str, source: str) -> float | None:
        if value is not None:
            self.evidence.append(Evidence(what, value, unit, source))
        return value

    def range_of(self, name: str) -> str:
        matchers = ", ".join(f'{label}="{text}"' for label, text in self.labels.items())
        return f"{name}{{{matchers}}}[{self.observation.window_s:.0f}s]"

    def _samples(self, name: str) -> Iterator[list[float]]:
        """The samples in the window of each series; in one shorter than a scrape the sample nearest
        to its middle, in a longer one without any the last one before it: a later one is of a
        server at rest."""
        opens, closes = self.observation.window
        middle = (opens + closes) / 2
        for series in self.observation.series(name, **self.labels):
            values = self.observation.inside(series.points)
            points = series.points
            if not values and closes - opens > SCRAPE_S:
                points = tuple(point for point in points if point[0] < opens)
            if not values and points:
                at, value = min(points, key=lambda point: abs(point[0] - middle))
                values = [value] if opens - SCRAPE_S <= at <= closes + SCRAPE_S else []
            if values:
                yield values
