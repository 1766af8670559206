"""executors.csv, and the table of `make executors`: renders what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from rich.console import Console
from rich.text import Text

from lab.judge.intervals import MedianOf, median_of
from lab.model.executors import EXECUTORS, Launch
from lab.report.table import console_table, interval_text
from lab.store.records import csv_text

NAME = "executors.csv"
HEADER = (
    "executor",
    "bound ms",
    "elapsed ms",
    "× bound",
    "heap + MiB",
    "resident + MiB",
    "threads",
)
MIB = 2**20
# From this width on the table has all its columns.
WIDE = 100
INTERVAL_WIDTH = len("[102.3–104.5]")


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
    """Print a line for each executor that was measured, and what the columns mean."""
    wide = console.width >= WIDE
    table = console_table((*HEADER, "allocated MiB") if wide else HEADER, left=HEADER[:1])
    for column in table.columns[1:]:
        column.no_wrap = False
        if column.header in ("elapsed ms", "heap + MiB", "resident + MiB"):
            column.min_width = INTERVAL_WIDTH
    intervals, collections = [], []
    for executor in EXECUTORS:
        own = [launch for launch in launches if launch.executor == executor]
        if not own:
            continue
        bound_ms, elapsed = own[0].bound_ms, median_of([one.elapsed_ms for one in own])
        intervals.append(_interval_text(elapsed))
        collections.append(f"{executor} {sum(one.gc_count for one in own)}")
        table.add_row(
            executor,
            str(bound_ms),
            _text(elapsed, 1),
            f"{elapsed.median / bound_ms:.2f}",
            _text(median_of([one.heap_delta_bytes for one in own]), MIB),
            _text(median_of([one.resident_delta_bytes for one in own]), MIB),
            str(max(one.platform_threads_peak for one in own)),
            *([_text(median_of([one.allocated_bytes for one in own]), MIB)] if wide else []),
        )
    console.print(table)
    legend = [
        "Medians over JVMs. heap +, resident +: the peak over what was there before the tasks, "
        "garbage included. threads: platform threads at the peak. allocated: what the tasks and "
        "their threads took from the heap, to the byte.",
        *dict.fromkeys(intervals),
    ]
    if any(launch.gc_count for launch in launches):
        legend.append(
            f"The collector ran while the tasks did ({', '.join(collections)} times in all): "
            "heap + is no more than an upper limit."
        )
    console.print(Text("\n".join(legend), style="dim"))


def _interval_text(of: MedianOf) -> str:
    if of.interval is None:
        return f"No interval from {of.count}: 95 % takes 6 JVMs for each executor."
    return (
        f"In brackets from {of.count}: {100 * of.interval.coverage:.1f} % interval of the median "
        "by order statistics (David & Nagaraja)."
    )


def _text(of: MedianOf, unit: int) -> str:
    def number(value: float) -> str:
        return f"{value / unit:.1f}" if value / unit < 999.5 else f"{value / unit:.0f}"

    return interval_text(of, number, "–")
