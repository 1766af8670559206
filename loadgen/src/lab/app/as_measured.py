"""The settings that the servers of a run really began with."""

from __future__ import annotations

from copy import replace
from pathlib import Path

from lab.kinds.registry import kind_of
from lab.load.measure import first_record
from lab.model import Condition, Snapshot, TrialPlan
from lab.model.knobs import IMAGE
from lab.store.manifest import Manifest


def as_measured(record: Manifest, run_dir: Path) -> Manifest:
    """The run with the settings that its servers' first trials had: a knob that was turned before
    the run is gone with the first fresh JVM. One that was turned for that trial is as the run
    began. Not if trials change the lab on purpose. Raises RawDataError."""
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
    downstream of its first server, by whose snapshot its loads were planned, and the server's own
    settings with the knobs of this trial. None if the lab is changed on purpose otherwise: from
    trial to trial, or for this one by more than knobs and the server's image."""
    experiment = measured.experiment
    way, server = (measured.servers.get(name) for name in (experiment.servers[0], plan.server))
    knobs, host = plan.condition.knobs, plan.condition.host
    allowed = Condition(knobs=knobs, host=host if {*host} <= {IMAGE} else {})
    changed = kind_of(experiment).changes_lab or plan.condition != allowed
    if changed or way is None or server is None:
        return None
    return replace(way, settings={**server.settings, **knobs})
