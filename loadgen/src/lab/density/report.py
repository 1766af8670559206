"""density.csv and the table: renders what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.density.model import Row
from lab.intervals import median_of
from lab.records import append_row, cell, read_rows

NAME = "density.csv"
NOTHING = "–"


def append(path: Path, row: Row) -> None:
    """Add one row (and, to a new file, the header) in one write, flushed to disk."""
    append_row(path, Row.columns(), [cell(getattr(row, name), 1) for name in Row.columns()])


def read(path: Path) -> tuple[Row, ...]:
    """The rows of a file of `append`; none where there is no file. Raises RawDataError."""
    return read_rows(path, Row) if path.exists() else ()


def progress(console: Console, row: Row, done: int, rows: int, left_s: float) -> None:
    """One line per launch, as it ends."""
    opened = str(row.opened) if row.opened == row.asked else f"{row.opened} of {row.asked}"
    line = (
        f"[{done}/{rows}] {row.server} {row.kind} launch {row.launch}: {opened} connections, "
        f"heap {_bytes(row.heap_per_connection_bytes)}, resident "
        f"{_bytes(row.resident_per_connection_bytes)} bytes each"
    )
    left = f", {left_s / 60:.0f} min left" if left_s >= 90 else f", {left_s:.0f} s left"
    console.print(Text(line + (left if done < rows else "")), soft_wrap=True)
    if not row.valid:
        console.print(Text(f"  invalid: {row.invalid_reasons}", style="yellow"), soft_wrap=True)


def render(console: Console, rows: Sequence[Row]) -> None:
    """Print one line per server and kind, and what the columns mean."""
    if not rows:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("server", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    for name in ("connections", "heap B each", "resident B each", "launches"):
        table.add_column(name, justify="right", no_wrap=True)
    for server, kind in dict.fromkeys((row.server, row.kind) for row in rows):
        these = [row for row in rows if (row.server, row.kind) == (server, kind)]
        good = [row for row in these if row.valid]
        table.add_row(
            server,
            kind,
            _spread([row.opened for row in these]),
            _median(good, lambda row: row.heap_per_connection_bytes),
            _median(good, lambda row: row.resident_per_connection_bytes),
            str(len(good)) if len(good) == len(these) else f"{len(good)} of {len(these)} valid",
        )
    console.print(table)
    legend = (
        "Memory per connection: (with all of them - with none) / connections, median of fresh "
        "JVMs. [a b]: 95 % interval of the median; (a b): smallest and largest, as fewer than 6 "
        "launches give no interval. heap: after a full collection. resident: of the process, "
        "without the kernel's socket buffers. idle: a request was answered, then silence; slow: "
        "a request has begun and does not end."
    )
    console.print(Text(legend, style="dim"))
    for row in rows:
        name = f"{row.server} {row.kind} launch {row.launch}"
        if not row.valid:
            console.print(Text(f"invalid {name}: {row.invalid_reasons}", style="yellow"))
        if row.opened < row.asked:
            asked = f"{row.opened} of {row.asked} connections: {row.why_fewer}"
            console.print(Text(f"note {name}: {asked}"))


def _median(rows: Sequence[Row], of: Callable[[Row], float | None]) -> str:
    values = [value for row in rows if (value := of(row)) is not None]
    if not values:
        return NOTHING
    found = median_of(values)
    if found.interval is not None:
        low, high = found.interval.low, found.interval.high
        return f"{_bytes(found.median)} [{_bytes(low)} {_bytes(high)}]"
    if len(values) == 1:
        return _bytes(found.median)
    return f"{_bytes(found.median)} ({_bytes(min(values))} {_bytes(max(values))})"


def _spread(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}–{high}"


def _bytes(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.0f}"
