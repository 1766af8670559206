"""Begins a run of trials: reads the servers back, records and prints them, then starts the loop."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType

from lab.app.announcement import planned
from lab.app.loop import Loop
from lab.app.run_record import begin
from lab.app.tools import Lab, Stages, Tools
from lab.errors import WordError
from lab.judge.checks.state import unequal
from lab.judge.same_lab import fairness
from lab.kinds import order
from lab.kinds.kind import recorded
from lab.kinds.registry import kind_of
from lab.load.engines import Engine, engines_of
from lab.model import Condition, Experiment, Fairness, Snapshot
from lab.model.host_facts import MACHINES
from lab.model.knobs import READ_BACK
from lab.model.routes import parse
from lab.report import remarks
from lab.store.run_dir import check_space
from lab.subject.subject import Subjects


def new_design(
    experiment: Experiment,
    snapshots: Mapping[str, Snapshot],
    tools: Tools,
    conditions: Mapping[str, Condition] = MappingProxyType({}),
) -> order.Design:
    """The order of the trials, by the experiment's kind. Raises WordError, also where a server does
    not declare a route of its trials, or the lab cannot be changed for them."""
    subjects, engines, cores = tools.subjects, tools.chosen.engines, tools.place.cores

    def url(server: str, route: str) -> str:
        return subjects[server].url(route)

    planner = order.Planner(experiment, snapshots, engines, url, cores, conditions)
    design = kind_of(experiment).design(planner)
    if design.needs_host and not tools.place.one_machine:
        raise WordError(
            f"{experiment.name}: its trials may take other settings of a container, which only the "
            f"host of one machine gives; not allowed on several ({MACHINES})"
        )
    _require_routes(_calls(experiment, design), subjects)
    return design


def run(
    experiment: Experiment,
    lab: Lab,
    notes: Sequence[str] = (),
    engines: Sequence[Engine] | None = None,
    stages: Stages | None = None,
    *,
    only_plan: bool = False,
    judge: Callable[[Path], int] | None = None,
) -> int:
    """Run the experiment. Returns the exit code: 0, or 1 where a trial gave no figures; or what
    `judge` says of the run's folder in the end. `only_plan`: say which trials it has, and measure
    nothing.

    Raises LabError; Interrupted after what was measured is on disk and printed.
    """
    place = lab.place
    engines = engines or engines_of(place.generators)
    check_space(place.results)
    tools = Tools(experiment, lab, engines, stages or Stages())
    chosen, subjects = tools.chosen, tools.subjects
    snapshots = read_servers(experiment, subjects)
    notes = (*notes, *_without_settings(place.read_back, snapshots))
    order = new_design(experiment, snapshots, tools)
    if only_plan:
        for line in (*chosen.notes, *notes, *order.notes):
            lab.console.print(line)
        for line in planned(experiment, order, chosen):
            lab.console.print(line)
        return 0
    calls = _calls(experiment, order)
    wrong = _wrong_answers(experiment, calls, subjects)
    in_force = snapshots[experiment.servers[0]].toxics.in_force
    toxics = (f"toxics in force: {'; '.join(in_force)}",) if in_force else ()
    warnings = (f"warning: {server}: {answer}" for (server, _), answer in wrong.items())
    notes = (*chosen.notes, *notes, *order.notes, *toxics, *warnings)
    common = _common(experiment, snapshots)
    for line in (
        *notes,
        *(f"warning: no row will be valid: {remarks.text(r)}" for r in unequal(common)),
    ):
        lab.console.print(line)
    run_dir, record = begin(
        place,
        lab.system,
        experiment,
        snapshots,
        common,
        {"engine": chosen.version, "engines": {one.name: one.version() for one in engines}},
        notes,
        {route: answer for (_, route), answer in wrong.items()} if experiment.target else {},
    )
    code = Loop(run_dir, record, order, tools).go([])
    return judge(run_dir) if judge else code


def read_servers(experiment: Experiment, subjects: Subjects) -> dict[str, Snapshot]:
    """Every server of the experiment as it is now. Raises LabUnreachable."""
    for subject in subjects.values():
        # First: a management port answers 403 to another server's token, without a name.
        subject.check()
        if recorded(experiment):
            subject.check_recorder()
    return {name: subject.snapshot() for name, subject in subjects.items()}


def _calls(experiment: Experiment, design: order.Design) -> list[tuple[str, str]]:
    """The servers of the trials, each with its routes; all, where these follow from findings."""
    known = {(plan.server, plan.route) for plan in design.known}
    every = product(experiment.servers, experiment.routes)
    return [call for call in every if not known or call in known]


def _require_routes(calls: Sequence[tuple[str, str]], subjects: Subjects) -> None:
    """Raises WordError unless every server declares its routes."""
    declared = {server: subjects[server].routes() for server, _ in calls}
    calls = [call for call in calls if declared[call[0]] is not None]
    for route in dict.fromkeys(route for _, route in calls):
        path, those = parse(route).route.path, [of for of, its in calls if its == route]
        without = [server for server in those if path not in (declared[server] or ())]
        if without:
            others = ", ".join(server for server in those if server not in without)
            hint = f"; SERVER={others.replace(', ', ',')} has it" if others else ""
            raise WordError(f"ROUTE={path}: {', '.join(without)} has no such route{hint}")


def _without_settings(words: Sequence[str], servers: Mapping[str, Snapshot]) -> Iterator[str]:
    """A note for each setting that some of the servers do not have. Raises WordError where none of
    them has it: it would change no figure. A kernel may not tell the range of ports."""
    lanes = {server: of.settings for server, of in servers.items() if not of.foreign}
    for word in words:
        name, _ = READ_BACK[word.partition("=")[0]]
        without = [at for at in lanes if lanes[at].get(name) is None and name != "local_ports"]
        text = f"{word}: {', '.join(without)} has no such setting"
        if len(without) == len(servers):
            raise WordError(text)
        if without:
            yield text


def _wrong_answers(
    experiment: Experiment, calls: Sequence[tuple[str, str]], subjects: Subjects
) -> dict[tuple[str, str], str]:
    """What is wrong with the answers of servers and routes, where toxics may be why. Raises
    LabUnreachable where a route is not served."""
    asked = dict.fromkeys((server, experiment.ready or route) for server, route in calls)
    answers = (((server, route), subjects[server].check_route(route)) for server, route in asked)
    return {call: remarks.text(answer) for call, answer in answers if answer is not None}


def _common(experiment: Experiment, snapshots: Mapping[str, Snapshot]) -> Fairness:
    """The settings that the servers share. If trials change the lab, servers are not compared."""
    common = fairness(snapshots)
    if kind_of(experiment).changes_lab:
        common = copy.replace(common, unequal={})
    return common
