"""manifest.json: what a run was made with and on, written when it starts, and at its end."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from lab import __version__
from lab.errors import LabError, RawDataError
from lab.model import Experiment, Fairness, Json, Record, Snapshot
from lab.store.records import from_json, read_object, to_json, write_json

NAME = "manifest.json"
# The one format of a run: of all its files. Another one is refused.
FORMAT = 1
Status = Literal["running", "complete", "interrupted", "failed"]


class Manifest(Record):
    """The keys of manifest.json. `host` is what make read off the machine, as it is;
    `experiment` the frozen dataclass of what was to be measured; `settings` words of make for
    settings of .env that are not among those read back of the servers; `target_answers` what is
    wrong with the answers of a target's routes before the run."""

    run: str
    status: Status
    started_at: datetime
    ended_at: datetime | None
    experiment: Experiment
    versions: Mapping[str, Json]
    host: Mapping[str, Json]
    limits: Mapping[str, Json]
    servers: Mapping[str, Snapshot]
    fairness: Fairness
    notes: tuple[str, ...] = ()
    target_answers: Mapping[str, str] = {}
    settings: tuple[str, ...] = ()
    format: int = FORMAT


def code_versions(host: Mapping[str, Json]) -> dict[str, Json]:
    """The version of the code: the lab's own, and the commit that make read off the machine."""
    return {
        "lab": __version__,
        "commit": host.get("commit"),
        "commit_dirty": host.get("commit_dirty"),
    }


def write(run_dir: Path, manifest: Manifest) -> None:
    """The settings of an experiment's kind lie under the name of the kind."""
    whole = to_json(manifest)
    if settings := whole["experiment"].pop("own"):
        whole["experiment"][manifest.experiment.kind] = settings
    write_json(run_dir / NAME, whole)


def read(run_dir: Path) -> Manifest:
    """The manifest of a run of trials. Raises RawDataError where it cannot be read, LabError for
    another format or a run of something else than trials."""
    path = run_dir / NAME
    if not path.is_file():
        raise LabError(f"{run_dir.name} has no {NAME}: it is not a run of the lab")
    whole = read_object(path)
    if (known := whole.get("format")) != FORMAT:
        text = f"format {known}" if "format" in whole else "no format"
        raise LabError(f"{run_dir.name}/{NAME} has {text}; the lab reads format {FORMAT} only")
    experiment = whole.get("experiment")
    if not isinstance(experiment, dict) or "concurrencies" not in experiment:
        raise LabError(
            f"{run_dir.name} is not a run of trials: only those of `make run` and `make bench` "
            "can be judged again and compared"
        )
    experiment["own"] = experiment.pop(str(experiment.get("kind", "loads")), None) or {}
    try:
        return from_json(Manifest, whole)
    except ValueError as failure:
        raise RawDataError(path, None, str(failure)) from None
