"""What was recorded of each server: the methods that take most, and what recording cost. For the
console and both reports."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from lab.judge.grouping import lane_of
from lab.judge.hot import (
    COSTS,
    LEAST,
    LEAST_SAMPLES,
    Change,
    Hot,
    NoSide,
    Side,
    Unlike,
    answers_of,
    callers,
    changes,
    hot,
    interval,
    named,
    side_of,
    waits,
    why_not,
)
from lab.model import ALLOC, CPU, LOCK, Recording, Row, goodput, three
from lab.report.blocks import Block, Link, Paragraph, Section, Strong, Table
from lab.report.remarks import text_of
from lab.report.table import NOTHING, microseconds
from lab.store import recording

# In a sentence, and in a table.
FEW, MOST, MOST_CHANGED = 3, 12, 5
HEADER = ("method", "alone", "with what it calls", "most at line", "of all")
LEGEND = (
    "A load of each server once more, with a recording by JDK Flight Recorder, in no other table "
    "of this report. Alone: the method itself was running (allocating, waiting); with what it "
    "calls: it or a method that it called. In brackets: the 95 % interval of a share of so many "
    "samples (Wilson), which says nothing of what samples do not see (docs/recording.md)."
)
_WHAT = {CPU: "CPU time", ALLOC: "allocation", LOCK: "waits of platform threads for locks"}
_NO_SIDE: Mapping[NoSide, str] = {
    "outgrown": "it outgrew its room",
    "few": "it has too few samples",
    "cost": "what an answer cost in all is not known",
}
_UNLIKE: Mapping[Unlike, str] = {
    "kinds": "A was recorded by {}, B by {}",
    "events": "A and B were recorded by other events, as those of another JDK",
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded trial. `beside` is the trial that it repeats, on the same JVM; None where that is
    not known. `recording` None: there is none, and `problem` says why."""

    row: Row
    beside: Row | None
    recording: Recording | None
    problem: str = ""

    @property
    def load(self) -> str:
        row = self.row
        rate = "" if row.offered_rps is None else f" at {row.offered_rps:,}/s"
        return f"{lane_of(row)}, {row.route} {row.mode}, {row.concurrency:,} connections{rate}"

    @property
    def link(self) -> str:
        return f"{recording.FOLDER}/{self.row.trial}/{recording.GRAPH}"


def render(console: Console, of: Sequence[Recorded], run: str) -> None:
    for one in of:
        line = Text(one.load, style="bold")
        line.append(f", recorded: {'; '.join(lines(one))}", style="not bold")
        if one.recording is not None:
            line.append(f"; results/{run}/{one.link}", style="dim not bold")
        console.print(line, soft_wrap=True)


def section(of: Sequence[Recorded]) -> Section:
    """Every recorded trial with its hottest methods and flame graph; nothing without any."""
    parts: list[Block] = []
    for one in of:
        said: list[str | Link] = [Strong(one.load), f": {'; '.join(lines(one))}."]
        if one.recording:
            said += [" ", Link("Flame graph", one.link), "."]
        parts.append(Paragraph(tuple(said)))
        rows = table(one.recording) if one.recording else []
        cells = [(f"`{method}`", *more) for method, *more in rows]
        parts.append(Table(HEADER, cells, f"Recorded of {one.load}", folds=True))
    return Section("Recorded", [*parts, Paragraph(LEGEND if of else "", "legend")])


def lines(of: Recorded) -> Iterator[str]:
    found = of.recording
    if found is None:
        yield of.problem
    else:
        yield _seen(found, of.row)
        if named(found):
            yield from _named(found)
        if not found.whole:
            yield "it outgrew its room: the beginning of the window may be missing"
    if not of.row.valid:
        yield f"the recorded trial is invalid: {text_of(of.row)}"
    yield cost(of)


def table(of: Recording) -> list[tuple[str, ...]]:
    """The methods that take most alone, and those that take most with what they call."""
    if not named(of):
        return []
    found = hot(of)
    most = [one for one in found[:MOST] if one.alone]
    most += [one for one in callers(of)[:MOST] if one not in most]
    return [
        (
            one.method,
            _share(one.alone, of),
            _share(one.total, of),
            NOTHING if one.line is None else str(one.line),
            f"{one.line_share:.0%}",
        )
        for one in most
    ]


def cost(of: Recorded) -> str:
    """What recording cost, as ratios to the trial that was not recorded. It is one pair of trials,
    so there is no interval."""
    before, after = of.beside, of.row
    if before is None:
        return "what recording cost is not known: no trial without it was on the same JVM"
    cpu = _ratio(after.cpu_server_us, before.cpu_server_us)
    if after.cpu_server_us and before.cpu_server_us:
        us = map(microseconds, (before.cpu_server_us, after.cpu_server_us))
        cpu += f" ({' → '.join(us)} µs)"
    invalid = "" if before.valid else ", of which the one without is invalid"
    return (
        f"with recording / without: CPU per answer {cpu}, answers "
        f"{_ratio(goodput(after), goodput(before))} (one pair, the recorded one second{invalid})"
    )


def difference(*trials: Recorded) -> str:
    """What costs more or less for each answer in the second trial, or why that is unknown."""
    sides: list[Side] = []
    for trial in trials:
        side: Side | str = trial.problem
        if trial.recording is not None:
            side = side_of(trial.row, trial.recording)
            side = side if isinstance(side, Side) else _NO_SIDE[side]
        if not trial.row.valid:
            side = f"its recorded trial is invalid: {text_of(trial.row)}"
        if isinstance(side, str):
            return f"not compared: {trial.row.run}: {side}"
        sides.append(side)
    problem = why_not(*sides)
    if not problem:
        return changed(*sides)
    kinds = (side.recording.kind for side in sides)
    return f"not compared: {_UNLIKE[problem].format(*kinds)}"


def changed(a: Side, b: Side) -> str:
    """What costs more or less for each answer in B, in a few parts of a sentence."""
    unit = COSTS[a.recording.kind]
    said = f"{three(a.cost)} → {three(b.cost)} {unit} for each answer (one pair of recorded trials)"
    most = changes(a, b)[:MOST_CHANGED]
    if not most:
        return f"{said}; no method alone surely differs by {LEAST:.0%} of that"
    # An interval is of the samples: how far two JVMs of one version differ is in none.
    how = "two JVMs of one version may differ so, too"
    if not any(one.interval for one in most):
        how = "not tested: there is no interval"
    return f"{said}; alone {', '.join(map(_changed, most))} ({how})"


def _changed(of: Change) -> str:
    ends = ""
    if of.interval is not None:
        ends = f" [{', '.join(map(_signed, of.interval))}]"
    return f"{of.method} {_signed(of.more)}{ends} ({three(of.a)} → {three(of.b)})"


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{three(abs(value))}"


def _seen(of: Recording, row: Row) -> str:
    by = ", ".join(one.removeprefix("jdk.") for one in of.events)
    what = f"{_WHAT[of.kind]} by {by}"
    if by == "ExecutionSample":
        what += " (this JDK has no samples by CPU time: these are of running Java code only)"
    if of.kind == LOCK:
        if not of.total:
            return f"{what}: no wait of 1 ms or longer"
        kinds = ", ".join(f"{name} {share:.0%}" for name, share in waits(of).items())
        answers = answers_of(row)
        each = f", {of.total / 1e6 / answers:.3g} ms for each answer" if answers else ""
        return f"{what}: {of.samples:,} waits of {of.total / 1e9:.3g} s in all{each} ({kinds})"
    said = f"{what}, {of.samples:,} samples"
    if of.kind == ALLOC and row.window_s:
        said += f", {three(of.total / row.window_s / 1e6)} MB/s"
    return said if named(of) else f"{said}: fewer than {LEAST_SAMPLES} name nothing"


def _named(of: Recording) -> Iterator[str]:
    found = hot(of)
    alone = [_text(one, one.alone, of) for one in found[:FEW] if one.alone]
    yield f"alone {', '.join(alone)}"
    total = [f"{one.method} {_share(one.total, of)}" for one in callers(of)[:FEW]]
    if total:
        yield f"with what they call {', '.join(total)}"


def _text(one: Hot, share: float, of: Recording) -> str:
    line = "" if one.line is None else f" (line {one.line}: {one.line_share:.0%})"
    return f"{one.method} {_share(share, of)}{line}"


def _share(share: float, of: Recording) -> str:
    ends = interval(share, of)
    return f"{share:.0%}" + (f" [{ends[0]:.0%}, {ends[1]:.0%}]" if ends else "")


def _ratio(of: float | None, to: float | None) -> str:
    return f"×{of / to:.2f}" if of and to else "not known"
