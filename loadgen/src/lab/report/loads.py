"""The loads of a run as tables: what was predicted and measured, CPU time, where the time goes."""

from collections.abc import Callable, Sequence
from operator import attrgetter

from lab.judge.grouping import most_errors
from lab.judge.splits import allowed_ms, mean_split
from lab.judge.values import MOST_ERRORS
from lab.model import CpuSplit, Row, TimeSplit, around_server_us, goodput, p95_of
from lab.report.blocks import Block, Paragraph, Section, Table
from lab.report.remarks import say
from lab.report.result import Load, Result
from lab.report.text import NOTHING, median, number, share
from lab.report.verdicts import limit

type Column = tuple[str, Callable[[Load], str]]


def section(result: Result) -> Section:
    none = "" if result.rows else "No trial ended: nothing came out."
    legend = say("legend", "loads", most=MOST_ERRORS)
    return Section("Loads", table(result.loads, MEASURED, "Loads", legend), "loads", none)


def brief(result: Result) -> list[Block]:
    """The same for a console."""
    return table(result.loads, MEASURED, "Loads", say("legend", "brief"))


def cpu(result: Result) -> Section:
    parts = CpuSplit.columns()
    known = [load for load in result.loads if any(load.median(attrgetter(part)) for part in parts)]
    blocks = table(known, CPU, "CPU per request", say("legend", "cpu"))
    return Section("CPU per request", blocks, "cpu")


def time(result: Result) -> Section:
    splits = {load.name: mean_split(load.valid) for load in result.loads}
    known = [load for load in result.loads if splits[load.name] != TimeSplit()]
    columns: Sequence[Column] = (
        ("p95", _measured(p95_of)),
        ("mean", lambda load: number(splits[load.name].whole_ms)),
        *(
            (part, lambda load, name=name: number(getattr(splits[load.name], name)))
            for part, name in zip(PARTS, TimeSplit.columns(), strict=True)
        ),
        ("allowed", lambda load: number(allowed_ms(splits[load.name]))),
    )
    blocks = table(known, columns, "Where the time goes", say("legend", "time"))
    return Section("Where the time goes", blocks, "time")


def table(loads: Sequence[Load], columns: Sequence[Column], label: str, legend: str) -> list[Block]:
    """A row for each load, after what is the same for all. A column that says nothing is left out,
    and so is one of SAME with one value."""
    every = [(name, [cell(load) for load in loads]) for name, cell in (*PLACE, *columns)]
    same = [cells[0] for name, cells in every if name in SAME and len({*cells}) == 1]
    kept = [
        (name, cells)
        for name, cells in every
        if (len({*cells}) > 1 if name in SAME else {*cells} != {NOTHING})
    ]
    header = [name for name, _ in kept]
    rows = [*zip(*(cells for _, cells in kept), strict=True)]
    names = sum(name in dict(PLACE) for name in header)
    whole = Table(header, rows, label, legend, names, folds=True, optional=OPTIONAL)
    return [Paragraph(f"All: {', '.join(same)}." if same else ""), whole]


def _measured(measure: Callable[[Row], float | None]) -> Callable[[Load], str]:
    return lambda load: median(load.median(measure))


def _predicted(name: str) -> Callable[[Load], str]:
    return lambda load: number(load.expected(attrgetter(name)))


def _binding(load: Load) -> str:
    bindings = [row.binding for row in load.valid or load.rows if row.binding]
    return max(bindings, key=bindings.count) if bindings else NOTHING


def _of_expected(load: Load) -> str:
    rps, expected = load.median(goodput), load.expected(attrgetter("expected_rps"))
    return share(rps.median / expected) if rps and expected else NOTHING


def p99_of(row: Row) -> float | None:
    """The p99 in ms that counts: corrected in an open load, raw in a closed one."""
    return row.p99_ms if row.mode == "open" else row.raw_p99_ms


def _raw_p95(row: Row) -> float | None:
    return row.raw_p95_ms if row.mode == "open" else None


def _errors(load: Load) -> str:
    each = ((row.http_errors, row.socket_errors, row.timeouts) for row in load.rows)
    known = [count for counts in each for count in counts if count is not None]
    most = most_errors(load.rows)
    large = f" ({most:.0%})" if most > MOST_ERRORS else ""
    return f"{sum(known):,}{large}" if known else NOTHING


def _launches(load: Load) -> str:
    found = load.median(goodput)
    return str(found.count if found else 0)


PLACE: Sequence[Column] = (
    ("route", lambda load: load.cell.route),
    ("engine", lambda load: load.cell.engine),
    ("window", lambda load: f"{load.cell.duration_s} s"),
    ("mode", lambda load: load.cell.mode),
    ("connections", lambda load: f"{load.cell.concurrency:,}"),
    ("offered/s", lambda load: number(load.cell.offered_rps)),
    ("server", lambda load: load.lane),
)
SAME = ("route", "engine", "window", "mode")
MEASURED: Sequence[Column] = (
    ("at most", _predicted("predicted_rps")),
    ("expected", _predicted("expected_rps")),
    ("binding", _binding),
    ("req/s", _measured(goodput)),
    ("of expected", _of_expected),
    ("expected p95", _predicted("expected_p95_ms")),
    ("p95", _measured(p95_of)),
    ("p99", _measured(p99_of)),
    ("raw p95", _measured(_raw_p95)),
    ("errors", _errors),
    ("limit", limit),
    ("valid", lambda load: f"{len(load.valid)} of {len(load.rows)}"),
    ("launches", _launches),
)
# What a narrow console leaves out, this first.
OPTIONAL = (
    *("launches", "binding", "at most", "raw p95", "of expected", "expected p95", "errors"),
    *("p99", "valid", "offered/s"),
)
CPU: Sequence[Column] = (
    ("server µs", _measured(attrgetter("cpu_server_us"))),
    ("around it", _measured(around_server_us)),
    ("proxy", _measured(attrgetter("cpu_proxy_us"))),
    ("downstream", _measured(attrgetter("cpu_downstream_us"))),
    ("generator", _measured(attrgetter("cpu_generator_us"))),
    ("observation", _measured(attrgetter("cpu_observation_us"))),
)
# In the order of TimeSplit's columns.
PARTS = ("generator", "connect", "queue", "own", "connection", "path", "downstream", "unexplained")
