"""The text of each remark, made of its code and its values; and what a reader can do about it.

A text is a format string. A part that begins with ? is left out where a value of it is missing.
`!w` writes a name of the lab as people read it, `!t` a number with three digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any

from lab.model import REMARK_SEPARATOR, Remark, Row, Value, three
from lab.report.remarks import data, load, state
from lab.report.remarks.text import Text

TEXTS: Mapping[str, Text] = {**data.TEXTS, **load.TEXTS, **state.TEXTS}
WORDS = {
    "toxiproxy": "the proxy",
    "downstream": "the downstream",
    "jit": "JIT compile time",
    "generator-cpu": "the generator's CPU",
    "generator-waits": "its waits for a CPU",
    "generator-quota": "its CPU quota",
    "host-cpu": "the host's CPU",
    "others-cpu": "what work outside the lab took of the CPUs",
    "apart": "the latencies are of the others",
    "mixed": "their latencies count too",
    "sent": "requests sent",
    "answered": "answers before the window",
    "answered-late": "answers in the window",
    "in-flight": "requests in flight when the memory was read",
}


class _Words(Formatter):
    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion == "w":
            return ", ".join(WORDS.get(name, name) for name in str(value).split(","))
        if conversion == "t":
            return three(value)
        return super().convert_field(value, conversion)

    def needs(self, template: str) -> set[str]:
        return {name for _, name, _, _ in self.parse(template) if name}


_WORDS = _Words()


def text(remark: Remark) -> str:
    """A remark as people read it; as it is in a file where it lacks a value, or is unknown."""
    known = TEXTS.get(remark.code)
    parts = [p for p in known.parts if _is_told(p, remark.values)] if known else []
    if not parts or any(_WORDS.needs(part) - remark.values.keys() for part in parts):
        return remark.cell
    return "".join(_WORDS.vformat(part.removeprefix("?"), (), remark.values) for part in parts)


def texts(remarks: Iterable[Remark]) -> tuple[str, ...]:
    return tuple(map(text, remarks))


def text_of(row: Row) -> str:
    """Why a row is invalid."""
    return REMARK_SEPARATOR.join(texts(row.reasons))


def pattern(code: str) -> str:
    """The text with … for each value."""
    whole = "".join(part.removeprefix("?") for part in TEXTS[code].parts)
    return re.sub(r"\{[^}]*\}", "…", whole)


def title(remark: Remark) -> str:
    """The text without its values, as far as it needs none."""
    return re.split(r":? …|: | for …", pattern(remark.code))[0]


def _is_told(part: str, values: Mapping[str, Value]) -> bool:
    return not part.startswith("?") or _WORDS.needs(part) <= values.keys()
