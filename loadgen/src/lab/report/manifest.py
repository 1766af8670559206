"""manifest.json: what a run was made with and on, written when it starts, and at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from lab import __version__
from lab.records import write_json
from lab.types import Fairness, Json, Snapshot

NAME = "manifest.json"
FORMAT_VERSION = 1
Status = Literal["running", "complete", "interrupted", "failed"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The keys of manifest.json. `host` is what make read off the machine, as it is;
    `experiment` the frozen dataclass of what was to be measured."""

    run: str
    status: Status
    started_at: datetime
    ended_at: datetime | None
    experiment: object
    versions: Mapping[str, Json]
    host: Mapping[str, Json]
    limits: Mapping[str, Json]
    servers: Mapping[str, Snapshot]
    fairness: Fairness
    notes: tuple[str, ...] = ()
    format_version: int = FORMAT_VERSION


def code_versions(host: Mapping[str, Json]) -> dict[str, Json]:
    """Which code ran: the lab's version and, from what make read off the machine, the commit."""
    return {
        "lab": __version__,
        "commit": host.get("commit"),
        "commit_dirty": host.get("commit_dirty"),
    }


def write(run_dir: Path, manifest: Manifest) -> None:
    """Write it, replacing what was there."""
    write_json(run_dir / NAME, manifest)
