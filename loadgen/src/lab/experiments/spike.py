"""Load that suddenly multiplies, and how long a server takes to recover.

The trial's own load keeps its rate; recovery is measured from its latency in each second. This
needs the engine that tells every second, and begins and ends a peak at once: pacer.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from lab.experiments.kind import COMMON, Outcome, ToMeasure, TrialKind, settings_of
from lab.experiments.order import Design, Planner
from lab.experiments.reading import Asked, Key, check_exact, read_load, rules, target
from lab.experiments.recovery import Disturbance, Recovery, Steady, Watch, errors_text, findings_of
from lab.judge.predict import auto_rate_rps
from lab.load.engines import Second
from lab.model import Finding, Spike

KEYS = {
    "extra": Key(rules.number(1, rules.MAX_CONNECTIONS)),
    "extra_rate": Key(rules.rate, None),
    "calm": Key(rules.seconds(1)),
    "peak": Key(rules.seconds(1)),
    "repeats": Key(rules.number(1, 100)),
    "tolerance": Key(rules.decimal(0.001, 100)),
    "steady": Key(rules.seconds(1)),
}


def read(asked: Asked) -> ToMeasure:
    """The spikes that a file describes, up to what this machine holds. Raises WordError."""
    load = read_load(asked, ("open",), ("routes", "concurrency"))
    check_exact(load)
    given, base, notes = asked.settings.table("spike", KEYS), load.concurrencies[0], load.notes
    wanted = given["extra"]
    extra = min(wanted, load.most - base)
    place = asked.settings.get("spike.extra")
    if place is not None and extra < 1:
        raise place.refuse(f"{wanted} beside {base}: more than this machine holds, {load.held}")
    if extra < wanted:
        notes = (
            *notes,
            f"spikes to {base + extra} instead of {base + wanted} connections: this machine holds "
            f"{load.held}",
        )
    rate = given["extra_rate"]
    spike = Spike(
        extra=extra,
        extra_rps=rate if rate is None else max(1, rate * extra // wanted),
        calm_s=given["calm"],
        peak_s=given["peak"],
        repeats=given["repeats"],
        tolerance=given["tolerance"],
        steady_s=given["steady"],
    )
    calm = asked.settings.get("spike.calm")
    if calm is not None and spike.steady_s > spike.calm_s:
        raise calm.refuse(f"{calm.text} is shorter than spike.steady, so nothing could recover")
    whole = load.experiment("spike", spike, duration_s=spike.total_s)
    return whole, notes


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
        spike = dataclasses.replace(spike, extra_rps=extra_rps)
    return planner.one_per_launch(duration_s=spike.total_s, spike=spike)


def findings(outcome: Outcome) -> tuple[Finding, ...]:
    spike = settings_of(Spike, outcome.experiment)
    steady = Steady(spike.tolerance, spike.steady_s)
    watch = Watch(
        "spike", "no spike was run", steady, lambda record: [*map(Disturbance, record.peaks)], _felt
    )
    return findings_of(watch, outcome)


def _felt(one: Recovery, seconds: Sequence[Second]) -> str:
    """The worst second since the spike began, of those without errors, and the errors."""
    errors = f", {errors_text(seconds)}" if any(one.http_errors for one in seconds) else ""
    if math.isinf(one.worst_ms):
        return f"no good answer at all in a second{errors}"
    return f"p95 {one.worst_ms:.0f} ms in the worst second{errors}"


KIND = TrialKind(
    name="spike",
    title="spikes beside a constant load",
    uses=(*COMMON, "load.concurrency", "load.rate", "load.capacity", "load.arrivals"),
    exact="recovery is read from every second of a load without bursts",
    keys=KEYS,
    words=target.WORDS,
    recorded_load="each server's last load",
    read=read,
    design=design,
    findings=findings,
)
