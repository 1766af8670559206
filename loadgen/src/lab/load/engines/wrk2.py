"""wrk2, the default engine: open load corrected for coordinated omission.

What its output means, from its source (github.com/giltene/wrk2, src/wrk.c) and from runs:

* Every thread resets its histograms 10 s + 5 ms × its connections after the start
  ("calibration"), so the spectra cover only what follows, up to the end of `-d`. `-d` is
  lengthened by that much. Every other number covers the whole run.
* The connections of a thread open 5 ms apart, and each thread holds connections / threads,
  rounded down: the number of threads must divide the connections.
* Unless a thread oversleeps its start (two of three starts at 400 connections on 2 cores): its
  event loop (src/ae.c, aeProcessEvents) takes a first timer that is already late for one due in
  999 ms, and then opens all its connections at once. Each keeps its own schedule from there on,
  so the thread sends in bursts for the whole run. An A/A of 6 launches (open, 1800/s): p95 203 to
  226 ms, and 203.3 to 203.9 without such starts. `start_check` finds them: half a second after
  the start that thread has no socket. With more connections making the timers takes longer
  than the millisecond after which the first is late, and no start is a good one: a note says so.
* `-U` prints both spectra. Spectra are in milliseconds; the lines above them use us, ms, s, m.
* "timeout N" counts stuck connections at every check, not requests: a note, never a count.
* Of "Socket errors" only "read" are of requests that were sent: their connection broke before an
  answer. "write" are attempts: where connections are refused it connects and writes again at
  once, many thousand times a second, and "connect" are connections that it gives up. Both are a
  note, never a count. After any of these the same request is due again, so a server that resets
  every one makes it count more than it offers.
* Answers above 399 are counted as "Non-2xx or 3xx", and are in the latencies.
* Requests without an answer at the end are recorded nowhere: sent, unfinished are unknown.
* Its exit status tells nothing.
* Closed load: a rate far above any capacity keeps every connection busy. Only the
  uncorrected spectrum means anything then.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from lab.errors import RawDataError, WordError
from lab.load.engines.base import (
    REQUEST_TIMEOUT_S,
    Schedule,
    StartCheck,
    attempts_note,
    first_line,
    threads_for,
)
from lab.model import Counts, Curve, Curves, Latency, Mode, Reading, TrialPlan

CALIBRATION_S = 10.0
STAGGER_S = 0.005
START_CHECK_S = 0.5
# Per connection this is more than any server answers, so every connection is always late.
CLOSED_RATE_RPS = 10_000_000
OUTPUT = "wrk2.txt"

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_HEADER = re.compile(r"\s+(\d+) threads and (\d+) connections$")
_SECTION = re.compile(r"\s+Latency Distribution \(HdrHistogram - (Recorded|Uncorrected) Latency")
_SUMMARY = re.compile(r"\s*(\d+\.\d+)%\s+(\d+\.\d+)(us|ms|s|m|h)\s*$")
_ROW = re.compile(r"\s+(\d+\.\d+)\s+([01]\.\d+)\s+(\d+)\s+(\d+\.\d+|inf)$")
_MEAN = re.compile(r"#\[Mean\s+=\s+(-?nan|-?\d+\.\d+), StdDeviation")
_MAX = re.compile(r"#\[Max\s+=\s+(\d+\.\d+), Total count\s+=\s+(\d+)\]")
_TOTAL = re.compile(r"\s+(\d+) requests in (\d+\.\d+)(us|ms|s|m|h), ")
_SOCKET = re.compile(r"\s+Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$")
_STATUS = re.compile(r"\s+Non-2xx or 3xx responses: (\d+)$")
_REFUSALS = ("unable to connect", "unable to resolve", "unable to create thread")


class Wrk2:
    """github.com/giltene/wrk2, as the command `wrk2`."""

    name = "wrk2"
    modes: frozenset[Mode] = frozenset(("open", "closed"))

    def version(self) -> str | None:
        """Its version line, which calls itself wrk; only wrk2 also explains --rate then."""
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

    def condense(self, plan: TrialPlan, raw: Path) -> None:
        """Its text is small as it is."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        """The text of one run."""
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
        problems, notes = [], []
        if said.connections % said.threads:
            opened = said.connections // said.threads * said.threads
            problems.append(
                f"wrk2 opened {opened} of {said.connections} connections: they do not divide "
                f"by {said.threads} threads"
            )
        if not calibrated:
            problems.append(
                f"wrk2 calibrated {said.calibrations} of its {said.threads} threads: "
                "the latencies include the warm-up"
            )
        samples = said.recorded.count
        corrected = said.recorded.latency(path) if plan.mode == "open" else None
        if said.timeouts:
            notes.append(
                f"wrk2 found connections waiting above {REQUEST_TIMEOUT_S} s at "
                f"{said.timeouts} checks (not a number of requests)"
            )
        return Reading(
            window_s=window_s,
            samples=samples,
            achieved_rps=samples / window_s,
            corrected=corrected,
            raw=said.uncorrected.latency(path) if said.uncorrected else None,
            counts=Counts(
                sent=None,
                ok=said.requests - said.http_errors,
                http_errors=said.http_errors,
                socket_errors=said.socket_errors,
                timeouts=None,
                unfinished=None,
                accounted_s=said.run_s,
            ),
            pause_s=pause_s(plan, said.threads),
            problems=tuple(problems),
            notes=(*attempts_note(self.name, said.attempts), *notes),
        )

    def curves(self, plan: TrialPlan, raw: Path) -> Curves:
        """The rows of the printed spectra."""
        said = parse(raw / OUTPUT)
        return Curves(
            corrected=said.recorded.curve() if plan.mode == "open" else None,
            raw=said.uncorrected.curve() if said.uncorrected else None,
        )


def pause_s(plan: TrialPlan, threads: int) -> float:
    """How long nothing is due, between two rounds of all connections; 0 in a closed load.

    Each connection has its own schedule of one request per connections / rate, and starts
    STAGGER_S after the one before it: with few connections their requests come in bursts.
    """
    if plan.offered_rps is None:
        return 0.0
    spread_s = STAGGER_S * (plan.concurrency // threads)
    return max(0.0, plan.concurrency / plan.offered_rps - spread_s)


def start_check(concurrency: int, threads: int) -> StartCheck:
    """What half of one thread that overslept would leave out of the sockets of all threads."""
    each = min(concurrency // threads, math.ceil(START_CHECK_S / STAGGER_S))
    return StartCheck(
        after_s=START_CHECK_S,
        least_sockets=math.ceil((threads - 0.5) * each),
        why="wrk2 opened connections of a thread all at once, so it sends in bursts",
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


@dataclass(frozen=True, slots=True)
class Spectrum:
    """One printed histogram: (percentile 0..1, value in ms) rows, ascending."""

    summary: tuple[tuple[float, float], ...]
    rows: tuple[tuple[float, float], ...]
    mean_ms: float | None
    max_ms: float
    count: int

    def at(self, percentile: float) -> float:
        """The value at a percentile (0..1): the row of exactly that percentile, else the
        summary's line, which is exact but may be rounded to seconds or minutes and so is
        kept between the rows around it, else by linear interpolation between those."""
        p0, v0 = max((row for row in self.rows if row[0] <= percentile), default=self.rows[0])
        p1, v1 = min((row for row in self.rows if row[0] >= percentile), default=self.rows[-1])
        for known, value in self.summary:
            if p0 < percentile < p1 and abs(known - percentile) < 5e-7:
                return min(max(value, v0), v1)
        return v1 if p1 <= p0 else v0 + (v1 - v0) * (percentile - p0) / (p1 - p0)

    def curve(self) -> Curve | None:
        """Its rows; None where they are too few for a curve."""
        return Curve.of(self.rows, self.count)

    def latency(self, path: Path) -> Latency | None:
        """None when nothing was recorded."""
        if self.count == 0:
            return None
        if self.mean_ms is None:
            raise RawDataError(path, None, f"{self.count} samples without a mean")
        return Latency(
            mean_ms=self.mean_ms,
            p50_ms=self.at(0.50),
            p95_ms=self.at(0.95),
            p99_ms=self.at(0.99),
            max_ms=self.max_ms,
        )


@dataclass(frozen=True, slots=True)
class Said:
    """What one run of wrk2 printed."""

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


def parse(path: Path) -> Said:
    """The printed text of a run with -L, or -U for the uncorrected spectrum too.

    Raises RawDataError unless it is complete.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as failure:
        raise RawDataError(path, None, f"cannot be read: {failure.strerror}") from None
    for number, line in enumerate(lines, 1):
        if line.startswith(_REFUSALS):
            raise RawDataError(path, number, f"wrk2 did not run: {line.strip()}")
        if line.startswith("Usage:"):
            said = lines[0].strip() if number > 1 else "no reason given"
            raise RawDataError(path, number, f"wrk2 refused its command line: {said}")
    return _Lines(path, lines).said()


class _Lines:
    """Walks the lines once; every expectation that fails names the line."""

    def __init__(self, path: Path, lines: list[str]) -> None:
        self._path = path
        self._lines = lines
        self._at = 0

    def said(self) -> Said:
        threads, connections = map(int, self._seek(_HEADER, "the line of threads").groups())
        calibrations = 0
        spectra: dict[str, Spectrum] = {}
        while True:
            line = self._next("the line of requests")
            if line.lstrip().startswith("Thread calibration:"):
                calibrations += 1
            elif section := _SECTION.match(line):
                spectra[section[1]] = self._spectrum()
            elif total := _TOTAL.match(line):
                break
        sockets, status = (0, 0, 0, 0), 0
        # wrk2 prints these two only when they are not zero.
        while not (line := self._next("Requests/sec")).startswith("Requests/sec:"):
            if found := _SOCKET.match(line):
                connect, read, write, timeout = map(int, found.groups())
                sockets = (connect, read, write, timeout)
            elif found := _STATUS.match(line):
                status = int(found[1])
            else:
                raise self._wrong(f"unexpected {line.strip()!r}")
        if not self._next("Transfer/sec").startswith("Transfer/sec:"):
            raise self._wrong("expected Transfer/sec")
        recorded, uncorrected = spectra.get("Recorded"), spectra.get("Uncorrected")
        if recorded is None:
            raise RawDataError(self._path, None, "has no Recorded Latency (run with -L)")
        if uncorrected is not None and recorded.count != uncorrected.count:
            raise RawDataError(
                self._path,
                None,
                f"the spectra disagree: {recorded.count} and {uncorrected.count} samples",
            )
        return Said(
            threads=threads,
            connections=connections,
            calibrations=calibrations,
            recorded=recorded,
            uncorrected=uncorrected,
            requests=int(total[1]),
            run_s=float(total[2]) * _UNITS_S[total[3]],
            socket_errors=sockets[1],
            attempts=sockets[0] + sockets[2],
            timeouts=sockets[3],
            http_errors=status,
        )

    def _spectrum(self) -> Spectrum:
        summary, rows = [], []
        while not (line := self._next("the spectrum")).startswith("#[Mean"):
            if found := _SUMMARY.match(line):
                value_ms = float(found[2]) * _UNITS_S[found[3]] * 1000
                summary.append((float(found[1]) / 100, value_ms))
            elif found := _ROW.match(line):
                rows.append((float(found[2]), float(found[1])))
            elif line.strip() and not line.lstrip().startswith(("Detailed", "Value")):
                raise self._wrong(f"unexpected {line.strip()!r}")
        mean = self._expect(_MEAN, line)
        most = self._expect(_MAX, self._next("the maximum"))
        if not rows:
            raise self._wrong("a spectrum without rows")
        return Spectrum(
            summary=tuple(summary),
            rows=tuple(rows),
            mean_ms=None if mean[1].endswith("nan") else float(mean[1]),
            max_ms=float(most[1]),
            count=int(most[2]),
        )

    def _next(self, expected: str) -> str:
        if self._at >= len(self._lines):
            raise RawDataError(self._path, self._at, f"ends before {expected}")
        self._at += 1
        return self._lines[self._at - 1]

    def _seek(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        while True:
            if found := pattern.match(self._next(expected)):
                return found

    def _expect(self, pattern: re.Pattern[str], line: str) -> re.Match[str]:
        found = pattern.match(line)
        if found is None:
            raise self._wrong(f"unexpected {line.strip()!r}")
        return found

    def _wrong(self, problem: str) -> RawDataError:
        return RawDataError(self._path, self._at, problem)
