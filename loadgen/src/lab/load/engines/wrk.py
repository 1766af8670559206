"""Debian's wrk 4.1: closed load only.

Its source (github.com/wg/wrk, src/wrk.c, src/stats.c) tells what its output means:

* There is no warm-up: a run of its own goes before the measured run.
* Before wrk prints, `stats_correct` adds phantom samples for every latency of at least twice the
  mean interval of a connection, in the manner of HdrHistogram's correction for coordinated
  omission. So the printed percentiles are neither raw nor corrected. `wrk.lua` prints the whole
  histogram, and `without_phantoms` undoes the correction exactly.
* Answers above 399 are counted as "Non-2xx or 3xx". Timeouts and socket errors are counted as wrk2
  counts them. The number of requests that are unanswered at the end is unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.errors import RawDataError
from lab.load.engines.base import (
    DEFAULT_WARMUP_S,
    REQUEST_TIMEOUT_S,
    Schedule,
    first_line,
    threads_for,
)
from lab.load.engines.histogram import Histogram
from lab.load.engines.wrk_text import Failures, lines_of
from lab.model import Curves, Mode, Reading, TrialPlan

OUTPUT = "wrk.txt"
SCRIPT = Path(__file__).with_name("wrk.lua")

_BEGIN = re.compile(r"latency begin (\d+) (\d+)$")
_VALUE = re.compile(r"latency (\d+) (\d+)$")


class Wrk:
    """github.com/wg/wrk, as the command `wrk`."""

    name = "wrk"
    modes: frozenset[Mode] = frozenset(("closed",))

    def version(self) -> str | None:
        return first_line(("wrk", "-v"), "Copyright")

    def schedule(self, plan: TrialPlan, raw: Path) -> Schedule:  # noqa: ARG002
        """A warm-up run, then the measured run, all of which is the window."""
        warm_up_s = DEFAULT_WARMUP_S if plan.warmup_s is None else plan.warmup_s
        return Schedule(
            warm_up=_argv(plan, warm_up_s) if warm_up_s else None,
            warm_up_s=warm_up_s,
            argv=_argv(plan, plan.duration_s),
            output=OUTPUT,
            run_s=plan.duration_s,
            window_offset_s=0,
            window_s=plan.duration_s,
        )

    def answer_bytes(self, plan: TrialPlan) -> int:  # noqa: ARG002
        """None: the text is small."""
        return 0

    def condense(self, plan: TrialPlan, raw: Path) -> None:
        """Nothing: the text is small."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        """The text of one run with wrk.lua."""
        said = parse(raw / OUTPUT, plan.concurrency)
        run_s = said.run_us / 1e6
        counts = said.failures.counts(said.requests, run_s)
        return Reading(
            window_s=run_s,
            samples=said.latencies.count,
            achieved_rps=said.requests * 1e6 / said.run_us,
            corrected=None,
            raw=said.latencies.latency(),
            counts=counts,
            window_ok=counts.ok,
            window_http_errors=counts.http_errors,
            notes=said.failures.notes(self.name),
        )

    def curves(self, plan: TrialPlan, raw: Path) -> Curves:
        """Of the whole printed histogram."""
        return Curves(None, parse(raw / OUTPUT, plan.concurrency).latencies.curve())


@dataclass(frozen=True, slots=True)
class Said:
    """The figures that one run of wrk printed, its histogram without the phantoms."""

    run_us: int
    requests: int
    latencies: Histogram
    failures: Failures


def parse(path: Path, connections: int) -> Said:
    """The printed text of a run with wrk.lua. Raises RawDataError unless it is complete."""
    lines = lines_of(path, "wrk")
    failures, begin = Failures(), None
    counts: Counter[int] = Counter()
    for number, line in enumerate(lines, 1):
        if line.startswith("Usage:"):
            raise RawDataError(path, number, "wrk refused its command line")
        if failures.take(line):
            continue
        if found := _BEGIN.match(line):
            begin = int(found[1]), int(found[2])
        elif begin and (found := _VALUE.match(line)):
            counts[int(found[1])] += int(found[2])
        elif begin and line != "latency end":
            raise RawDataError(path, number, f"unexpected {line.strip()!r}")
    if begin is None or lines[-1] != "latency end":
        raise RawDataError(path, len(lines), "ends before the end of the histogram")
    run_us, requests = begin
    histogram = Histogram()
    for value, count in without_phantoms(counts, run_us, requests, connections).items():
        if count < 0:
            raise RawDataError(path, None, f"no histogram of wrk: {count} of {value} us")
        histogram.add(value, count)
    # The histogram leaves out only requests that took longer than the timeout.
    if not requests - failures.timeouts <= histogram.count <= requests:
        raise RawDataError(
            path, None, f"{histogram.count} latencies of {requests} requests: no run of wrk"
        )
    return Said(run_us, requests, histogram, failures)


def without_phantoms(
    counts: Mapping[int, int], run_us: int, requests: int, connections: int
) -> dict[int, int]:
    """The measured histogram, from the one that stats_correct printed.

    stats_correct walks the values n upward and, for each n of at least twice the expected
    interval e, adds its count to n-e, n-2e, … down to above e. This walks downward: when it comes
    to n, the additions of all larger values are already taken off, and the true count is left.
    """
    per_connection = requests // connections
    true = dict(counts)
    if per_connection == 0:
        return true
    expected = run_us // per_connection
    for n in sorted(true, reverse=True):
        if n < expected * 2:
            break
        count = true[n]
        for m in range(n - expected, expected, -expected):
            if count:
                true[m] = true.get(m, 0) - count
    return {value: count for value, count in sorted(true.items()) if count}


def _argv(plan: TrialPlan, duration_s: int) -> tuple[str, ...]:
    return (
        "wrk",
        f"-t{threads_for(plan.concurrency, plan.cores)}",
        f"-c{plan.concurrency}",
        f"-d{duration_s}s",
        "--timeout",
        f"{REQUEST_TIMEOUT_S}s",
        "-s",
        str(SCRIPT),
        plan.url,
    )
