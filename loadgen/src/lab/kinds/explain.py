"""A verdict proven by intervention: what is named is changed, the same load measured with and
without the change in turn, and what was proven is lifted, so that the next limit shows.

Every decision is made from rows alone (and what was read back of the servers before the first),
so the same rows lead to the same next trial: see `inquiry`. Trials of a pair share a JVM where the
change is a live one, so the interval is about these JVMs, not about all that could have been
started. A change that takes another JVM has a fresh one for each trial.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.judge.resources import RESOURCES
from lab.kinds.kind import SHARED, Kind, Outcome, ToMeasure, Verb, settings_of
from lab.kinds.order import Design, Planner, lengthened, next_number
from lab.kinds.proving.inquiry import FIRST, Ask, Asks, Explain, Inquiry, most_trials, usable
from lab.kinds.proving.present import Present
from lab.kinds.reading import Asked, read_load
from lab.model import AS_IT_IS, Condition, Experiment, Finding, Row, Snapshot, TrialPlan
from lab.store import manifest


def read(asked: Asked) -> ToMeasure:
    """The inquiry that words or a file describe. Raises WordError."""
    load = read_load(asked, ("closed",), ("routes", "concurrency", "modes", "engines"))
    asked.settings.one_of("explain.suspect", RESOURCES)
    table = asked.settings.table("explain", Asks)
    explain = Explain(table.pairs, table.steps, table.suspect, load.most)
    experiment = load.experiment("explain", explain)
    if not experiment.question:
        names, connections = ", ".join(experiment.servers), experiment.concurrencies[0]
        text = f"What limits {names} at {connections:,} connections?"
        experiment = copy.replace(experiment, question=text)
    return experiment, load.notes


@dataclass(frozen=True, slots=True)
class Inquiries(Design):
    """One inquiry per server, one server after the other."""

    planner: Planner
    needs_host = True

    @property
    def most(self) -> int:
        experiment = self.planner.experiment
        return len(experiment.servers) * most_trials(settings_of(Explain, experiment))

    def to_record(self, rows: Sequence[Row]) -> Iterator[str]:
        """See Design: each server's load as it is, once that was named and before anything is
        changed. Never later: it would replace the JVM between the two sides of a pair."""
        for _, done, ask in self._asks(rows):
            named = ask is None or ask.arm != FIRST
            if done and named and usable(done[-1]) and all(row.arm == FIRST for row in done):
                yield done[-1].trial

    def next(self, rows: Sequence[Row]) -> TrialPlan | None:
        planner = self.planner
        for server, done, ask in self._asks(rows):
            if ask is None:
                continue
            launch = _launch(ask, done)
            plan = planner.single(server, arm=ask.arm, condition=ask.condition, launch=launch)
            # After the rate was chosen: it stays.
            connections = ask.condition.connections or plan.concurrency
            duration_s = planner.single(server, connections).duration_s
            plan = copy.replace(plan, concurrency=connections, duration_s=duration_s)
            return planner.named(lengthened(plan, done), next_number(rows), digits=3)
        return None

    def _asks(self, rows: Sequence[Row]) -> Iterator[tuple[str, list[Row], Ask | None]]:
        """Each server with its rows, and the trial that it wants."""
        planner = self.planner
        for server in planner.experiment.servers:
            done = [row for row in rows if row.server == server]
            rate, snapshot = planner.single(server).offered_rps, planner.snapshots[server]
            inquiry = _inquiry(planner.experiment, server, snapshot, planner.cores, rate)
            inquiry.replay(done, planner.conditions)
            yield server, done, inquiry.wanted


def _inquiry(
    experiment: Experiment, server: str, snapshot: Snapshot, cores: int, offered_rps: int | None
) -> Inquiry:
    explain = settings_of(Explain, experiment)
    load = experiment.routes[0], experiment.concurrencies[0], cores, offered_rps
    present = Present(snapshot, AS_IT_IS, *load, explain.most_connections, experiment.levers)
    return Inquiry(server, explain, present)


def _launch(ask: Ask, rows: Sequence[Row]) -> int:
    """The number of the JVM of the next trial: 0 is the one that runs. An invalid trial is repeated
    on its own JVM, which has become warmer, and another one would be as cold."""
    if not ask.fresh:
        return 0
    if rows and rows[-1].arm == ask.arm and not usable(rows[-1]):
        return rows[-1].launch
    return 1 + max((row.launch for row in rows), default=0)


def design(planner: Planner) -> Design:
    """The inquiries. Raises WordError where an engine cannot do the first trial."""
    inquiries = Inquiries(planner)
    inquiries.next([])
    return inquiries


def findings(outcome: Outcome) -> Iterator[Finding]:
    """The answer of each step, and how each inquiry ended. Raises LabError without a manifest."""
    record = manifest.read(outcome.run_dir)
    cores = record.limits.get("generator_cores")
    return findings_of(
        outcome, record.servers, cores if isinstance(cores, int) else 1, outcome.conditions
    )


def findings_of(
    outcome: Outcome,
    snapshots: Mapping[str, Snapshot],
    cores: int,
    conditions: Mapping[str, Condition],
) -> Iterator[Finding]:
    """The findings, with the conditions of the trials and the servers as they were before."""
    for server in outcome.experiment.servers:
        if rows := outcome.of(server):
            rate = rows[0].offered_rps
            inquiry = _inquiry(outcome.experiment, server, snapshots[server], cores, rate)
            inquiry.replay(rows, conditions)
            yield from inquiry.findings(len(rows))


KIND = Kind(
    name="explain",
    title="a verdict, proven by changing what it names",
    uses=(*(key for key in SHARED if key.startswith("load.")), "repeat.patience"),
    table=Asks,
    words={"PAIRS": "explain.pairs", "STEPS": "explain.steps", "SUSPECT": "explain.suspect"},
    records=True,
    # A step takes many trials, and each is compared with its neighbours: they can be short.
    verb=Verb("explain", connections=5000, defaults={"load.duration": "5s"}),
    read=read,
    design=design,
    findings=findings,
    changes_lab=True,
)
