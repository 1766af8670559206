"""Fixed loads: every combination of route, connections, mode, engine and server.

`lab.judge.compare` compares the servers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.judge.compare import family_of_plans
from lab.judge.grouping import most_answered, named_lanes
from lab.judge.ruler import in_units
from lab.kinds.kind import SHARED, Kind, Outcome, ToMeasure, Verb, settings_of
from lab.kinds.order import Design, Listed, Planner, balanced, launches, turned
from lab.kinds.reading import Asked, no_auto_rate, read_load
from lab.kinds.reading.load import RepeatTable
from lab.model import AS_IT_IS, Condition, Experiment, Finding, Mode, Record, TrialPlan
from lab.model.knobs import IMAGE, check_host


class Loads(Record):
    """What the arms differ in, by arm: the image, or the setting of .env whose value names it."""

    images: Mapping[str, str] = {}
    settings: Mapping[str, str] = {}


def arms_of(experiment: Experiment) -> Loads:
    """What the arms differ in. Raises LabError."""
    return settings_of(Loads, experiment) if experiment.kind == KIND.name else Loads()


def read(asked: Asked) -> ToMeasure:
    """The loads of the words or of the file. Raises WordError."""
    load, settings = read_load(asked), asked.settings
    repeat = settings.table("repeat", RepeatTable)
    arms = [arm.rpartition("=") for arm in repeat.arms]
    with settings.checked("repeat.arms"):
        for setting, equals, name in arms:
            if equals:
                check_host(setting, name)
    names = tuple(name for *_, name in arms)
    if arms and not load.draft.launches:
        raise settings.refuse(
            "repeat.arms", "needs fresh JVMs; allowed: with launches of 1 or more"
        )
    if len({*names}) < len(names):
        raise settings.refuse("repeat.arms", "has two arms of one value")
    by_setting = {name: setting for setting, _, name in arms if setting}
    own = Loads(settings=by_setting) if by_setting else None
    patience_s = load.draft.patience_s
    if not load.draft.launches and repeat.patience_s is None:
        # A quick look waits for nothing.
        patience_s = 0
    return load.experiment("loads", own, arms=names, patience_s=patience_s), load.notes


def design(planner: Planner) -> Design:
    """Every cell on every server.

    On the JVMs that run: route, concurrency, mode, engine, then the servers, so that compared
    trials are neighbours in time. On fresh JVMs each launch goes through all of that, every
    other one with loads, engines, servers and arms in reverse (A B B A): what drifts steadily
    falls on all alike. The loads also begin elsewhere from pair to pair (`balanced`), so that no
    load is only measured on a young JVM. Arms are outermost in a launch, as two of one server
    cannot live at once. What is invalid by accident is measured once more. Raises WordError where
    an engine cannot do a trial, or nothing would be left to do.
    """
    experiment, arms = planner.experiment, arms_of(planner.experiment)
    offers, notes = _offers(planner)
    hosts = {arm: {IMAGE: image} for arm, image in arms.images.items()}
    hosts |= {arm: {setting: arm} for arm, setting in arms.settings.items()}
    plans = [
        planner.plan(
            server,
            engine,
            mode,
            concurrency,
            offered,
            route=route,
            duration_s=planner.duration_s(experiment.servers, route, concurrency, offered),
            launch=launch,
            arm=arm,
            condition=Condition(host=hosts[arm]) if arm in hosts else AS_IT_IS,
        )
        for launch in launches(experiment)
        for arm in turned(experiment.arms or (None,), launch)
        for route, concurrency, mode, offered in balanced(offers, launch, experiment.launches)
        for engine in turned(tuple(planner.engines.values()), launch)
        for server in turned(experiment.servers, launch)
    ]
    few = too_few_launches(plans)
    return Listed(planner.numbered(plans), (*notes, few) if few else notes, repeats=True)


def too_few_launches(plans: Sequence[TrialPlan]) -> str:
    """Why the launches give no answer; empty where they do, or nothing is compared or repeated."""
    family, launches = family_of_plans(plans), max((plan.launch for plan in plans), default=0)
    if not family.answers or not 1 < launches < family.launches:
        return ""
    return (
        f"{launches} launches are too few to call anything better or worse: the {family.answers} "
        f"comparisons of this run take LAUNCHES={family.launches}"
    )


_Offer = tuple[str, int, Mode, int | None]


def _offers(planner: Planner) -> tuple[list[_Offer], tuple[str, ...]]:
    """Route, connections, mode and rate of every cell that is possible, and what is not."""
    experiment = planner.experiment
    offers: list[_Offer] = []
    without_rate: dict[str, None] = {}
    for route in experiment.routes:
        for concurrency in experiment.concurrencies:
            for mode in experiment.modes:
                rate = planner.offered_rps(route, concurrency) if mode == "open" else None
                if mode == "open" and rate is None:
                    without_rate[route] = None
                else:
                    offers.append((route, concurrency, mode, rate))
    routes = ", ".join(without_rate)
    if not offers:
        raise no_auto_rate(routes)
    note = (
        f"no open load of {routes}: RATE=auto is a share of connections / wait, and nothing waits "
        "there now; RATE=n adds it"
    )
    return offers, (note,) if routes else ()


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    """What each lane costs in units where it answered most."""
    costs: list[Finding] = []
    for name, rows in named_lanes(outcome.rows).items():
        most = most_answered(rows)
        costs += in_units(name, outcome.rows, most[0], (), outcome.cpus) if most else ()
    return tuple(costs)


KIND = Kind(
    name="loads",
    title="fixed loads",
    uses=SHARED,
    records=True,
    # A first look: enough for p95, and for a p99 from 1,000 answers on.
    verb=Verb("bench", connections=2000, defaults={"load.duration": "10s"}),
    read=read,
    design=design,
    findings=findings,
)
