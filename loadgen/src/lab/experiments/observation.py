"""What it costs a server to be observed: the same load with Prometheus' scrapes and without them.

The lab is observed as always, or Prometheus finds no server and no cAdvisor to scrape and the live
probe is silent (`Condition.unobserved`). What stays on both sides is cAdvisor's own look at the
containers and the scrapes of proxy, downstream and agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lab.experiments.kind import SHARED, Outcome, ToMeasure, TrialKind, settings_of
from lab.experiments.order import Design, Listed, Planner, without_number
from lab.experiments.proving.answers import goodput_ratio, p95_ratio
from lab.experiments.reading import Asked, Key, Word, read_load, rules
from lab.judge.intervals import RatioOf, ratio_of_pairs
from lab.load.measure import RECORD
from lab.model import AGAIN, AS_IT_IS, Condition, Finding, Row, TrialRecord
from lab.store.records import read_json

KEYS = {"pairs": Key(rules.number(1, 100), 6)}
OBSERVED, UNOBSERVED = "observed", "unobserved"
CONDITIONS = {OBSERVED: AS_IT_IS, UNOBSERVED: Condition(unobserved=True)}
UNIT = "ratio"
Ratio = Callable[[Sequence[Row], Sequence[Row]], RatioOf | None]


@dataclass(frozen=True, slots=True)
class Observation:
    """`pairs`: how often each server is measured on each side."""

    pairs: int

    def __post_init__(self) -> None:
        if self.pairs < 1:
            raise ValueError("pairs starts at 1")


def read(asked: Asked) -> ToMeasure:
    """The load and the pairs that words or a file describe. Raises WordError."""
    load = read_load(asked, ("closed",), ("routes", "concurrency", "modes"))
    own = Observation(**asked.settings.table("observation", KEYS))
    return load.experiment("observation", own), load.notes


def design(planner: Planner) -> Design:
    """One server after the other, its sides in the order A B B A A B …, so that steady drift falls
    on both alike. Raises WordError."""
    sides = list(CONDITIONS.items())
    plans = [
        planner.single(server, arm=arm, condition=condition)
        for server in planner.experiment.servers
        for turn in range(settings_of(Observation, planner.experiment).pairs)
        for arm, condition in sides[:: -1 if turn % 2 else 1]
    ]
    return Listed(planner.numbered(plans), repeats=True)


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    """Observed / unobserved of each server: goodput, p95, and the CPU time of the whole machine per
    answer."""

    def machine_cpu(row: Row) -> float | None:
        usage = read_json(outcome.raw(row) / RECORD, TrialRecord).usage
        # What other machines took (steal) is nobody's here.
        busy = (usage.host_busy or 0.0) - (usage.host_steal or 0.0)
        return busy / row.achieved_rps if busy > 0 and row.achieved_rps else None

    def cpu_ratio(without: Sequence[Row], observed: Sequence[Row]) -> RatioOf | None:
        a, b = ([one for one in map(machine_cpu, side) if one] for side in (without, observed))
        return ratio_of_pairs(a, b) if a and len(a) == len(b) == len(without) else None

    asked: dict[str, Ratio] = {
        "goodput": lambda without, observed: goodput_ratio(without, observed)[0],
        "p95": p95_ratio,
        "CPU time of the machine per answer": cpu_ratio,
    }
    return tuple(
        _finding(server, what, ratio, _pairs(outcome.rows, server))
        for server in outcome.experiment.servers
        for what, ratio in asked.items()
    )


def _pairs(rows: Sequence[Row], server: str) -> list[tuple[Row, Row]]:
    """(unobserved, observed), both valid, turn by turn."""
    sides = {arm: list(_turns(rows, server, arm)) for arm in CONDITIONS}
    both = zip(sides[UNOBSERVED], sides[OBSERVED], strict=False)
    return [(without, seen) for without, seen in both if without and seen]


def _turns(rows: Sequence[Row], server: str, arm: str) -> Iterator[Row | None]:
    """The valid trial of each turn, which may be a repeat; None for a turn without one. A trial was
    observed where cAdvisor saw its server."""
    last: dict[str, Row] = {}
    for row in rows:
        if (row.server, row.arm) == (server, arm):
            last[row.trial.removesuffix(AGAIN)] = row
    for row in last.values():
        yield row if row.valid and (row.cpu_server_us is None) == (arm == UNOBSERVED) else None


def _finding(server: str, what: str, ratio: Ratio, pairs: Sequence[tuple[Row, Row]]) -> Finding:
    name = f"observed / unobserved, {what}"
    found = ratio(*zip(*pairs, strict=True)) if pairs else None
    if found is None:
        text = f"{what} cannot be compared: {len(pairs)} pairs of valid trials, one of them seen"
        return Finding(name, server, 0, None, UNIT, None, None, text)
    interval = found.interval
    low, high = (interval.low, interval.high) if interval else (None, None)
    said = f"[{low:.3f}, {high:.3f}]" if interval else "without an interval"
    text = f"{what}, observed against unobserved: ×{found.ratio:.3f} {said}, {len(pairs)} pairs"
    return Finding(name, server, 0, found.ratio, UNIT, low, high, text)


KIND = TrialKind(
    name="observation",
    title="the cost of being observed",
    uses=(*(key for key in SHARED if key.startswith("load.")), "repeat.patience"),
    keys=KEYS,
    words={"PAIRS": Word("observation.pairs")},
    jvms="the JVMs that ran already; intervals are over pairs of trials on them",
    read=read,
    design=design,
    findings=findings,
    changes_lab=True,
    load_name=without_number,
)
