"""Go on with a run that was interrupted: on the same lab, with no half-done trial in its way."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lab.campaign.as_measured import as_measured
from lab.campaign.derive import derive
from lab.campaign.loop import Loop
from lab.campaign.run import new_design, read_servers
from lab.campaign.tools import Lab, Stages, Tools
from lab.errors import LabError, RawDataError
from lab.experiments.kind import Outcome
from lab.experiments.loads import arms_of
from lab.judge.same_lab import (
    PARTS,
    Difference,
    between_labs,
    between_snapshots,
    image_ids,
    may_be_elsewhere,
    services,
)
from lab.load.engines import Engine, engines_of
from lab.load.measure import PLAN, RECORD
from lab.model import Experiment, Json, Row, Snapshot, TrialPlan, TrialRecord
from lab.store import manifest, recording
from lab.store.manifest import Manifest
from lab.store.records import read_json, read_object, writing
from lab.store.run_dir import check_space


def resume(
    run_dir: Path,
    experiment: Experiment,
    lab: Lab,
    engines: Sequence[Engine] | None = None,
    stages: Stages | None = None,
) -> int:
    """Go on with the trials the run had planned, of its experiment with the secrets that it does
    not store (`with_secrets`); finished trials are neither lost nor run again.
    Returns and raises as `run`, and LabError when the lab is not the one the run began on."""
    record = manifest.read(run_dir)
    check_unfinished(record)
    check_same_words(record, lab.place.settings)
    if arms_of(experiment).images:
        raise LabError(
            f"RESUME={record.run}: nothing tells whether the images of its arms are still those "
            "that it began with; start a new run instead"
        )
    place, console = lab.place, lab.console
    engines = engines or engines_of(place.generators)
    check_space(place.results)
    tools = Tools(experiment, lab, engines, stages or Stages())
    snapshots = read_servers(experiment, tools.subjects)
    host, version = read_object(place.host_file), tools.chosen.version
    check_same_lab(as_measured(record, run_dir), host, place.limits, snapshots, version)
    for folder in put_away(run_dir):
        console.print(f"an unfinished trial was put away as {folder}")
    for line in (unknown := tuple(unsure(record, snapshots))):
        console.print(line)
    notes = tuple(dict.fromkeys((*record.notes, *unknown)))
    rows = list(derive(run_dir, engines, pages=False).rows)
    conditions = Outcome(experiment, rows, run_dir).conditions
    order = new_design(experiment, record.servers, tools, conditions)
    console.print(f"results/{run_dir.name}: {len(rows)} trials are there, going on")
    record = dataclasses.replace(record, status="running", ended_at=None, notes=notes)
    manifest.write(run_dir, record)
    launched = still_running(run_dir, rows, snapshots)
    return Loop(run_dir, record, order, tools, launched).go(rows)


def check_unfinished(record: Manifest) -> None:
    """Raises LabError for a run in which nothing is left to measure."""
    if record.status == "complete":
        raise LabError(
            f"RESUME={record.run}: that run is complete, nothing is left to do; "
            f"`make report RUN={record.run}` makes its files again"
        )


def check_same_words(record: Manifest, settings: Sequence[str]) -> None:
    """Raises LabError unless make's words have the settings that the run began with: they are in
    force for that call of make alone, and nothing reads them back."""
    for word in record.settings:
        if word not in settings:
            raise LabError(f"RESUME={record.run}: it began with {word}; give it again")
    for word in settings:
        if word not in record.settings:
            raise LabError(f"RESUME={record.run}: it began without {word}; leave it out")


def check_same_lab(
    record: Manifest,
    host: Mapping[str, Json],
    limits: Mapping[str, Json],
    snapshots: Mapping[str, Snapshot],
    engine: str | None = None,
) -> None:
    """Raises LabError naming the first thing in which the lab is not what the run began on: rows of
    two labs in one table would be compared as if they were of one. `engine` is what the load
    engines are now, None for a run without.

    Code that no commit tells (a tree with changes, or without git) may go on where every image is
    the one the run began with: the images hold the code of the driver and of all servers.
    """
    versions = {**manifest.code_versions(host), "engine": engine}
    now = dataclasses.replace(
        record, host=host, limits=limits, versions=versions, servers=snapshots
    )
    for what, one in _differences(record, now):
        if one.kind == "uncommitted":
            continue
        changed = f"changed since it began ({_short(one.was)} became {_short(one.now)})"
        if one.was is None or one.now is None:
            changed = "was not recorded, so nothing tells whether it changed"
        raise LabError(f"RESUME={record.run}: {what} {changed}; start a new run instead")


def _differences(record: Manifest, now: Manifest) -> Iterator[tuple[str, Difference]]:
    servers = (name for name, one in record.servers.items() if not one.foreign)
    images = (*PARTS, *servers, *image_ids(record), *image_ids(now))
    before = {"host": "the host's ", "images": "the image of ", "engine": "the load "}
    for one in between_labs(record, now, (), images):
        if one.kind == "images" and _cannot_be_told(record, now, one.name):
            continue
        yield f"{before.get(one.kind, '')}{one.name}", one
    for server, snapshot in now.servers.items():
        for one in between_snapshots(record.servers[server], snapshot):
            on_the_way = one.kind in ("toxics", "delay")
            yield one.name if on_the_way else f"{server}: {one.name}", one


def _cannot_be_told(record: Manifest, now: Manifest, name: str) -> bool:
    """Whether a service of the user's own has the image that it had, and code that may be
    elsewhere: nothing that is recorded tells of another build, so a note has to do."""
    was, is_ = services(record).get(name), services(now).get(name)
    if was is None or is_ is None or not (may_be_elsewhere(was) and may_be_elsewhere(is_)):
        return False
    return was.get("image") is not None and was.get("image") == is_.get("image")


def unsure(record: Manifest, snapshots: Mapping[str, Snapshot]) -> Iterator[str]:
    """Notes on facts that nobody can check of a service that is not the lab's."""
    for server, now in snapshots.items():
        if not now.foreign:
            continue
        if image_ids(record).get(server) is None:
            yield f"resumed: whether {server} is the same build is not known"
        was = record.servers[server].jvm_started_ms
        if was is not None and now.jvm_started_ms is not None and was != now.jvm_started_ms:
            yield f"resumed: {server} was restarted since the run began, as its JMX exporter tells"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def still_running(
    run_dir: Path, rows: Sequence[Row], snapshots: Mapping[str, Snapshot]
) -> dict[str, tuple[int, str | None]]:
    """The launch and arm of each fresh JVM that still runs, by server. It runs if the server's last
    trial began on it. A launch goes on with them, as if there had been no interruption. Raises
    RawDataError without a trial.json."""
    found = {}
    for server, now in snapshots.items():
        last = next((row for row in reversed(rows) if row.server == server and row.launch), None)
        if last is None:
            continue
        try:
            record = read_json(run_dir / "raw" / last.trial / RECORD, TrialRecord)
        except RawDataError:
            continue  # Nobody knows which JVM it began on.
        if record.lost:
            continue
        if now.jvm_started_ms is not None and record.before.jvm_started_ms == now.jvm_started_ms:
            found[server] = last.launch, last.arm
    return found


def put_away(run_dir: Path) -> list[str]:
    """Move folders of trials that never finished out of the way, keeping all that is in them, and
    folders of trials of which neither record nor plan can be read. The names they have now. Raises
    CannotWrite."""
    moved = []
    for raw in sorted((*run_dir.glob("raw/*"), *run_dir.glob(f"{recording.FOLDER}/*"))):
        whole = raw.parent.name != recording.FOLDER or (raw / recording.NAME).exists()
        if not raw.is_dir() or (whole and (raw / RECORD).exists() and _known(raw)):
            continue
        target = next(
            folder
            for number in range(1, 10_000)
            if not (folder := run_dir / "abandoned" / f"{raw.name}-{number}").exists()
        )
        with writing(target):
            target.parent.mkdir(exist_ok=True)
            raw.rename(target)
        moved.append(f"{target.parent.name}/{target.name}")
    return moved


def _known(raw: Path) -> bool:
    """Whether a trial's record can be read, or at least its plan."""
    for name, kind in ((RECORD, TrialRecord), (PLAN, TrialPlan)):
        with suppress(RawDataError):
            read_json(raw / name, kind)
            return True
    return False
