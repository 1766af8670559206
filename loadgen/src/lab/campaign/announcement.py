"""What a run says before its first trial: its trials, their load, and how long they will take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lab.campaign.engine_choice import Chosen
from lab.experiments.order import Design
from lab.experiments.registry import kind_of
from lab.model import Experiment, TrialPlan
from lab.report.progress import duration

# Between the window of a trial and the load of the next one on the same JVM, and for a JVM that is
# new or not yet proven warm, as measured on 2 cores. A busy machine takes twice as long.
BETWEEN_S = 4.0
WARM_UP_S = 22.0


def announcement(
    experiment: Experiment, design: Design, chosen: Chosen, first: TrialPlan | None = None
) -> str:
    """The trials of a run, in a line, before the first one."""
    first = first or design.next([])
    if first is None:
        return "no trial"
    plans, trials, each_s = design.known, design.most, _takes_s(first, chosen)
    load_s, count = sum(_takes_s(plan, chosen) for plan in plans), f"{trials} trials of"
    if not plans:
        load_s = each_s * trials
        count = f"at most {trials} trials (more if some are invalid), each of about"
    warm = {(plan.server, plan.launch, plan.launch and plan.arm) for plan in plans}
    jvms = len(warm) or len(experiment.servers) * max(1, experiment.launches)
    whole_s = load_s + trials * BETWEEN_S + jvms * len(experiment.routes) * WARM_UP_S
    scale = ""
    if experiment.scale != 1:
        scale = f", durations × {experiment.scale:g} (a quick look, not a result)"
    return (
        f"{count} {each_s:.0f} s and warm-up, about {duration(whole_s)} in all, with "
        f"{', '.join(chosen.engines)}, {_load(experiment)}{scale}"
    )


def planned(experiment: Experiment, design: Design, chosen: Chosen) -> Iterator[str]:
    """The trials that are known before the run, a line each, after the announcement. Where they
    follow from findings: the first."""
    first = design.next([])
    yield announcement(experiment, design, chosen, first)
    for plan in design.known or ([first] if first else []):
        rate = "" if plan.offered_rps is None else f", {plan.offered_rps} req/s"
        yield (
            f"{plan.trial}: {plan.route} {plan.mode}, {plan.concurrency} connections{rate}, "
            f"{_takes_s(plan, chosen):.0f} s"
        )
    if first and not design.known:
        yield "the others follow from what each finds"


def _takes_s(plan: TrialPlan, chosen: Chosen) -> float:
    return chosen.engines[plan.engine].schedule(plan, Path()).run_s


def _load(experiment: Experiment) -> str:
    kind = kind_of(experiment)
    if kind.load_said is not None:
        return kind.load_said
    if kind.changes_lab:
        return "each in a condition of its own"
    if "open" not in experiment.modes:
        return "closed load"
    offered = experiment.rate_rps
    return (
        f"open load of {offered} req/s" if offered else "open load that leaves connections to spare"
    )
