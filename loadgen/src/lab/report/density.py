"""The table of what a connection takes of each server."""

from collections.abc import Sequence

from lab.model import Experiment, Finding, PerConnection
from lab.report.blocks import Section, Table
from lab.report.remarks import say
from lab.report.result import Answers, Result
from lab.report.text import interval, number

HEADER = ("server", "memory", "connections", "bytes each", "trials")


def answers(experiment: Experiment, findings: Sequence[Finding]) -> Answers:
    """A line for each server: what a connection takes of each memory."""
    lines = []
    for server in experiment.servers:
        memory = [
            f"{number(finding.value)} {interval(finding.low, finding.high)}".rstrip()
            + f" bytes of {finding.name}"
            for finding in findings
            if isinstance(finding, PerConnection) and finding.server == server
        ]
        lines.append((server, *memory))
    return tuple(line for line in lines if len(line) > 1)


def section(result: Result) -> Section:
    """One row for each server and memory; nothing for other kinds."""
    rows = [
        (
            finding.server,
            finding.name,
            f"{finding.fewest:,}–{finding.most:,}",
            f"{number(finding.value)} {interval(finding.low, finding.high)}".strip(),
            f"{finding.trials}",
        )
        for finding in result.findings
        if isinstance(finding, PerConnection)
    ]
    title = "Memory per connection"
    table = Table(HEADER, rows, title, say("legend", "density"), names=2)
    return Section(title, [table], "density")
