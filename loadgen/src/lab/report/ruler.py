"""Headlines in units of the control parts, the rate to expect on another host, and drift: words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.judge.ruler import expected_rps
from lab.model import Drift, Finding, InUnits, three
from lab.report.answers import Answers

# Of machines with so many CPUs a rate is predicted.
PREDICTED_CPUS = (1, 4, 8)


def with_units(answers: Answers, findings: Sequence[Finding]) -> tuple[tuple[str, ...], ...]:
    """The answers with the second form of each headline, and with notes that say what it is."""
    known = {units.server: units for units in findings if isinstance(units, InUnits)}
    # A server has a line for each objective. Its units are those of the first.
    waiting, lines = dict(known), []
    for cells in answers:
        cost = waiting.pop(cells[0], None)
        lines.append((*cells, *[""] * (3 - len(cells)), *_cells(cost)) if cost else cells)
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
    line, busy_share = cost.line, cost.busy
    if line is not None and busy_share is not None:
        rates = [float(f"{expected_rps(line, cpus, busy_share):.2g}") for cpus in PREDICTED_CPUS]
        cpus = ", ".join(map(str, PREDICTED_CPUS))
        yield (
            f"prediction by CPU time alone: {', '.join(f'{max(rate, 0):,.0f}' for rate in rates)} "
            f"req/s on {cpus} CPUs like these; where they are f times as slow "
            f"(CPUs × {busy_share:.2f} / f {-line.a:+.2f}) / {three(line.b * 1e6)} µs"
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
            "rate under the same server. Predictions for another host were wrong by up to 37 % "
            "(docs/hosts.md); none was tried for more CPUs, where one thread may give way first."
        )


def drifts(findings: Sequence[Finding]) -> Iterator[str]:
    for drift in findings:
        if isinstance(drift, Drift):
            quarters = ", ".join(map(three, drift.quarters))
            yield (
                f"the machine changed during the run: {drift.what} by {drift.value or 0:.0%} "
                f"(medians of quarters: {quarters})"
            )
