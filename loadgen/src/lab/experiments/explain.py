"""A verdict proven by intervention: what is named is changed, the same load measured with and
without the change in turn, and what was proven is lifted, so that the next limit shows.

Every decision is made from rows alone (and what was read back of the servers before the first),
so the same rows lead to the same next trial: see `inquiry`. Trials of a pair share a JVM where the
change is a live one, so the interval is about these JVMs, not about all that could have been
started. A change that takes another JVM has a fresh one for each trial.
"""

import dataclasses
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.experiments.kind import (
    OTHER_RULES,
    SHARED,
    Outcome,
    ToMeasure,
    TrialKind,
    Verb,
    settings_of,
)
from lab.experiments.order import Design, Planner, lengthened, next_number, without_number
from lab.experiments.proving.inquiry import (
    FIRST,
    Ask,
    Explain,
    NotTried,
    Step,
    Story,
    most_trials,
    story,
    usable,
)
from lab.experiments.proving.levers import Present
from lab.experiments.reading import Asked, Key, Word, read_load, rules, target
from lab.judge.intervals import RatioOf
from lab.judge.resources import RESOURCES
from lab.model import (
    AS_IT_IS,
    Condition,
    Experiment,
    Finding,
    Row,
    Snapshot,
    TrialPlan,
    goodput,
    strength_text,
)
from lab.store import manifest

NEXT = "next bottleneck"
UNIT = "×"
KEYS = {
    # 6 pairs are the least that give an interval (lab.judge.intervals).
    "pairs": Key(rules.number(1, 100), 6),
    "steps": Key(rules.number(1, 20), 4),
    "suspect": Key(rules.one_of(RESOURCES), None),
}


def read(asked: Asked) -> ToMeasure:
    """The inquiry that words or a file describe. Raises WordError."""
    load = read_load(asked, ("closed",), ("routes", "concurrency", "modes", "engines"))
    explain = Explain(**asked.settings.table("explain", KEYS), most_connections=load.most)
    notes = load.notes
    if load.target and load.target.levers and not load.levers:
        where = load.target.server
        notes += (
            f"[levers] left out: {where} is no container of this lab, so nobody can change it",
        )
    return load.experiment("explain", explain), notes


@dataclass(frozen=True, slots=True)
class Inquiries(Design):
    """One inquiry per server, one server after the other."""

    planner: Planner

    @property
    def most(self) -> int:
        experiment = self.planner.experiment
        return len(experiment.servers) * most_trials(settings_of(Explain, experiment))

    @property
    def needs_host(self) -> bool:
        return True

    def to_record(self, done: Sequence[Row]) -> Iterator[str]:
        """See Design: each server's load as it is, once that was named and before anything is
        changed. Never later: it would replace the JVM between the two sides of a pair."""
        for server in self.planner.experiment.servers:
            own = [row for row in done if row.server == server]
            wanted = self._story(server, own).wanted
            is_next = wanted is not None and wanted.arm == FIRST
            if own and not is_next and usable(own[-1]) and all(row.arm == FIRST for row in own):
                yield own[-1].trial

    def next(self, done: Sequence[Row]) -> TrialPlan | None:
        for server in self.planner.experiment.servers:
            stands = self._story(server, done)
            if stands.wanted is not None:
                ask = stands.wanted
                own = [row for row in done if row.server == server]
                launch = _launch(ask, own)
                plan = self.planner.single(
                    server, arm=ask.arm, condition=ask.condition, launch=launch
                )
                # After the rate was chosen: it stays.
                connections = ask.condition.connections or plan.concurrency
                window = self.planner.single(server, connections)
                plan = dataclasses.replace(
                    plan, concurrency=connections, duration_s=window.duration_s
                )
                return self.planner.named(lengthened(plan, own), next_number(done), digits=3)
        return None

    def _story(self, server: str, done: Sequence[Row]) -> Story:
        experiment = self.planner.experiment
        offered_rps = self.planner.single(server).offered_rps
        snapshot = self.planner.snapshots[server]
        present = _present(experiment, snapshot, self.planner.cores, offered_rps)
        own = [row for row in done if row.server == server]
        conditions = self.planner.conditions
        return story(settings_of(Explain, experiment), present, own, conditions)


def _launch(ask: Ask, own: Sequence[Row]) -> int:
    """The number of the JVM of the next trial: 0 is the one that runs. An invalid trial is repeated
    on its own JVM, which has become warmer, and another one would be as cold."""
    if not ask.fresh:
        return 0
    if own and own[-1].arm == ask.arm and not usable(own[-1]):
        return own[-1].launch
    return 1 + max((row.launch for row in own), default=0)


def design(planner: Planner) -> Design:
    """The inquiries. Raises WordError where an engine cannot do the first trial."""
    inquiries = Inquiries(planner)
    inquiries.next([])
    return inquiries


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    """The answer of each step, and how each inquiry ended. Raises LabError without a manifest."""
    record = manifest.read(outcome.run_dir)
    cores = record.limits.get("generator_cores")
    known = cores if isinstance(cores, int) else 1
    return told(
        outcome.experiment,
        outcome.rows,
        record.servers,
        known,
        outcome.conditions,
        complete=outcome.complete,
    )


def told(
    experiment: Experiment,
    rows: Sequence[Row],
    snapshots: Mapping[str, Snapshot],
    cores: int,
    conditions: Mapping[str, Condition],
    *,
    complete: bool = False,
) -> tuple[Finding, ...]:
    """The findings, with the conditions of the trials and the servers as they were before."""
    found: list[Finding] = []
    for server in experiment.servers:
        own = [row for row in rows if row.server == server]
        if own:
            present = _present(experiment, snapshots[server], cores, own[0].offered_rps)
            stands = story(settings_of(Explain, experiment), present, own, conditions)
            found += _findings(server, stands, own, complete=complete)
    return tuple(found)


def _findings(server: str, of: Story, rows: Sequence[Row], *, complete: bool) -> Iterator[Finding]:
    for number, step in enumerate(of.steps, 1):
        name = f"step {number}"
        if isinstance(step, NotTried):
            text = f"{name}, {step.resource} (suspected): not tried: {step.why}"
            yield Finding(name, server, 0, None, UNIT, None, None, text)
            continue
        ratio = step.goodput
        interval = ratio.interval if ratio else None
        yield Finding(
            name=name,
            server=server,
            launch=0,
            value=ratio.ratio if ratio else None,
            unit=UNIT,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            text=f"{name}, {step.name}{_how_named(step)}: {_text(step)}{_again(of, number)}",
        )
    lifted = any(
        isinstance(step, Step) and step.answer == "confirmed" and not step.lever.takes
        for step in of.steps
    )
    name = NEXT if lifted else "bottleneck"
    text = f"{name}: {of.end}{_again(of)}"
    if of.wanted is not None and complete:
        text = f"{name}: {OTHER_RULES}"
    elif of.wanted is not None:
        text = f"not finished after {len(rows)} trials, {of.wanted.arm} is next"
    yield Finding(name, server, 0, None, "", None, None, text)


def _again(of: Story, number: int | None = None) -> str:
    """How many invalid trials of a step were run again, by side; without a number: of those that
    only name a resource."""
    arms = {"named": "to name it"}
    if number is not None:
        arms = {"before": "without", "after": "with the change", "less": "with less of it"}
    found: Counter[str] = Counter()
    for arm, count in of.again.items():
        step, _, part = arm.partition("-")
        if part in arms and number in (None, int(step)):
            found[arms[part]] += count
    sides = ", ".join(f"{count} {side}" for side, count in found.items())
    return f" (run again because invalid: {sides})" if sides else ""


def _how_named(step: Step) -> str:
    if step.suspected and step.strength is None:
        return " (suspected)"
    sure = "" if step.strength is None else f", {strength_text(step.strength)}"
    return f" ({'suspected, and ' if step.suspected else ''}named{sure})"


def _text(step: Step) -> str:
    change = step.lever.step_text
    if step.doses:
        change += f" ({' and '.join(f'{dose:.1%}' for dose in step.doses)} measured)"
    if step.tie:
        change += f" ({step.tie})"
    if step.goodput is None:
        return f"{step.answer}: {change}: {step.why}"
    parts = [f"goodput {_ratio(step.goodput, step.least)}"]
    if step.lever.at_most is not None and step.answer == "confirmed":
        parts[0] += f" of at most ×{step.lever.at_most:.2f}"
    if step.p95 is not None:
        name = "p95" if step.before[0].mode == "open" else "raw p95"
        parts.append(f"{name} {_ratio(step.p95)}")
    middle = [f"{_median(rows):.0f}" for rows in (step.before, step.after)]
    said = f"{step.answer}: {change} makes {', '.join(parts)} ({' → '.join(middle)} req/s)"
    if step.answer == "confirmed" and not step.lever.takes:
        return f"{said}; lifted to {step.lever.lift_text}"
    return f"{said}; {step.why}"


def _median(rows: Sequence[Row]) -> float:
    return statistics.median(goodput(row) or 0.0 for row in rows)


def _ratio(of: RatioOf, least: bool = False) -> str:
    sign = "at least ×" if least else "×"
    if of.interval is None:
        return f"{sign}{of.ratio:.2f}"
    return f"{sign}{of.ratio:.2f} [{of.interval.low:.2f}, {of.interval.high:.2f}]"


def _present(
    experiment: Experiment, snapshot: Snapshot, cores: int, offered_rps: int | None
) -> Present:
    return Present(
        snapshot,
        AS_IT_IS,
        experiment.routes[0],
        experiment.concurrencies[0],
        cores,
        offered_rps,
        settings_of(Explain, experiment).most_connections,
        experiment.levers,
    )


KIND = TrialKind(
    name="explain",
    title="a verdict, proven by changing what it names",
    uses=(*(key for key in SHARED if key.startswith("load.")), "repeat.patience"),
    keys=KEYS,
    recorded_load="each server's load as it is, before anything is changed,",
    words={
        "PAIRS": Word("explain.pairs"),
        "STEPS": Word("explain.steps"),
        "SUSPECT": Word("explain.suspect"),
        **target.WORDS,
    },
    # A step takes many trials, and each is compared with its neighbours: they can be short.
    verb=Verb("explain", connections=5000, defaults={"load.duration": "5s"}),
    asks="What limits",
    jvms="the JVMs that ran already, but for trials with a number (#n); intervals are over pairs",
    read=read,
    design=design,
    findings=findings,
    changes_lab=True,
    load_name=without_number,
)
