"""The settings that the servers of a run really began with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lab.experiments.registry import kind_of
from lab.load.measure import first_record
from lab.model import Condition, Snapshot, TrialPlan
from lab.model.knobs import IMAGE
from lab.store.manifest import Manifest


def as_measured(record: Manifest, run_dir: Path) -> Manifest:
    """The run with the settings that its servers' first trials had, where they had any: a knob
    turned before the run is gone with the first fresh JVM. A knob that was turned for that trial is
    as the run began. Not where trials have conditions of their own. Raises RawDataError."""
    if kind_of(record.experiment).changes_lab:
        return record
    servers = dict(record.servers)
    for server, was in record.servers.items():
        first = first_record(run_dir / "raw", server)
        if first is not None:
            knobs = first.plan.condition.knobs
            turned = {knob: was.settings[knob] for knob in knobs if knob in was.settings}
            servers[server] = replace(was, settings={**first.before.settings, **turned})
    return replace(record, servers=servers)


def start_of(measured: Manifest, plan: TrialPlan) -> Snapshot | None:
    """What the trials of the plan's server began with, of a run as it was measured: the way to the
    downstream as the run began, of its first server, whose snapshot its loads were planned by, and
    the server's settings, with the knobs that are turned for this trial. None where the lab is
    changed on purpose otherwise: from trial to trial, or by more than knobs and the server's image
    for this one."""
    experiment = measured.experiment
    way, own = measured.servers.get(experiment.servers[0]), measured.servers.get(plan.server)
    knobs, host = plan.condition.knobs, plan.condition.host
    like = Condition(knobs=knobs, host=host if {*host} <= {IMAGE} else {})
    changed = kind_of(experiment).changes_lab or plan.condition != like
    if changed or way is None or own is None:
        return None
    return replace(way, settings={**own.settings, **knobs})
