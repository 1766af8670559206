"""The fairness manifest under the table: what is equal for all, and what makes the models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from lab.model import Fairness, Json

NOTHING = "–"
# The whole list is in manifest.json; these are the ones that decide results.
SHOWN_FLAGS = "-X"


@dataclass(frozen=True, slots=True)
class Line:
    """One line, and the style it has on a console."""

    text: str
    style: str


def render(console: Console, fairness: Fairness) -> None:
    """Print one line of what is equal, then one per setting in which the servers differ."""
    for line in lines(fairness):
        console.print(Text(line.text, style=line.style))


def lines(fairness: Fairness) -> Iterator[Line]:
    """What is equal, then the models' own settings, then those that should be equal."""
    equal = ", ".join(_equal(name, value) for name, value in fairness.equal.items())
    yield Line(f"equal for all: {equal}", "dim")
    for name, values in fairness.own.items():
        if name not in fairness.unequal:
            yield Line(f"the model's own: {_by_server(name, values)}", "dim")
    for name, values in fairness.unequal.items():
        yield Line(f"unequal: {_by_server(name, values)}", "yellow")


def _by_server(name: str, values: Mapping[str, Json]) -> str:
    return f"{name} " + ", ".join(f"{server} {_value(value)}" for server, value in values.items())


def _equal(name: str, value: Json) -> str:
    if name == "max_heap_bytes" and isinstance(value, int):
        return f"heap {value / 2**20:.0f} MiB"
    if name == "jvm_flags" and isinstance(value, list):
        shown = [str(flag) for flag in value if str(flag).startswith(SHOWN_FLAGS)]
        return f"JVM flags {' '.join(shown) or 'none'} and {len(value) - len(shown)} more"
    return f"{name} {_value(value)}"


def _value(value: Json) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return " + ".join(map(str, value))
    return str(value)
