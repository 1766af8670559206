"""The table at the end of a bench, on a terminal that is wide enough for it."""

from collections.abc import Callable, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from lab.judge.intervals import MedianOf
from lab.model import Remark, Row, around_server_us, goodput, three
from lab.report.remarks import text, text_of

WIDE = 118
# From here on there is room for what limited.
WIDER = 140
NOTHING = "–"
BINARY = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
CPU = "CPU µs"


def render(
    console: Console, rows: Sequence[Row], notes: Sequence[str], *, foreign: bool = False
) -> None:
    """Print the rows, what the columns mean, the reasons of invalid trials, and the notes."""
    if not rows:
        return
    if console.width < WIDE:
        console.print(f"The table of the trials takes {WIDE} columns; trials.csv has it.")
    else:
        _with_legend(console, rows, foreign=foreign)
    for row in rows:
        if not row.valid:
            console.print(Text(f"invalid {row.trial}: {text_of(row)}", style="yellow"))
    for note in notes:
        console.print(Text(f"note {note}"))


def _with_legend(console: Console, rows: Sequence[Row], *, foreign: bool) -> None:
    named = console.width >= WIDER and any(row.bottleneck for row in rows)
    split = any(row.cpu_server_us is not None for row in rows)
    console.print(_wide(rows, named=named, split=split))
    unbound = "no such bound is known" if foreign else "only computing limits"
    legend = (
        "open: a constant rate is offered, p50 p95 p99 count from when a request was due. "
        "closed: each connection sends again when answered, "
        "only raw latency. raw: from when it was sent. Latencies are of answers that were no "
        "errors, in ms (12.3s: seconds), "
        "rates in requests/s, req/s: answers that were no errors, bound: the most the load and "
        "settings allow "
        f"(–: {unbound}), t/o: timeouts, – : the engine cannot tell. ok and errors count "
        "the whole run, the rest its measured window."
    )
    if split:
        legend += f" {CPU}: CPU time for each answer, of the server / of all around it."
    console.print(Text(f"{legend} Host {rows[0].host or 'unknown'}.", style="dim"))


def console_table(header: Sequence[str], left: Sequence[str]) -> Table:
    """An empty table without lines: columns of numbers, and of texts those in `left`."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for name in header:
        table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    return table


def interval_text(of: MedianOf, text: Callable[[float], str]) -> str:
    """A median, and its interval in brackets where it has one."""
    if of.interval is None:
        return text(of.median)
    return f"{text(of.median)} [{text(of.interval.low)}, {text(of.interval.high)}]"


def _wide(rows: Sequence[Row], *, named: bool, split: bool) -> RenderableType:
    mixed = len({row.engine for row in rows}) > 1
    routes = len({row.route for row in rows}) > 1
    header = (
        *("server", *(("route",) if routes else ()), "conc", "mode", *(("eng.",) if mixed else ())),
        *("offered", "bound", "req/s", "p50", "p95", "p99", "raw50", "raw95", "raw99"),
        *("ok", "http", "sock", "t/o", *((CPU,) if split else ()), "valid"),
        *(("bottleneck",) if named else ()),
    )
    left = ("server", "route", "mode", "eng.", "valid", "bottleneck")
    table = console_table(header, left)
    # A long name takes more lines, so that no number is cut.
    table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"
    for row in rows:
        table.add_row(
            lane(row),
            *((row.route,) if routes else ()),
            str(row.concurrency),
            row.mode,
            *((row.engine,) if mixed else ()),
            *_rates(row),
            *_latencies(row),
            *_counts(row),
            *((cpu(row),) if split else ()),
            "yes" if row.valid else "NO",
            *((row.bottleneck or NOTHING,) if named else ()),
            style=None if row.valid else "dim",
        )
    return table if mixed else Group(Text(f"engine: {rows[0].engine}", style="dim"), table)


def lane(row: Row) -> str:
    """The name of a row's lane: the server, its arm, and the number of a fresh JVM."""
    arm = "" if row.arm is None else f"@{row.arm}"
    return f"{row.server}{arm}{f' #{row.launch}' if row.launch else ''}"


def grouped(notes: Sequence[tuple[str, Remark]]) -> list[str]:
    """(trial, note) pairs as lines, one per note: the trials it is about, then the note."""
    trials: dict[Remark, list[str]] = {}
    for trial, note in notes:
        trials.setdefault(note, []).append(trial)
    numbers = {note: ", ".join(t.partition("-")[0] for t in its) for note, its in trials.items()}
    return [
        f"{its[0] if len(its) == 1 else numbers[note]}: {text(note)}"
        for note, its in trials.items()
    ]


def cpu(row: Row) -> str:
    """The µs of CPU time for each answer: of the server, and of all parts around it."""
    return f"{microseconds(row.cpu_server_us)}/{microseconds(around_server_us(row))}"


def microseconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


def data(value: float) -> str:
    """Bytes: 512 B, 64 MiB, 1.5 GiB."""
    for unit, name in BINARY:
        if abs(value) >= unit:
            return f"{three(value / unit)} {name}"
    return f"{three(value)} B" if value else "0"


def rate(value: float | None) -> str:
    if value is None:
        return NOTHING
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.2g}" if 0 < value < 0.95 else f"{value:.1f}"


def _rates(row: Row) -> tuple[str, str, str]:
    """Offered, the bound, and the answers that were no errors, each per second."""
    bound, good = (
        _count(value) if value is not None and value >= 99.95 else rate(value)
        for value in (row.predicted_rps, goodput(row))
    )
    return _count(row.offered_rps), bound, good


def _latencies(row: Row) -> tuple[str, ...]:
    return tuple(
        milliseconds(value)
        for value in (
            row.p50_ms, row.p95_ms, row.p99_ms, row.raw_p50_ms, row.raw_p95_ms, row.raw_p99_ms,
        )
    )  # fmt: skip


def _counts(row: Row) -> tuple[str, str, str, str]:
    ok, errors = _count(row.ok), _count(row.http_errors)
    return ok, errors, _count(row.socket_errors), _count(row.timeouts)


def milliseconds(value: float | None) -> str:
    """A latency in at most five characters: 1.23, 214, 9999, then 12.3s."""
    if value is None:
        return NOTHING
    if value >= 9999.5:
        return f"{value / 1000:.1f}s" if value < 99_950 else f"{value / 1000:.0f}s"
    return f"{value:.2f}" if value < 9.995 else f"{value:.0f}"


def with_unit(ms: float | None) -> str:
    text = milliseconds(ms)
    return text if ms is None or text.endswith("s") else f"{text} ms"


def _count(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.0f}" if value < 999_999.5 else f"{value / 1e6:.2f}M"
