"""Texts by code: texts.toml has them all.

A text is a format string. A part in brackets is left out if a value of it is missing. `!w` writes a
name of the lab as people read it, `!t` a number with three digits.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Formatter
from typing import Any

from lab.model import REMARK_SEPARATOR, Remark, Row, three

CATALOGUE = tomllib.loads(Path(__file__).with_name("texts.toml").read_text("utf-8"))
# Of remarks: the text, and what a reader can do about it.
TEXTS: Mapping[str, list[str]] = CATALOGUE["texts"]
# Of what happens while a run goes on.
NEWS: Mapping[str, str] = CATALOGUE["news"]
WORDS: Mapping[str, str] = CATALOGUE["words"]
# What a failure of the server is called in a finding, by the code of its check.
FAILURES: Mapping[str, str] = CATALOGUE["failures"]
_OPTIONAL = re.compile(r"\[([^\]]*)\]")


class _Words(Formatter):
    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion == "w":
            return ", ".join(WORDS.get(name, name) for name in str(value).split(","))
        return three(value) if conversion == "t" else super().convert_field(value, conversion)

    def has(self, template: str, values: Mapping[str, Any]) -> bool:
        return all(name in values for _, name, _, _ in self.parse(template) if name)


_WORDS = _Words()


def filled(template: str, values: Mapping[str, Any]) -> str | None:
    """The template with these values; None if it lacks one outside of its optional parts."""
    known = _OPTIONAL.sub(lambda part: part[1] if _WORDS.has(part[1], values) else "", template)
    return _WORDS.vformat(known, (), values) if _WORDS.has(known, values) else None


def say(table: str, code: str, /, **values: object) -> str:
    """The text of a code in a table of texts.toml; of an unknown code that code itself. None and an
    empty text are missing values."""
    known = {name: value for name, value in values.items() if value not in (None, "")}
    return filled(CATALOGUE[table].get(code, code), known) or code


def text(remark: Remark) -> str:
    """A remark as people read it; as it is in a file if it lacks a value, or is unknown."""
    template = NEWS.get(remark.code) or TEXTS.get(remark.code, [""])[0]
    return filled(template, remark.values) or remark.cell


def texts(remarks: Iterable[Remark]) -> tuple[str, ...]:
    return tuple(map(text, remarks))


def text_of(row: Row) -> str:
    """Why a row is invalid."""
    return REMARK_SEPARATOR.join(texts(row.reasons))


def pattern(code: str) -> str:
    """The text with … for each value."""
    template = TEXTS.get(code, [code.replace("-", " ")])[0]
    return re.sub(r"\{[^}]*\}", "…", _OPTIONAL.sub(r"\1", template))


def action(code: str) -> str:
    """What a reader can do about it; empty for a note."""
    return "".join(TEXTS.get(code, [])[1:])
