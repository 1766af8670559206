"""Fixed loads: every combination of route, connections, mode, engine and server.

`lab.judge.compare` compares the servers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lab.experiments.kind import SHARED, Outcome, ToMeasure, TrialKind, Verb, settings_of
from lab.experiments.order import Design, Listed, Planner, balanced, launches, turned
from lab.experiments.reading import Asked, no_auto_rate, read_load, rules, target
from lab.judge.compare import family_of_plans
from lab.judge.grouping import most_answered, named_lanes
from lab.judge.ruler import in_units
from lab.model import AS_IT_IS, Condition, Experiment, Finding, Mode, TrialPlan
from lab.model.knobs import IMAGE, check_host


@dataclass(frozen=True, slots=True)
class Loads:
    """What the arms differ in, by arm: the image, or the setting of .env whose value names it."""

    images: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


def arms_of(experiment: Experiment) -> Loads:
    """What the arms differ in. Raises LabError."""
    return settings_of(Loads, experiment) if experiment.kind == KIND.name else Loads()


def _arm(text: str) -> tuple[str, str]:
    """An arm's name, and the setting of .env that has this value in it, as `FRONTS=2`; or none."""
    setting, _, name = text.rpartition("=")
    if setting:
        check_host(setting, name)
    return rules.name(name), setting


def read(asked: Asked) -> ToMeasure:
    """The loads of the words or of the file. Raises WordError."""
    load = read_load(asked)
    each = asked.settings.each("repeat.arms", _arm)
    arms = tuple(name for name, _ in each)
    given = asked.settings.get("repeat.arms")
    if given is not None and not load.launches:
        raise given.refuse(f"{given.text} needs fresh JVMs; allowed: with launches of 1 or more")
    if given is not None and len({*arms}) < len(arms):
        raise given.refuse(f"{given.text} has two arms of one value")
    settings = {name: setting for name, setting in each if setting}
    own = Loads(settings=settings) if settings else None
    return load.experiment("loads", own, arms=arms), load.notes


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
    experiment = planner.experiment
    offers, notes = _offers(planner)
    of = arms_of(experiment)
    hosts = {arm: {IMAGE: image} for arm, image in of.images.items()}
    hosts |= {arm: {setting: arm} for arm, setting in of.settings.items()}
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
    notes = (*notes, *_windows(planner, offers), *([few] if few else []))
    return Listed(planner.numbered(plans), notes, repeats=True)


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


def _windows(planner: Planner, offers: Sequence[_Offer]) -> Iterator[str]:
    """What the user should know of the lengths of the windows: those that are longer than asked
    for, and those that will be too short."""
    wanted = planner.experiment.duration_s
    for route, concurrency, mode, offered in offers:
        servers = planner.experiment.servers
        expected_s = planner.expected_s(servers, route, concurrency, offered)
        needed_s = planner.needed_s(servers, route, expected_s)
        if needed_s <= wanted:
            continue
        load = f"{route} {concurrency} {mode}"
        if planner.experiment.longer:
            yield f"{load}: windows of {needed_s} s, as a latency of {expected_s:.1f} s is expected"
        else:
            yield (
                f"warning: {load}: a latency of {expected_s:.1f} s is expected, and the window of "
                f"{wanted} s may be too short for it; DURATION={needed_s}s would do"
            )


def _offers(planner: Planner) -> tuple[list[_Offer], tuple[str, ...]]:
    """Route, connections, mode and rate of every cell that is possible, and what is not."""
    experiment = planner.experiment
    offers: list[_Offer] = []
    without_rate: list[str] = []
    for route in experiment.routes:
        for concurrency in experiment.concurrencies:
            for mode in experiment.modes:
                rate = planner.offered_rps(route, concurrency) if mode == "open" else None
                if mode == "closed" or rate is not None:
                    offers.append((route, concurrency, mode, rate))
                elif route not in without_rate:
                    without_rate.append(route)
    if not offers:
        raise no_auto_rate(without_rate[0])
    if not without_rate:
        return offers, ()
    what = "closed load only" if "closed" in experiment.modes else "left out"
    does = "does" if len(without_rate) == 1 else "do"
    return offers, (
        f"{what}: RATE=auto is a share of connections / wait, and {', '.join(without_rate)} "
        f"{does} not wait now; RATE=n adds the open load",
    )


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    """What each lane costs in units where it answered most."""
    found: list[Finding] = []
    for name, its in named_lanes(outcome.rows).items():
        most = most_answered(its)
        found += in_units(name, outcome.rows, most[0], (), outcome.cpus) if most else ()
    return tuple(found)


KIND = TrialKind(
    name="loads",
    title="fixed loads",
    uses=tuple(SHARED),
    words=target.WORDS,
    recorded_load="each server's last load",
    # A first look: enough for p95, and for a p99 from 1,000 answers on.
    verb=Verb(
        "bench",
        connections=2000,
        defaults={"load.duration": "10s"},
    ),
    read=read,
    design=design,
    findings=findings,
    answers_most=True,
)
