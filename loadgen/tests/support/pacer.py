"""What pacer writes, made by hand: lines of seconds, and the first and last line around them."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lab.load.engines.histogram import Histogram
from lab.load.engines.pacer import OUTPUT


def counted(values_us: Mapping[int, int]) -> Histogram:
    """A histogram of values by how often each occurred. A bucket has 11 significant bits."""
    buckets: Counter[int] = Counter()
    for value, count in values_us.items():
        shift = max(0, value.bit_length() - 11)
        buckets[(((value >> shift) + 1) << shift) - 1] += count
    sum_us = sum(value * count for value, count in values_us.items())
    return Histogram(sum_us, max(values_us, default=0), tuple(sorted(buckets.items())))


def packed(values_ms: Iterable[float]) -> dict[str, Any]:
    """A histogram of these values."""
    return asdict(counted(Counter(round(value * 1000) for value in values_ms)))


def second(
    at: int,
    raw_ms: Sequence[float],
    corrected_ms: Sequence[float] | None = None,
    late_ms: Sequence[float] | None = None,
    statuses: dict[str, int] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """A second with these answers, by default as many as were due and sent in it, at once, all of
    status 200. The last of them are those of a status that is an error, or as many as `changes` say
    (http_errors)."""
    late_ms = [0.0] * len(raw_ms) if late_ms is None else late_ms
    statuses = {"200": len(raw_ms)} if statuses is None else statuses
    errors = sum(n for status, n in statuses.items() if int(status) > 399)
    good = len(raw_ms) - changes.get("http_errors", errors)
    return {
        "second": at,
        "length_s": 1.0,
        "due": 0 if corrected_ms is None else len(late_ms),
        "sent": len(late_ms),
        "ok": sum(statuses.values()) - errors,
        "http_errors": errors,
        "statuses": statuses,
        "socket_errors": {},
        "timeouts": 0,
        "connect_failed": {},
        "unfinished": 0,
        "waiting": 0,
        "connections": 10,
        "raw": packed(raw_ms[:good]),
        "corrected": None if corrected_ms is None else packed(corrected_ms[:good]),
        "failed": packed(raw_ms[good:]),
        "late": packed(late_ms),
    } | changes


def text(seconds: Sequence[dict[str, Any]], warmup_s: float = 0, **changes: Any) -> str:
    """The whole output of a load with that warm-up; `changes` are of the last line."""
    names = ("sent", "due", "ok", "http_errors", "timeouts")
    end = {
        "ended": "complete",
        "run_s": float(len(seconds)),
        **{name: sum(one[name] for one in seconds) for name in names},
        "socket_errors": sum((Counter(one["socket_errors"]) for one in seconds), Counter[str]()),
        "unfinished": seconds[-1]["unfinished"] if seconds else 0,
        "cpu_s": 0.1,
    }
    load = {"warmup_s": warmup_s}
    head = {"pacer": "1.6.0", "format": 2, "unix_s": 1.5, "load": load, "nofile": 20000}
    lines = (head, *seconds, end | changes)
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def write(raw: Path, seconds: Sequence[dict[str, Any]], **changes: Any) -> None:
    """Leave it in a trial's raw folder; `changes` as of `text`."""
    (raw / OUTPUT).write_text(text(seconds, **changes))
