"""The table of what a connection takes of each server, from the findings."""

from __future__ import annotations

from collections.abc import Sequence

from lab.model import Experiment, Finding, PerConnection
from lab.report.blocks import Section, Table
from lab.report.table import NOTHING

HEADER = ("server", "memory", "connections", "bytes each", "trials")
LEGEND = (
    "bytes each: the slope of the memory over the connections of the valid trials. In brackets: "
    "its 95 % interval, which takes 10 trials. Live heap: what a full collection leaves. Resident "
    "memory: of the process, without the kernel's socket buffers."
)


def answers(experiment: Experiment, findings: Sequence[Finding]) -> tuple[tuple[str, ...], ...]:
    """A line for each server: what a connection takes of each memory."""
    lines = []
    for server in experiment.servers:
        memory = [
            f"{bytes_text(finding)} bytes of {finding.name}"
            for finding in findings
            if isinstance(finding, PerConnection) and finding.server == server
        ]
        lines.append((server, *memory))
    return tuple(line for line in lines if len(line) > 1)


def section(found: Sequence[Finding]) -> Section:
    """One row for each server and memory; nothing for other kinds."""
    rows = [
        (
            one.server,
            one.name.removesuffix(" per connection"),
            f"{one.fewest:,}–{one.most:,}",
            bytes_text(one),
            str(one.trials),
        )
        for one in found
        if isinstance(one, PerConnection)
    ]
    table = Table(HEADER, rows, "Memory per connection", LEGEND, names=2)
    return Section("Memory per connection", [table])


def bytes_text(of: Finding) -> str:
    if of.value is None:
        return NOTHING
    if of.low is None or of.high is None:
        return f"{of.value:,.0f}"
    return f"{of.value:,.0f} [{of.low:,.0f}, {of.high:,.0f}]"
