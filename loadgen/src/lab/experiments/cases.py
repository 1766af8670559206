"""The planted bottlenecks of an experiment's file: [[case]] tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.errors import WordError
from lab.experiments.reading import Asked, rules
from lab.experiments.reading.tables import Table, tables
from lab.judge.resources import RESOURCES
from lab.model import AS_IT_IS, NONE, UNKNOWN, Condition, Mode
from lab.model.knobs import HOST, check_host, check_knob
from lab.model.routes import RouteCall, parse
from lab.model.toxic_words import parse_toxic

# What a case may expect of the verdict.
ALLOWED = (*RESOURCES, NONE, UNKNOWN)
# The rate of an open load, a window of its own, and what the findings count by.
COUNTED = ("rate", "duration", "resource", "severity")
KEY = "case"
NEEDED = ("name", "server", "concurrency", "expected")
KEYS = (*NEEDED, "route", "knobs", "toxics", "host", "generator_cpus", "spin", "peak_extra")
DEFAULT_ROUTE = "/downstream"
# Docker's own least, and no machine has more.
LEAST_CPUS, MOST_CPUS = 0.01, 999
# A share of the machine for the spinner; some must be left for the lab.
LEAST_SPIN, MOST_SPIN = 0.01, 0.9


@dataclass(frozen=True, slots=True)
class Case:
    """A bottleneck that is planted: the trial is made under `condition`, and its verdict must be
    one of `expected` (RESOURCES, NONE, UNKNOWN). `peak_extra` connections are opened at once in the
    middle of the window (0: none). `rate` is that of an open load, in requests per second; None:
    closed. `duration_s` is the length of its window; None: that of the others. `resource` is what
    was planted, in the words of the file; `severity` how much the load asks of it, as a multiple of
    all it can give."""

    name: str
    server: str
    route: str
    concurrency: int
    expected: tuple[str, ...]
    condition: Condition = AS_IT_IS
    peak_extra: int = 0
    rate: int | None = None
    duration_s: int | None = None
    resource: str | None = None
    severity: float | None = None

    def __post_init__(self) -> None:
        if not self.expected or set(self.expected) - {*ALLOWED}:
            raise ValueError(f"expected are of {', '.join(ALLOWED)}: {self.expected}")
        if self.concurrency < 1 or self.peak_extra < 0:
            raise ValueError("concurrency starts at 1, peak_extra at 0")
        if self.rate is not None and self.peak_extra:
            raise ValueError("a peak is beside a closed load")

    @property
    def mode(self) -> Mode:
        return "closed" if self.rate is None else "open"


def read(asked: Asked) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """The cases of a file, and notes on those left out on this machine. Raises WordError."""
    cases: list[Case] = []
    notes: list[str] = []
    of_file = tables(asked, KEY)
    for table in of_file:
        case, held = _case(table, asked.here.servers, asked.here.file_limit)
        if case.name in [one.name for one in cases]:
            raise WordError(f"{table.place}: name={case.name} is there twice; allowed: each once")
        if held is None:
            cases.append(case)
        else:
            notes.append(f"{case.name} left out: this machine holds {held}")
    if not cases:
        raise WordError(f"{of_file[0].place}: none of the cases fits on this machine; {notes[0]}")
    return tuple(cases), tuple(notes)


def _case(table: Table, servers: Sequence[str], file_limit: int) -> tuple[Case, str | None]:
    """A case, and what the machine holds where that is less than it asks for."""
    unknown = [key for key in table.values if key not in (*KEYS, *COUNTED)]
    if unknown:
        allowed = ", ".join((*KEYS, *COUNTED))
        raise WordError(f"{table.place}: {unknown[0]} is not a key; allowed: {allowed}")
    missing = [key for key in NEEDED if key not in table.values]
    if missing:
        raise WordError(f"{table.place}: {missing[0]} is missing")
    call: RouteCall = table.text("route", parse, DEFAULT_ROUTE)
    concurrency = table.whole("concurrency", 1, rules.MAX_CONNECTIONS)
    extra = table.whole("peak_extra", 0, rules.MAX_CONNECTIONS)
    rate = table.whole("rate", 1, rules.MAX_RATE_RPS) if "rate" in table.values else None
    if rate is not None and extra:
        raise table.refused(f"rate={rate}", "none beside peak_extra")
    case = Case(
        name=table.text("name", rules.name),
        server=table.text("server", rules.server(servers)),
        route=table.text("route", str, DEFAULT_ROUTE),
        concurrency=concurrency,
        expected=_expected(table),
        condition=Condition(
            knobs=_knobs(table),
            toxics=_toxics(table),
            host=_host(table),
            generator_cpus=_number(table, "generator_cpus", LEAST_CPUS, MOST_CPUS),
            spin=_number(table, "spin", LEAST_SPIN, MOST_SPIN),
        ),
        peak_extra=extra,
        rate=rate,
        duration_s=table.text("duration", rules.seconds(1)) if "duration" in table.values else None,
        resource=table.text("resource", str) if "resource" in table.values else None,
        severity=_number(table, "severity", 0.01, 1000),
    )
    most = rules.max_concurrency(call.route, file_limit)
    return case, rules.held(call.route, file_limit) if concurrency + extra > most else None


def _expected(table: Table) -> tuple[str, ...]:
    given, allowed = table.values["expected"], ALLOWED
    if not isinstance(given, list) or not given:
        raise table.refused(f"expected={given!r}", f"a list of {', '.join(allowed)}")
    return tuple(table.read("expected", str(one), rules.one_of(allowed)) for one in given)


def _knobs(table: Table) -> dict[str, int]:
    given = table.mapping("knobs")
    for name, value in given.items():
        try:
            check_knob(name, value)
        except ValueError as failure:
            raise WordError(f"{table.place}: knobs: {failure}") from None
    return {name: value for name, value in given.items() if isinstance(value, int)}


def _host(table: Table) -> dict[str, str]:
    given = table.mapping("host")
    for name, value in given.items():
        if not isinstance(value, str):
            raise table.refused(f"host: {name}={value!r}", f"a text; of {', '.join(HOST)}")
        try:
            check_host(name, value)
        except ValueError as failure:
            raise WordError(f"{table.place}: host: {failure}") from None
    return {name: str(value) for name, value in given.items()}


def _toxics(table: Table) -> tuple[Mapping[str, str], ...]:
    given = table.values.get("toxics", [])
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise table.refused(f"toxics={given!r}", 'as [{ TYPE = "latency", LATENCY = "300" }]')
    found = []
    for one in given:
        words = {str(key).upper(): str(value) for key, value in one.items()}
        try:
            parse_toxic(words)
        except WordError as failure:
            raise WordError(f"{table.place}: {failure}") from None
        found.append(words)
    return tuple(found)


def _number(table: Table, key: str, least: float, most: float) -> float | None:
    given = table.values.get(key)
    if given is None:
        return None
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not number or not least <= float(str(given)) <= most:
        raise table.refused(f"{key}={given!r}", f"a number {least}..{most}")
    return float(str(given))
