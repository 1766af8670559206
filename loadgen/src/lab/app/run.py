"""Begins a run of trials: reads the servers back, records and prints them, then starts the loop."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType

from lab.app.loop import Loop, announcement, run_s
from lab.app.tools import Lab, Stages, Tools, say
from lab.errors import WordError
from lab.judge.checks.state import unequal
from lab.judge.same_lab import fairness
from lab.kinds import order
from lab.kinds.kind import recorded
from lab.kinds.registry import kind_of
from lab.model import Condition, Experiment, Snapshot
from lab.model.host_facts import MACHINES
from lab.model.knobs import READ_BACK
from lab.report import remarks
from lab.store import manifest
from lab.store.records import read_object
from lab.store.run_dir import new_run_dir
from lab.subject.subject import Subjects


def run(
    experiment: Experiment,
    lab: Lab,
    notes: Sequence[str] = (),
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
    tools = Tools(experiment, lab, stages or Stages())
    chosen, subjects, console = tools.chosen, tools.subjects, lab.console
    servers = read_servers(experiment, subjects)
    unset = without_settings(lab.place.read_back, servers)
    design = new_design(experiment, servers, tools)
    notes = (*chosen.notes, *notes, *unset, *design.notes)
    if only_plan:
        for line in (*notes, *_planned(experiment, design, tools)):
            say(console, line)
        return 0
    wrong = _wrong_answers(experiment, _calls(experiment, design), subjects)
    in_force = servers[experiment.servers[0]].toxics.in_force
    toxics = (f"toxics in force: {'; '.join(in_force)}",) if in_force else ()
    warnings = (f"warning: {server}: {answer}" for (server, _), answer in wrong.items())
    notes = (*notes, *toxics, *warnings)
    common = fairness(servers)
    if kind_of(experiment).changes_lab:
        # Servers are not compared then.
        common = copy.replace(common, unequal={})
    unfair = (f"warning: no row will be valid: {remarks.text(why)}" for why in unequal(common))
    for line in (*notes, *unfair):
        say(console, line)
    started_at, host = lab.system.now(), read_object(lab.place.host_file)
    engines = {engine.name: engine.version() for engine in tools.engines}
    run_dir = new_run_dir(lab.place.results, started_at, experiment.name)
    record = manifest.Manifest(
        run=run_dir.name,
        status="running",
        started_at=started_at,
        ended_at=None,
        experiment=experiment,
        versions={**manifest.code_versions(host), "engine": chosen.version, "engines": engines},
        host=host,
        limits=lab.place.limits,
        servers=servers,
        fairness=common,
        notes=notes,
        target_answers={route: answer for (_, route), answer in wrong.items()}
        if experiment.target
        else {},
        settings=lab.place.settings,
    )
    manifest.write(run_dir, record)
    code = Loop(run_dir, record, design, tools).go()
    return judge(run_dir) if judge else code


def new_design(
    experiment: Experiment,
    servers: Mapping[str, Snapshot],
    tools: Tools,
    conditions: Mapping[str, Condition] = MappingProxyType({}),
) -> order.Design:
    """The order of the trials, by the experiment's kind. Raises WordError, also where a server does
    not declare a route of its trials, or the lab cannot be changed for them."""
    subjects, engines, cores = tools.subjects, tools.chosen.engines, tools.place.cores

    def url(server: str, route: str) -> str:
        return subjects[server].url(route)

    planner = order.Planner(experiment, servers, engines, url, cores, conditions)
    design = kind_of(experiment).design(planner)
    if design.needs_host and not tools.place.one_machine:
        raise WordError(
            f"{experiment.name}: its trials may take other settings of a container, which only the "
            f"host of one machine gives; not allowed on several ({MACHINES})"
        )
    calls = _calls(experiment, design)
    declared = {server: subjects[server].routes() for server, _ in calls}
    for route in experiment.routes:
        path = route.partition("?")[0]
        without, others = list[str](), list[str]()
        for server in (server for server, called in calls if called == route):
            paths = declared[server]
            (others if paths is None or path in paths else without).append(server)
        if without:
            hint = f"; SERVER={','.join(others)} has it" if others else ""
            raise WordError(f"ROUTE={path}: {', '.join(without)} has no such route{hint}")
    return design


def read_servers(experiment: Experiment, subjects: Subjects) -> dict[str, Snapshot]:
    """Every server of the experiment as it is now. Raises LabUnreachable."""
    for subject in subjects.values():
        # First: a management port answers 403 to another server's token, without a name.
        subject.check()
        if recorded(experiment):
            subject.check_recorder()
    return {name: subject.snapshot() for name, subject in subjects.items()}


def without_settings(words: Sequence[str], servers: Mapping[str, Snapshot]) -> list[str]:
    """A note for each setting that some of the servers do not have. Raises WordError where none of
    them has it: it would change no figure. A kernel may not tell the range of ports."""
    notes = []
    for word in words:
        name, _ = READ_BACK[word.partition("=")[0]]
        without = [
            server
            for server, snapshot in servers.items()
            if not snapshot.foreign
            and snapshot.settings.get(name) is None
            and name != "local_ports"
        ]
        text = f"{word}: {', '.join(without)} has no such setting"
        if len(without) == len(servers):
            raise WordError(text)
        if without:
            notes.append(text)
    return notes


def _calls(experiment: Experiment, design: order.Design) -> list[tuple[str, str]]:
    """The servers of the trials, each with its routes; all, where these follow from findings."""
    known = {(plan.server, plan.route) for plan in design.known}
    every = product(experiment.servers, experiment.routes)
    return [call for call in every if not known or call in known]


def _wrong_answers(
    experiment: Experiment, calls: Sequence[tuple[str, str]], subjects: Subjects
) -> dict[tuple[str, str], str]:
    """What is wrong with the answers of servers and routes, where toxics may be why. Raises
    LabUnreachable where a route is not served."""
    asked = dict.fromkeys((server, experiment.ready or route) for server, route in calls)
    answers = (((server, route), subjects[server].check_route(route)) for server, route in asked)
    return {call: remarks.text(answer) for call, answer in answers if answer is not None}


def _planned(experiment: Experiment, design: order.Design, tools: Tools) -> Iterator[str]:
    """The trials that are known before the run, a line each, after the announcement. If they follow
    from findings: the first."""
    first = design.next([])
    if first is None:
        return
    yield announcement(experiment, design, tools.chosen, first)
    for plan in design.known or [first]:
        rate = "" if plan.offered_rps is None else f", {plan.offered_rps} req/s"
        yield (
            f"{plan.trial}: {plan.route} {plan.mode}, {plan.concurrency} connections{rate}, "
            f"{run_s(plan, tools.chosen):.0f} s"
        )
    if not design.known:
        yield "the others follow from what each finds"
