"""Units of figures: how a value is written, for people in Python and on an axis in Vega."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lab.model import three
from lab.report.page.spec import Spec
from lab.report.table import BINARY, data

# From here on a linear axis would press the small values into its foot.
LOG_FROM = 12.0


@dataclass(frozen=True, slots=True)
class Unit:
    """`label` stands at the axis. `vega` is the Vega expression that writes the value `v` as
    `words` does. A stored value is multiplied by `factor` before it is drawn."""

    label: str
    words: Callable[[float], str]
    vega: str
    factor: float = 1.0

    def written(self, value: str) -> str:
        """The Vega expression that writes this one's value."""
        return f"({self.vega.replace('@', value)})"


def number(value: float) -> str:
    """A plain number: 0.25, 12, 1,800, 25k, 1.2M."""
    size = abs(value)
    # What rounds to a thousand of a unit is one of the next.
    if size >= 999.5e6:
        return f"{value / 1e9:.3g}G"
    if size >= 999.5e3:
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
        return f"{three(value)} ms"
    return f"{three(value / 1000)} s" if value < 600_000 else f"{value / 60_000:.3g} min"


_SHORT = "format(@,@>=99.95?',.0f':'.3~r')"
_NUMBER = (
    "@>=999.5e6?format(@/1e9,'.3~r')+'G':@>=999.5e3?format(@/1e6,'.3~r')+'M':"
    "@>=1e4?format(@/1e3,'.3~r')+'k':@>=100||@==round(@)?format(@,',.0f'):format(@,'.3~r')"
)
_MS = (
    f"@==0?'0':@<1000?{_SHORT}+' ms':"
    f"@<6e5?{_SHORT.replace('@', '(@/1000)')}+' s':format(@/6e4,'.3~r')+' min'"
)
# By Grafana's names, as the dashboards have them.
_RATES = {"reqps": "requests/s", "Bps": "bytes/s"}
RATE = Unit("requests/s", number, _NUMBER)
MILLISECONDS = Unit("", milliseconds, _MS)
CONNECTIONS = Unit("connections", number, _NUMBER)


def of_panel(unit: str, highest: float) -> Unit:
    """The unit of a panel, by Grafana's name; bytes are counted in what suits the highest."""
    if unit == "s":
        return Unit("", lambda seconds: milliseconds(seconds * 1000), _MS, 1000)
    if unit == "percentunit":
        return Unit("", lambda share: f"{share * 100:.3g} %", "format(@,'.3~r')+' %'", 100)
    if unit == "bytes":
        size, name = next((one for one in BINARY if highest >= one[0]), (1, "B"))
        return Unit("", data, f"{_SHORT}+' {name}'", 1 / size)
    return Unit(_RATES.get(unit, ""), number, _NUMBER)


def axis(unit: Unit) -> Spec:
    """How an axis of this unit is written. A logarithmic axis leaves out some of its ticks."""
    label = f"datum.label==''?'':{unit.written('datum.value')}"
    return {"title": unit.label or None, "labelExpr": label}


def scale(values: Iterable[float]) -> Spec:
    """Linear from 0, or logarithmic where the values are far apart. A logarithmic axis has no place
    for a 0."""
    every = list(values)
    known = [value for value in every if value > 0]
    if known and min(every) > 0 and max(known) / min(known) >= LOG_FROM:
        low = max(value for value in _rounds(min(known)) if value <= min(known))
        high = min(value for value in _rounds(max(known)) if value >= max(known))
        return {"type": "log", "domain": [low, high], "nice": False, "clamp": True}
    return linear(max(known, default=0.0))


def linear(highest: float) -> Spec:
    """From 0 to a round value."""
    return {"domain": [0, highest if highest > 0 else 1], "nice": True}


def _rounds(value: float) -> list[float]:
    """The 1, 2 and 5 of the decades around a value."""
    decade = int(f"{value:e}".partition("e")[2])
    return [float(f"{digit}e{at}") for at in (decade, decade + 1) for digit in (1, 2, 5)]
