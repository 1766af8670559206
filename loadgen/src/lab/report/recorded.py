"""What was recorded of each server: the methods that take most, and what recording cost."""

from collections.abc import Iterator, Sequence

from lab.judge.hot import (
    COSTS,
    LEAST,
    LEAST_SAMPLES,
    Change,
    Side,
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
from lab.model import ALLOC, LOCK, Recording, Row, goodput, three
from lab.report.blocks import Block, Link, Paragraph, Section, Strong, Table
from lab.report.remarks import say, text_of
from lab.report.result import Recorded, Result
from lab.report.text import NOTHING

# So many methods by what they take alone, and callers; and methods of a comparison.
MOST, CALLERS, MOST_CHANGED = 8, 4, 5
HEADER = ("method", "alone", "with what it calls", "most at line", "of all")


def section(result: Result) -> Section:
    """Every recorded trial with its hottest methods and flame graph; nothing without any."""
    blocks: list[Block] = []
    for trial in result.recorded:
        text = (Strong(trial.load), f", recorded: {'; '.join(parts(trial))}. ")
        link = (Link("Flame graph", trial.link),) if trial.recording else ()
        rows = table(trial.recording) if trial.recording else ()
        label = f"Recorded of {trial.load}"
        blocks += (Paragraph((*text, *link)), Table(HEADER, rows, label, folds=True))
    if blocks:
        blocks.append(Paragraph(say("legend", "recorded"), "legend"))
    return Section("Recorded", blocks, "recorded")


def parts(trial: Recorded) -> Iterator[str]:
    recording = trial.recording
    if recording is None:
        yield trial.problem
    else:
        yield _seen(recording, trial.row)
        if not recording.whole:
            yield say("recorded", "outgrown")
    if not trial.row.valid:
        yield say("recorded", "invalid", reasons=text_of(trial.row))
    yield cost(trial)


def table(recording: Recording) -> Sequence[tuple[str, ...]]:
    """The methods that take most alone, and those that take most with what they call."""
    if not named(recording):
        return ()
    most = [method for method in hot(recording)[:MOST] if method.alone]
    most += [method for method in callers(recording)[:CALLERS] if method not in most]
    return [
        (
            f"`{method.method}`",
            _share(method.alone, recording),
            _share(method.total, recording),
            NOTHING if method.line is None else str(method.line),
            f"{method.line_share:.0%}",
        )
        for method in most
    ]


def cost(trial: Recorded) -> str:
    """What recording cost, as ratios to the trial that was not recorded. It is one pair of trials,
    so there is no interval."""
    before, after = trial.beside, trial.row
    if before is None:
        return say("recorded", "cost-unknown")
    known = before.cpu_server_us and after.cpu_server_us
    return say(
        "recorded",
        "cost",
        cpu=_ratio(after.cpu_server_us, before.cpu_server_us),
        before=before.cpu_server_us if known else None,
        after=after.cpu_server_us if known else None,
        answers=_ratio(goodput(after), goodput(before)),
        invalid=None if before.valid else ", of which the one without is invalid",
    )


def difference(*trials: Recorded) -> str:
    """What costs more or less for each answer in the second trial, or why that is unknown."""
    sides: list[Side] = []
    for trial in trials:
        side: Side | str = trial.problem
        if trial.recording is not None:
            side = side_of(trial.row, trial.recording)
            side = side if isinstance(side, Side) else say("recorded", f"no-side-{side}")
        if not trial.row.valid:
            side = f"its recorded trial is invalid: {text_of(trial.row)}"
        if isinstance(side, str):
            return f"not compared: {trial.row.run}: {side}"
        sides.append(side)
    a, b = sides
    if problem := why_not(a, b):
        kinds = {"a": a.recording.kind, "b": b.recording.kind}
        return f"not compared: {say('recorded', f'unlike-{problem}', **kinds)}"
    return changed(a, b)


def changed(a: Side, b: Side) -> str:
    """What costs more or less for each answer in B, in a few parts of a sentence."""
    most = changes(a, b)[:MOST_CHANGED]
    code = "unchanged" if not most else "changed"
    if most and not any(change.interval for change in most):
        code = "changed-untested"
    return say(
        "recorded",
        code,
        a=a.cost,
        b=b.cost,
        unit=COSTS[a.recording.kind],
        least=LEAST,
        methods=", ".join(map(_changed, most)),
    )


def _changed(change: Change) -> str:
    ends = f" [{', '.join(map(_signed, change.interval))}]" if change.interval else ""
    costs = f"({three(change.a)} → {three(change.b)})"
    return f"{change.method} {_signed(change.more)}{ends} {costs}"


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{three(abs(value))}"


def _seen(recording: Recording, row: Row) -> str:
    events = [event.removeprefix("jdk.") for event in recording.events]
    kind, total = recording.kind, recording.total
    values: dict[str, object] = {"by": ", ".join(events), "samples": recording.samples}
    if events == ["ExecutionSample"]:
        values["note"] = say("recorded", "execution-samples")
    if kind == LOCK:
        answers = answers_of(row)
        values["s"] = total / 1e9
        values["ms"] = total / 1e6 / answers if answers else None
        values["kinds"] = ", ".join(f"{name} {part:.0%}" for name, part in waits(recording).items())
        return say("recorded", "lock" if total else "lock-none", **values)
    if kind == ALLOC and row.window_s:
        values["mb"] = total / row.window_s / 1e6
    if not named(recording):
        values["least"] = LEAST_SAMPLES
    return say("recorded", kind, **values)


def _share(share: float, recording: Recording) -> str:
    ends = interval(share, recording)
    return f"{share:.0%}" + (f" [{ends[0]:.0%}, {ends[1]:.0%}]" if ends else "")


def _ratio(value: float | None, base: float | None) -> str:
    return f"×{value / base:.2f}" if value and base else "not known"
