"""Settings: what a word or a line of a file gives, read as the fields of a msgspec.Struct.

A word and a key of a file that mean the same are read alike. A field that ends with _s is a
duration, whose key has no such ending. A wrong value is refused in one line (WordError) with the
place, the value and what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import Meta, Struct, inspect

from lab.errors import WordError

MAX_DURATION_S = 24 * 3600
MAX_RATE_RPS = 10_000_000
MAX_CONNECTIONS = 1_000_000
_DURATION = re.compile(r"([0-9]{1,6})(s|m|h)?")
_SECONDS = {"s": 1, None: 1, "m": 60, "h": 3600}
_IN_UNITS = "24h in whole seconds, minutes or hours, as 15s or 2m"
# So many characters of a value are shown in a message.
_SHOWN = 60

Name = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9][a-z0-9-]{0,39}\Z",
        description="up to 40 of a-z, 0-9 and '-', starting with a letter or digit",
    ),
]
Connections = Annotated[int, Meta(ge=1, le=MAX_CONNECTIONS)]
Rps = Annotated[int, Meta(ge=1, le=MAX_RATE_RPS)]
# A time in seconds, which SCALE multiplies.
Duration = Annotated[int, Meta(ge=1, le=MAX_DURATION_S, description=f"1s..{_IN_UNITS}")]
# A time in seconds that may be 0, and that SCALE leaves as it is.
Pause = Annotated[int, Meta(ge=0, le=MAX_DURATION_S, description=f"0s..{_IN_UNITS}")]


def file_keys(table: type[Struct], name: str = "") -> tuple[str, ...]:
    """The keys of a table in a file, as load.servers; without a name those of no table."""
    keys = (field.removesuffix("_s") for field in table.__struct_fields__)
    return tuple(f"{name}.{key}" if name else key for key in keys)


@dataclass(frozen=True, slots=True)
class Given:
    """What was given for a setting. `place` names it in messages, as "bench: CONC" or
    "experiments/sweep.toml: load.concurrency"; `by_user`: by a word, not by a line of a file."""

    place: str
    value: Any
    by_user: bool = False

    @property
    def values(self) -> list[str]:
        return [*map(str, self.value if isinstance(self.value, list) else [self.value])]

    def refuse(self, problem: str) -> WordError:
        """The refusal; `problem` follows the given value."""
        text = ",".join(self.values).replace("\n", " ")
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        return WordError(f"{self.place}={shown} {problem}")


class Settings:
    """Settings by key, as load.concurrency. `place` stands before the name of one that is missing;
    `scale` multiplies each Duration."""

    def __init__(self, place: str, given: Mapping[str, Given], scale: float = 1.0) -> None:
        self.place = place
        self.scale = scale
        self.given = dict(given)

    def get(self, key: str) -> Given | None:
        return self.given.get(key)

    def by_user(self, key: str) -> bool:
        return key in self.given and self.given[key].by_user

    def with_defaults(self, values: Mapping[str, str]) -> Settings:
        """These, and the values where nothing was given."""
        usual = {key: Given(f"{self.place}: {key}", value) for key, value in values.items()}
        return Settings(self.place, usual | self.given, self.scale)

    def scaled(self, seconds: int) -> int:
        """A duration in whole seconds, at least one."""
        return max(1, round(seconds * self.scale))

    def missing(self, key: str) -> WordError:
        return WordError(f"{self.place}: {key} is missing")

    def refuse(self, key: str, problem: str) -> WordError:
        """The refusal of a setting that was given; `problem` follows the given value."""
        return self.given[key].refuse(problem)

    def refuse_unknown(self, keys: Sequence[str]) -> None:
        """Raises WordError for a key that is none of these."""
        for key in self.given:
            if key not in keys:
                near = [other for other in keys if other.startswith(key.partition(".")[0] + ".")]
                allowed = ", ".join(near or keys)
                raise WordError(f"{self.place}: {key} is not a key; allowed: {allowed}")

    def one_of(self, key: str, allowed: Sequence[str], what: str = "allowed") -> None:
        """Raises WordError where a value that was given is none of these."""
        given = self.given.get(key)
        if given is not None and not {*given.values} <= {*allowed}:
            raise given.refuse(f"is not {what}; allowed: {', '.join(allowed)}")

    @contextmanager
    def checked(self, key: str) -> Iterator[None]:
        """Makes a WordError of a ValueError about a setting. Its text names the value itself."""
        try:
            yield
        except ValueError as failure:
            place = self.given[key].place if key in self.given else f"{self.place}: {key}"
            raise WordError(f"{place}={failure}") from None

    def table[S: Struct](self, name: str, kind: type[S]) -> S:
        """The settings of a table, as [load]; those without a table for an empty name. Raises
        WordError."""
        values = {}
        for field, key in zip(msgspec.structs.fields(kind), file_keys(kind, name), strict=True):
            if key in self.given:
                values[field.name] = self._read(self.given[key], field)
            elif field.required:
                raise self.missing(key)
        return kind(**values)

    def _read(self, given: Given, field: msgspec.structs.FieldInfo) -> Any:
        value, kind = given.value, field.type
        listed = get_origin(kind) is tuple
        if listed and isinstance(value, str):
            value = [value]
        if field.name.endswith("_s"):
            match = _DURATION.fullmatch(str(value))
            value = int(match[1]) * _SECONDS[match[2]] if match else -1
        elif not isinstance(value, list | dict) and not listed:
            value = str(value)
        try:
            values = msgspec.convert(value, kind, strict=False)
        except (msgspec.ValidationError, UnicodeEncodeError):
            allowed = allowed_text(inspect.type_info(kind))
            raise given.refuse(f"is not allowed; allowed: {allowed}") from None
        if listed and not values:
            raise given.refuse("is empty; allowed: one or more")
        if listed and len({*map(str, values)}) < len(values):
            raise given.refuse("names the same twice")
        return self.scaled(values) if Duration in (kind, *get_args(kind)) else values


def allowed_text(kind: inspect.Type) -> str:
    """What a value of this type may be."""
    match kind:
        case inspect.Metadata(type=known, extra_json_schema=more):
            return str((more or {}).get("description") or allowed_text(known))
        case inspect.IntType(ge=least, le=most) | inspect.FloatType(ge=least, le=most):
            return f"{least}..{most}" if least is not None else "a number"
        case inspect.LiteralType(values=values):
            return ", ".join(map(str, values))
        case inspect.VarTupleType(item_type=item):
            return f"a list of {allowed_text(item)}"
        case inspect.DictType(key_type=key, value_type=value):
            return f"a table of {allowed_text(key)} = {allowed_text(value)}"
        case inspect.UnionType(types=types):
            each = [allowed_text(one) for one in types if not isinstance(one, inspect.NoneType)]
            return " or ".join(each)
    return "a text"


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


def tables(asked: Asked, key: str) -> Iterator[Settings]:
    """The tables [[key]] of a file, at least one, each as settings. Raises WordError."""
    place = asked.settings.place
    if not isinstance(asked.tables, list) or not asked.tables:
        raise WordError(f"{place}: {key} is missing; allowed: one or more tables [[{key}]]")
    for number, table in enumerate(asked.tables, 1):
        at = f"{place}: {key} {number}"
        if not isinstance(table, dict):
            raise WordError(f"{at}={table} is not allowed; allowed: a table [[{key}]]")
        given = {name: Given(f"{at}: {name}", value) for name, value in table.items()}
        yield Settings(at, given, asked.settings.scale)
