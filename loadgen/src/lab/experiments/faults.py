"""Toxics that come and go under a constant load, and how long a server takes to recover.

A fault begins with the step of the script that adds the first toxic (or takes the downstream down).
It ends with the step that removes the last one. Recovery is measured from the answers of each
second, so this needs the engine that tells every second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lab.experiments import script
from lab.experiments.kind import COMMON, Outcome, ToMeasure, TrialKind, settings_of
from lab.experiments.order import Design, Planner
from lab.experiments.reading import Asked, Key, check_exact, read_load, rules, target
from lab.experiments.recovery import Disturbance, Recovery, Steady, Watch, errors_text, findings_of
from lab.load.engines import Second
from lab.model import Finding, Peak, ScriptedToxic, ToxicStep, TrialRecord

KEYS = {"tolerance": Key(rules.decimal(0.001, 100)), "steady": Key(rules.seconds(1))}


@dataclass(frozen=True, slots=True)
class Faults:
    """The script of toxics, and what counts as recovered: see `recovery.Steady`."""

    steps: tuple[ToxicStep, ...]
    tolerance: float
    steady_s: int

    def __post_init__(self) -> None:
        if not self.steps or self.tolerance <= 0 or self.steady_s < 1:
            raise ValueError("there are steps, tolerance is above 0, and steady_s starts at 1")
        if any(b.at_s < a.at_s for a, b in pairwise(self.steps)):
            raise ValueError("steps are in the order of time")


def read(asked: Asked) -> ToMeasure:
    """The load and the script that a file describes. Raises WordError."""
    steps = script.read(asked)
    load = read_load(asked, ("open",), ("routes", "concurrency"))
    check_exact(load)
    given = asked.settings.table("faults", KEYS)
    steady_s = given["steady"]
    played = script.checked(steps, asked.settings.scaled, load.duration_s, steady_s)
    faults = Faults(played, given["tolerance"], steady_s)
    return load.experiment("faults", faults), load.notes


def design(planner: Planner) -> Design:
    """One trial per server and launch. Raises WordError."""
    return planner.one_per_launch(script=settings_of(Faults, planner.experiment).steps)


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    faults = settings_of(Faults, outcome.experiment)
    nothing = "no toxic of the script came and went"
    steady = Steady(faults.tolerance, faults.steady_s)
    watch = Watch("fault", nothing, steady, _faults, _felt)
    return findings_of(watch, outcome)


def disturbances(steps: Iterable[ScriptedToxic]) -> tuple[tuple[Peak, str], ...]:
    """Each fault's actual start and end, with its description."""
    found: list[tuple[Peak, str]] = []
    began: ScriptedToxic | None = None
    what: list[str] = []
    for step in steps:
        if began is None:
            began = step
        if step.clear:
            found.append((Peak(began.started_s, step.ended_s), ", then ".join(what) or step.change))
            began, what = None, []
        else:
            what.append(step.change)
    return tuple(found)


def _faults(record: TrialRecord) -> list[Disturbance]:
    return [
        Disturbance(peak, f" ({what}, {peak.ended_s - peak.started_s:.0f} s)")
        for peak, what in disturbances(record.script)
    ]


def _felt(_: Recovery, seconds: Sequence[Second]) -> str:
    """The errors and the slowest good answer since the fault began."""
    worst_us = max((one.corrected.max_us for one in seconds), default=0)
    slowest = f"slowest good answer {worst_us / 1000:.0f} ms" if worst_us else "no good answer"
    return f"{errors_text(seconds)}, {slowest}"


KIND = TrialKind(
    name="faults",
    title="toxics that come and go under a constant load",
    uses=(
        *COMMON,
        *("load.concurrency", "load.rate", "load.capacity", "load.arrivals", "load.duration"),
    ),
    exact="recovery is read from every second of a load without bursts",
    keys=KEYS,
    words=target.WORDS,
    recorded_load="each server's last load",
    tables=script.KEY,
    read=read,
    design=design,
    findings=findings,
)
