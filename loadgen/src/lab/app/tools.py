"""The tools of a run: its lab, and for a run of trials the parts that never change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from lab.app.engine_choice import choose_engines
from lab.load.engines import Engine
from lab.model import Experiment, Json, Remark
from lab.subject.changes import Journal
from lab.subject.conditions import Conditions
from lab.subject.external_service import ExternalService
from lab.subject.lab_server import LabServer
from lab.subject.subject import Subjects
from lab.system.attention import Attention
from lab.system.host import System
from lab.system.host_changes import HostChanges
from lab.system.observe import observe
from lab.system.stack import Stack


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run finds what it needs on this machine.

    `results` is the folder of all runs; `host_file` what make wrote about the host; `file_limit`
    and `cores` are this process' own limits. `host_changes` has the folders by which the host is
    asked for changes (None: nobody answers), `journal` the file of what is changed now (None: keep
    none), `warm_jvms` the file of what is known of the JVMs that run (None: keep none). `settings`
    are words of make for settings of .env that no server tells of, `read_back` for those that a
    server does. `one_machine`: all of the lab is on this one. `generators` are further machines
    that put on a share of a load (HOST:PORT)."""

    results: Path
    host_file: Path
    file_limit: int
    cores: int
    host_changes: Path | None = None
    journal: Path | None = None
    warm_jvms: Path | None = None
    settings: tuple[str, ...] = ()
    read_back: tuple[str, ...] = ()
    one_machine: bool = True
    generators: tuple[str, ...] = ()

    @property
    def limits(self) -> dict[str, Json]:
        """This process' own limits, as the manifest of a run of trials has them."""
        further: dict[str, Json] = {"generators": list(self.generators)} if self.generators else {}
        return {"open_files": self.file_limit, "generator_cores": self.cores, **further}


@dataclass(frozen=True, slots=True)
class Lab:
    """The lab to measure with. `console` is where the user is told."""

    place: Place
    stack: Stack
    system: System
    console: Console


def subjects_of(experiment: Experiment, stack: Stack, host: HostChanges) -> Subjects:
    """What the experiment measures, by name."""
    if experiment.target is None:
        return {name: LabServer(name, stack) for name in experiment.servers}
    [name] = experiment.servers
    ready = experiment.ready or experiment.routes[0]
    return {name: ExternalService(name, experiment.target, ready, stack, host)}


@dataclass(frozen=True, slots=True)
class Stages:
    """The seams for tests, which have no time to warm up a JVM."""

    subjects: Callable[[Experiment, Stack, HostChanges], Subjects] = subjects_of
    observe: Callable[..., Remark | None] = observe


class Tools:
    """The tools of a run of trials. `all_engines` are the engines that raw data may be of. Raises
    LabError if no engine fits."""

    def __init__(
        self, experiment: Experiment, lab: Lab, all_engines: Sequence[Engine], stages: Stages
    ) -> None:
        self.place, self.stack = lab.place, lab.stack
        self.system, self.console = lab.system, lab.console
        self.all_engines = all_engines
        self.chosen = choose_engines(experiment, all_engines)
        self.observe = stages.observe
        self.attention = Attention(lab.stack, lab.system)
        self.journal = Journal(lab.place.journal)
        host = HostChanges(lab.place.host_changes)
        self.subjects = stages.subjects(experiment, lab.stack, host)
        self.conditions = Conditions(lab.stack, self.subjects, host, self.journal, lab.system)
