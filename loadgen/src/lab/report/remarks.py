"""Texts by code: texts.toml has them all.

A text is a format string. A part in brackets is left out if a value of it is missing or empty;
behind a bar in it stands what is written instead. Brackets within a part are written as they are.
`!w` writes a name of the lab as people read it, `!t` a number with three digits. `!c` is a count
that is missing if it is 0, `:?` a condition, which writes nothing and is missing if it is false.
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
# Of what happens while a run goes on, and the reasons of findings.
OTHERS: Mapping[str, str] = {**CATALOGUE["news"], **CATALOGUE["reasons"]}
WORDS: Mapping[str, str] = CATALOGUE["words"]
# What a failure of the server is called in a finding, by the code of its check.
FAILURES: Mapping[str, str] = CATALOGUE["failures"]
_PART = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]")


class _Words(Formatter):
    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion == "w":
            return ", ".join(WORDS.get(name, name) for name in str(value).split(","))
        if conversion == "c":
            return value
        return three(value) if conversion == "t" else super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        return "" if format_spec == "?" else str(super().format_field(value, format_spec))

    def has(self, template: str, values: Mapping[str, Any], *, optional: bool) -> bool:
        """True if no value of the template is missing. Elsewhere than in an optional part a text
        may be empty."""
        for _, name, spec, conversion in self.parse(template):
            try:
                value = self.get_field(name, (), values)[0] if name else ...
            except (KeyError, AttributeError):
                return False
            counts = spec == "?" or conversion == "c"
            if value is None or (optional and (value == "" or (counts and not value))):
                return False
        return True


_WORDS = _Words()


def filled(template: str, values: Mapping[str, Any]) -> str | None:
    """The template with these values; None if it lacks one outside of its optional parts."""

    def chosen(part: re.Match[str]) -> str:
        choices = part[1].split("|")
        return next((text for text in choices if _WORDS.has(text, values, optional=True)), "")

    known = _PART.sub(chosen, template)
    return _WORDS.vformat(known, (), values) if _WORDS.has(known, values, optional=False) else None


def say(table: str, code: str, /, **values: object) -> str:
    """The text of a code in a table of texts.toml; of an unknown code, or without a value that it
    needs, that code itself."""
    text = filled(CATALOGUE[table].get(code, code), values)
    return code if text is None else text


def text(remark: Remark) -> str:
    """A remark as people read it; as it is in a file if it lacks a value, or is unknown."""
    template = OTHERS.get(remark.code) or TEXTS.get(remark.code, [""])[0]
    listed = " and ".join(f"{count} {name}" for name, count in remark.values.items())
    try:
        return filled(template, {"listed": listed, **remark.values}) or remark.cell
    except (ValueError, TypeError):  # A value of another type, in a file of somebody else.
        return remark.cell


def texts(remarks: Iterable[Remark]) -> tuple[str, ...]:
    return tuple(map(text, remarks))


def text_of(row: Row) -> str:
    """Why a row is invalid."""
    return REMARK_SEPARATOR.join(texts(row.reasons))


def pattern(code: str) -> str:
    """The text with … for each value."""
    template = TEXTS.get(code, [code.replace("-", " ")])[0]
    return re.sub(r"\{[^}]*\}", "…", _PART.sub(r"\1", template))


def action(code: str) -> str:
    """What a reader can do about it; empty for a note."""
    return "".join(TEXTS.get(code, [])[1:])
