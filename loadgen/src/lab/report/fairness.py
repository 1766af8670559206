"""The fairness manifest under the table: what is equal for all, and what makes the models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.text import Text

from lab.model import Fairness, Json
from lab.report.table import NOTHING

# The whole list is in manifest.json; these are the ones that decide results.
SHOWN_FLAGS = "-X"


def render(console: Console, fairness: Fairness) -> None:
    """Print one line of what is equal, then one per setting in which the servers differ."""
    for line, style in lines(fairness):
        console.print(Text(line, style=style))


def lines(fairness: Fairness) -> Iterator[tuple[str, str]]:
    """What is equal, then the models' own settings, then those that should be equal: each with its
    style on a console."""
    equal = ", ".join(_equal(name, value) for name, value in fairness.equal.items())
    yield f"equal for all: {equal}", "dim"
    for name, values in fairness.own.items():
        if name not in fairness.unequal:
            yield f"the model's own: {_by_server(name, values)}", "dim"
    for name, values in fairness.unequal.items():
        yield f"unequal: {_by_server(name, values)}", "yellow"


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
    if isinstance(value, Mapping):
        return "(" + "; ".join(f"{name} {_value(one)}" for name, one in value.items()) + ")"
    return str(value)
