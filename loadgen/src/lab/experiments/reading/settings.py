"""The given texts of each setting, with the place of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import WordError
from lab.experiments.reading import rules
from lab.experiments.reading.rules import DURATION, Rule

NEEDED: Any = object()


@dataclass(frozen=True, slots=True)
class Given:
    """The texts of one setting. `place` names it for messages, as "bench: CONC" or
    "experiments/sweep.toml: load.concurrency"; `by_user`: a word, not a line of a file."""

    place: str
    texts: tuple[str, ...]
    by_user: bool

    def refuse(self, problem: str) -> WordError:
        """The refusal; `problem` begins with the given value."""
        return WordError(f"{self.place}={problem}")

    @property
    def text(self) -> str:
        return ",".join(self.texts)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a kind's own table, as `first` of [stress]: what it may be, and its default."""

    rule: Rule[Any]
    default: Any = NEEDED


@dataclass(frozen=True, slots=True)
class Word:
    """A word of make: the setting that it gives, and whether it takes several, with commas."""

    key: str
    several: bool = False


class Settings:
    """Settings by name, read with rules. The refusal of a rule becomes a WordError.

    `place` stands before the name of a setting that is missing.
    """

    def __init__(self, place: str, given: Mapping[str, Given]) -> None:
        self.place = place
        self._given = dict(given)

    def get(self, key: str) -> Given | None:
        return self._given.get(key)

    def with_defaults(self, defaults: Mapping[str, Given]) -> Settings:
        """These, and the defaults where nothing was given."""
        return Settings(self.place, {**defaults, **self._given})

    def each[T](self, key: str, rule: Callable[[str], T]) -> tuple[T, ...]:
        """All values, each once; none where nothing was given."""
        given = self._given.get(key)
        if given is None:
            return ()
        values = tuple(self._read(given, text, rule) for text in given.texts)
        if len(set(given.texts)) != len(given.texts):
            raise given.refuse(f"{given.text} names the same twice")
        return values

    def one[T](self, key: str, rule: Callable[[str], T], default: T) -> T:
        """The only value, or the default; a setting whose default is NEEDED must be given."""
        given = self._given.get(key)
        if given is None:
            if default is NEEDED:
                raise self.missing(key)
            return default
        if len(given.texts) != 1:
            raise given.refuse(f"{given.text} is more than one; allowed: one")
        return self._read(given, given.texts[0], rule)

    def missing(self, what: str) -> WordError:
        return WordError(f"{self.place}: {what} is missing")

    @property
    def scale(self) -> float:
        """The factor of every duration but the warm-up."""
        return self.one("scale", rules.decimal(0.001, 10), 1.0)

    def scaled(self, seconds: int) -> int:
        """A duration in whole seconds, at least one."""
        return max(1, round(seconds * self.scale))

    def table(self, name: str, keys: Mapping[str, Key]) -> dict[str, Any]:
        """The values of a kind's own table; durations are scaled. Raises WordError."""
        found = {}
        for key, of in keys.items():
            value = self.one(f"{name}.{key}", of.rule, of.default)
            found[key] = self.scaled(value) if of.rule.shape is DURATION else value
        return found

    @staticmethod
    def _read[T](given: Given, text: str, rule: Callable[[str], T]) -> T:
        try:
            return rule(text)
        except ValueError as failure:
            raise given.refuse(str(failure)) from None


@dataclass(frozen=True, slots=True)
class Here:
    """This machine and its lab: the servers of the lab, how many files one process may hold
    open (RLIMIT_NOFILE), to how many connections to one address there are source ports
    (None: unknown), the services of the user's `own` that run as containers of the lab, the
    folder of `subjects` (None: there is none), the tag of the images that this lab builds, and the
    folder of all runs."""

    servers: Sequence[str]
    file_limit: int
    ports: int | None = None
    own: Sequence[str] = ()
    subjects: Path | None = None
    tag: str = "local"
    results: Path | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to measure, not checked yet. `words` are as the user wrote them; `tables` is the
    value of the kind's array of tables, as [[case]]."""

    here: Here
    settings: Settings
    name: str
    question: str = ""
    hypothesis: str = ""
    words: tuple[str, ...] = ()
    tables: object = None
