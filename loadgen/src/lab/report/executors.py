"""executors.csv, and the table of `make executors`: renders what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import product
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.judge.intervals import MedianOf, median_of
from lab.model.executors import EXECUTORS, STARTS, Launch
from lab.report.table import console_table, interval_text
from lab.store.records import csv_text

NAME = "executors.csv"
PARTS = ("handed over", "first start", "last start", "first wake", "last wake")
TIME = ("executor", "start", "bound ms", "elapsed ms", "× bound", *PARTS)
MEMORY = ("executor", "start", "heap + MiB", "resident + MiB", "threads", "allocated MiB")
MIB = 2**20
INTERVAL_WIDTH = len("[102.3–104.5]")
LEGEND = (
    "Medians over JVMs. cold: nothing ran before; aot: nor there, but with an AOT cache of a run "
    "of its own; warm: {rounds} rounds ran before. Time, on a heap whose pages were touched "
    "before. elapsed: from the first hand-over until the last task is done; the columns after × "
    "bound, in ms: when the last task was handed over, when the first and the last started, when "
    "the first and the last woke. Memory, of other JVMs. heap +, resident +: the peak over what "
    "was there before the tasks, garbage included. threads: platform threads at the peak. "
    "allocated: what the tasks and their threads took from the heap, to the byte."
)


def csv_of(run_name: str, launches: Sequence[Launch]) -> str:
    """One row per launch, in the order they ran; bytes and milliseconds."""
    names = [field.name for field in fields(Launch) if field.name != "elapsed_us"]
    names += ["elapsed_ms", "heap_delta_bytes", "resident_delta_bytes"]
    rows = [["run", "launch", *names]]
    for number, launch in enumerate(launches, start=1):
        cells = [getattr(launch, name) for name in names]
        texts = [" ".join(cell) if isinstance(cell, tuple) else str(cell) for cell in cells]
        rows.append([run_name, str(number), *texts])
    return csv_text(rows)


def render(console: Console, launches: Sequence[Launch]) -> None:
    """Print where the time went and what the tasks held, a line for each executor and start that
    was measured, and what the columns mean."""
    intervals: dict[str, None] = {}
    time, memory = _table(TIME), _table(MEMORY)
    for executor, start in product(EXECUTORS, STARTS):
        own = [one for one in launches if (one.executor, one.start) == (executor, start)]
        clocked = [one for one in own if one.purpose == "time"]
        weighed = [one for one in own if one.purpose == "memory"]
        if clocked:
            elapsed = median_of([one.elapsed_ms for one in clocked])
            intervals[_interval_text(elapsed)] = None
            time.add_row(
                executor,
                start,
                str(clocked[0].bound_ms),
                _text(elapsed, 1),
                f"{elapsed.median / clocked[0].bound_ms:.2f}",
                *(_number(median(part), 1000) for part in zip(*map(_parts, clocked), strict=True)),
            )
        if weighed:
            memory.add_row(
                executor,
                start,
                _text(median_of([one.heap_delta_bytes for one in weighed]), MIB),
                _text(median_of([one.resident_delta_bytes for one in weighed]), MIB),
                f"{median(one.platform_threads_peak for one in weighed):.0f}",
                _text(median_of([one.allocated_bytes for one in weighed]), MIB),
            )
    for table in (time, memory):
        if table.row_count:
            console.print(table)
            console.print()
    rounds = {one.executor: one.rounds_before for one in launches if one.start == "warm"}
    before = " and ".join(f"{count} ({executor})" for executor, count in rounds.items())
    legend = [LEGEND.format(rounds=before or "identical"), *intervals]
    collected = [one for one in launches if one.purpose == "memory" and one.gc_count]
    if collected:
        who = ", ".join(dict.fromkeys(f"{one.executor} {one.start}" for one in collected))
        legend.append(
            f"The collector ran while the tasks did ({who}): heap + is no more than an upper limit."
        )
    console.print(Text("\n".join(legend), style="dim"))


def _parts(one: Launch) -> tuple[int, ...]:
    """In the order of PARTS."""
    return (
        *(one.submitted_us, one.first_start_us, one.last_start_us),
        *(one.first_wake_us, one.last_wake_us),
    )


def _table(header: Sequence[str]) -> Table:
    table = console_table(header, left=header[:2])
    for column in table.columns[2:]:
        column.no_wrap = False
        if column.header in ("elapsed ms", "heap + MiB", "resident + MiB", "allocated MiB"):
            column.min_width = INTERVAL_WIDTH
    return table


def _interval_text(of: MedianOf) -> str:
    if of.interval is None:
        return f"No interval from {of.count}: 95 % takes 6 JVMs of each."
    return (
        f"In brackets from {of.count}: {100 * of.interval.coverage:.1f} % interval of the median "
        "by order statistics (David & Nagaraja)."
    )


def _text(of: MedianOf, unit: int) -> str:
    return interval_text(of, lambda value: _number(value, unit), "–")


def _number(value: float, unit: int) -> str:
    return f"{value / unit:.1f}" if value / unit < 999.5 else f"{value / unit:.0f}"
