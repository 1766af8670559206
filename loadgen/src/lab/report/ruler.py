"""Headlines in units of the control parts, the rate to expect on another host, and drift: words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.judge.ruler import expected_rps
from lab.model import Drift, Finding, InUnits, three
from lab.report.answers import Answers


def with_units(answers: Answers, findings: Sequence[Finding]) -> tuple[tuple[str, ...], ...]:
    """The answers with the second form of each headline, and with notes that say what it is."""
    known = {one.server: one for one in findings if isinstance(one, InUnits)}
    lines = [
        (*cells, *[""] * (3 - len(cells)), *_cells(known[cells[0]])) if cells[0] in known else cells
        for cells in answers
    ]
    return (*lines, *((note,) for note in _notes(list(known.values()))))


def _cells(of: InUnits) -> Iterator[str]:
    ends = "" if of.low is None or of.high is None else f" [{of.low:.2f}, {of.high:.2f}]"
    lane = "its own control parts'" if of.lane is None else f"the control parts' under {of.lane}"
    busy = ""
    if of.busy is not None:
        busy = f"; {of.busy:.0%} of the host's CPUs busy{' where it broke' if of.broke else ''}"
    units, us = f"{of.value or 0:.2f}{ends}", f"{three(of.server_us)} / {three(of.control_us)} µs"
    yield f"server CPU per request: {units} of {lane} ({us}){busy}"
    if of.line is not None and of.busy is not None and of.cpus:
        here = float(f"{expected_rps(of.line, of.cpus, of.busy):.2g}")
        yield (
            f"estimate for a host f times as slow: (CPUs × {of.busy:.2f} / f {-of.line.a:+.2f}) / "
            f"{three(of.line.b * 1e6)} µs; {here:,.0f} req/s for f = 1 and {of.cpus} CPUs"
        )


def _notes(shown: Sequence[InUnits]) -> Iterator[str]:
    if shown:
        own = " Servers with their own control parts are not comparable by it." * (
            len(shown) > 1 and any(one.lane is None for one in shown)
        )
        yield f"Control parts: generator, Toxiproxy and downstream at the same rate.{own}"
    if any(one.line is not None for one in shown):
        yield (
            "f = the control parts' CPU time for a request on the other host / here, at the same "
            "rate under the same server. Such estimates were wrong by up to a third "
            "(docs/hosts.md)."
        )


def drifts(findings: Sequence[Finding]) -> Iterator[str]:
    """A line for each drift."""
    for one in findings:
        if isinstance(one, Drift):
            quarters = ", ".join(map(three, one.quarters))
            yield (
                f"the machine's speed changed by {one.value or 0:.0%} ({one.what}, medians of "
                f"quarters of the run: {quarters})"
            )
