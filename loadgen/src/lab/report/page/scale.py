"""Axes: where a value lies, which values are named, and how."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

# From here on a linear axis would press the small values into its foot.
LOG_FROM = 12.0
TICKS = 5

Words = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high`, `ticks` as (value, its name); `label` says what is counted."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    label: str
    is_log: bool = False

    def place(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high; a little outside at most."""
        if self.is_log:
            # Nothing has no logarithm: it lies at the foot.
            span = math.log(self.high / self.low)
            share = math.log(max(value, self.low * 1e-9) / self.low) / span
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(1.02, max(0.0, share))


def fitting(values: Iterable[float], label: str, words: Words, *, narrow: bool = False) -> Axis:
    """Linear from 0, or logarithmic where the values are far apart."""
    known = [value for value in values if value > 0]
    if known and max(known) / min(known) >= LOG_FROM:
        return logarithmic(min(known), max(known), label, words)
    return linear(max(known, default=1.0), label, words, 3 if narrow else TICKS)


def linear(high: float, label: str, words: Words, count: int = TICKS) -> Axis:
    """From 0 to a round value at or above `high`, with round ticks."""
    high = high if high > 0 else 1.0
    rough = high / count
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * of for of in (1, 2, 2.5, 5, 10) if unit * of >= rough * 0.999)
    steps = math.ceil(high / step - 1e-9)
    # Not a whole step of nothing above the highest value.
    top = steps * step if high > (steps - 0.6) * step else high * 1.04
    ticks = tuple((at * step, words(at * step)) for at in range(steps + 1) if at * step <= top)
    return Axis(0.0, top, ticks, label)


def logarithmic(low: float, high: float, label: str, words: Words) -> Axis:
    """From a 1, 2 or 5 to another; over more than three decades only these have a name."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high * 1.0001))
    values = [10.0**at * factor for at in range(first, last + 1) for factor in (1, 2, 5)]
    low_end = max((value for value in values if value <= low), default=values[0])
    high_end = min((value for value in values if value >= high), default=values[-1])
    if high / low > 1000:
        every = max(1, (last - first) // 6)
        values = [10.0**at for at in range(first, last + 1, every)]
    ticks = tuple((value, words(value)) for value in values if low_end <= value <= high_end)
    return Axis(low_end, high_end, ticks, label, is_log=True)


def named(values: Sequence[float], label: str, words: Words) -> Axis:
    """Exactly these values, far apart by their logarithm, and a margin on both sides."""
    low, high = min(values), max(values)
    margin = (high / low) ** 0.08 if high > low else 2.0
    ticks = tuple((value, words(value)) for value in sorted(set(values)))
    return Axis(low / margin, high * margin, ticks, label, is_log=True)


def ranks(beyond: float) -> Axis:
    """Shares of answers, by 1 / (1 - share): as far to the right as there are nines, up to
    `beyond`."""
    ticks = [(1.0, "0"), (2.0, "50 %"), (10.0, "90 %")]
    nines = 2
    while 10.0**nines <= beyond * 1.01:
        ticks.append((10.0**nines, f"99{'.' if nines > 2 else ''}{'9' * (nines - 2)} %"))
        nines += 1
    return Axis(1.0, max(beyond, 10.0), tuple(ticks), "of answers took at most", is_log=True)


def seconds_axis(length_s: float) -> Axis:
    """Time from a window's start, to exactly its end."""
    step = next(
        (of for of in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800) if length_s / of <= 6),
        3600,
    )
    minutes = step >= 60
    ticks = [
        (float(at), f"{at // 60}" if minutes else f"{at}")
        for at in range(0, int(length_s) + 1, step)
    ]
    return Axis(0.0, length_s, tuple(ticks), "min" if minutes else "s")


def number(value: float) -> str:
    """A plain number: 0.25, 12, 1,800, 25k, 1.2M."""
    size = abs(value)
    if size >= 1e9:
        return f"{value / 1e9:.3g}G"
    if size >= 1e6:
        return f"{value / 1e6:.3g}M"
    if size >= 10_000:
        return f"{value / 1000:.3g}k"
    if size >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def milliseconds(value: float) -> str:
    """A latency with its unit: 0.5 ms, 200 ms, 1.5 s, 10 min."""
    if value == 0:
        return "0"
    if value < 1000:
        return f"{_three(value)} ms"
    return f"{_three(value / 1000)} s" if value < 600_000 else f"{value / 60_000:.3g} min"


def data(value: float) -> str:
    """Bytes: 512 B, 64 MiB, 1.5 GiB."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(value) >= unit:
            return f"{_three(value / unit)} {name}"
    return f"{_three(value)} B" if value else "0"


def _three(value: float) -> str:
    """Three digits, or the whole number where it has more."""
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def in_unit(unit: str) -> tuple[str, Words]:
    """What an axis of one of Grafana's units is called, and how its values are written."""
    if unit == "s":
        return "", lambda value: milliseconds(value * 1000)
    if unit == "percentunit":
        return "", lambda value: f"{value * 100:.3g} %"
    if unit in ("bytes", "decbytes"):
        return "", data
    return {"reqps": "requests/s", "Bps": "bytes/s"}.get(unit, ""), number


def binary(high: float, label: str, count: int = TICKS) -> Axis:
    """As `linear`, for bytes: round in MiB or GiB."""
    unit = next((unit for unit in (2**30, 2**20, 2**10) if high >= unit), 1)
    of = linear(high / unit, label, number, count)
    ticks = tuple((value * unit, data(value * unit)) for value, _ in of.ticks)
    return Axis(0.0, of.high * unit, ticks, label)
