"""Runs on disk, as the lab leaves them: manifest.json, and raw/<trial>/trial.json."""

import copy
import itertools
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lab.app.derive import Trial, derive, read_trial
from lab.model import Fairness, Json, Reading, Snapshot, TrialPlan
from lab.store import manifest
from lab.store.records import write_json
from support.fakes import START, FakeEngine, of_model, plan, reading, record, snapshot
from support.planned import experiment

IMAGES: dict[str, Json] = {
    f"project/{name}:local": {"id": f"sha256:{name}"}
    for name in ("a", "b", "downstream", "loadgen", "elsewhere")
}
HOST: dict[str, Json] = {
    "cpu_model": "Abacus", "cores": 2, "memory_bytes": 2**33, "kernel": "6.1",
    "docker_version": "26.1",
    "cpusets": {"loadgen": "", "toxiproxy": "", "downstream": "0", "observation": ""},
    "toxiproxy_gomaxprocs": "",
    "images": {**IMAGES, "ghcr.io/x/toxiproxy:2": {"id": "sha256:t"}},
}  # fmt: skip


def with_images(*names: str) -> dict[str, Json]:
    """HOST, with other images of these names."""
    new = {tag: {"id": "new"} for tag in HOST["images"] if re.split("[/:]", tag)[-2] in names}
    return {**HOST, "images": {**HOST["images"], **new}}


# What make writes about the host and the code on it.
HOST_FILE: dict[str, Json] = {"commit": "c0ffee", "commit_dirty": False, **HOST}
VERSIONS: dict[str, Json] = {
    "lab": "0.1.0", "commit": "c0ffee", "commit_dirty": False, "engine": "fake 1.0",
    "engines": {"wrk2": "fake 1.0"},
}  # fmt: skip
NAME = "20260131T120000Z-aa"
EXPERIMENT = experiment(
    name="aa",
    rate_rps=450,
    words=("EXP=aa", "LAUNCHES=7"),
    question="Does a differ from b?",
    hypothesis="No: N / 0.2 s bounds both.",
    launches=7,
)


def manifest_of(name: str = NAME, **changes: object) -> manifest.Manifest:
    """A manifest of these values; `servers` as snapshots by name."""
    whole = manifest.Manifest(
        run=name,
        status="complete",
        started_at=START,
        ended_at=START,
        experiment=EXPERIMENT,
        versions=VERSIONS,
        host=HOST,
        limits={"open_files": 20_000, "generator_cores": 2},
        servers={server: snapshot(identity=of_model(server)) for server in ("a", "b")},
        fairness=Fairness({"backlog": 4096}, {}, {}),
    )
    return copy.replace(whole, **changes)


def write_manifest(results: Path, name: str = NAME, **changes: object) -> Path:
    """A run's folder with this manifest."""
    run_dir = results / name
    run_dir.mkdir(parents=True, exist_ok=True)
    manifest.write(run_dir, manifest_of(name, **changes))
    return run_dir


def plans(launches: int = 7, servers: Sequence[str] = ("a", "b")) -> list[TrialPlan]:
    """Closed and open, launch by launch, servers innermost."""
    loads = itertools.product(range(1, launches + 1), ("closed", "open"), servers)
    return [
        plan(mode, trial=f"{number:02d}-{server}-{mode}", server=server, launch=launch)
        for number, (launch, mode, server) in enumerate(loads, start=1)
    ]


def write_raw(
    run_dir: Path, of: Sequence[TrialPlan], servers: Mapping[str, Snapshot] | None = None
) -> Path:
    """What is left of trials that ended, with these snapshots of their servers, in the place of
    those that were there."""
    shutil.rmtree(run_dir / "raw", ignore_errors=True)
    for one in of:
        raw = run_dir / "raw" / one.trial
        raw.mkdir(parents=True)
        at = servers[one.server] if servers else snapshot(identity=of_model(one.server))
        write_json(raw / "trial.json", record(one, before=at, after=at))
    return run_dir


def tell(raw: Path, before: Mapping[str, Any] | None = None, **values: Any) -> None:
    """Changes what a trial's record says, and what was read back before it."""
    path = raw / "trial.json"
    record = json.loads(path.read_text())
    record["before"] |= before or {}
    path.write_text(json.dumps(record | values))


def derived_again(run_dir: Path, engines: Sequence[FakeEngine]) -> set[str]:
    """The files of a run that another judgement changes."""

    def files() -> dict[str, bytes]:
        paths = (path for path in run_dir.rglob("*") if "raw" not in path.parts and path.is_file())
        return {str(path.relative_to(run_dir)): path.read_bytes() for path in paths}

    before = files()
    derive(run_dir, engines)
    after = files()
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}


class Jittery(FakeEngine):
    """Answers with a throughput a little different for every trial, but the same every time."""

    def read(self, plan: TrialPlan, raw: Path) -> Reading:
        rate = plan.offered_rps or plan.concurrency * 5
        number = int(plan.trial.partition("-")[0])
        return reading(achieved_rps=rate * (1 - number % 5 / 1000), window_s=plan.duration_s)


def rejudged(monkeypatch: pytest.MonkeyPatch, changes: Callable[[Path], dict[str, object]]) -> None:
    """Every trial's row has these values, by its raw folder."""
    real = read_trial

    def changed(record: Any, raw: Path, engines: Any) -> Trial:
        trial = real(record, raw, engines)
        return copy.replace(trial, row=copy.replace(trial.row, **changes(raw)))

    for module in ("derive", "loop"):
        monkeypatch.setattr(f"lab.app.{module}.read_trial", changed)
