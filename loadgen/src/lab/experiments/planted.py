"""Bottlenecks planted one after the other: does the verdict name them?

A verdict that is wrong and sure of itself is the worst: it would be believed. So that is counted
beside how often the right name came out.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.experiments.order import Design, Listed, Planner, UrlOf
from lab.load.engines import Engine
from lab.model import (
    HIGH,
    UNKNOWN,
    Case,
    Experiment,
    Finding,
    Planted,
    Row,
    Snapshot,
    Spike,
    TrialPlan,
)

NAME = "planted"
ALL = "all cases"
UNIT = "share named right"
# A burst of connections in the middle of the window, and what is left of it around that.
PEAK_S = 2


def design(
    experiment: Experiment,
    snapshots: Mapping[str, Snapshot],  # noqa: ARG001
    engines: Mapping[str, Engine],
    url_of: UrlOf,
    cores: int,
) -> Design:
    """Every case in the order of the file, `launches` times over (once at least), on the JVMs
    that run: one is fresh only where a case takes other settings of its container. Arguments
    as of design.loads. Raises WordError."""
    planner = Planner(experiment, engines, url_of, cores)
    engine = planner.engine_for("closed")
    plans = []
    for name, case in _trials(experiment):
        plan = _plan(planner, engine, case)
        named = dataclasses.replace(plan, trial=name)
        engine.schedule(named, Path())
        plans.append(named)
    return Listed(tuple(plans))


def _plan(planner: Planner, engine: Engine, case: Case) -> TrialPlan:
    spike = None
    if case.peak_extra:
        calm_s = max(1, (planner.experiment.duration_s - PEAK_S) // 2)
        # Nothing is found of a recovery: the peak is there to be met.
        spike = Spike(case.peak_extra, None, calm_s, PEAK_S, 1, 0.25, 1)
    return planner.plan(
        case.server,
        engine,
        "closed",
        case.concurrency,
        None,
        route=case.route,
        duration_s=spike.total_s if spike else None,
        arm=case.name,
        spike=spike,
        condition=case.condition,
    )


def _trials(experiment: Experiment) -> list[tuple[str, Case]]:
    """The trials by name, as 03-slow-downstream-r2: which case each is of follows from this."""
    cases, rounds = _planted(experiment).cases, max(1, experiment.launches)
    digits = max(2, len(str(rounds * len(cases))))
    found: list[tuple[str, Case]] = []
    for at in range(1, rounds + 1):
        for case in cases:
            suffix = f"-r{at}" if rounds > 1 else ""
            found.append((f"{len(found) + 1:0{digits}d}-{case.name}{suffix}", case))
    return found


def in_cases(experiment: Experiment, rows: Sequence[Row]) -> list[Row]:
    """The rows with their case as their arm, which trials of older versions of the lab do not
    have: trials of one server under other conditions are no trials of one load."""
    by_trial = dict(_trials(experiment))
    return [
        dataclasses.replace(row, arm=by_trial[row.trial].name) if row.trial in by_trial else row
        for row in rows
    ]


def findings(experiment: Experiment, rows: Sequence[Row], run_dir: Path) -> tuple[Finding, ...]:  # noqa: ARG001
    """How often each case was named right, and over all of them; how often a wrong name was
    given with high confidence. A trial without a verdict counts as not named."""
    by_trial = dict(_trials(experiment))
    found: list[Finding] = []
    judged = [(by_trial[row.trial], row) for row in rows if row.trial in by_trial]
    for case in _planted(experiment).cases:
        own = [(case, row) for of, row in judged if of == case]
        if own:
            text = f"{case.name} ({_setting(case)}): {' or '.join(case.expected)} {_text(own)}"
            found.append(_finding(f"{NAME}: {case.name}", case.server, own, text))
    if judged:
        found.append(_finding(f"{NAME}: {ALL}", ALL, judged, _text(judged)))
    return tuple(found)


def right(case: Case, row: Row) -> bool:
    """Whether the verdict of this trial names what was planted."""
    return row.bottleneck in case.expected


def wrong_and_sure(case: Case, row: Row) -> bool:
    """Whether it names something else, with a confidence to rely on."""
    named = row.bottleneck not in (None, UNKNOWN)
    return named and not right(case, row) and (row.confidence or 0.0) >= HIGH


_Judged = Sequence[tuple[Case, Row]]


def _finding(name: str, server: str, judged: _Judged, text: str) -> Finding:
    share = sum(right(case, row) for case, row in judged) / len(judged)
    return Finding(name, server, 0, share, UNIT, None, None, text)


def _text(judged: _Judged) -> str:
    count = sum(right(case, row) for case, row in judged)
    sure = sum(wrong_and_sure(case, row) for case, row in judged)
    others = Counter(row.bottleneck or "no verdict" for case, row in judged if not right(case, row))
    text = f"named right {count} of {len(judged)} (high confidence wrong: {sure})"
    if others:
        text += "; else " + ", ".join(f"{name} {n}×" for name, n in sorted(others.items()))
    return text


def _setting(case: Case) -> str:
    parts = [case.condition.text, f"{case.route} with {case.concurrency} connections"]
    if case.peak_extra:
        parts.append(f"{case.peak_extra} more for {PEAK_S} s")
    return ", ".join(parts)


def _planted(experiment: Experiment) -> Planted:
    assert experiment.planted is not None  # noqa: S101 - of this kind, says its type
    return experiment.planted
