"""Blocks on a console, and what a run prints at its end."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text as Line

from lab.report import answers, blocks, comparison, findings, loads, recorded, words
from lab.report.blocks import Block, Bullets, Link, Loud, Named, Paragraph, Section, Strong, Table
from lab.report.result import Result
from lab.report.sections import notices

# The colour of a cell, by its class on a page.
COLOURS = {"good": "green", "bad": "red", "unsure": "yellow"}
# More loads than these are in the report only.
MOST_LOADS = 24


def ended(console: Console, result: Result) -> None:
    """The answer, what a reader must know before it is used, and the loads. Settings, notes and
    verdicts are in the report."""
    parts = [*answers.blocks(answers.of(result)), Bullets(findings.lines(result.findings))]
    parts.append(Loud(tuple(notices(result))))
    # Whoever wants more than the answer of a search opens the report.
    if not result.answered:
        if len(result.loads) <= MOST_LOADS:
            parts += loads.brief(result)
        if any(row.launch for row in result.rows):
            parts += comparison.section(result).blocks
    parts += recorded.section(result).blocks
    write(console, [*parts, Paragraph(words.summary(result))])


def write(console: Console, parts: Iterable[Block]) -> None:
    for block in parts:
        match block:
            case Paragraph(text, style):
                _line(console, text, "dim" if style else "")
            case Loud(warnings):
                for warning in warnings:
                    _line(console, f"warning: {warning}", "yellow")
            case Bullets(lines):
                for line in lines:
                    _line(console, line)
            case Named(lines=[_, *_] as lines):
                grid = Grid.grid(padding=(0, 2, 0, 0))
                grid.add_column(overflow="fold")
                for name, *cells in lines:
                    grid.add_row(Line(name, "bold"), Line("\n".join(cells)))
                console.print(grid)
            case Table(rows=[_, *_]):
                _table(console, block)
            case Section(title, inside):
                _line(console, (Strong(title),))
                write(console, inside)


def _line(console: Console, text: blocks.Text, style: str = "") -> None:
    if line := _written(text, style):
        # On a terminal between words; a line of a file stays one.
        console.print(line, soft_wrap=not console.is_terminal)


def _written(text: blocks.Text, style: str = "") -> Line:
    line = Line(style=style)
    for piece in blocks.pieces(text):
        match piece:
            case Link(name, to):
                line.append(name if to.startswith("#") else f"{name}: {to}")
            case Strong():
                line.append(piece, "bold")
            case _:
                line.append(piece.replace("`", ""))
    return line


def _table(console: Console, table: Table) -> None:
    grid = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    kept = _fitting(table, console.width)
    for at in kept:
        number = table.kind(at) == "n"
        grid.add_column(
            table.header[at], justify="right" if number else "left", no_wrap=number, overflow="fold"
        )
    for row in table.rows:
        cells = (row[at] for at in kept)
        grid.add_row(
            *(_written(cell, COLOURS.get(table.marks.get(cell, ""), "")) for cell in cells)
        )
    console.print(grid)
    _line(console, table.legend, "dim")


def _fitting(table: Table, width: int) -> list[int]:
    """The columns of the table that fit in this width; a long cell is broken."""
    columns = zip(table.header, *table.rows, strict=True)
    longest = (max(len(blocks.plain(cell)) for cell in cells) for cells in columns)
    widths = [min(length, blocks.WIDE) for length in longest]
    kept = list(range(len(widths)))
    for name in table.optional:
        if sum(widths[at] + 1 for at in kept) <= width:
            break
        kept = [at for at in kept if table.header[at] != name]
    return kept
