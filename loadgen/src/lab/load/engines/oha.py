"""oha 1.12, a second opinion: open and closed load, where it was asked for.

Its source (github.com/hatoo/oha v1.12.0, src/client.rs, src/db.rs) tells what its output means:

* `--db-url` stores every *answered* request after the run: `start` (when a connection took
  the request up), `end` and `status`. With `-q` and `--latency-correction` it also stores
  `start_latency_correction`, the instant the request's ticket was issued. So one run gives raw
  latency (end - start) and corrected latency, for any seconds of it.
* Ticket i should be issued at i/rate. Its instant is when that really happened, so a generator
  that is late itself would hide that. Corrected latency counts from i/rate where that is earlier
  by more than oha's timers take. i counts tickets in order, including tickets without an answer as
  far as they can be told (`oha_tickets.missing`).
* Errors come from the JSON and cover the whole run. "timeout" is a request that waited for `-t`.
  In a closed load, "aborted due to deadline" is one connection with a request in flight at the end.
  An open load counts idle connections too, so the number of unfinished requests is unknown.

The SQLite file holds about 100 bytes per answer. oha writes it after the JSON, all at once. On a
disk that is full by then it is empty, although the JSON is whole. So its rows are compared with the
answers that the JSON counts, by status. Then it is condensed to one histogram per second
(`answers.jsonl.gz`), from which everything is computed. It is deleted when that file was read back.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import model
from lab.errors import RawDataError
from lab.load.engines.base import (
    DEFAULT_WARMUP_S,
    REQUEST_TIMEOUT_S,
    Schedule,
    first_line,
    last_line,
    none_left,
)
from lab.load.engines.histogram import Histogram
from lab.load.engines.oha_tickets import Answer, missing
from lab.load.engines.second import Second
from lab.model import Counts, Curves, Mode, Reading, TrialPlan
from lab.store.records import packed_lines, sync, write_packed_lines, writing

OUTPUT = "oha.out"
SUMMARY = "oha.json"
DATABASE = "answers.sqlite"
ANSWERS = "answers.jsonl.gz"
_HEAD = {"format": 2, "unit": "us"}
_DEADLINE = "aborted due to deadline"
_TIMEOUT = "timeout"
# Why it could not connect, where that is its own limit.
_NONE_LEFT = {
    "Cannot assign requested address (os error 99)": "port",
    "Too many open files (os error 24)": "file descriptor",
}
# oha's timers tick every millisecond, and are rounded up twice (by its runtime, and by the wait for
# events). Tickets are issued 0.6 to 1.2 ms late at the median, which is no lateness of its own.
_TIMER_S = 0.002


class Oha:
    """github.com/hatoo/oha, as the command `oha`."""

    name = "oha"
    modes: frozenset[Mode] = frozenset(("open", "closed"))

    def version(self) -> str | None:
        return first_line(("oha", "--version"), "oha ")

    def schedule(self, plan: TrialPlan, raw: Path) -> Schedule:
        """One run; `read` leaves its first seconds out."""
        warm_up_s = DEFAULT_WARMUP_S if plan.warmup_s is None else plan.warmup_s
        run_s = warm_up_s + plan.duration_s
        rate = () if plan.offered_rps is None else ("-q", f"{plan.offered_rps}")
        return Schedule(
            warm_up=None,
            warm_up_s=0,
            argv=(
                "oha",
                *("-c", f"{plan.concurrency}"),
                *("-z", f"{run_s}s"),
                *rate,
                *(("--latency-correction",) if rate else ()),
                *("-t", f"{REQUEST_TIMEOUT_S}s"),
                *("--connect-timeout", f"{REQUEST_TIMEOUT_S}s"),
                *("--redirect", "0"),
                "--no-tui",
                *("--output-format", "json"),
                *("--output", str(raw / SUMMARY)),
                *("--db-url", str(raw / DATABASE)),
                plan.url,
            ),
            output=OUTPUT,
            run_s=run_s,
            window_offset_s=warm_up_s,
            window_s=plan.duration_s,
        )

    def answer_bytes(self, plan: TrialPlan) -> int:
        """A row of the SQLite file: five numbers of 8 bytes, some small ones, and the URL."""
        return 80 + len(plan.url)

    def condense(self, plan: TrialPlan, raw: Path) -> None:
        """SQLite to one histogram per second, gzipped; the SQLite file is deleted when that was
        read back."""
        database = raw / DATABASE
        if not database.exists():
            return
        said = _summary(raw / SUMMARY)
        errors = dict(said.errors)
        aborted = errors.pop(_DEADLINE, 0)
        try:
            with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
                unseen: Sequence[int] = ()
                if plan.offered_rps is not None:
                    unseen = missing(
                        connection.execute(_ROWS),
                        plan.offered_rps,
                        plan.concurrency,
                        sum(errors.values()),
                        aborted,
                        self.schedule(plan, raw).run_s,
                    )
                seconds = collect(connection.execute(_ROWS), plan.offered_rps, unseen)
        except (sqlite3.Error, ArithmeticError, TypeError, ValueError) as failure:
            raise RawDataError(database, None, f"cannot be read: {failure}") from None
        _check_whole(database, said, seconds)
        write_packed_lines(raw / ANSWERS, (_HEAD, *map(_line, seconds)))
        if answers(raw) != tuple(seconds):
            raise RawDataError(raw / ANSWERS, None, "does not read back as it was written")
        with writing(database):
            database.unlink()
            sync(raw)

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        """The condensed answers of the window, and the error counts of the run."""
        schedule = self.schedule(plan, raw)
        said = _summary(raw / SUMMARY)
        errors = dict(said.errors)
        seconds = answers(raw)
        _check_whole(raw / ANSWERS, said, seconds)
        window = _window(schedule, seconds)
        uncorrected = Histogram.sum_of(second.raw for second in window)
        corrected = Histogram.sum_of(second.corrected for second in window)
        lag_us = sum(second.lag_us for second in window)
        ok, http_errors = _answers(seconds)
        window_ok, window_http_errors = _answers(window)
        unfinished = errors.pop(_DEADLINE, 0) if plan.mode == "closed" else None
        errors.pop(_DEADLINE, None)
        timeouts = errors.pop(_TIMEOUT, 0)
        socket_errors = sum(errors.values())
        parts = (ok, http_errors, socket_errors, timeouts)
        return Reading(
            window_s=schedule.window_s,
            samples=uncorrected.count,
            achieved_rps=uncorrected.count / schedule.window_s,
            corrected=corrected.latency() if plan.mode == "open" else None,
            raw=uncorrected.latency(),
            counts=Counts(
                sent=None if unfinished is None else sum(parts) + unfinished,
                ok=ok,
                http_errors=http_errors,
                socket_errors=socket_errors,
                timeouts=timeouts,
                unfinished=unfinished,
                accounted_s=said.run_s,
            ),
            window_ok=window_ok,
            window_http_errors=window_http_errors,
            lag_ms=lag_us / corrected.count / 1000 if corrected.count else None,
            seconds=tuple(_each_second(schedule, window, plan.mode)),
            problems=tuple(
                none_left(what, errors[text], "run")
                for text, what in _NONE_LEFT.items()
                if text in errors
            ),
            notes=tuple(f"oha: {count} × {text}" for text, count in sorted(errors.items())),
        )

    def seconds(self, plan: TrialPlan, raw: Path) -> tuple[Second, ...]:  # noqa: ARG002
        """Every second of the run with an answer in it. Raises RawDataError."""
        return answers(raw)

    def curves(self, plan: TrialPlan, raw: Path) -> Curves:
        """Of the condensed answers of the window."""
        window = _window(self.schedule(plan, raw), answers(raw))
        corrected = Histogram.sum_of(second.corrected for second in window)
        return Curves(
            corrected=corrected.curve() if plan.mode == "open" else None,
            raw=Histogram.sum_of(second.raw for second in window).curve(),
        )


def _window(schedule: Schedule, seconds: Iterable[Second]) -> list[Second]:
    first = int(schedule.window_offset_s)
    last = first + int(schedule.window_s)
    return [second for second in seconds if first <= second.second < last]


def _each_second(
    schedule: Schedule, window: Sequence[Second], mode: Mode
) -> Iterator[model.Second]:
    """Every second of the window, also those without an answer."""
    known = {second.second: second for second in window}
    first = int(schedule.window_offset_s)
    for at in range(first, first + int(schedule.window_s)):
        second = known.get(at, Second(at))
        times = second.corrected if mode == "open" else second.raw
        mean_ms = times.sum_us / times.count / 1000 if times.count else None
        yield model.Second(second.raw.count, _answers([second])[0], mean_ms)


def _answers(seconds: Sequence[Second]) -> tuple[int, int]:
    """Answers up to status 399, and above."""
    return sum(one.good for one in seconds), sum(one.http_errors for one in seconds)


def _statuses(seconds: Iterable[Second]) -> Counter[int]:
    statuses: Counter[int] = Counter()
    for second in seconds:
        statuses.update(second.statuses)
    return statuses


def _check_whole(path: Path, said: _Summary, seconds: Iterable[Second]) -> None:
    """Raises RawDataError unless the answers are those that oha counted."""
    stored = _statuses(seconds)
    if stored == said.statuses:
        return
    if stored.total() != said.statuses.total():
        problem = f"holds {stored.total()} of the {said.statuses.total()} answers that oha counted"
    else:
        problem = f"holds {dict(stored)}, but oha counted {dict(said.statuses)}"
    words = last_line(path.with_name(OUTPUT), "oha said nothing")
    raise RawDataError(path, None, f"{problem} (was the disk full?): {words}")


def answers(raw: Path) -> tuple[Second, ...]:
    """Every second of a run with an answer in it, by time, from the run's raw folder.

    Seconds count from the start of the run, warm-up included. Raises RawDataError.
    """
    path = raw / ANSWERS
    with packed_lines(path) as lines:
        head = next(lines, None)
        if head != _HEAD:
            raise RawDataError(path, 1, f"unknown format {head}")
        return tuple(
            Second(
                second=line["second"],
                statuses=Counter({int(k): n for k, n in line["statuses"].items()}),
                raw=_unpacked(line["raw"]),
                corrected=_unpacked(line["corrected"]),
                lag_us=line["lag"],
            )
            for line in lines
        )


_ROWS = (
    "SELECT coalesce(start_latency_correction, start), start, end, status FROM oha ORDER BY 1, 2"
)


def collect(
    rows: Iterable[Answer], rate_rps: int | None, unseen: Sequence[int] = ()
) -> list[Second]:
    """Answers, ordered by ticket, as seconds. In an open load, `unseen` tells for each answer how
    many earlier tickets have none. Raises ValueError where an answer ended before it began: its
    clock is monotonic, so such a row is not what oha writes."""
    seconds: dict[int, Second] = {}
    early = 0
    for index, (ticket, start, end, status) in enumerate(rows):
        due = ticket if rate_rps is None else (index + unseen[index]) / rate_rps
        if ticket - due <= _TIMER_S:
            due = ticket
        at = int(end)
        second = seconds.get(at)
        if second is None:
            second = seconds[at] = Second(at)
        second.statuses[status] += 1
        took_us, since_due_us = round((end - start) * 1e6), round((end - due) * 1e6)
        if took_us < 0 or since_due_us < 0:
            early += 1
            continue
        second.raw.add(took_us)
        if rate_rps is not None:
            second.corrected.add(since_due_us)
            second.lag_us += round((ticket - due) * 1e6)
    if early:
        raise ValueError(f"{early} answers ended before they began")
    return [seconds[at] for at in sorted(seconds)]


def _line(second: Second) -> dict[str, Any]:
    return {
        "second": second.second,
        "statuses": dict(sorted(second.statuses.items())),
        "lag": second.lag_us,
        "raw": _packed(second.raw),
        "corrected": _packed(second.corrected),
    }


def _packed(histogram: Histogram) -> dict[str, Any]:
    return {
        "sum": histogram.sum_us,
        "max": histogram.max_us,
        "buckets": sorted(histogram.buckets.items()),
    }


def _unpacked(packed: Mapping[str, Any]) -> Histogram:
    return Histogram(Counter(dict(packed["buckets"])), packed["sum"], packed["max"])


@dataclass(frozen=True, slots=True)
class _Summary:
    """oha's JSON: how long the run took, and its answers by status and errors by text."""

    run_s: float
    statuses: Counter[int]
    errors: Mapping[str, int]


def _summary(path: Path) -> _Summary:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return _Summary(
            float(said["summary"]["total"]),
            Counter({int(status): int(n) for status, n in said["statusCodeDistribution"].items()}),
            {str(text): int(n) for text, n in said["errorDistribution"].items()},
        )
    except OSError:
        words = last_line(path.with_name(OUTPUT), "and said nothing")
        raise RawDataError(path, None, f"oha wrote no result: {words}") from None
    except json.JSONDecodeError as failure:
        words = last_line(path.with_name(OUTPUT), "oha said nothing")
        problem = f"is not JSON: {failure.msg} (was the disk full?): {words}"
        raise RawDataError(path, failure.lineno, problem) from None
    except (KeyError, TypeError, ValueError, AttributeError):
        problem = "lacks summary.total, statusCodeDistribution or errorDistribution"
        raise RawDataError(path, None, problem) from None
