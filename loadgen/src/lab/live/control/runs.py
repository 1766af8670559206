"""The runs in results/: their list, and their files read-only.

Only what a run derives from its raw data is served, each with its own type, and nothing that a path
or a symbolic link could lead to outside the run's folder.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import RawDataError
from lab.store.records import read_object
from lab.store.run_dir import SITE

# The newest: a page is no archive.
MOST_RUNS = 50
LARGEST_MANIFEST = 4_000_000
# The run that is being measured has just written a file.
ACTIVE_S = 90.0
MANIFEST = "manifest.json"
ROWS = "trials.csv"
# The files that the list links to, in this order, if they exist.
LINKED = ("report.html", "REPORT.md", ROWS, "density.csv", "findings.json", MANIFEST)
TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
# A report is one file with its scripts inside. In a sandbox it has an origin of its own: it can
# neither read nor change anything here. Only scripts run whose hash its policy names.
_REPORT = (
    "sandbox allow-scripts; default-src 'none'; script-src {script}; style-src 'unsafe-inline'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PICTURE = "sandbox; default-src 'none'; style-src 'unsafe-inline'"
# A report begins with its policy: nothing that a run says can stand before it.
_HEAD = re.compile(
    rb'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    rb"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    rb"script-src ('sha256-[A-Za-z0-9+/]{43}='(?: 'sha256-[A-Za-z0-9+/]{43}=')*);"
)
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
# Raw data: large, and read by `make report` only.
_NOT_SERVED = ("raw", "recorded", "warm-up", "abandoned")


def policy(path: Path) -> str | None:
    """The Content-Security-Policy that a file of a run is served with; None where it needs none.
    Raises OSError."""
    if path.suffix == ".svg":
        return _PICTURE
    if path.suffix != ".html":
        return None
    with path.open("rb") as file:
        found = _HEAD.match(file.read(1000))
    return _REPORT.format(script=found[1].decode() if found else "'none'")


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run for the list. ``trials`` and ``valid`` None: it has no rows of trials."""

    name: str
    status: str
    kind: str
    question: str
    trials: int | None
    valid: int | None
    files: tuple[str, ...]


class Runs:
    """Reads results/. One thread at a time; what did not change is not read again."""

    def __init__(self, results: Path) -> None:
        self._results = results
        self._known: dict[str, tuple[tuple[object, ...], ListedRun]] = {}

    def newest(self) -> tuple[ListedRun, ...]:
        """The newest first."""
        folders = sorted(self._folders(), key=lambda folder: folder.name, reverse=True)[:MOST_RUNS]
        known: dict[str, tuple[tuple[object, ...], ListedRun]] = {}
        for folder in folders:
            files = tuple(name for name in LINKED if (folder / name).is_file())
            state = (files, _changed(folder / MANIFEST), _changed(folder / ROWS))
            before = self._known.get(folder.name)
            known[folder.name] = (
                before if before and before[0] == state else (state, _read(folder, files))
            )
        self._known = known
        return tuple(run for _, run in known.values())

    def active(self, now: float) -> str | None:
        """The name of a run that may be measured now (seconds since 1970), as its files tell: it
        says it runs, and one of them has just been written. Only `lab.system.lock` knows
        whether one is."""
        for run in self.newest()[:5]:
            folder = self._results / run.name
            if run.status == "running":
                recent = max(map(_changed, (folder, *folder.glob("*"), *folder.glob("*/*"))))
                if now - recent < ACTIVE_S:
                    return run.name
        return None

    def file(self, run: str, name: str) -> Path | None:
        """A file of a run that may be served; None for any other, there or not."""
        parts = name.split("/")
        if not _RUN.fullmatch(run) or not all(map(_PART.fullmatch, parts)):
            return None
        if len(parts) > 3 or parts[0] in _NOT_SERVED or Path(name).suffix not in TYPES:
            return None
        try:
            folder = (self._results / run).resolve(strict=True)
            path = folder.joinpath(*parts).resolve(strict=True)
        except (OSError, RuntimeError):
            return None
        inside = folder.parent == self._results.resolve() and path.is_relative_to(folder)
        return path if inside and path.is_file() else None

    def _folders(self) -> Iterator[Path]:
        try:
            for path in self._results.iterdir():
                named = _RUN.fullmatch(path.name) and not path.is_symlink()
                if named and path.is_dir() and not (path / SITE).is_file():
                    yield path
        except OSError:
            return


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _read(folder: Path, files: tuple[str, ...]) -> ListedRun:
    manifest = _manifest(folder / MANIFEST)
    experiment = manifest.get("experiment")
    experiment = experiment if isinstance(experiment, dict) else {}
    trials, valid = _rows(folder / ROWS)
    return ListedRun(
        name=folder.name,
        status=str(manifest.get("status", "unknown")),
        kind=str(experiment.get("kind", "loads" if "concurrencies" in experiment else "other")),
        question=" ".join(str(experiment.get("question", "")).split()),
        trials=trials,
        valid=valid,
        files=files,
    )


def _manifest(path: Path) -> Mapping[str, Any]:
    try:
        return read_object(path) if path.stat().st_size <= LARGEST_MANIFEST else {}
    except (OSError, RawDataError):
        return {}


def _rows(path: Path) -> tuple[int | None, int | None]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            valid = [row.get("valid") == "true" for row in csv.DictReader(file)]
    except (OSError, ValueError, csv.Error):
        return None, None
    return len(valid), sum(valid)
