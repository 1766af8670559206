"""panels.jsonl.gz: what the Lab dashboard showed of a trial, in the trial's raw folder.

The first line says the format, the window (ms since 1970) and the values of the dashboard's
variables; every other line is one panel. Times of samples are in ms from the window's start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.model import PanelAnswers, PanelLine, Panels
from lab.store.records import packed_lines

NAME = "panels.jsonl.gz"
_LABEL = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def load(raw: Path) -> Panels | None:
    """The panels in a trial's raw folder; None where none were stored. Raises
    RawDataError."""
    path = raw / NAME
    if not path.exists():
        return None
    with packed_lines(path) as lines:
        header: dict[str, Any] = next(lines, {})
        opens, closes = header["window"]
        panels = tuple(map(_panel, lines))
        return Panels(
            header["dashboard"], (closes - opens) / 1000, header["step_ms"] / 1000, panels
        )


def _panel(told: Mapping[str, Any]) -> PanelAnswers:
    return PanelAnswers(
        title=told["title"],
        section=told["section"],
        description=told["description"],
        unit=told["unit"],
        lines=tuple(line for query in told["queries"] for line in _lines(query)),
    )


def _lines(query: Mapping[str, Any]) -> Iterator[PanelLine]:
    for series in query["series"]:
        times: Sequence[int] = series["t"]
        points = zip((at / 1000 for at in times), map(float, series["v"]), strict=True)
        labels = series["labels"]
        yield PanelLine(
            label=legend_of(query["legend"], labels),
            labels=labels,
            is_set=query["is_dashed"],
            points=tuple(points),
        )


def legend_of(legend: str, labels: Mapping[str, str]) -> str:
    """The name Grafana gives a series: {{label}} becomes the label's value."""
    if not legend:
        return ", ".join(f"{name}={value}" for name, value in labels.items()) or "value"
    return _LABEL.sub(lambda found: labels.get(found[1], ""), legend).strip()
