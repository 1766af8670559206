"""The lab that a verb measures with, and the parts of a run that stay the same for all trials."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from lab.app.call import Call, file_limit
from lab.app.engine_choice import choose_engines
from lab.errors import harmless
from lab.kinds.reading import given_settings
from lab.load.engines import Engine, engines_of
from lab.load.engines.base import cores
from lab.model import Experiment, Json, Remark
from lab.model.host_facts import GENERATORS, MACHINES
from lab.model.knobs import READ_BACK
from lab.report import remarks
from lab.store.run_dir import check_space
from lab.subject.changes import Journal
from lab.subject.conditions import Conditions
from lab.subject.external_service import ExternalService
from lab.subject.lab_server import LabServer
from lab.subject.subject import Subjects
from lab.system import lock
from lab.system.attention import Attention
from lab.system.host import System
from lab.system.host_changes import HostChanges
from lab.system.observe import observe
from lab.system.stack import Stack, project_of

# The width of a table that goes to no terminal.
PLAIN_WIDTH = 120


class Screen(Console):
    """A console that shows no text that a terminal would act on."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else harmless(segment.text, "\n\t")
            yield Segment(text, segment.style, segment.control)


def screen(variables: Mapping[str, str]) -> Screen:
    """The console of a verb, which shows every text as it is: names of runs and trials may hold
    brackets and colons."""
    given = variables.get("COLUMNS", "")
    width = int(given) if re.fullmatch("[1-9][0-9]{0,3}", given) else PLAIN_WIDTH
    terminal = sys.stdout.isatty()
    return Screen(width=None if terminal else width, highlight=False, markup=False, emoji=False)


def say(console: Console, text: str) -> None:
    """A line as a whole, however wide the console is."""
    console.print(Text(text), soft_wrap=True)


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


@contextmanager
def open_lab(call: Call) -> Iterator[Lab]:
    """The lab, for one measurement alone, which a signal interrupts at its next wait. What a run
    before has left changed is put back first. Raises LabError."""
    variables, several = call.variables, bool(call.variables.get(MACHINES))
    with (
        lock.claimed(call.home / lock.FOLDER) as held,
        closing(Stack(variables.get("LAB_SECRET", ""), several=several)) as stack,
    ):
        # Labs beside each other may share a folder of results.
        project = project_of(variables)
        place = Place(
            call.results,
            call.home / "host.json",
            file_limit(),
            cores(),
            call.home,
            journal=call.results / f".changed.{project}.json" if held else None,
            warm_jvms=call.results / f".warm-jvms.{project}.json" if held else None,
            settings=given_settings(variables),
            read_back=given_settings(variables, READ_BACK),
            one_machine=not several,
            generators=tuple(variables.get(GENERATORS, "").split()),
        )
        system, console = System(held=held, shared=not several), screen(variables)
        system.catch_signals()
        left = Journal(place.journal).put_back(stack)
        if left is not None:
            console.print(remarks.text(left))
        yield Lab(place, stack, system, console)


def subjects_of(experiment: Experiment, stack: Stack, host: HostChanges) -> Subjects:
    """What the experiment measures, by name."""
    if experiment.target is None:
        return {name: LabServer(name, stack) for name in experiment.servers}
    [name] = experiment.servers
    ready = experiment.ready or experiment.routes[0]
    return {name: ExternalService(name, experiment.target, ready, stack, host)}


@dataclass(frozen=True, slots=True)
class Stages:
    """The seams for tests, which have neither engines nor time to warm up a JVM. `engines` are
    those that raw data may be of; empty: all."""

    subjects: Callable[[Experiment, Stack, HostChanges], Subjects] = subjects_of
    observe: Callable[..., Remark | None] = observe
    engines: Sequence[Engine] = ()


class Tools:
    """The tools of a run of trials. Raises LabError if no engine fits, or nothing can be kept."""

    def __init__(self, experiment: Experiment, lab: Lab, stages: Stages) -> None:
        check_space(lab.place.results)
        self.place, self.stack = lab.place, lab.stack
        self.system, self.console = lab.system, lab.console
        self.engines = stages.engines or engines_of(lab.place.generators)
        self.chosen = choose_engines(experiment, self.engines)
        self.observe = stages.observe
        self.attention = Attention(lab.stack, lab.system)
        self.journal = Journal(lab.place.journal)
        host = HostChanges(lab.place.host_changes)
        self.subjects = stages.subjects(experiment, lab.stack, host)
        self.conditions = Conditions(lab.stack, self.subjects, host, self.journal, lab.system)
