"""The data of a figure by load: one quantity of trials, its bound, and each launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.judge.grouping import Metric, lane_of, measured, median_per_launch, per_launch
from lab.judge.intervals import MedianOf
from lab.model import Row
from lab.report.page import spec, units
from lab.report.page.spec import Spec
from lab.report.table import interval_text

DOT_PX2 = 48
DOTTED: Spec = {"type": "line", "strokeDash": spec.DASHES["dot"], "strokeWidth": 2}
POINT: Spec = {"type": "point", "filled": True, "size": DOT_PX2, "opacity": 1}
HOLLOW: Spec = {**POINT, "filled": False, "fill": "var(--page)", "strokeWidth": 1.5}
CROSS: Spec = {**POINT, "filled": False, "shape": spec.CROSS, "strokeWidth": 1.3}


@dataclass(frozen=True, slots=True)
class Quantity:
    """One figure: its trials, their metrics with a word for each, and the unit. `x` is what it is
    drawn against: CONNECTIONS, or RATE for the rate that was offered. `limit` is the most that an
    objective allows.

    Points are rows of data for Vega-Lite: `at` with the value `y`, and a `tip` for the pointer.
    """

    slug: str
    title: str
    mode: str
    metrics: tuple[tuple[Metric, str], ...]
    unit: units.Unit
    x: units.Unit = units.CONNECTIONS
    limit: float | None = None

    @property
    def is_rate(self) -> bool:
        """Whether this is a throughput; else it is a latency."""
        return self.unit is units.RATE

    @property
    def bound_name(self) -> str:
        return "bound" if self.is_rate else "N / bound"

    def values(self, row: Row) -> list[float]:
        """The numbers of a trial; none of another mode."""
        values = [measured(row, metric) for metric, _ in self.metrics if row.mode == self.mode]
        return [value for value in values if value is not None]

    def bound(self, row: Row) -> float | None:
        """The bound on throughput; of latency what Little's law makes of it, N / X, in a closed
        load, where N is known."""
        if row.predicted_rps is None:
            return None
        if self.is_rate:
            return row.predicted_rps
        return row.concurrency / row.predicted_rps * 1000 if row.mode == "closed" else None

    def load(self, row: Row) -> float:
        return float((row.offered_rps or 0) if self.x is units.RATE else row.concurrency)

    def by_load(self, rows: Sequence[Row]) -> list[tuple[float, list[Row]]]:
        found: dict[tuple[int, int], list[Row]] = {}
        for row in rows:
            found.setdefault((row.concurrency, row.offered_rps or 0), []).append(row)
        return [(self.load(found[load][0]), found[load]) for load in sorted(found)]

    def offered(self, row: Row) -> float | None:
        """The rate that was offered, where this is a throughput."""
        return float(row.offered_rps) if self.is_rate and row.offered_rps is not None else None

    def medians(self, at: Spec, of: Sequence[Row], metric: Metric) -> Iterator[Spec]:
        """The median over launches of valid trials, with its interval as `low` and `high`."""
        median = median_per_launch(of, metric)
        if median is not None:
            ends = median.interval
            limits = {} if ends is None else {"low": ends.low, "high": ends.high}
            yield {
                **at,
                "y": median.median,
                **limits,
                "tip": self._tip(at, f"median {self.told(median)}"),
            }

    def dots(self, at: Spec, of: Sequence[Row], metric: Metric) -> Iterator[Spec]:
        """Each launch, or the median where it has an interval; and the trials that are invalid."""
        medians = list(self.medians(at, of, metric))
        if any("low" in one for one in medians):
            yield from ({**one, "valid": True} for one in medians)
        else:
            for value in per_launch(of, metric):
                tip = self._tip(at, self.text(value))
                yield {**at, "y": value, "valid": True, "tip": tip}
        for row in of:
            seen = measured(row, metric)
            if not row.valid and seen is not None:
                tip = self._tip(at, f"{self.text(seen)}, invalid trial {row.trial}")
                yield {**at, "y": seen, "valid": False, "tip": tip}

    def trials(self, at: Spec, of: Sequence[Row], metric: Metric) -> Iterator[Spec]:
        """Every trial that has this number."""
        for row in of:
            seen = measured(row, metric)
            if seen is not None:
                invalid = "" if row.valid else ", invalid"
                tip = self._tip(at, f"{self.text(seen)}{invalid}, trial {row.trial}")
                yield {**at, "y": seen, "valid": row.valid, "tip": tip}

    def text(self, value: float) -> str:
        return f"{self.unit.words(value)} {self.unit.label}".strip()

    def told(self, of: MedianOf | None) -> str:
        return "no valid trial" if of is None else interval_text(of, self.unit.words)

    def alt(self, rows: Sequence[Row], lanes: Sequence[str]) -> str:
        parts = []
        for lane in lanes:
            mine = [row for row in rows if lane_of(row) == lane]
            for metric, kind in self.metrics:
                told = [
                    f"{load:,.0f} {self.x.label} {self.told(median_per_launch(of, metric))}"
                    for load, of in self.by_load(mine)
                ]
                parts.append(f"{lane}{f' {kind}' if kind else ''}: {', '.join(told)}")
        return f"Medians over launches of valid trials. {'. '.join(parts)}."

    def _tip(self, at: Spec, text: str) -> str:
        kind = f" {at['kind']}" if at["kind"] else ""
        return f"{at['series']}{kind}\n{at['x']:,.0f} {self.x.label}\n{text}"


RATES = (
    Quantity("throughput-closed", "Throughput (goodput), closed load", "closed",
             (("goodput_rps", ""),), units.RATE),
    Quantity("throughput-open", "Throughput (goodput), open load", "open",
             (("goodput_rps", ""),), units.RATE),
)  # fmt: skip
TIMES = (
    Quantity("latency-closed", "p95, closed load: raw", "closed", (("raw_p95_ms", ""),),
             units.MILLISECONDS),
    Quantity("latency-open", "p95, open load: corrected, and raw", "open",
             (("p95_ms", ""), ("raw_p95_ms", "raw")), units.MILLISECONDS),
)  # fmt: skip


def by_rate(limits: Mapping[str, float]) -> tuple[tuple[Quantity, ...], tuple[Quantity, ...]]:
    """Throughput, and latencies with what an objective allows, against the rate offered."""
    names: tuple[Metric, ...] = ("p50_ms", "p95_ms", "p99_ms")
    times = (
        Quantity(f"{name[:3]}-by-rate", f"{name[:3]} against the rate", "open", ((name, ""),),
                 units.MILLISECONDS, units.RATE, limits.get(name[:3]))
        for name in names
    )  # fmt: skip
    rate = Quantity("throughput-by-rate", "Throughput (goodput) against the rate", "open",
                    (("goodput_rps", ""),), units.RATE, units.RATE)  # fmt: skip
    return (rate,), tuple(times)


def layer(name: str, values: Sequence[Spec], mark: Spec, encoding: Spec) -> Spec:
    """A layer of data of its own. Where its points have a `shift`, lanes of one x stand beside
    each other. Nothing is drawn outside of the axes when a reader moves them."""
    shift = {"xOffset": {"expr": "datum.shift"}} if "shift" in values[0] else {}
    whole = {**mark, "clip": True, **shift}
    return {"name": name, "data": {"values": list(values)}, "mark": whole, "encoding": encoding}


def of_kind(points: Sequence[Spec], kind: str) -> list[Spec]:
    """The points of one kind of latency, without invalid trials."""
    return [one for one in points if one["kind"] == kind and one.get("valid", True)]


def invalid(points: Sequence[Spec]) -> list[Spec]:
    return [one for one in points if not one["valid"]]


def with_interval(points: Sequence[Spec]) -> list[Spec]:
    return [one for one in points if "low" in one]


def title(text: str, *below: str) -> Spec:
    known = "; ".join(part for part in below if part)
    return {"text": text, "subtitle": known} if known else {"text": text}
