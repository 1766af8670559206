"""Headlines in units of the control parts, the rate to expect on another host, and drift: words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.judge.ruler import expected_rps
from lab.model import Drift, Finding, InUnits, three
from lab.report.answers import Answers


def with_units(answers: Answers, findings: Sequence[Finding]) -> tuple[tuple[str, ...], ...]:
    """The answers with the second form of each headline, and with notes that say what it is."""
    known = {units.server: units for units in findings if isinstance(units, InUnits)}
    lines = [
        (*cells, *[""] * (3 - len(cells)), *_cells(known[cells[0]])) if cells[0] in known else cells
        for cells in answers
    ]
    return (*lines, *((note,) for note in _notes(list(known.values()))))


def _cells(cost: InUnits) -> Iterator[str]:
    ends = "" if cost.low is None or cost.high is None else f" [{cost.low:.2f}, {cost.high:.2f}]"
    lane = (
        "its own control parts'" if cost.lane is None else f"the control parts' under {cost.lane}"
    )
    busy = ""
    if cost.busy is not None:
        busy = f"; {cost.busy:.0%} of the host's CPUs busy{' where it broke' if cost.broke else ''}"
    units, us = (
        f"{cost.value or 0:.2f}{ends}",
        f"{three(cost.server_us)} / {three(cost.control_us)} µs",
    )
    yield f"server CPU per request: {units} of {lane} ({us}){busy}"
    if cost.line is not None and cost.busy is not None and cost.cpus:
        here = float(f"{expected_rps(cost.line, cost.cpus, cost.busy):.2g}")
        yield (
            f"estimate for a host f times as slow: (CPUs × {cost.busy:.2f} / f "
            f"{-cost.line.a:+.2f}) / {three(cost.line.b * 1e6)} µs; {here:,.0f} req/s for f = 1 "
            f"and {cost.cpus} CPUs"
        )


def _notes(shown: Sequence[InUnits]) -> Iterator[str]:
    lanes = dict.fromkeys(cost.lane for cost in shown)
    if shown:
        own = " Servers with their own control parts are not comparable by it." * (
            len(shown) > 1 and None in lanes
        )
        yield f"Control parts: generator, Toxiproxy and downstream at the same rate.{own}"
    if any(lanes):
        yield (
            f"No interval is given in units of {' or '.join(filter(None, lanes))}: at many rates "
            "too few of its launches show how much these scatter (some 1 to 6 %)."
        )
    if any(cost.line is not None for cost in shown):
        yield (
            "f = the control parts' CPU time for a request on the other host / here, at the same "
            "rate under the same server. Such estimates were wrong by up to a third "
            "(docs/hosts.md)."
        )


def drifts(findings: Sequence[Finding]) -> Iterator[str]:
    for drift in findings:
        if isinstance(drift, Drift):
            quarters = ", ".join(map(three, drift.quarters))
            yield (
                f"the machine changed during the run: {drift.what} by {drift.value or 0:.0%} "
                f"(medians of quarters: {quarters})"
            )
