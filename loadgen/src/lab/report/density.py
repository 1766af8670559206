"""The table and REPORT.md of density: renders what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from lab.judge.intervals import median_of
from lab.model.density import Plan, Row, made_of
from lab.report import fairness, words
from lab.report.blocks import Bullets, Facts, Loud, Section, Strong, Table
from lab.report.markdown import document
from lab.report.sections import again, question
from lab.report.table import NOTHING, console_table, interval_text
from lab.store.manifest import Manifest

HEADER = ("server", "kind", "connections", "heap B each", "resident B each", "launches")
LEGEND = (
    "Memory per connection: (with all of them - with none) / connections, median of fresh "
    "JVMs. [a b]: 95 % interval of the median; (a b): smallest and largest, as fewer than 6 "
    "launches give no interval. heap: after a full collection. resident: of the process, "
    "without the kernel's socket buffers. idle: a request was answered, then silence; slow: "
    "a request has begun and does not end."
)
# A class with less of a connection's heap has no line of its own.
LEAST_SHARE = 0.02
OTHERS = "other classes"
MADE_OF = ("server", "kind", "connections", "class", "heap B each")
MADE_OF_LEGEND = (
    "Live objects by their class, from the JVM's class histogram, as above. "
    "jdk.internal.vm.StackChunk is the stack of a virtual thread that waits. "
    f"{OTHERS}: what of the heap is left, median of the launches; classes with less than "
    f"{LEAST_SHARE:.0%} are among them."
)
IN_FLIGHT = (
    " in-flight: the server works on a request, and waits; what each takes that came after the "
    "first step, with its downstream call."
)


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
    shown = console_table(HEADER, left=("server", "kind"), gap=2)
    for cells in _cells(rows):
        shown.add_row(*cells)
    console.print(shown)
    console.print(Text(_legend(rows), style="dim"))
    for line in _most(rows):
        console.print(Text(line))
    for line in _invalid(rows):
        console.print(Text(f"invalid {line}", style="yellow"))
    for line in _fewer(rows):
        console.print(Text(f"note {line}"))


def text(of: Manifest, rows: Sequence[Row]) -> str:
    """REPORT.md: the whole run for people, from its manifest and its rows."""
    plan = of.experiment
    assert isinstance(plan, Plan)  # noqa: S101 - manifest.read_of says so
    unended = Strong(f"The run is {of.status}, not complete: {len(rows)} of {plan.rows} launches.")
    sections = (
        question(plan.question, plan.hypothesis),
        Section("Memory per connection", [table(rows)]),
        Section("What a connection is made of", [classes(rows)]),
        Section("Invalid launches", [invalid(rows)]),
        Section("Notes", [Bullets(tuple(_fewer(rows)))]),
        fairness.section(of.fairness),
        Section("What was run, on what", [Facts(tuple(_what(of, plan, rows)))]),
        again(of, words.make(plan.words, "density")),
    )
    above = [Loud([unended])] if of.status != "complete" else []
    return document(f"{plan.name}: {of.run}", above, sections)


def answer(rows: Sequence[Row]) -> tuple[str, ...]:
    """What a connection takes of each server, in a line."""
    return tuple(
        f"{server}, {kind}: {heap} B of heap and {resident} B resident each"
        for server, kind, _, heap, resident, _ in _cells(rows)
    )


def table(rows: Sequence[Row]) -> Table:
    """What a connection takes of each server."""
    label = "Memory per connection"
    return Table(HEADER, tuple(_cells(rows)), label, legend=_legend(rows), names=2)


def classes(rows: Sequence[Row]) -> Table:
    """Of which classes' objects a connection's heap is made; empty for a run from before it."""
    label = "What a connection is made of"
    return Table(MADE_OF, tuple(_class_cells(rows)), label, legend=MADE_OF_LEGEND, names=2)


def invalid(rows: Sequence[Row]) -> Bullets:
    """The launches that do not count, and why."""
    return Bullets(tuple(_invalid(rows)))


def _what(of: Manifest, plan: Plan, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    valid = sum(row.valid for row in rows)
    told = f"{len(rows)} launches, {valid} of them valid, {words.times(of)}"
    yield "memory per open connection", told
    yield "servers", ", ".join(plan.servers)
    asks = f" on {plan.route}" if "in-flight" in plan.kinds else ""
    yield "connections", f"{plan.asked}, {' and '.join(plan.kinds)}{asks}"
    each = "JVM" if plan.launches == 1 else "JVMs"
    yield "launches", f"{plan.launches} fresh {each} of every server and kind, interleaved"
    yield from words.made_with(of)


def _cells(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """A line of the table for each server and kind, under HEADER."""
    for (server, kind), these in _groups(rows):
        good = [row for row in these if row.valid]
        yield (
            server,
            kind,
            _spread([row.opened for row in these]),
            _median(good, lambda row: row.heap_per_connection_bytes),
            _median(good, lambda row: row.resident_per_connection_bytes),
            str(len(good)) if len(good) == len(these) else f"{len(good)} of {len(these)} valid",
        )


def _groups(rows: Sequence[Row]) -> Iterator[tuple[tuple[str, str], list[Row]]]:
    """The launches of each server and kind."""
    for group in dict.fromkeys((row.server, row.kind) for row in rows):
        yield group, [row for row in rows if (row.server, row.kind) == group]


def _class_cells(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """The lines of the table under MADE_OF, most first."""
    for (server, kind), good in _told(rows):
        opened = _spread([row.opened for row in good])
        left = [row.heap_per_connection_bytes or 0.0 for row in good]
        for name, each in _largest(good):
            left = [heap - of_class for heap, of_class in zip(left, each, strict=True)]
            yield server, kind, opened, name, _middle(each)
        yield server, kind, opened, OTHERS, _middle(left)


def _told(rows: Sequence[Row]) -> Iterator[tuple[tuple[str, str], list[Row]]]:
    """The valid launches of each server and kind that tell their classes."""
    for group, these in _groups(rows):
        good = [row for row in these if row.valid and row.made_of]
        if good:
            yield group, good


def _largest(good: Sequence[Row]) -> list[tuple[str, list[float]]]:
    """The classes with a share of a connection's heap that is worth a line, most first, and what
    they take of it in each launch."""
    found = [made_of(row) for row in good]
    names = dict.fromkeys(name for one in found for name in one)
    each = [(name, [one.get(name, 0.0) for one in found]) for name in names]
    least = LEAST_SHARE * median_of([row.heap_per_connection_bytes or 0.0 for row in good]).median
    middle = {name: median_of(values).median for name, values in each}
    worth = [one for one in each if middle[one[0]] >= least]
    return sorted(worth, key=lambda one: -middle[one[0]])


def _most(rows: Sequence[Row]) -> Iterator[str]:
    """The largest classes of each server and kind, in a line."""
    for (server, kind), good in _told(rows):
        most = (f"{name} {_middle(each)}" for name, each in _largest(good)[:3])
        yield f"made of, {server} {kind}: {', '.join(most)} bytes each, and others"


def _legend(rows: Sequence[Row]) -> str:
    return LEGEND + IN_FLIGHT if any(row.kind == "in-flight" for row in rows) else LEGEND


def _invalid(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if not row.valid:
            yield f"{_name(row)}: {row.invalid_reasons}"


def _fewer(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if row.opened < row.asked and row.why_fewer:
            yield f"{_name(row)}: {row.opened} of {row.asked} connections: {row.why_fewer}"


def _name(row: Row) -> str:
    return f"{row.server} {row.kind} launch {row.launch}"


def _median(rows: Sequence[Row], of: Callable[[Row], float | None]) -> str:
    values = [value for row in rows if (value := of(row)) is not None]
    return _middle(values) if values else NOTHING


def _middle(values: Sequence[float]) -> str:
    """The median with its interval, or with its range."""
    found = median_of(values)
    if found.interval is not None or len(values) == 1:
        return interval_text(found, _bytes, " ")
    return f"{_bytes(found.median)} ({_bytes(min(values))} {_bytes(max(values))})"


def _spread(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}–{high}"


def _bytes(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.0f}"
