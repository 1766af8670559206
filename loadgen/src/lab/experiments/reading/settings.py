"""What was given for each setting, as texts, and where it was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from lab.errors import WordError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Given:
    """The texts of one setting. `place` names it for messages, as "bench: CONC" or
    "experiments/sweep.toml: load.concurrency"; `by_user`: a word, not a line of a file."""

    place: str
    texts: tuple[str, ...]
    by_user: bool

    def refuse(self, problem: str) -> WordError:
        """What is wrong with it; the problem begins with what was given."""
        return WordError(f"{self.place}={problem}")

    @property
    def text(self) -> str:
        """As one text."""
        return ",".join(self.texts)


@dataclass(frozen=True, slots=True)
class Head:
    """What an experiment says of itself."""

    name: str
    question: str
    hypothesis: str
    words: tuple[str, ...]


class Settings:
    """Settings by name, read with rules. What a rule refuses becomes a WordError.

    `place` is what stands before the name of a setting that is missing.
    """

    def __init__(self, place: str, given: Mapping[str, Given]) -> None:
        self._place = place
        self._given = dict(given)

    def get(self, key: str) -> Given | None:
        """What was given, if anything."""
        return self._given.get(key)

    def each(self, key: str, rule: Callable[[str], T]) -> tuple[T, ...]:
        """All values, each once; none where nothing was given."""
        given = self._given.get(key)
        if given is None:
            return ()
        values = tuple(self._read(given, text, rule) for text in given.texts)
        if len(set(given.texts)) != len(given.texts):
            raise given.refuse(f"{given.text} names the same twice")
        return values

    def one(self, key: str, rule: Callable[[str], T], default: T) -> T:
        """The only value, or the default."""
        given = self._given.get(key)
        if given is None:
            return default
        if len(given.texts) != 1:
            raise given.refuse(f"{given.text} is more than one; allowed: one")
        return self._read(given, given.texts[0], rule)

    def needed(self, key: str, rule: Callable[[str], T]) -> T:
        """The only value of a setting that has no default."""
        if key not in self._given:
            raise self.missing(key)
        values = self.each(key, rule)
        if len(values) != 1:
            raise self._given[key].refuse(f"{self._given[key].text} is more than one")
        return values[0]

    def missing(self, what: str) -> WordError:
        """That something is not there, and what it would be."""
        return WordError(f"{self._place}: {what} is missing")

    @staticmethod
    def _read(given: Given, text: str, rule: Callable[[str], T]) -> T:
        try:
            return rule(text)
        except ValueError as failure:
            raise given.refuse(str(failure)) from None
