"""What a connection takes of each server's memory."""

from collections.abc import Sequence

from lab.model import Experiment, Finding, PerConnection
from lab.report.blocks import Section, Table
from lab.report.remarks import say
from lab.report.result import Answers, Result
from lab.report.text import estimate

HEADER = ("server", "memory", "connections", "bytes each", "trials")


def slopes(findings: Sequence[Finding]) -> list[tuple[PerConnection, str]]:
    known = [finding for finding in findings if isinstance(finding, PerConnection)]
    return [(slope, estimate(slope.value, slope.low, slope.high)) for slope in known]


def answers(experiment: Experiment, findings: Sequence[Finding]) -> Answers:
    """A line for each server: what a connection takes of each memory."""
    lines: dict[str, list[str]] = {server: [] for server in experiment.servers}
    for slope, each in slopes(findings):
        lines[slope.server].append(f"{each} bytes of {slope.name}")
    return tuple((server, *memory) for server, memory in lines.items() if memory)


def section(result: Result) -> Section:
    """One row for each server and memory; nothing for other kinds."""
    rows = [
        (slope.server, slope.name, f"{slope.fewest:,}–{slope.most:,}", each, f"{slope.trials}")
        for slope, each in slopes(result.findings)
    ]
    title = "Memory per connection"
    table = Table(HEADER, rows, title, say("legend", "density"))
    return Section(title, [table], "density")
