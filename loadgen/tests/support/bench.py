"""Benches on a fake lab, a fake engine and a fake clock, and what they leave on the disk."""

import copy
import csv
import dataclasses
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.app.resume import resume
from lab.app.run import run
from lab.app.tools import Lab, Stages, subjects_of
from lab.errors import Interrupted
from lab.model import Demand, Experiment, Remark, TrialPlan, WarmCycle, Warmth
from lab.store import manifest
from lab.subject.subject import Subjects
from lab.system.host_changes import HostChanges
from lab.system.stack import Stack
from support.fakes import FakeLab
from support.planned import experiment
from support.runs import HOST_FILE, derived_again

RUN = "20260131T120000Z-bench"
WARM = Warmth(True, (WarmCycle(2.0, 2.0, 500.0, 200.0, 0.01),))
EXPERIMENT = experiment(
    name="bench", concurrencies=(200,), modes=("open", "closed"), words=("CONC=200",)
)


@dataclasses.dataclass
class Bench:
    """A bench ready to start on a fake lab. What it says is in `text`; `rows` and `manifest` are
    read back from the disk."""

    place: Any
    lab: FakeLab
    text: io.StringIO = dataclasses.field(default_factory=io.StringIO)
    warmed: list[str] = dataclasses.field(default_factory=list)
    warmth: Warmth = WARM
    demand: Demand | None = None
    measured: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    observe: Callable[..., Remark | None] = lambda *_: None
    # The services whose container was replaced; None: the host is asked.
    renewed: list[str] | None = None
    # Whether a JVM is really warmed up.
    warms: bool = False

    @property
    def console(self) -> Console:
        return Console(file=self.text, width=120)

    @property
    def where(self) -> Lab:
        """The lab as a run is given it."""
        return Lab(self.place, self.lab.stack, self.lab.system, self.console)

    @property
    def said(self) -> str:
        """What was printed, as one line."""
        return " ".join(self.text.getvalue().split())

    @property
    def run_dir(self) -> Path:
        return self.place.results / RUN

    @property
    def csv(self) -> str:
        path = self.run_dir / "trials.csv"
        return path.read_text() if path.exists() else ""

    @property
    def rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader(self.csv.splitlines()))

    def column(self, *names: str) -> list[Any]:
        """Of every row this cell, or these as a tuple."""
        cells = [tuple(row[name] for name in names) for row in self.rows]
        return cells if len(names) > 1 else [cell for (cell,) in cells]

    def cells(self, *names: str) -> str:
        """These cells of every row, as "a true, b false"."""
        return ", ".join(" ".join(row[name] for name in names) for row in self.rows)

    def record(self, trial: str, folder: str = "raw") -> dict[str, Any]:
        """The record of a trial in this folder of the run."""
        return json.loads((self.run_dir / folder / trial / "trial.json").read_text())

    @property
    def report(self) -> str:
        return (self.run_dir / "REPORT.md").read_text()

    @property
    def findings(self) -> list[dict[str, Any]]:
        return json.loads((self.run_dir / "findings.json").read_text())

    def derived_again(self) -> set[str]:
        """The files that another judgement of the run changes."""
        return derived_again(self.run_dir, [self.lab.engine])

    @property
    def listed(self) -> list[dict[str, str]]:
        """The list of all runs."""
        return list(csv.DictReader((self.place.results / "runs.csv").read_text().splitlines()))

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.run_dir / "manifest.json").read_text())

    def warm(self, plan: TrialPlan, *_: object) -> Warmth:
        self.warmed.append(plan.server)
        return self.warmth

    def light_load(self, plan: TrialPlan, *_: object) -> Demand | None:
        self.measured.append((plan.server, plan.route))
        return self.demand

    @property
    def stages(self) -> Stages:
        return Stages(self.subjects, self.observe, (self.lab.engine,))

    def subjects(self, experiment: Experiment, stack: Stack, host: HostChanges) -> Subjects:
        """Those of the run, but for the lab's servers without what takes time."""
        subjects = subjects_of(experiment, stack, host)
        for name, subject in subjects.items():
            if "warm" in vars(self) or (subject.has_identity and not self.warms):
                subject.warm = lambda bench, of: (self.warm(bench.plan, of), None)
            if subject.has_identity:
                subject.demand = lambda bench, of, _, edges: self.light_load(bench.plan, of, edges)
            if self.renewed is not None:
                subject.renew = lambda _, name=name: self.renewed.append(name)
        return subjects

    def resume(self) -> int:
        experiment = manifest.read(self.run_dir).experiment
        return resume(self.run_dir, experiment, self.where, self.stages)

    def run(self, **changes: object) -> int:
        experiment = copy.replace(EXPERIMENT, **changes)
        return run(experiment, self.where, (), self.stages)

    def run_one(self, **changes: object) -> dict[str, str]:
        """The row of one open trial of server a."""
        self.run(**{"servers": ("a",), "modes": ("open",), **changes})
        return self.rows[0]

    def interrupt(self, at_s: float = 60.0, **changes: object) -> str:
        """A run that is stopped at this time, as a rule in its third trial of 25 s. The CSV as it
        was left."""
        self.lab.system.interrupt_at = at_s
        with pytest.raises(Interrupted):
            self.run(**changes)
        self.lab.system.interrupt_at = None
        return self.csv

    def hosted(self, parent: Path, refuses: str = "\0") -> list[str]:
        """A host that does what it is asked for from now on, after which server a has another JVM;
        but nothing that `refuses` is in. Its requests."""
        home = parent / "host-changes"
        for name in ("requests", "answers"):
            (home / name).mkdir(parents=True)
        self.place = copy.replace(self.place, host_changes=home)
        asked: list[str] = []

        def host() -> None:
            request = home / "requests" / str(len(asked) + 1)
            if request.is_symlink():
                # A path would lose some of its slashes.
                asked.append(f"{os.readlink(request)}\n")  # noqa: PTH115
                code = "failed" if refuses in asked[-1] else "ok"
                (home / "answers" / request.name).write_text(f"{code}\n")
                if code == "ok":
                    self.lab.new_jvm("a")
            self.lab.system.at(self.lab.system.elapsed_s + 0.05, host)

        host()
        return asked

    def without_knobs(self) -> None:
        """A knob turned before the run is gone with the first fresh JVM."""

        def warm(plan: TrialPlan, *_: object) -> Warmth:
            self.lab.pool_sizes[plan.server] = 200
            return WARM

        self.lab.pool_sizes["a"] = 20
        self.warm = warm

    def on(self, **facts: object) -> None:
        """A host with these facts; None: not recorded."""
        known = {name: fact for name, fact in {**HOST_FILE, **facts}.items() if fact is not None}
        self.place.host_file.write_text(json.dumps(known))

    @property
    def trials(self) -> list[dict[str, Any]]:
        text = (self.run_dir / "trials.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]
