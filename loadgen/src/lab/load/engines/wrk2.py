"""wrk2, the usual engine where it runs: open load corrected for coordinated omission.

Its source (github.com/giltene/wrk2, src/wrk.c) and runs tell what its output means:

* Every thread resets its histograms 10 s + 5 ms × its connections after the start
  ("calibration"). So the spectra cover only the time from then to the end of `-d`, and `-d` is
  lengthened by that much. Every other number covers the whole run.
* The connections of a thread open 5 ms apart. Each thread holds connections / threads, rounded
  down, so the number of threads must divide the connections.
* A thread that oversleeps its start opens all its connections at once. That happened in two of
  three starts at 400 connections on 2 cores: the thread's event loop (src/ae.c, aeProcessEvents)
  takes a first timer that is already late for one due in 999 ms. Each connection keeps its own
  schedule from there on, so the thread sends in bursts for the whole run. An A/A of 6 launches
  (open, 1800/s) had a p95 of 203 to 226 ms with such starts, and of 203.3 to 203.9 ms without.
  `start_check` finds such a start: half a second after it, the thread has no socket. With more
  connections, making the timers takes longer than the millisecond after which the first timer is
  late. Then no start is a good one, and a note says so.
* `-U` prints both spectra. Spectra are in milliseconds; the lines above them use us, ms, s, m.
* "timeout N" counts stuck connections at every check, not requests: a note, never a count.
* Of the "Socket errors", only "read" counts requests that were sent: their connection broke before
  an answer. "write" counts attempts: where connections are refused, wrk2 connects and writes again
  at once, many thousand times a second. "connect" counts connections that it gives up. Both are a
  note, never a count. After any of these the same request is due again, so wrk2 counts more
  requests than it offers where a server resets every connection.
* Answers above 399 are counted as "Non-2xx or 3xx", and are in the latencies. They are counted over
  the whole run, so their share in the window is only known within bounds (`good_bounds`).
* Requests without an answer at the end are recorded nowhere: sent and unfinished are unknown.
* The exit status tells nothing.
* Closed load: a rate far above any capacity keeps every connection busy. Then only the uncorrected
  spectrum means anything.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from lab.errors import RawDataError, WordError
from lab.judge.checks import data, load
from lab.load.engines.base import REQUEST_TIMEOUT_S, Schedule, StartCheck, first_line, threads_for
from lab.load.engines.wrk2_output import parse
from lab.model import Reading, TrialPlan

CALIBRATION_S = 10.0
STAGGER_S = 0.005
START_CHECK_S = 0.5
# No server answers this many per connection, so every connection is always late.
CLOSED_RATE_RPS = 10_000_000
OUTPUT = "wrk2.txt"
# With so many connections no start of an open load is a good one: it sends in bursts.
BURSTS_FROM = 1000


class Wrk2:
    """github.com/giltene/wrk2, as the command `wrk2`."""

    name = "wrk2"

    def version(self) -> str | None:
        """Its version line, which says wrk. Only wrk2 explains --rate below it."""
        line = first_line(("wrk2", "-v"), "Copyright")
        rated = line and first_line(("wrk2", "-v"), "--rate")
        return f"wrk2 ({line})" if rated else None

    def schedule(self, plan: TrialPlan, raw: Path) -> Schedule:  # noqa: ARG002
        """`-d` is the calibration plus the duration, rounded up to whole seconds."""
        threads = threads_for(plan.concurrency, plan.cores)
        offset_s = calibration_s(plan.concurrency, threads)
        warm_up_s = plan.warmup_s if plan.warmup_s is not None else offset_s
        if plan.warmup_s is not None and plan.warmup_s < offset_s:
            raise WordError(
                f"bench: WARMUP={plan.warmup_s}s is less than wrk2's own calibration at "
                f"{plan.concurrency} connections; allowed: {math.ceil(offset_s)}s or more"
            )
        run_s = math.ceil(round(offset_s + plan.duration_s, 6))
        extra_s = math.ceil(warm_up_s - offset_s)
        return Schedule(
            warm_up=_argv(plan, threads, extra_s) if extra_s > 0 else None,
            warm_up_s=max(0, extra_s),
            argv=_argv(plan, threads, run_s),
            output=OUTPUT,
            run_s=run_s,
            window_offset_s=offset_s,
            window_s=run_s - offset_s,
            start_check=start_check(plan.concurrency, threads),
        )

    def answer_bytes(self, plan: TrialPlan) -> int:  # noqa: ARG002
        """None: the text is small."""
        return 0

    def settled_s(self, plan: TrialPlan, opens_s: float, lines: Sequence[str]) -> None:
        """It tells nothing before its end."""

    def condense(self, plan: TrialPlan, raw: Path) -> None:
        """Nothing: the text is small."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        path = raw / OUTPUT
        said = parse(path)
        if said.connections != plan.concurrency:
            raise RawDataError(
                path, None, f"{said.connections} connections, the plan says {plan.concurrency}"
            )
        if said.uncorrected is None and plan.mode == "closed":
            raise RawDataError(path, None, "has no Uncorrected Latency (a closed run needs -U)")
        calibrated = said.calibrations == said.threads
        calibrated_s = calibration_s(said.connections, said.threads)
        window_s = self.schedule(plan, raw).run_s - calibrated_s if calibrated else said.run_s
        remarks = list(said.failures.remarks())
        if said.connections % said.threads:
            opened = said.connections // said.threads * said.threads
            remarks.append(
                load.wrk2_connections.remark(
                    opened=opened, planned=said.connections, threads=said.threads
                )
            )
        if not calibrated:
            remarks.append(
                data.wrk2_uncalibrated.remark(calibrated=said.calibrations, threads=said.threads)
            )
        samples = said.recorded.count
        errors = said.failures.http_errors
        least, most = good_bounds(said.requests, errors, samples) if samples else (1.0, 1.0)
        if least < most:
            run = 1 - errors / said.requests
            remarks.append(data.errors_of_run.remark(least=least, most=most, run=run))
        corrected = said.recorded.latency(path) if plan.mode == "open" else None
        return Reading(
            window_s=window_s,
            samples=samples,
            achieved_rps=samples / window_s,
            corrected=corrected,
            raw=said.uncorrected.latency(path) if said.uncorrected else None,
            counts=said.failures.counts(said.requests, said.run_s),
            pause_s=pause_s(plan, said.threads),
            remarks=tuple(remarks),
        )


def pause_s(plan: TrialPlan, threads: int) -> float:
    """How long nothing is due between two rounds of all connections, in s; 0 in a closed load.

    Each connection has its own schedule, with one request per connections / rate, and starts
    STAGGER_S after the connection before it. So few connections send in bursts.
    """
    if plan.offered_rps is None:
        return 0.0
    spread_s = STAGGER_S * (plan.concurrency // threads)
    return max(0.0, plan.concurrency / plan.offered_rps - spread_s)


def good_bounds(requests: int, errors: int, samples: int) -> tuple[float, float]:
    """The least and the most that the share of successes among the answers of the window
    (`samples`) can be, where so many `requests` of the whole run had so many `errors`: at worst all
    errors were in the window, at best as many as there are answers were before it."""
    before = max(0, requests - samples)
    return 1 - min(samples, errors) / samples, 1 - max(0, errors - before) / samples


def start_check(concurrency: int, threads: int) -> StartCheck:
    """The sockets of all threads, less half of those of a thread that overslept its start."""
    each = min(concurrency // threads, math.ceil(START_CHECK_S / STAGGER_S))
    return StartCheck(
        after_s=START_CHECK_S,
        least_sockets=math.ceil((threads - 0.5) * each),
        why=load.wrk2_bursts.remark(),
    )


def calibration_s(concurrency: int, threads: int) -> float:
    """How long after the start a thread resets its histograms."""
    return CALIBRATION_S + STAGGER_S * (concurrency // threads)


def _argv(plan: TrialPlan, threads: int, duration_s: int) -> tuple[str, ...]:
    rate = CLOSED_RATE_RPS if plan.offered_rps is None else plan.offered_rps
    return (
        "wrk2",
        f"-t{threads}",
        f"-c{plan.concurrency}",
        f"-d{duration_s}s",
        f"-R{rate}",
        "--timeout",
        f"{REQUEST_TIMEOUT_S}s",
        "-L",
        "-U",
        plan.url,
    )
