"""series.jsonl.gz: a trial's window as Prometheus saw it, in the trial's raw folder.

The first line has the window and what was asked; every other line is one series with
its labels, its samples' times (ms since 1970) and values.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lab.model import Observation, Series
from lab.store.records import UNREADABLE, damaged, raw_lines, write_packed_lines

NAME = "series.jsonl.gz"


class _Header(msgspec.Struct):
    window: tuple[int, int]
    prometheus: str = ""
    selectors: Sequence[str] = ()


class _Line(msgspec.Struct):
    labels: Mapping[str, str]
    t: tuple[int, ...]
    v: tuple[float, ...]


def write(
    raw: Path,
    window: tuple[float, float],
    prometheus: str,
    selectors: Sequence[str],
    observed: Iterable[Series],
) -> None:
    """Write the series of a window (seconds since 1970), as a Prometheus of that version answered
    these selectors. The same series always give the same bytes."""
    opens, closes = window
    lines: list[object] = [_Header((_ms(opens), _ms(closes)), prometheus, selectors)]
    for series in sorted(observed, key=_order):
        labels = dict(sorted(series.labels.items()))
        values = tuple(int(value) if value == int(value) else value for value in series.values)
        lines.append(_Line(labels, tuple(map(_ms, series.times)), values))
    write_packed_lines(raw / NAME, lines)


def load(raw: Path) -> Observation:
    """The observation in a trial's raw folder. Raises RawDataError."""
    path = raw / NAME
    known: dict[tuple[float, ...], tuple[float, ...]] = {}
    series: list[Series] = []
    header: _Header | None = None
    try:
        lines = raw_lines(path)
        header = msgspec.json.decode(next(lines, b""), type=_Header)
        for line in lines:
            read = msgspec.json.decode(line, type=_Line)
            times = tuple(at / 1000 for at in read.t)
            # A target's series were scraped together: one tuple of times serves them all.
            series.append(Series(read.labels, known.setdefault(times, times), read.v))
        opens, closes = header.window
        return Observation((opens / 1000, closes / 1000), tuple(series))
    except UNREADABLE as failure:
        raise damaged(path, failure, len(series) + 2 if header else None) from None


def load_or_none(raw: Path) -> Observation | None:
    """As `load`, but None where no series were stored."""
    return load(raw) if (raw / NAME).exists() else None


def _order(series: Series) -> tuple[Any, ...]:
    """By job and name, histograms by rising bound: like lines beside each other pack well."""
    labels = dict(series.labels)
    bound = float(labels.pop("le", "0"))
    job, name = labels.pop("job", ""), labels.pop("__name__", "")
    return (job, name, sorted(labels.items()), bound)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
