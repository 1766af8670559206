"""The table of what a connection takes of each server."""

from lab.model import PerConnection
from lab.report.blocks import Section, Table
from lab.report.remarks import say
from lab.report.result import Result
from lab.report.text import interval, number

HEADER = ("server", "memory", "connections", "bytes each", "trials")


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
