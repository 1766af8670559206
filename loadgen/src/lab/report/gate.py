"""A gate for people and pipelines: on the console, as Markdown, JUnit XML and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from xml.etree import ElementTree

from rich.console import Console
from rich.text import Text

from lab.judge.compare import percent
from lab.judge.gate import ACROSS, Answer, Check, Figure, Gate
from lab.report.comparison import cell_names, ratio_interval
from lab.report.table import NOTHING, milliseconds, rate
from lab.store.records import json_text, to_json

FORMAT_VERSION = 1
JSON, MARKDOWN, JUNIT = "gate.json", "gate.md", "gate.xml"
WIDTH = 80
# So many limits are in the answer; the table has all of them.
MOST_SAID = 3
STYLES: dict[Answer, str] = {"worse": "red", "cannot tell": "yellow", "not worse": "green"}
MIB = 1024 * 1024
UNITS: dict[Figure, str] = {
    "goodput": "req/s",
    "p99": "ms",
    "cpu": "µs of CPU per request",
    "memory": "MiB resident",
}
_HEADER = ("limit", "base", "candidate", "ratio", "interval", "allowed", "answer")


def render(console: Console, of: Gate, folder: str) -> None:
    """Print every limit, what stands beside, where the files are, and the answer last. Lines have
    at most 80 columns unless one word is longer."""

    def say(text: str, style: str = "") -> None:
        for line in textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False):
            console.print(Text(line, style=style), soft_wrap=True)

    say(f"base {of.base}")
    say(f"candidate {of.candidate}")
    for group, checks in _groups(of):
        say("")
        console.print(Text(group, style="bold"), soft_wrap=True)
        for check in checks:
            line = f"  {check.limit.figure:<9}{_ratio(check):>6} {_interval(check):<17}"
            line += f"{check.limit.text:<15}"
            text = Text(line).append(check.answer, STYLES[check.answer])
            console.print(text, soft_wrap=True)
    console.print()
    for note in notes(of):
        say(note)
    console.print(Text(f"{folder}/{{{MARKDOWN},{JUNIT},{JSON}}}"), soft_wrap=True)
    say(answer(of), STYLES[of.answer])


def answer(of: Gate) -> str:
    named = [check for check in of.checks if check.answer == of.answer]
    if of.answer == "not worse":
        count = len(of.checks)
        return f"gate: not worse: {count} of {count} limit{'s hold' if count > 1 else ' holds'}"
    said = "; ".join(f"{_name(of, check)} {_said(check)}" for check in named[:MOST_SAID])
    if len(named) > MOST_SAID:
        said += f"; and {len(named) - MOST_SAID} more"
    if of.answer == "cannot tell" and of.launches is not None:
        least = "at least" if all(one.fewest for one in named) else "some"
        said += f"; it takes {least} LAUNCHES={of.launches}"
    return f"gate: {of.answer}: {said}"


def notes(of: Gate) -> Iterator[str]:
    """What must be known beside the table."""
    whys: dict[str, list[str]] = {}
    for check in of.checks:
        if check.why:
            whys.setdefault(f"{check.answer}: {{}}: {_why(check)}", []).append(_name(of, check))
        if check.note:
            whys.setdefault(f"{{}}: {check.note}", []).append(_name(of, check))
    yield from (why.format("; ".join(names)) for why, names in whys.items())
    yield from of.notes
    yield (
        f"ratio: candidate / base, of {len(of.checks)} limit{'s' if len(of.checks) > 1 else ''} "
        f"with an interval of at least {percent(of.confidence)} each. worse: the whole interval is "
        "beyond the limit; not worse: all of it is within"
    )


def _why(check: Check) -> str:
    """Why it cannot be told, and what would help; or why it is worse whatever its interval is."""
    if check.answer == "worse":
        return check.why
    if check.fewest:
        return f"{check.why} at least"
    if check.launches is not None:
        return f"{check.why}: some {check.launches} launches of each side would tell"
    return f"{check.why}: more launches hardly help" if check.why == ACROSS else check.why


def files(of: Gate) -> dict[str, str]:
    return {JSON: json_text(_object(of)), MARKDOWN: markdown(of), JUNIT: junit(of)}


def _object(of: Gate) -> dict[str, object]:
    return {
        "format_version": FORMAT_VERSION,
        "answer": of.answer,
        "launches": of.launches,
        **to_json(of),
    }


def markdown(of: Gate) -> str:
    lines = [f"**{answer(of)}**", "", f"base {of.base}, candidate {of.candidate}", ""]
    for group, checks in _groups(of):
        lines += [f"**{group}**", "", f"| {' | '.join(_HEADER)} |", f"|{'---|' * len(_HEADER)}"]
        for check in checks:
            figure = check.limit.figure
            cells = (
                f"{figure}, {UNITS[figure]}",
                _value(figure, check.base),
                _value(figure, check.candidate),
                _ratio(check),
                _interval(check),
                check.limit.text,
                f"**{check.answer}**" if check.answer != "not worse" else check.answer,
            )
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    lines += [f"- {note}" for note in notes(of)]
    return "\n".join(lines) + "\n"


def junit(of: Gate) -> str:
    """A test suite with a test for each limit: worse is a failure, what cannot be told an error."""
    counts = [sum(check.answer == one for check in of.checks) for one in ("worse", "cannot tell")]
    suite = ElementTree.Element(
        "testsuite",
        name="gate",
        tests=str(len(of.checks)),
        failures=str(counts[0]),
        errors=str(counts[1]),
    )
    for check in of.checks:
        group, _, figure = _name(of, check).rpartition(" ")
        case = ElementTree.SubElement(suite, "testcase", classname=group, name=figure)
        kind = {"worse": "failure", "cannot tell": "error"}.get(check.answer)
        if kind is not None:
            message = f"{check.answer}: {_said(check)}"
            ElementTree.SubElement(case, kind, message=message).text = (
                f"base {_value(check.limit.figure, check.base)}, candidate "
                f"{_value(check.limit.figure, check.candidate)} {UNITS[check.limit.figure]}. "
                f"{_why(check) if check.why else ''}"
            )
    ElementTree.indent(suite)
    text: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text.decode() + "\n"


def _groups(of: Gate) -> Iterator[tuple[str, list[Check]]]:
    """The checks by lane and load, each under its name."""
    groups: dict[str, list[Check]] = {}
    for check in of.checks:
        groups.setdefault(_group(of, check), []).append(check)
    yield from groups.items()


def _group(of: Gate, check: Check) -> str:
    names = cell_names([one.load for one in of.checks])
    return f"{check.lane.rpartition(':')[2]} {names[check.load]}"


def _name(of: Gate, check: Check) -> str:
    return f"{_group(of, check)} {check.limit.figure}"


def _said(check: Check) -> str:
    return f"{_ratio(check)} {_interval(check)}, allowed {check.limit.text}"


def _ratio(check: Check) -> str:
    return NOTHING if check.ratio is None else f"{check.ratio.ratio:.3f}"


def _interval(check: Check) -> str:
    interval = check.ratio.interval if check.ratio else None
    return "no interval" if interval is None else ratio_interval(interval, (1, check.limit.ratio))


def _value(figure: Figure, value: float | None) -> str:
    if value is None:
        return NOTHING
    if figure == "p99":
        return milliseconds(value)
    return rate(value / MIB if figure == "memory" else value)
