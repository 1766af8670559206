"""Goes on with a run: plans again with the rows that are there, on the lab that it began on."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path

from lab.app.derive import as_measured, judged
from lab.app.loop import Loop
from lab.app.run import new_design, read_servers
from lab.app.sides import shown
from lab.app.tools import Lab, Stages, Tools
from lab.errors import LabError
from lab.judge.same_lab import PARTS, Difference, between_labs, between_snapshots, image_ids
from lab.kinds.kind import Outcome
from lab.kinds.loads import arms_of
from lab.model import Experiment
from lab.store import csv, manifest, recording
from lab.store.manifest import Manifest
from lab.store.records import read_object, writing
from lab.store.run_dir import new_run_dir


def resume(run_dir: Path, experiment: Experiment, lab: Lab, stages: Stages | None = None) -> int:
    """Go on with the trials the run had planned, of its experiment with the secrets that it does
    not store (`with_secrets`). Trials with a row are neither lost nor run again. Returns and raises
    as `run`, and LabError if the run is over, or the lab is not the one that it began on."""
    record, place = manifest.read(run_dir), lab.place
    where = f"RESUME={record.run}"
    if record.status == "complete":
        raise LabError(f"{where}: that run is complete, nothing is left to do")
    if {*record.settings} != {*place.settings}:
        began = " ".join(record.settings) or "none"
        raise LabError(f"{where}: it began with other settings; give these again: {began}")
    if arms_of(experiment).images:
        raise LabError(f"{where}: its arms are images, which may be others by now; start a new run")
    tools = Tools(experiment, lab, stages or Stages())
    snapshots, host = read_servers(experiment, tools.subjects), read_object(place.host_file)
    now = copy.replace(
        record,
        host=host,
        limits=place.limits,
        versions={**manifest.code_versions(host), "engine": tools.chosen.version},
        servers=snapshots,
    )
    for difference in differences(as_measured(record, run_dir), now):
        raise LabError(
            f"{where}: {difference.kind}: {difference.name} was {shown(difference.was)} when it "
            f"began, and is {shown(difference.now)} now; start a new run"
        )
    # A row is written once all of its trial is on the disk, with what Prometheus saw of it.
    written = {*csv.trials(run_dir / csv.NAME)}
    rows = [row for row in judged(run_dir, tools.engines).result.rows if row.trial in written]
    put_away(run_dir, {row.trial for row in rows}, lab.system.now())
    lab.console.print(f"results/{run_dir.name}: {len(rows)} trials are there, going on")
    conditions = Outcome(experiment, rows, run_dir).conditions
    design = new_design(experiment, record.servers, tools, conditions)
    record = copy.replace(record, status="running", ended_at=None)
    manifest.write(run_dir, record)
    return Loop(run_dir, record, design, tools, rows).go()


def differences(record: Manifest, now: Manifest) -> Iterator[Difference]:
    """In what the lab is not the one that a run began on: rows of two labs in one table would be
    compared as if they were of one. Code that no commit identifies may go on if every image is the
    one of then: the images hold the code of the driver and of all servers."""
    lanes = (name for name, snapshot in record.servers.items() if not snapshot.foreign)
    images = (*PARTS, *lanes, *image_ids(record), *image_ids(now))
    for difference in between_labs(record, now, (), images):
        if difference.kind != "uncommitted":
            yield difference
    for server, snapshot in now.servers.items():
        for difference in between_snapshots(record.servers[server], snapshot):
            yield copy.replace(difference, name=f"{difference.name} of {server}")


def put_away(run_dir: Path, kept: Collection[str], now: datetime) -> None:
    """Move what other trials and unfinished recordings left out of the way of those that are made
    in their place. Raises CannotWrite."""
    left = [raw for raw in run_dir.glob("raw/*") if raw.name not in kept]
    recorded = run_dir.glob(f"{recording.FOLDER}/*")
    left += [raw for raw in recorded if not (raw / recording.NAME).exists()]
    if not left:
        return
    with writing(abandoned := run_dir / "abandoned"):
        abandoned.mkdir(exist_ok=True)
    aside = new_run_dir(abandoned, now, "left")
    with writing(aside):
        for raw in left:
            raw.rename(aside / raw.name)
