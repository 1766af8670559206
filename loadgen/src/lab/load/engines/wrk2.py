"""wrk2, the usual engine where it runs: open load corrected for coordinated omission.

Its source (github.com/giltene/wrk2, src/wrk.c) and runs show what its output means:

* Every thread resets its histograms 10 s + 5 ms × its connections after the start
  ("calibration"). So the spectra cover only the time from then to the end of `-d`, and `-d` is
  lengthened by that much. Every other number covers the whole run.
* The connections of a thread open 5 ms apart. Each thread holds connections / threads, rounded
  down, so the number of threads must divide the connections.
* A thread that oversleeps its start opens all its connections at once, and sends in bursts for the
  whole run: its event loop (src/ae.c, aeProcessEvents) takes a first timer that is already late for
  one due in 999 ms (docs/method.md has figures). `start_check` finds them: half a second later the
  thread has no socket. With many connections hardly a start is good, and a note says so.
* `-U` prints both spectra. Spectra are in milliseconds; the lines above them use us, ms, s, m.
* "timeout N" counts stuck connections at every check, not requests: a note, never a count.
* Of the "Socket errors", only "read" counts requests that were sent: their connection broke before
  an answer. "write" counts attempts: where connections are refused, wrk2 connects and writes again
  at once, many thousand times a second. "connect" counts connections that it gives up. Both are a
  note, never a count.
* Answers above 399 are counted as "Non-2xx or 3xx", and are in the latencies. They are counted over
  the whole run, so their share in the window is only known within bounds (`good_bounds`).
* Requests without an answer at the end are recorded nowhere: sent and unfinished are unknown.
* Closed load: a rate far above any capacity keeps every connection busy. Then only the uncorrected
  spectrum means anything.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.errors import RawDataError, WordError
from lab.judge.checks import data, load
from lab.load.engines.base import REQUEST_TIMEOUT_S, Engine, Schedule, StartCheck, printed
from lab.model import Counts, Latency, Reading, Remark, TrialPlan

CALIBRATION_S = 10.0
STAGGER_S = 0.005
START_CHECK_S = 0.5
MAX_THREADS = 8
# No server answers this many per connection, so every connection is always late.
CLOSED_RATE_RPS = 10_000_000
OUTPUT = "wrk2.txt"
# Two of three starts went wrong at 400 connections on 2 cores; 12 in a row are 1 in 130.
MOST_STARTS = 12
# From so many connections on no start was a good one on 2 cores. On more cores one may be, and each
# try costs a second of every trial, so a few are made.
BURSTS_FROM, MOST_BURSTS = 1000, 3
# The latencies of errors are among those of answers, so at most this share of the answers may be
# errors: a tenth of what p99 leaves above it. Quick or slow, they then move no percentile by more.
MOST_MIXED = 0.001

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_REFUSAL = re.compile(r"^(?:unable to (?:connect|resolve|create thread).*|Usage:)", re.MULTILINE)
_WHOLE = re.compile(
    r" +(?P<threads>\d+) threads and (?P<connections>\d+) connections\n"
    r"(?P<latencies>(?:.*\n)*?)"
    r" +(?P<requests>\d+) requests in (?P<run>\d+\.\d+)(?P<unit>us|ms|s|m|h), .*\n"
    r"(?P<errors>(?: .*\n)*)"
    r"Requests/sec: .*\nTransfer/sec: "
)
_SPECTRUM = re.compile(
    r"HdrHistogram - (\w+) Latency.*\n([^#]*)"
    r"#\[Mean +=\s+(-?nan|-?\d+\.\d+), StdDeviation.*\n"
    r"#\[Max +=\s+(\d+\.\d+), Total count +=\s+(\d+)\]"
)
_SUMMARY = re.compile(r"^ *(\d+\.\d+)% +(\d+\.\d+)(us|ms|s|m|h) *$", re.MULTILINE)
_ROW = re.compile(r"^ +(\d+\.\d+) +([01]\.\d+) +\d+ +(?:\d+\.\d+|inf)$", re.MULTILINE)
_SOCKET = re.compile(
    r"^ +Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$", re.MULTILINE
)
_STATUS = re.compile(r"^ +Non-2xx or 3xx responses: (\d+)$", re.MULTILINE)
_HEADS = r" +Detailed Percentile spectrum:| +Value +Percentile +TotalCount .*|"
_IN_SPECTRUM = re.compile(f"{_HEADS}{_SUMMARY.pattern}|{_ROW.pattern}|")
_IN_ERRORS = re.compile(f"{_SOCKET.pattern}|{_STATUS.pattern}")


class Wrk2(Engine):
    """github.com/giltene/wrk2, as the command `wrk2`."""

    name = "wrk2"

    def version(self) -> str | None:
        """Its version line, which says wrk. Only wrk2 explains --rate below it."""
        text = printed(("wrk2", "-v"))
        lines = (line.strip() for line in text.splitlines() if "Copyright" in line)
        return f"wrk2 ({next(lines, '')})" if "--rate" in text else None

    def schedule(self, plan: TrialPlan, raw: Path) -> Schedule:
        threads = threads_for(plan.concurrency, plan.cores)
        offset_s = calibration_s(plan.concurrency, threads)
        if plan.warmup_s is not None:
            raise WordError(
                f"bench: WARMUP={plan.warmup_s}s is not allowed with wrk2, which warms up for as "
                f"long as it calibrates ({offset_s:.0f} s); leave it out, or take ENGINE=pacer"
            )
        run_s = whole_run_s(plan)
        rate = CLOSED_RATE_RPS if plan.offered_rps is None else plan.offered_rps
        options = (f"-t{threads}", f"-c{plan.concurrency}", f"-d{run_s}s", f"-R{rate}")
        timeout = ("--timeout", f"{REQUEST_TIMEOUT_S}s")
        return Schedule(
            argv=("wrk2", *options, *timeout, "-L", "-U", plan.url),
            output=OUTPUT,
            run_s=run_s,
            window_offset_s=offset_s,
            window_s=run_s - offset_s,
            start_check=start_check(plan.concurrency, threads),
        )

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        path = raw / OUTPUT
        output = parse(path)
        if output.connections != plan.concurrency:
            problem = f"{output.connections} connections, the plan says {plan.concurrency}"
            raise RawDataError(path, None, problem)
        if output.uncorrected is None and plan.mode == "closed":
            raise RawDataError(path, None, "has no Uncorrected Latency (a closed run needs -U)")
        calibrated_s = calibration_s(output.connections, output.threads)
        window_s = whole_run_s(plan) - calibrated_s
        if output.calibrations != output.threads:
            window_s = output.run_s
        samples, errors = output.recorded.count, output.http_errors
        corrected = output.recorded.latency() if plan.mode == "open" else None
        uncorrected = output.uncorrected.latency() if output.uncorrected else None
        # Errors are counted in the whole run only, so all of them may be in the window.
        mixed = min(errors, samples) > MOST_MIXED * samples
        return Reading(
            window_s=window_s,
            samples=samples,
            achieved_rps=samples / window_s,
            corrected=None if mixed else corrected,
            raw=None if mixed else uncorrected,
            all_ms=uncorrected.mean_ms if mixed and uncorrected else None,
            counts=Counts(
                sent=None,
                ok=output.requests - errors,
                http_errors=errors,
                socket_errors=output.socket_errors,
                timeouts=None,
                unfinished=None,
                accounted_s=output.run_s,
            ),
            pause_s=pause_s(plan, output.threads),
            remarks=tuple(_remarks(output, mixed)),
        )


@dataclass(frozen=True, slots=True)
class Spectrum:
    """One printed histogram: (percentile 0..1, value in ms) rows, ascending."""

    summary: tuple[tuple[float, float], ...]
    rows: tuple[tuple[float, float], ...]
    mean_ms: float
    max_ms: float
    count: int

    def at(self, percentile: float) -> float:
        """The value at a percentile (0..1), in ms: that of its row. Else the summary's, which is
        exact but may be rounded to seconds or minutes, and so is kept between the rows around it.
        Else interpolated between those rows."""
        p0, v0 = max((row for row in self.rows if row[0] <= percentile), default=self.rows[0])
        p1, v1 = min((row for row in self.rows if row[0] >= percentile), default=self.rows[-1])
        for known, value in self.summary:
            if p0 < percentile < p1 and abs(known - percentile) < 5e-7:
                return min(max(value, v0), v1)
        return v1 if p1 <= p0 else v0 + (v1 - v0) * (percentile - p0) / (p1 - p0)

    def latency(self) -> Latency | None:
        if self.count == 0:
            return None
        return Latency(self.mean_ms, self.at(0.50), self.at(0.95), self.at(0.99), self.max_ms)


@dataclass(frozen=True, slots=True)
class Output:
    """The figures that one run of wrk2 printed. `attempts` to connect or to send that failed, and
    connections found waiting at `timeouts` checks, are no numbers of requests."""

    threads: int
    connections: int
    calibrations: int
    recorded: Spectrum
    uncorrected: Spectrum | None
    requests: int
    run_s: float
    socket_errors: int
    attempts: int
    timeouts: int
    http_errors: int


def parse(path: Path) -> Output:
    """The text of a run with -L, and -U for the uncorrected spectrum. Raises RawDataError unless it
    is complete."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as failure:
        raise RawDataError(path, None, f"cannot be read: {failure.strerror}") from None
    lines = text.splitlines()
    if refusal := _REFUSAL.search(text):
        # What it does not like of its command line comes before its usage.
        why = lines[0].strip() if refusal[0] == "Usage:" else refusal[0]
        raise RawDataError(path, text.count("\n", 0, refusal.start()) + 1, f"did not run: {why}")
    whole = _WHOLE.search(text)
    if whole is None:
        raise RawDataError(path, len(lines) or None, "is no whole output of wrk2")
    matches = [*_SPECTRUM.finditer(whole["latencies"])]
    for part, known in (
        *((match[2], _IN_SPECTRUM) for match in matches),
        (whole["errors"], _IN_ERRORS),
    ):
        for line in part.splitlines():
            if not known.fullmatch(line):
                raise RawDataError(path, None, f"unexpected {line.strip()!r}")
    spectra = {match[1]: _spectrum(match) for match in matches}
    recorded, uncorrected = spectra.get("Recorded"), spectra.get("Uncorrected")
    if recorded is None:
        raise RawDataError(path, None, "has no Recorded Latency (run with -L)")
    # Each ends with three lines of this kind.
    if whole["latencies"].count("#[") != 3 * len(spectra):
        raise RawDataError(path, None, "has a spectrum that is not whole")
    if any(not each.rows or (each.count and math.isnan(each.mean_ms)) for each in spectra.values()):
        raise RawDataError(path, None, "has a spectrum without rows, or without a mean")
    if uncorrected is not None and recorded.count != uncorrected.count:
        counts = f"{recorded.count} and {uncorrected.count} samples"
        raise RawDataError(path, None, f"the spectra disagree: {counts}")
    socket, status = _SOCKET.search(whole["errors"]), _STATUS.search(whole["errors"])
    connect, read, write, timeouts = map(int, socket.groups()) if socket else (0, 0, 0, 0)
    return Output(
        threads=int(whole["threads"]),
        connections=int(whole["connections"]),
        calibrations=whole["latencies"].count("Thread calibration:"),
        recorded=recorded,
        uncorrected=uncorrected,
        requests=int(whole["requests"]),
        run_s=float(whole["run"]) * _UNITS_S[whole["unit"]],
        socket_errors=read,
        attempts=connect + write,
        timeouts=timeouts,
        http_errors=int(status[1]) if status else 0,
    )


def _spectrum(match: re.Match[str]) -> Spectrum:
    summary = _SUMMARY.findall(match[0])
    return Spectrum(
        summary=tuple(
            (float(percent) / 100, float(value) * _UNITS_S[unit] * 1000)
            for percent, value, unit in summary
        ),
        rows=tuple((float(share), float(ms)) for ms, share in _ROW.findall(match[0])),
        mean_ms=float(match[3]),
        max_ms=float(match[4]),
        count=int(match[5]),
    )


def _remarks(output: Output, mixed: bool) -> Iterator[Remark]:
    """What was counted, but not in requests, and what makes the figures others."""
    if output.attempts:
        yield load.wrk2_attempts.remark(attempts=output.attempts)
    if output.timeouts:
        yield load.wrk2_waiting.remark(timeout_s=REQUEST_TIMEOUT_S, checks=output.timeouts)
    threads, planned, samples = output.threads, output.connections, output.recorded.count
    if planned % threads:
        opened = planned // threads * threads
        yield load.wrk2_connections.remark(opened=opened, planned=planned, threads=threads)
    if output.calibrations != threads:
        yield data.wrk2_uncalibrated.remark(calibrated=output.calibrations, threads=threads)
    if samples:
        least, most = good_bounds(output.requests, output.http_errors, samples)
        if least < most:
            run = 1 - output.http_errors / output.requests
            yield data.errors_of_run.remark(least=least, most=most, run=run)
    if mixed:
        errors = min(output.http_errors, samples)
        yield data.latencies_mixed.remark(errors=errors, answers=samples, allowed=MOST_MIXED)


def threads_for(concurrency: int, cores: int) -> int:
    """The most threads that divide the connections evenly, up to one per core and MAX_THREADS."""
    most = min(cores, MAX_THREADS, concurrency)
    return next(threads for threads in range(most, 0, -1) if concurrency % threads == 0)


def whole_run_s(plan: TrialPlan) -> int:
    """`-d`, the calibration plus the duration: it takes whole seconds."""
    offset_s = calibration_s(plan.concurrency, threads_for(plan.concurrency, plan.cores))
    return math.ceil(round(offset_s + plan.duration_s, 6))


def pause_s(plan: TrialPlan, threads: int) -> float:
    """How long nothing is due between two rounds of all connections; 0 in a closed load. Each
    connection has its own schedule, with one request per connections / rate, and starts STAGGER_S
    after the connection before it. So few connections send in bursts."""
    if plan.offered_rps is None:
        return 0.0
    spread_s = STAGGER_S * (plan.concurrency // threads)
    return max(0.0, plan.concurrency / plan.offered_rps - spread_s)


def good_bounds(requests: int, errors: int, samples: int) -> tuple[float, float]:
    """The bounds of the share of successes among the answers of the window (`samples`): at worst
    all `errors` of the run were in it, at best as many as there are answers were before it."""
    before = max(0, requests - samples)
    return 1 - min(samples, errors) / samples, 1 - max(0, errors - before) / samples


def start_check(concurrency: int, threads: int) -> StartCheck:
    """The sockets of all threads, less half of those of a thread that overslept its start."""
    each = min(concurrency // threads, math.ceil(START_CHECK_S / STAGGER_S))
    return StartCheck(
        after_s=START_CHECK_S,
        least_sockets=math.ceil((threads - 0.5) * each),
        most=MOST_STARTS if concurrency < BURSTS_FROM else MOST_BURSTS,
        why=load.wrk2_bursts.remark(),
    )


def calibration_s(concurrency: int, threads: int) -> float:
    """How long after the start a thread resets its histograms."""
    return CALIBRATION_S + STAGGER_S * (concurrency // threads)
