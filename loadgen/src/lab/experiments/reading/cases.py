"""The planted bottlenecks of an experiment's file: [[case]] tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lab.errors import WordError
from lab.experiments.reading import rules
from lab.model import NONE, RESOURCES, Case, Condition
from lab.model.knobs import HOST, check_host, check_knob
from lab.model.routes import RouteCall, parse
from lab.model.toxic_words import parse_toxic

T = TypeVar("T")
KEY = "case"
KEYS = (
    "name",
    "server",
    "route",
    "concurrency",
    "expected",
    "knobs",
    "toxics",
    "host",
    "generator_cpus",
    "peak_extra",
)
NEEDED = ("name", "server", "concurrency", "expected")
DEFAULT_ROUTE = "/downstream"
# Docker's own least, and no machine has more.
LEAST_CPUS, MOST_CPUS = 0.01, 999


@dataclass(frozen=True, slots=True)
class Table:
    """One table: where it is for messages, what is in it."""

    place: str
    values: Mapping[str, object]


def read(tables: object, file: str) -> tuple[Table, ...]:
    """The tables of a file. Raises WordError."""
    if not isinstance(tables, list) or not tables:
        raise WordError(f"{file}: {KEY} is missing; allowed: one or more tables [[{KEY}]]")
    found = []
    for at, table in enumerate(tables, 1):
        place = f"{file}: {KEY} {at}"
        if not isinstance(table, dict):
            raise WordError(f"{place}: {table!r} is not allowed; allowed: a table [[{KEY}]]")
        unknown = [key for key in table if key not in KEYS]
        if unknown:
            raise WordError(f"{place}: {unknown[0]} is not a key; allowed: {', '.join(KEYS)}")
        missing = [key for key in NEEDED if key not in table]
        if missing:
            raise WordError(f"{place}: {missing[0]} is missing")
        found.append(Table(place, table))
    return tuple(found)


def checked(
    tables: Sequence[Table], servers: Sequence[str], file_limit: int
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """The cases, and notes of those that this machine cannot hold and are left out. Raises
    WordError."""
    cases: list[Case] = []
    notes: list[str] = []
    for table in tables:
        case, held = _case(table, servers, file_limit)
        if case.name in [one.name for one in cases]:
            raise WordError(f"{table.place}: name={case.name} is there twice; allowed: each once")
        if held is None:
            cases.append(case)
        else:
            notes.append(f"{case.name} left out: this machine holds {held}")
    if not cases:
        raise WordError(f"{tables[0].place}: none of the cases fits on this machine; {notes[0]}")
    return tuple(cases), tuple(notes)


def _case(table: Table, servers: Sequence[str], file_limit: int) -> tuple[Case, str | None]:
    """A case, and what the machine holds where that is less than it asks for."""

    def text(key: str, rule: Callable[[str], T], default: str | None = None) -> T:
        value = table.values.get(key, default)
        if not isinstance(value, str):
            raise _refused(table, f"{key}={value!r}", "a text")
        return _read(table, key, value, rule)

    def whole(key: str, least: int, default: int) -> int:
        value = table.values.get(key, default)
        if type(value) is not int or not least <= value <= 1_000_000:
            raise _refused(table, f"{key}={value!r}", f"a whole number {least}..1000000")
        return value

    call: RouteCall = text("route", parse, DEFAULT_ROUTE)
    concurrency, extra = whole("concurrency", 1, 0), whole("peak_extra", 0, 0)
    condition = Condition(
        knobs=_knobs(table),
        toxics=_toxics(table),
        host=_host(table),
        generator_cpus=_cpus(table),
    )
    case = Case(
        name=text("name", rules.name),
        server=text("server", rules.server(servers)),
        route=text("route", str, DEFAULT_ROUTE),
        concurrency=concurrency,
        expected=_expected(table),
        condition=condition,
        peak_extra=extra,
    )
    most = rules.max_concurrency(call.route, file_limit)
    return case, rules.held(call.route, file_limit) if concurrency + extra > most else None


def _expected(table: Table) -> tuple[str, ...]:
    given, allowed = table.values["expected"], (*RESOURCES, NONE)
    if not isinstance(given, list) or not given:
        raise _refused(table, f"expected={given!r}", f"a list of {', '.join(allowed)}")
    return tuple(_read(table, "expected", str(one), rules.one_of(allowed)) for one in given)


def _knobs(table: Table) -> dict[str, int]:
    given = _mapping(table, "knobs")
    for name, value in given.items():
        try:
            check_knob(name, value)
        except ValueError as failure:
            raise WordError(f"{table.place}: knobs: {failure}") from None
    return {name: value for name, value in given.items() if isinstance(value, int)}


def _host(table: Table) -> dict[str, str]:
    given = _mapping(table, "host")
    for name, value in given.items():
        if not isinstance(value, str):
            raise _refused(table, f"host: {name}={value!r}", f"a text; of {', '.join(HOST)}")
        try:
            check_host(name, value)
        except ValueError as failure:
            raise WordError(f"{table.place}: host: {failure}") from None
    return {name: str(value) for name, value in given.items()}


def _toxics(table: Table) -> tuple[Mapping[str, str], ...]:
    given = table.values.get("toxics", [])
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise _refused(table, f"toxics={given!r}", 'as [{ TYPE = "latency", LATENCY = "300" }]')
    found = []
    for one in given:
        words = {str(key).upper(): str(value) for key, value in one.items()}
        try:
            parse_toxic(words)
        except WordError as failure:
            raise WordError(f"{table.place}: {failure}") from None
        found.append(words)
    return tuple(found)


def _cpus(table: Table) -> float | None:
    given = table.values.get("generator_cpus")
    if given is None:
        return None
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not number or not LEAST_CPUS <= float(str(given)) <= MOST_CPUS:
        raise _refused(table, f"generator_cpus={given!r}", f"a number {LEAST_CPUS}..{MOST_CPUS}")
    return float(str(given))


def _mapping(table: Table, key: str) -> Mapping[str, object]:
    given = table.values.get(key, {})
    if not isinstance(given, dict):
        raise _refused(table, f"{key}={given!r}", "a table, as { name = value }")
    return given


def _read(table: Table, key: str, text: str, rule: Callable[[str], T]) -> T:
    try:
        return rule(text)
    except ValueError as failure:
        raise WordError(f"{table.place}: {key}={failure}") from None


def _refused(table: Table, given: str, allowed: str) -> WordError:
    return WordError(f"{table.place}: {given} is not allowed; allowed: {allowed}")
