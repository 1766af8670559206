"""Bottlenecks planted one after the other: does the verdict name them?

A wrong verdict with strong evidence is the worst, because people would believe it. So the findings
count such verdicts too.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.experiments import cases
from lab.experiments.cases import Case
from lab.experiments.kind import Outcome, ToMeasure, TrialKind, settings_of
from lab.experiments.order import Design, Listed, Planner
from lab.experiments.reading import Asked, Word, read_load, rules
from lab.load.engines import Engine
from lab.model import STRONG, UNKNOWN, Experiment, Finding, Row, Spike, TrialPlan

NAME = "planted"
ALL = "all cases"
UNIT = "share named right"
# How long the extra connections last, in the middle of the window.
PEAK_S = 2
# A JVM that a planted bottleneck gives too little for its load surely holds so many connections.
WARM_CONNECTIONS = 80
# The setting by which the user picks some of the cases.
PICKED = "case"


@dataclass(frozen=True, slots=True)
class Planted:
    """Bottlenecks planted one after the other, to see whether the verdict names them."""

    cases: tuple[Case, ...]

    def __post_init__(self) -> None:
        names = [case.name for case in self.cases]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"cases have names, each once: {names}")


def read(asked: Asked) -> ToMeasure:
    """The cases of a file that the user picked and this machine holds. Raises WordError."""
    load = read_load(asked, ("closed",), with_connections=False)
    modes = asked.settings.get("load.modes")
    if modes is not None and load.modes != ("closed",):
        raise modes.refuse(f"{modes.text} is not allowed; allowed: closed, and cases with a rate")
    every, notes = cases.read(asked)
    picked = asked.settings.each(PICKED, rules.one_of([case.name for case in every]))
    chosen = tuple(case for case in every if not picked or case.name in picked)
    # Server, route and connections are those of the cases.
    whole = load.experiment(
        "planted",
        Planted(chosen),
        servers=tuple(dict.fromkeys(case.server for case in chosen)),
        routes=tuple(dict.fromkeys(case.route for case in chosen)),
        concurrencies=tuple(dict.fromkeys(case.concurrency for case in chosen)),
        modes=tuple(dict.fromkeys(case.mode for case in chosen)),
    )
    return whole, notes


def design(planner: Planner) -> Design:
    """Every case in the order of the file, `launches` times over (once at least), on the JVMs
    that run: one is fresh only where a case takes other settings of its container. Raises
    WordError."""
    plans = []
    for name, case in _trials(planner.experiment):
        engine = planner.engine_for(case.mode)
        plan = _plan(planner, engine, case)
        named = dataclasses.replace(plan, trial=name)
        engine.schedule(named, Path())
        plans.append(named)
    return Listed(tuple(plans))


def _plan(planner: Planner, engine: Engine, case: Case) -> TrialPlan:
    spike = None
    if case.peak_extra:
        calm_s = max(1, (planner.experiment.duration_s - PEAK_S) // 2)
        # No recovery is measured: tolerance and steady seconds have no meaning here.
        spike = Spike(case.peak_extra, None, calm_s, PEAK_S, 1, 0.25, 1)
    return planner.plan(
        case.server,
        engine,
        case.mode,
        case.concurrency,
        case.rate,
        route=case.route,
        duration_s=spike.total_s if spike else case.duration_s,
        arm=case.name,
        spike=spike,
        condition=case.condition,
    )


def _trials(experiment: Experiment) -> list[tuple[str, Case]]:
    """The names of the trials, as 03-slow-downstream-r2, each with its case."""
    every, rounds = settings_of(Planted, experiment).cases, max(1, experiment.launches)
    digits = max(2, len(str(rounds * len(every))))
    found: list[tuple[str, Case]] = []
    for at in range(1, rounds + 1):
        for case in every:
            suffix = f"-r{at}" if rounds > 1 else ""
            found.append((f"{len(found) + 1:0{digits}d}-{case.name}{suffix}", case))
    return found


def of_trials(experiment: Experiment) -> dict[str, Case]:
    """The case of each trial, by the trial's name."""
    return dict(_trials(experiment))


def rounds_of(experiment: Experiment) -> dict[str, int]:
    """In which round each trial was made, from 1, by the trial's name."""
    of_round = len(settings_of(Planted, experiment).cases)
    return {name: 1 + at // of_round for at, (name, _) in enumerate(_trials(experiment))}


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    """For each case and for all of them: how often the verdict named it right, and how often a
    wrong name came with strong evidence. A trial without a verdict counts as not named."""
    by_trial = dict(_trials(outcome.experiment))
    found: list[Finding] = []
    judged = [(by_trial[row.trial], row) for row in outcome.rows if row.trial in by_trial]
    for case in settings_of(Planted, outcome.experiment).cases:
        own = [(case, row) for of, row in judged if of == case]
        if own:
            text = f"{case.name} ({setting(case)}): {' or '.join(case.expected)} {_text(own)}"
            found.append(_finding(f"{NAME}: {case.name}", case.server, own, text))
    if judged:
        found.append(_finding(f"{NAME}: {ALL}", ALL, judged, _text(judged)))
    return tuple(found)


def right(case: Case, row: Row) -> bool:
    """Whether the verdict of this trial names what was planted."""
    return row.bottleneck in case.expected


def wrong_and_sure(case: Case, row: Row) -> bool:
    """Whether the verdict of this trial names something else with strong evidence."""
    named = row.bottleneck not in (None, UNKNOWN)
    return named and not right(case, row) and row.strength == STRONG


_Judged = Sequence[tuple[Case, Row]]


def _finding(name: str, server: str, judged: _Judged, text: str) -> Finding:
    share = sum(right(case, row) for case, row in judged) / len(judged)
    return Finding(name, server, 0, share, UNIT, None, None, text)


def _text(judged: _Judged) -> str:
    count = sum(right(case, row) for case, row in judged)
    sure = sum(wrong_and_sure(case, row) for case, row in judged)
    others = Counter(row.bottleneck or "no verdict" for case, row in judged if not right(case, row))
    text = f"named right {count} of {len(judged)} (wrong with strong evidence: {sure})"
    if others:
        text += "; else " + ", ".join(f"{name} {n}×" for name, n in sorted(others.items()))
    return text


def setting(case: Case) -> str:
    """The conditions and the load of a case, for people."""
    parts = [case.condition.text, f"{case.route} with {case.concurrency} connections"]
    if case.rate is not None:
        parts.append(f"{case.rate} req/s offered")
    if case.peak_extra:
        parts.append(f"{case.peak_extra} more for {PEAK_S} s")
    return ", ".join(parts)


KIND = TrialKind(
    name="planted",
    title="planted bottlenecks",
    uses=(
        *("load.duration", "load.warmup", "load.modes", "load.engines"),
        *("repeat.launches", "repeat.patience"),
    ),
    words={"CASE": Word(PICKED, several=True)},
    tables=cases.KEY,
    read=read,
    design=design,
    findings=findings,
    changes_lab=True,
    # The case, whichever round.
    load_name=lambda row: row.arm or row.trial,
    most_to_warm=WARM_CONNECTIONS,
)
