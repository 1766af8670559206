"""A verb as it was called: its words, and where it runs, as the host says by variables."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from lab.app.tools import Lab, Place
from lab.errors import harmless
from lab.kinds.reading import Here, given_settings, read_servers
from lab.load.engines.base import cores
from lab.model.host_facts import GENERATORS, MACHINES
from lab.model.knobs import READ_BACK
from lab.report import remarks
from lab.subject.changes import Journal
from lab.system import lock
from lab.system.host import System, source_ports
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


@dataclass(frozen=True, slots=True)
class Call:
    """A verb with its words, and the variables of the process."""

    verb: str
    words: Mapping[str, str]
    variables: Mapping[str, str]

    @property
    def home(self) -> Path:
        return Path(self.variables.get("LAB_HOME", "/lab"))

    @property
    def results(self) -> Path:
        return self.home / "results"

    @property
    def servers(self) -> tuple[str, ...]:
        """The models that are up. Raises LabError."""
        return read_servers(self.home / "servers", self.variables)

    @property
    def services(self) -> tuple[str, ...]:
        """Those of the user's own that are containers of the lab."""
        return tuple(self.variables.get("LAB_OWN", "").split())

    @property
    def here(self) -> Here:
        """Raises LabError."""
        return Here(
            self.servers,
            file_limit(),
            source_ports(),
            self.services,
            self.home / "subjects",
            self.variables.get("LAB_TAG", "local"),
            self.results,
        )

    @property
    def console(self) -> Console:
        given = self.variables.get("COLUMNS", "")
        width = int(given) if re.fullmatch("[1-9][0-9]{0,3}", given) else PLAIN_WIDTH
        # Every text is shown as it is: names of runs and trials may hold brackets and colons.
        return Screen(
            width=None if sys.stdout.isatty() else width, highlight=False, markup=False, emoji=False
        )

    @contextmanager
    def lab(self) -> Iterator[Lab]:
        """The lab, for one measurement alone, which a signal interrupts at its next wait. What a
        run before has left changed is put back first. Raises LabError."""
        variables, several = self.variables, bool(self.variables.get(MACHINES))
        with (
            lock.claimed(self.home / lock.FOLDER) as held,
            closing(Stack(variables.get("LAB_SECRET", ""), several=several)) as stack,
        ):
            # Labs beside each other may share a folder of results.
            project = project_of(variables)
            place = Place(
                self.results,
                self.home / "host.json",
                file_limit(),
                cores(),
                self.home,
                journal=self.results / f".changed.{project}.json" if held else None,
                warm_jvms=self.results / f".warm-jvms.{project}.json" if held else None,
                settings=given_settings(variables),
                read_back=given_settings(variables, READ_BACK),
                one_machine=not several,
                generators=tuple(variables.get(GENERATORS, "").split()),
            )
            system, console = System(held=held, shared=not several), self.console
            system.catch_signals()
            left = Journal(place.journal).put_back(stack)
            if left is not None:
                console.print(remarks.text(left))
            yield Lab(place, stack, system, console)


def file_limit() -> int:
    """How many files a process may hold open here; raises its own limit to that."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return 1_048_576 if hard == resource.RLIM_INFINITY else hard
