"""series.jsonl.gz: a trial's window as Prometheus saw it, in the trial's raw folder.

The first line has the window and what was asked; every other line is one series with
its labels, its samples' times (ms since 1970) and values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lab.model import Observation, Series
from lab.store.records import packed_lines, write_packed_lines

NAME = "series.jsonl.gz"


def write(
    raw: Path,
    window: tuple[float, float],
    prometheus: str,
    selectors: Sequence[str],
    found: Iterable[Series],
) -> None:
    """Write the series of a window (seconds since 1970), as a Prometheus of that version answered
    these selectors. The same series always give the same bytes."""
    lines: list[dict[str, Any]] = [
        {
            "window": [_ms(edge) for edge in window],
            "prometheus": prometheus,
            "selectors": list(selectors),
        }
    ]
    for series in sorted(found, key=_order):
        times = [_ms(at) for at in series.times]
        values = [int(value) if value == int(value) else value for value in series.values]
        lines.append({"labels": dict(sorted(series.labels.items())), "t": times, "v": values})
    write_packed_lines(raw / NAME, lines)


def load(raw: Path) -> Observation:
    """The observation in a trial's raw folder. Raises RawDataError."""
    path = raw / NAME
    known: dict[tuple[float, ...], tuple[float, ...]] = {}
    found = []
    with packed_lines(path) as lines:
        header: dict[str, Any] = next(lines, {})
        opens, closes = header["window"]
        for line in lines:
            times = tuple(at / 1000 for at in line["t"])
            # A target's series were scraped together: one tuple of times serves them all.
            times = known.setdefault(times, times)
            labels = line["labels"]
            if not all(isinstance(text, str) for text in labels.values()):
                raise ValueError("a label is no text")
            found.append(Series(labels, times, tuple(map(float, line["v"]))))
        return Observation((opens / 1000, closes / 1000), tuple(found))


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
