"""Load that suddenly multiplies, and how long a server takes to recover.

The trial's own load keeps its rate; recovery is measured from its latency in each second. This
needs the engine that tells every second, and begins and ends a peak at once: pacer.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from lab.judge.predict import auto_rate_rps
from lab.kinds.kind import COMMON, Kind, Outcome, ToMeasure, settings_of
from lab.kinds.order import Design, Planner
from lab.kinds.reading import Asked, read_load
from lab.kinds.reading.recording import Recorded
from lab.kinds.reading.settings import Connections, Duration, Rps
from lab.kinds.recovery import Steady, findings_of
from lab.model import Finding, Spike

Tolerance = Annotated[float, Meta(ge=0.001, le=100)]


class SpikeTable(Recorded, frozen=True, kw_only=True):
    """The keys of [spike]."""

    extra: Connections
    extra_rate: Rps | Literal["auto"] = "auto"
    calm: Duration
    peak: Duration
    repeats: Annotated[int, Meta(ge=1, le=100)]
    tolerance: Tolerance
    steady: Duration


def read(asked: Asked) -> ToMeasure:
    """The spikes that a file describes, up to what this machine holds. Raises WordError."""
    load = read_load(asked, ("open",), ("routes", "concurrency"), exact=True)
    table, settings = asked.settings.table("spike", SpikeTable), asked.settings
    base, notes = load.draft.concurrencies[0], load.notes
    extra = min(table.extra, load.most - base)
    if extra < 1:
        what = f"beside {base} is more than this machine holds; allowed in all: {load.held}"
        raise settings.refuse("spike.extra", what)
    if extra < table.extra:
        wanted = f"spikes to {base + extra} instead of {base + table.extra} connections"
        notes = (*notes, f"{wanted}: this machine holds {load.held}")
    if table.steady > table.calm:
        raise settings.refuse(
            "spike.calm", "is shorter than spike.steady, so nothing could recover"
        )
    rate = table.extra_rate
    spike = Spike(
        extra=extra,
        extra_rps=None if rate == "auto" else max(1, rate * extra // table.extra),
        calm_s=table.calm,
        peak_s=table.peak,
        repeats=table.repeats,
        tolerance=table.tolerance,
        steady_s=table.steady,
    )
    return load.experiment("spike", spike, duration_s=spike.total_s), notes


def design(planner: Planner) -> Design:
    """One trial per server and launch. Raises WordError."""
    experiment = planner.experiment
    spike = settings_of(Spike, experiment)
    route, concurrency = experiment.routes[0], experiment.concurrencies[0]
    if spike.extra_rps is None:
        extra_rps = None
        if experiment.rate_rps is None:
            first = planner.snapshots[experiment.servers[0]]
            extra_rps = auto_rate_rps(route, spike.extra, first)
        if not extra_rps:
            # The same rate per connection as the load beside it.
            rate = planner.single(experiment.servers[0]).offered_rps or 0
            extra_rps = max(1, rate * spike.extra // concurrency)
        spike = copy.replace(spike, extra_rps=extra_rps)
    return planner.one_per_launch(duration_s=spike.total_s, spike=spike)


def findings(outcome: Outcome) -> Iterator[Finding]:
    spike = settings_of(Spike, outcome.experiment)
    steady = Steady(spike.tolerance, spike.steady_s)
    return findings_of("spike", steady, lambda record: [(p, ()) for p in record.peaks], outcome)


KIND = Kind(
    name="spike",
    title="spikes beside a constant load",
    uses=(*COMMON, "load.concurrency", "load.rate", "load.capacity", "load.arrivals"),
    table=SpikeTable,
    read=read,
    design=design,
    findings=findings,
)
