"""What a request costs, part by part: CPU time, and the mean time that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lab.judge.grouping import Load
from lab.judge.time_split import growth
from lab.model import CpuSplit, Row, TimeSplit, around_server_us
from lab.report.blocks import Bullets, Section, Table
from lab.report.loads import offered, table
from lab.report.table import NOTHING, microseconds

CPU_PARTS = ("its CPU µs", "around the server", "proxy", "downstream", "generator", "observation")
CPU_LEGEND = (
    "CPU time in the measured window, in µs per answered request: medians of the valid "
    "trials of one mode. around the server: the four columns after it. generator: the load "
    "engine's process. observation: Prometheus, cAdvisor, Grafana, the agent and the driver."
)
# In the order of TimeSplit.
TIME_PARTS = ("generator", "outside", "queue", "own", "connection", "path", "downstream")
TIME_LEGEND = (
    "Mean times of the requests of the measured window, in ms: means of the valid trials of one "
    "mode. The parts add up to the mean, which counts from when a request was due. generator: "
    "until it was sent. outside: between the generator and the server, in neither's own time. "
    "queue: handed over in the server and not begun. own: the server's work, and waits that the "
    "route is made of. connection: waiting for a connection to the downstream. path: Toxiproxy "
    "with its toxics, and the network there and back. downstream: its delay and its lag."
)


def sections(loads: Sequence[Load]) -> tuple[Section, Section]:
    """Tables with a row for each load and mode of which the parts are known: for both reports."""
    cpu = [(load, mode, map(microseconds, _used(of))) for load, mode, of in _cpu(loads)]
    known = tuple(times(loads))
    time = [(load, mode, map(milliseconds, (of.whole_ms, *of.parts))) for load, mode, of in known]
    grown = Bullets(tuple(_growth(known)))
    return (
        Section("CPU per request", [_table("CPU per request", CPU_PARTS, cpu, CPU_LEGEND)]),
        Section(
            "Where the time goes",
            [grown, _table("Where the time goes", ("mean", *TIME_PARTS), time, TIME_LEGEND)],
        ),
    )


def one(row: Row) -> str | None:
    """Where the mean time of a trial's requests went; None where nobody can tell."""
    if row.time_own_ms is None:
        return None
    known = {name: getattr(row, name) for name in TimeSplit.columns()}
    whole_ms = TimeSplit(**known).whole_ms
    parts = zip(TIME_PARTS, known.values(), strict=True)
    told = " + ".join(f"{milliseconds(value)} {name}" for name, value in parts if value)
    return f"{milliseconds(whole_ms)} ms = {told}"


def _cpu(loads: Sequence[Load]) -> Iterator[tuple[Load, str, CpuSplit]]:
    for load in loads:
        for mode, cpu in (("closed", load.closed_cpu), ("open", load.open_cpu)):
            if cpu != CpuSplit():
                yield load, mode, cpu


def times(loads: Sequence[Load]) -> Iterator[tuple[Load, str, TimeSplit]]:
    """The loads and modes of which it is known where the mean time went."""
    for load in loads:
        for mode, time in (("closed", load.closed_time), ("open", load.open_time)):
            if time != TimeSplit():
                yield load, mode, time


def _used(of: CpuSplit) -> tuple[float | None, ...]:
    around = of.cpu_proxy_us, of.cpu_downstream_us, of.cpu_generator_us, of.cpu_observation_us
    return of.cpu_server_us, around_server_us(of), *around


def _table(
    label: str, parts: Sequence[str], cells: Sequence[tuple[Load, str, Iterable[str]]], legend: str
) -> Table:
    header = ("route", "engine", "connections", "offered/s", "mode", "server")
    rows = [
        (
            load.route,
            load.engine,
            str(load.concurrency),
            NOTHING if mode == "closed" else offered(load),
            mode,
            load.lane,
            *values,
        )
        for load, mode, values in cells
    ]
    return table(label, (*header, *parts), rows, legend, names=len(header))


def _growth(of: Sequence[tuple[Load, str, TimeSplit]]) -> Iterator[str]:
    """For each lane and mode: from its lightest to its heaviest load, which part grew most."""
    lanes: dict[tuple[str, str, str, str], list[tuple[Load, TimeSplit]]] = {}
    for load, mode, time in of:
        lanes.setdefault((load.route, load.engine, load.lane, mode), []).append((load, time))
    routes, engines = (len({key[at] for key in lanes}) > 1 for at in (0, 1))
    for (route, engine, lane, mode), found in lanes.items():
        where = [lane, *([route] if routes else []), *([engine] if engines else []), mode]
        ordered = sorted(found, key=lambda one: (one[0].concurrency, one[0].offered_rps or 0))
        (light, before), (heavy, after) = ordered[0], ordered[-1]
        grown = growth(before, after)
        if grown is not None:
            yield (
                f"{', '.join(where)}: from {_load(light, mode)} to {_load(heavy, mode)} the mean "
                f"grew by {milliseconds(grown.grown_ms)} ms, {grown.share:.0%} of it {grown.most}"
            )


def _load(of: Load, mode: str) -> str:
    rate = f" at {of.offered_rps:,}/s" if mode == "open" and of.offered_rps is not None else ""
    return f"{of.concurrency:,} connections{rate}"


def milliseconds(value: float | None) -> str:
    """A mean time, without its unit."""
    if value is None:
        return NOTHING
    return f"{value:.1f}" if abs(value) < 99.95 else f"{value:.0f}"
