"""The cells of a run: every load of every server, with its figures, or why it has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.judge.compare import overloaded
from lab.judge.grouping import (
    Cell,
    Metric,
    Tries,
    lane_of,
    median_per_launch,
    most_errors,
    per_launch,
    without_shorter,
)
from lab.judge.intervals import LEAST_VALUES
from lab.model import Row
from lab.report.page import units
from lab.report.page.quantity import Quantity
from lab.report.site.told import SiteRun
from lab.report.table import NOTHING

# A smaller share rounds to none.
LEAST_SHARE = 0.0001
# A closed load has raw latencies only.
_LATENCIES: Mapping[str, tuple[tuple[str, Metric], ...]] = {
    "closed": (("p50", "raw_p50_ms"), ("p95", "raw_p95_ms"), ("p99", "raw_p99_ms")),
    "open": (("p50", "p50_ms"), ("p95", "p95_ms"), ("p99", "p99_ms")),
}
_FROM = {"closed": "from when it was sent", "open": "from when it was due"}
HEADER = (
    *("run", "server", "route", "load", "goodput, requests/s", "p50", "p95", "p99"),
    *("launches", "trials", "what limited", "to know"),
)


def quantities(
    mode: str, x: units.Unit = units.CONNECTIONS, limits: Mapping[str, float] | None = None
) -> tuple[Quantity, ...]:
    """What is told of loads of a mode: throughput and latencies, drawn against `x`."""
    rate = Quantity("goodput", "Throughput (goodput)", mode, (("goodput_rps", ""),), units.RATE, x)
    times = (
        Quantity(name, f"{name}, {_FROM[mode]}", mode, ((metric, ""),), units.MILLISECONDS, x,
                 (limits or {}).get(name))
        for name, metric in _LATENCIES[mode]
    )  # fmt: skip
    return (rate, *times)


@dataclass(frozen=True, slots=True)
class Group:
    """The trials of one lane of a run at one load. `rows` count; `all_rows` are also those that
    were measured again in a longer window."""

    run: SiteRun
    lane: str
    cell: Cell
    rows: Sequence[Row]
    all_rows: Sequence[Row]

    @property
    def server(self) -> str:
        """The server, without its arm."""
        return self.rows[0].server

    @property
    def load(self) -> str:
        """The load in an address: connections, and what is offered."""
        rate = self.cell.offered_rps
        return f"{self.cell.concurrency}{'' if rate is None else f'@{rate}'}"

    @property
    def where(self) -> str:
        """The load for people."""
        rate, one = self.cell.offered_rps, self.cell.concurrency == 1
        offered = "" if rate is None else f", {rate:,}/s offered"
        return f"{self.cell.concurrency:,} connection{'' if one else 's'}{offered}"

    @property
    def own(self) -> dict[str, str]:
        """What an address can ask of it beside what it can ask of its run and mode."""
        return {"run": self.run.name, "server": self.server, "load": self.load}

    @property
    def overloaded(self) -> bool:
        """Whether a trial that counts could not keep up, so that latencies say little."""
        return any(overloaded(row) for row in self.rows if row.valid)

    def notes(self) -> Iterator[str]:
        """What a reader of its figures must know."""
        tries = Tries.of(self.all_rows, self.cell, "goodput_rps")
        if self.overloaded:
            yield "overloaded: latencies grow with the length of the window"
        if share := most_errors(self.rows):
            text = f"{share:.2%}" if share >= LEAST_SHARE else f"less than {LEAST_SHARE:.2%}"
            yield f"up to {text} of requests were errors"
        if tries.again or tries.lost:
            yield f"of {tries.launches} launches {tries.again} measured again, {tries.lost} lost"

    @property
    def facts(self) -> dict[str, object]:
        """The line of it in the site's data: texts, as they are shown under HEADER."""
        valid = [row for row in self.rows if row.valid]
        launches = len(per_launch(self.rows, "goodput_rps"))
        few = "" if launches >= LEAST_VALUES else ", no interval"
        limited = Counter((row.bottleneck, row.strength or "") for row in valid if row.bottleneck)
        return {
            **self.own,
            "route": self.cell.route,
            "mode": self.cell.mode,
            "cells": [
                self.run.name,
                self.lane,
                self.cell.route,
                f"{self.cell.mode}, {self.where}, {self.window}",
                *map(self._told, quantities(self.cell.mode)),
                f"{launches}{few}" if valid else NOTHING,
                f"{len(valid)} of {len(self.rows)} valid",
                ", ".join(_counted(*name, limited[name], len(valid)) for name in limited),
                "; ".join(self.notes()),
            ],
            "invalid": [[row.trial, row.invalid_reasons] for row in self.rows if not row.valid],
        }

    @property
    def window(self) -> str:
        """The engine, and how long it measured as planned."""
        length = self.cell.duration_s
        return f"{self.cell.engine}, {'window ' + NOTHING if length is None else f'{length} s'}"

    def _told(self, what: Quantity) -> str:
        metric, _ = what.metrics[0]
        median = median_per_launch(self.rows, metric)
        if median is None and any(row.valid for row in self.rows):
            return NOTHING
        return what.told(median)


def groups(run: SiteRun) -> tuple[Group, ...]:
    """The cells of a run in the order of their first trials."""
    found: dict[tuple[Cell, str], list[Row]] = {}
    for row in without_shorter(run.rows):
        found.setdefault((Cell.of(row), lane_of(row)), []).append(row)
    return tuple(
        Group(run, lane, cell, rows, [row for row in run.rows if lane_of(row) == lane])
        for (cell, lane), rows in found.items()
    )


def _counted(name: str, strength: str, count: int, valid: int) -> str:
    """A verdict, how strong its evidence is, and how many say so where not all do."""
    more = ", ".join(filter(None, (strength, f"{count} of {valid}" if count < valid else "")))
    return f"{name} ({more})" if more else name
