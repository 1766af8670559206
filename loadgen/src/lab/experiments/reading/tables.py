"""Arrays of tables in an experiment's file, as [[case]] and [[toxics]]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lab.errors import WordError
from lab.experiments.reading.settings import Asked


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its place for messages, and its values."""

    place: str
    values: Mapping[str, object]

    def read[T](self, key: str, text: str, rule: Callable[[str], T]) -> T:
        """A text of the table, by a rule. Raises WordError."""
        try:
            return rule(text)
        except ValueError as failure:
            raise WordError(f"{self.place}: {key}={failure}") from None

    def text[T](self, key: str, rule: Callable[[str], T], default: str | None = None) -> T:
        """A value that must be a text. Raises WordError."""
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.refused(f"{key}={value!r}", "a text")
        return self.read(key, value, rule)

    def whole(self, key: str, least: int, most: int) -> int:
        """A value that must be a whole number, 0 where there is none. Raises WordError."""
        value = self.values.get(key, 0)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.refused(f"{key}={value!r}", f"a whole number {least}..{most}")
        return value

    def mapping(self, key: str) -> Mapping[str, object]:
        """A table inside it, empty where there is none. Raises WordError."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.refused(f"{key}={value!r}", "a table, as { name = value }")
        return value

    def refused(self, given: str, allowed: str) -> WordError:
        return WordError(f"{self.place}: {given} is not allowed; allowed: {allowed}")


def tables(asked: Asked, key: str) -> tuple[Table, ...]:
    """The tables [[key]] of a file, at least one. Raises WordError."""
    file = asked.settings.place
    if not isinstance(asked.tables, list) or not asked.tables:
        raise WordError(f"{file}: {key} is missing; allowed: one or more tables [[{key}]]")
    found = []
    for at, table in enumerate(asked.tables, 1):
        place = f"{file}: {key} {at}"
        if not isinstance(table, dict):
            raise WordError(f"{place}: {table!r} is not allowed; allowed: a table [[{key}]]")
        found.append(Table(place, table))
    return tuple(found)
