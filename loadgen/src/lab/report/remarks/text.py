"""A text of `lab.report.remarks`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """The parts of a text, and what a reader can do about it; nothing of a note."""

    parts: tuple[str, ...]
    action: str


def says(*parts: str, do: str = "") -> Text:
    return Text(parts, do)
