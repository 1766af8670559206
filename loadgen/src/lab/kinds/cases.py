"""The planted bottlenecks of an experiment's file: [[case]] tables."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from lab.errors import WordError
from lab.judge.resources import RESOURCES
from lab.kinds.reading import Asked, Settings, max_concurrency
from lab.kinds.reading.settings import (
    MAX_CONNECTIONS,
    Connections,
    Duration,
    Name,
    Rps,
    file_keys,
    tables,
)
from lab.model import AS_IT_IS, NONE, UNKNOWN, Condition, Mode
from lab.model.knobs import check_host, check_knob
from lab.model.routes import parse
from lab.model.toxics import parse_toxic

# What a case may expect of the verdict.
ALLOWED = (*RESOURCES, NONE, UNKNOWN)
KEY = "case"


class CaseHead(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of [[case]] that are stored as they are. `expected` are the verdicts that are right.
    `peak_extra` connections are opened at once in the middle of the window. `rate` is that of an
    open load; None: closed. `duration_s` None: that of the others. `resource` is what was planted,
    in the words of the file; `severity` how much the load asks of it, as a multiple of all it can
    give."""

    name: Name
    server: str
    route: str
    concurrency: Connections
    expected: tuple[str, ...]
    peak_extra: Annotated[int, Meta(ge=0, le=MAX_CONNECTIONS)] = 0
    rate: Rps | None = None
    duration_s: Duration | None = None
    resource: str | None = None
    severity: Annotated[float, Meta(ge=0.01, le=1000)] | None = None


class CaseTable(CaseHead, frozen=True, kw_only=True):
    """The keys of [[case]]."""

    knobs: dict[str, int] = {}
    toxics: list[dict[str, str | int | float]] = []
    host: dict[str, str] = {}
    # Docker's own least, and no machine has more.
    generator_cpus: Annotated[float, Meta(ge=0.01, le=999)] | None = None
    # A share of the machine; some must be left for the lab.
    spin: Annotated[float, Meta(ge=0.01, le=0.9)] | None = None


class Case(CaseHead, frozen=True, kw_only=True):
    """A bottleneck that is planted: the trial is made under `condition`."""

    condition: Condition = AS_IT_IS

    def __post_init__(self) -> None:
        if not self.expected or {*self.expected} - {*ALLOWED}:
            raise ValueError(f"expected are of {', '.join(ALLOWED)}: {self.expected}")
        if self.rate is not None and self.peak_extra:
            raise ValueError("a peak is beside a closed load")

    @property
    def mode(self) -> Mode:
        return "closed" if self.rate is None else "open"


def read(asked: Asked) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """The cases of a file, and notes on those left out on this machine. Raises WordError."""
    cases: list[Case] = []
    notes: list[str] = []
    for settings in tables(asked, KEY):
        case = _case(settings, asked.here.servers)
        if case.name in [other.name for other in cases]:
            raise settings.refuse("name", "is there twice; allowed: each once")
        most = max_concurrency(parse(case.route).route, asked.here.file_limit)
        if case.concurrency + case.peak_extra <= most:
            cases.append(case)
        else:
            notes.append(f"{case.name} left out: this machine holds 1..{most} on {case.route}")
    if not cases:
        raise WordError(f"{asked.settings.place}: no case fits on this machine; {notes[0]}")
    return tuple(cases), tuple(notes)


def _case(settings: Settings, servers: Sequence[str]) -> Case:
    settings.refuse_unknown(file_keys(CaseTable))
    settings = settings.with_defaults({"route": "/downstream"})
    table = settings.table("", CaseTable)
    settings.one_of("server", servers, "a server of the lab")
    settings.one_of("expected", ALLOWED)
    if table.rate is not None and table.peak_extra:
        raise settings.refuse("rate", "is not allowed; allowed: none beside peak_extra")
    with settings.checked("route"):
        parse(table.route)
    toxics = [{key.upper(): str(text) for key, text in toxic.items()} for toxic in table.toxics]
    try:
        for name, value in table.knobs.items():
            check_knob(name, value)
        for name, text in table.host.items():
            check_host(name, text)
        for words in toxics:
            parse_toxic(words)
    except (ValueError, WordError) as failure:
        raise WordError(f"{settings.place}: {failure}") from None
    condition = Condition(table.knobs, tuple(toxics), table.host, table.generator_cpus, table.spin)
    head = (getattr(table, name) for name in CaseHead.__struct_fields__)
    return Case(*head, condition=condition)
