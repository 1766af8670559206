"""The text that wrk2 prints: read whole, or refused. `wrk2` tells what it means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lab.errors import RawDataError
from lab.load.engines.wrk2_failures import Failures, lines_of
from lab.model import Latency

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_HEADER = re.compile(r"\s+(\d+) threads and (\d+) connections$")
_SECTION = re.compile(r"\s+Latency Distribution \(HdrHistogram - (Recorded|Uncorrected) Latency")
_SUMMARY = re.compile(r"\s*(\d+\.\d+)%\s+(\d+\.\d+)(us|ms|s|m|h)\s*$")
_ROW = re.compile(r"\s+(\d+\.\d+)\s+([01]\.\d+)\s+(\d+)\s+(\d+\.\d+|inf)$")
_MEAN = re.compile(r"#\[Mean\s+=\s+(-?nan|-?\d+\.\d+), StdDeviation")
_MAX = re.compile(r"#\[Max\s+=\s+(\d+\.\d+), Total count\s+=\s+(\d+)\]")
_TOTAL = re.compile(r"\s+(\d+) requests in (\d+\.\d+)(us|ms|s|m|h), ")


@dataclass(frozen=True, slots=True)
class Spectrum:
    """One printed histogram: (percentile 0..1, value in ms) rows, ascending."""

    summary: tuple[tuple[float, float], ...]
    rows: tuple[tuple[float, float], ...]
    mean_ms: float | None
    max_ms: float
    count: int

    def at(self, percentile: float) -> float:
        """The value at a percentile (0..1), in ms.

        It is that of the row of exactly this percentile. Else it is the summary's, which is exact
        but may be rounded to seconds or minutes, and so is kept between the rows around it. Else it
        is interpolated between those rows.
        """
        p0, v0 = max((row for row in self.rows if row[0] <= percentile), default=self.rows[0])
        p1, v1 = min((row for row in self.rows if row[0] >= percentile), default=self.rows[-1])
        for known, value in self.summary:
            if p0 < percentile < p1 and abs(known - percentile) < 5e-7:
                return min(max(value, v0), v1)
        return v1 if p1 <= p0 else v0 + (v1 - v0) * (percentile - p0) / (p1 - p0)

    def latency(self, path: Path) -> Latency | None:
        """The percentiles; None where nothing was recorded. Raises RawDataError."""
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
    """The figures that one run of wrk2 printed."""

    threads: int
    connections: int
    calibrations: int
    recorded: Spectrum
    uncorrected: Spectrum | None
    requests: int
    run_s: float
    failures: Failures


def parse(path: Path) -> Said:
    """The printed text of a run with -L; with -U it has the uncorrected spectrum too.

    Raises RawDataError unless it is complete.
    """
    lines = lines_of(path)
    for number, line in enumerate(lines, 1):
        if line.startswith("Usage:"):
            said = lines[0].strip() if number > 1 else "no reason given"
            raise RawDataError(path, number, f"wrk2 refused its command line: {said}")
    return _Lines(path, lines).said()


class _Lines:
    """Walks the lines once. An error names the line that was not expected."""

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
        failures = Failures()
        while not (line := self._next("Requests/sec")).startswith("Requests/sec:"):
            if not failures.take(line):
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
            failures=failures,
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
