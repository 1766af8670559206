"""What a run says before its first trial: its trials, and how long they take, from their number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lab.app.engine_choice import Chosen
from lab.kinds.order import Design
from lab.model import Experiment, TrialPlan
from lab.report.progress import duration

# Between the window of a trial and the load of the next one on the same JVM, and for a JVM that is
# new or not yet proven warm, as measured on 2 cores. A busy machine takes twice as long.
BETWEEN_S, WARM_UP_S = 4.0, 22.0


def announcement(experiment: Experiment, design: Design, chosen: Chosen, first: TrialPlan) -> str:
    """The trials of a run, in a line, before the first one."""
    plans, each_s = design.known, _takes_s(first, chosen)
    trials = f"{design.most} trials of"
    if not plans:
        trials = f"at most {design.most} trials (more if some are invalid), each of about"
    load_s = sum(_takes_s(plan, chosen) for plan in plans) or each_s * design.most
    jvms = len({(plan.server, plan.launch, plan.launch and plan.arm) for plan in plans})
    jvms = jvms or len(experiment.servers) * max(1, experiment.launches)
    whole_s = load_s + design.most * BETWEEN_S + jvms * len(experiment.routes) * WARM_UP_S
    scale = ""
    if experiment.scale != 1:
        scale = f", durations × {experiment.scale:g} (a quick look, not a result)"
    return (
        f"{trials} {each_s:.0f} s and warm-up, about {duration(whole_s)} in all, with "
        f"{', '.join(chosen.engines)}{scale}"
    )


def planned(experiment: Experiment, design: Design, chosen: Chosen) -> Iterator[str]:
    """The trials that are known before the run, a line each, after the announcement. If they follow
    from findings: the first."""
    first = design.next([])
    if first is None:
        return
    yield announcement(experiment, design, chosen, first)
    for plan in design.known or [first]:
        rate = "" if plan.offered_rps is None else f", {plan.offered_rps} req/s"
        yield (
            f"{plan.trial}: {plan.route} {plan.mode}, {plan.concurrency} connections{rate}, "
            f"{_takes_s(plan, chosen):.0f} s"
        )
    if not design.known:
        yield "the others follow from what each finds"


def _takes_s(plan: TrialPlan, chosen: Chosen) -> float:
    return chosen.engines[plan.engine].schedule(plan, Path()).run_s
