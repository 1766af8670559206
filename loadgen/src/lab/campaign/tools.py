"""The tools of a run: its lab, and for a run of trials the parts that never change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from lab.campaign.engine_choice import Chosen
from lab.load.demand import demand_of_foreign, measure_demand
from lab.load.engines import Engine
from lab.load.warm import prove_warm, warm_foreign
from lab.model import Demand, Json, Warmth
from lab.system.attention import Attention
from lab.system.conditions import Conditions
from lab.system.host import System
from lab.system.host_changes import HostChanges
from lab.system.jvm import fresh_container, fresh_jvm
from lab.system.observe import observe
from lab.system.stack import Stack
from lab.system.undo_log import UndoLog


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run finds what it needs on this machine.

    `results` is the folder of all runs; `host_file` what make wrote about the host; `file_limit`
    and `cores` are this process' own limits. `host_changes` has the folders by which the host is
    asked for changes (None: nobody answers), `undo_log` the file of what is changed now (None: keep
    none), `warm_jvms` the file of what is known of the JVMs that run (None: keep none). `settings`
    are words of make for settings of .env that no server tells of, `read_back` for those that a
    server does. `one_machine`: all of the lab is on this one. `generators` are further machines
    that put on a share of a load (HOST:PORT)."""

    results: Path
    host_file: Path
    file_limit: int
    cores: int
    host_changes: Path | None = None
    undo_log: Path | None = None
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


@dataclass(frozen=True, slots=True)
class Stages:
    """The steps around a trial. Tests replace them, as they have no time to warm up a JVM."""

    fresh: Callable[..., object] = fresh_jvm
    fresh_container: Callable[..., object] = fresh_container
    warm: Callable[..., Warmth] = prove_warm
    warm_foreign: Callable[..., Warmth] = warm_foreign
    demand: Callable[..., Demand | None] = measure_demand
    demand_of_foreign: Callable[..., Demand | None] = demand_of_foreign
    observe: Callable[..., str | None] = observe


class Tools:
    """The tools of a run of trials. `all_engines` are the engines that raw data may be of."""

    def __init__(
        self, lab: Lab, chosen: Chosen, all_engines: Sequence[Engine], stages: Stages
    ) -> None:
        self.place, self.stack = lab.place, lab.stack
        self.system, self.console = lab.system, lab.console
        self.chosen = chosen
        self.all_engines = all_engines
        self.stages = stages
        self.attention = Attention(lab.stack, lab.system)
        self.undo_log = UndoLog(lab.place.undo_log)
        self.host_changes = HostChanges(lab.place.host_changes)
        self.conditions = Conditions(
            lab.stack, self.host_changes, lab.system, undo_log=self.undo_log
        )
