"""The text that wrk2 prints: read whole, or refused. `wrk2` says what it means."""

import re
from dataclasses import dataclass
from pathlib import Path

from lab.errors import RawDataError
from lab.model import Latency

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_REFUSALS = ("unable to connect", "unable to resolve", "unable to create thread")
_HEADER = re.compile(r"\s+(\d+) threads and (\d+) connections$")
_SECTION = re.compile(r"\s+Latency Distribution \(HdrHistogram - (Recorded|Uncorrected) Latency")
_SUMMARY = re.compile(r"\s*(\d+\.\d+)%\s+(\d+\.\d+)(us|ms|s|m|h)\s*$")
_ROW = re.compile(r"\s+(\d+\.\d+)\s+([01]\.\d+)\s+(\d+)\s+(\d+\.\d+|inf)$")
_MEAN = re.compile(r"#\[Mean\s+=\s+(-?nan|-?\d+\.\d+), StdDeviation")
_MAX = re.compile(r"#\[Max\s+=\s+(\d+\.\d+), Total count\s+=\s+(\d+)\]")
_TOTAL = re.compile(r"\s+(\d+) requests in (\d+\.\d+)(us|ms|s|m|h), ")
_SOCKET = re.compile(r"\s+Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$")
_STATUS = re.compile(r"\s+Non-2xx or 3xx responses: (\d+)$")


@dataclass(frozen=True, slots=True)
class Spectrum:
    """One printed histogram: (percentile 0..1, value in ms) rows, ascending."""

    summary: tuple[tuple[float, float], ...]
    rows: tuple[tuple[float, float], ...]
    mean_ms: float | None
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

    def latency(self, path: Path) -> Latency | None:
        """The percentiles; None if nothing was recorded. Raises RawDataError."""
        if self.count == 0:
            return None
        if self.mean_ms is None:
            raise RawDataError(path, None, f"{self.count} samples without a mean")
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
    socket_errors: int = 0
    attempts: int = 0
    timeouts: int = 0
    http_errors: int = 0


def parse(path: Path) -> Output:
    """The text of a run with -L, and -U for the uncorrected spectrum. Raises RawDataError unless it
    is complete."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as failure:
        raise RawDataError(path, None, f"cannot be read: {failure.strerror}") from None
    for number, line in enumerate(lines, 1):
        if line.startswith(_REFUSALS):
            raise RawDataError(path, number, f"wrk2 did not run: {line.strip()}")
        if line.startswith("Usage:"):
            why = lines[0].strip() if number > 1 else "no reason given"
            raise RawDataError(path, number, f"wrk2 refused its command line: {why}")
    return _Lines(path, lines).output()


class _Lines:
    """Walks the lines once. An error names the line that was not expected."""

    def __init__(self, path: Path, lines: list[str]) -> None:
        self._path = path
        self._lines = lines
        self._at = 0

    def output(self) -> Output:
        while not (header := _HEADER.match(self._next("the line of threads"))):
            pass
        calibrations = 0
        spectra: dict[str, Spectrum] = {}
        while not (total := _TOTAL.match(line := self._next("the line of requests"))):
            calibrations += line.lstrip().startswith("Thread calibration:")
            if section := _SECTION.match(line):
                spectra[section[1]] = self._spectrum()
        connect = read = write = timeouts = http_errors = 0
        while not (line := self._next("Requests/sec")).startswith("Requests/sec:"):
            if found := _SOCKET.match(line):
                connect, read, write, timeouts = map(int, found.groups())
            else:
                http_errors = int(self._matched(_STATUS, line)[1])
        if not self._next("Transfer/sec").startswith("Transfer/sec:"):
            raise self._wrong("expected Transfer/sec")
        recorded, uncorrected = spectra.get("Recorded"), spectra.get("Uncorrected")
        if recorded is None:
            raise RawDataError(self._path, None, "has no Recorded Latency (run with -L)")
        if uncorrected is not None and recorded.count != uncorrected.count:
            counts = f"{recorded.count} and {uncorrected.count} samples"
            raise RawDataError(self._path, None, f"the spectra disagree: {counts}")
        return Output(
            threads=int(header[1]),
            connections=int(header[2]),
            calibrations=calibrations,
            recorded=recorded,
            uncorrected=uncorrected,
            requests=int(total[1]),
            run_s=float(total[2]) * _UNITS_S[total[3]],
            socket_errors=read,
            attempts=connect + write,
            timeouts=timeouts,
            http_errors=http_errors,
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
        mean = self._matched(_MEAN, line)
        most = self._matched(_MAX, self._next("the maximum"))
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

    def _matched(self, pattern: re.Pattern[str], line: str) -> re.Match[str]:
        found = pattern.match(line)
        if found is None:
            raise self._wrong(f"unexpected {line.strip()!r}")
        return found

    def _wrong(self, problem: str) -> RawDataError:
        return RawDataError(self._path, self._at, problem)
