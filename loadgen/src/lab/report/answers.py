"""The answer of a run, which comes first on the console and in both reports: a line a server."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

# Answers as `lab.experiments.kind.TrialKind` has them: the cells of each line, or a note.
Answers = Sequence[tuple[str, ...]]


def lines(of: Answers, width: int | None = None) -> tuple[str, ...]:
    """The lines, with their cells below each other. Where one is wider than `width`, what gave way
    is on lines of its own."""
    rows = [cells for cells in of if len(cells) > 1]
    if not rows:
        return ()
    name = max(len(cells[0]) for cells in rows)
    held = max(len(cells[1]) for cells in rows if len(cells) > 2) if _full(rows) else 0
    whole = tuple(_line(cells, name, held, "   ") for cells in rows)
    if width is None or max(map(len, whole)) <= width:
        return whole
    indent = "\n" + " " * (name + 2)
    return tuple(line for cells in rows for line in _line(cells, name, 0, indent).split("\n"))


def notes(of: Answers) -> tuple[str, ...]:
    """What the lines do not say."""
    return tuple(cells[0] for cells in of if len(cells) == 1)


def render(console: Console, of: Answers) -> None:
    """Print the lines and the notes, if there are any."""
    for line in lines(of, console.width):
        console.print(Text(line, style="bold"), soft_wrap=True)
    for note in notes(of):
        console.print(Text(note, style="dim"))


def _full(rows: Answers) -> bool:
    return any(len(cells) > 2 for cells in rows)


def _line(cells: tuple[str, ...], name: int, held: int, between: str) -> str:
    line = f"{cells[0]:<{name}}  {cells[1]:<{held}}"
    return f"{line}{between}then: {cells[2]}" if len(cells) > 2 else line.rstrip()
