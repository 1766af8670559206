"""What a request costs, part by part: CPU time, and the mean time that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lab.judge.grouping import Load
from lab.judge.splits import allowed_ms
from lab.model import CpuSplit, TimeSplit, around_server_us
from lab.report.blocks import Section, Table
from lab.report.loads import SAME, offered, table, windows
from lab.report.table import NOTHING, microseconds

CPU_PARTS = ("its CPU µs", "around the server", "proxy", "downstream", "generator", "observation")
CPU_LEGEND = (
    "CPU time in the measured window, in µs per answered request: medians of the valid "
    "trials of one mode. around the server: the four columns after it. generator: the load "
    "engine's process. observation: Prometheus, cAdvisor, Grafana, the agent and the driver."
)
# In the order of TimeSplit.parts.
TIME_PARTS = (
    *("generator", "connect", "queue", "own", "connection", "path", "downstream", "unexplained"),
)
TIME_LEGEND = (
    "Mean times of the requests of the measured window, in ms: means of the valid trials of one "
    "mode. The parts and what is unexplained add up to the mean, which counts from when a request "
    "was due. p95 is beside them, and no sum. generator: what it sent late itself. connect: until "
    "a connection of the load was open, accepted and free. queue: handed over in the server and "
    "not begun; also while what came lay unread in an event loop of the lab's, or a virtual thread "
    "was late. own: the server's work, and waits that the route is made of. connection: waiting "
    "for a connection to the downstream. path: a call beyond the downstream's time, the proxy's in "
    "it, and what nobody explains there, too. "
    "downstream: its delay and its lag. unexplained: what the client saw beyond all parts; below 0 "
    "where the parts are more than that. allowed: how much of it may be, 10 % of the mean above "
    "the downstream's time, or 0.3 ms."
)


def sections(loads: Sequence[Load]) -> tuple[Section, Section]:
    """Tables with a row for each load and mode of which the parts are known: for both reports."""
    cpu = [(load, mode, map(microseconds, _used(of))) for load, mode, of in _cpu(loads)]
    known = tuple(times(loads))
    # A part that no load has is no column.
    kept = [
        at for at in range(len(TIME_PARTS)) if any(of.parts[at] is not None for *_, of in known)
    ]
    names = ("p95", "mean", *(TIME_PARTS[at] for at in kept), "allowed")
    time = [
        (load, mode, map(milliseconds, _taken(load, mode, of, kept))) for load, mode, of in known
    ]
    return (
        Section("CPU per request", [_table("CPU per request", CPU_PARTS, cpu, CPU_LEGEND)]),
        Section("Where the time goes", [_table("Where the time goes", names, time, TIME_LEGEND)]),
    )


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


def _taken(load: Load, mode: str, of: TimeSplit, kept: Sequence[int]) -> tuple[float | None, ...]:
    """The p95, the mean, those of its parts that are `kept`, and the unexplained allowed."""
    p95 = load.open_p95_ms if mode == "open" else load.closed_p95_ms
    parts = (of.parts[at] for at in kept)
    return (p95.median if p95 is not None else None, of.whole_ms, *parts, allowed_ms(of))


def _table(
    label: str, parts: Sequence[str], cells: Sequence[tuple[Load, str, Iterable[str]]], legend: str
) -> Table:
    header = (*SAME, "connections", "offered/s", "mode", "server")
    rows = [
        (
            load.route,
            load.engine,
            windows(load.closed_s if mode == "closed" else load.open_s),
            str(load.concurrency),
            NOTHING if mode == "closed" else offered(load),
            mode,
            load.lane,
            *values,
        )
        for load, mode, values in cells
    ]
    return table(label, (*header, *parts), rows, legend, names=len(header))


def milliseconds(value: float | None) -> str:
    """A mean time, without its unit."""
    if value is None:
        return NOTHING
    # No minus before a zero.
    return f"{round(value, 1) + 0.0:.1f}" if abs(value) < 99.95 else f"{value:.0f}"
