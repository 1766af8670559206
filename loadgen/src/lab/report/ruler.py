"""The cost of servers in units of the control parts, the rate to expect elsewhere, and drift."""

from collections.abc import Iterator, Sequence

from lab.judge.ruler import expected_rps
from lab.model import Drift, Finding, InUnits, three
from lab.report.blocks import Bullets, Section, Table
from lab.report.remarks import say
from lab.report.result import Result
from lab.report.text import NOTHING, number, share

# Of machines with so many CPUs a rate is predicted.
CPUS = (1, 4, 8)
HEADER = ("server", "CPU per request", "in units of", "server / unit µs", "host busy",
          *(f"req/s on {cpus} CPU{'s' if cpus > 1 else ''}" for cpus in CPUS),
          "on CPUs f times as slow")  # fmt: skip


def section(result: Result) -> Section:
    known = [finding for finding in result.findings if isinstance(finding, InUnits)]
    table = Table(HEADER, [_cells(cost) for cost in known], "CPU per request in units")
    notes = Bullets(tuple(_notes(known)))
    return Section("CPU per request in units of the lab's own parts", [table, notes], "units")


def _cells(cost: InUnits) -> tuple[str, ...]:
    ends = "" if cost.low is None or cost.high is None else f" [{cost.low:.2f}, {cost.high:.2f}]"
    line, busy = cost.line, cost.busy
    rates, slower = [NOTHING] * len(CPUS), NOTHING
    if line is not None and busy is not None:
        expected = [expected_rps(line, cpus, busy) for cpus in CPUS]
        rates = [number(max(float(f"{rps:.2g}"), 0.0)) for rps in expected]
        slower = f"(CPUs × {busy:.2f} / f {-line.a:+.2f}) / {three(line.b * 1e6)} µs"
    return (
        cost.server,
        f"{cost.value or 0:.2f}{ends}",
        f"control parts under {cost.lane}" if cost.lane else "its own control parts",
        f"{three(cost.server_us)} / {three(cost.control_us)}",
        f"{share(busy)}{' where it broke' if cost.broke and busy else ''}",
        *rates,
        slower,
    )


def _notes(known: Sequence[InUnits]) -> Iterator[str]:
    lanes = dict.fromkeys(cost.lane for cost in known)
    if known:
        yield say("ruler", "control-parts")
    if len(known) > 1 and None in lanes:
        yield say("ruler", "not-comparable")
    if any(lanes):
        yield say("ruler", "no-interval", lanes=" or ".join(filter(None, lanes)))
    if any(cost.line for cost in known):
        yield say("ruler", "prediction")


def drifts(findings: Sequence[Finding]) -> Iterator[str]:
    for drift in findings:
        if isinstance(drift, Drift):
            quarters = ", ".join(map(three, drift.quarters))
            yield say("ruler", "drift", of=drift, quarters=quarters)
