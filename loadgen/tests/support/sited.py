"""Runs for a site: of two machines and two commits, with an invalid trial."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import io
import json
import re
from pathlib import Path
from typing import Any

from rich.console import Console

from lab.campaign.site import site_verb
from lab.model import Experiment, Json
from support.runs import (
    EXPERIMENT,
    HOST,
    VERSIONS,
    Jittery,
    plans,
    write_manifest,
    write_raw,
)
from support.system import START

OLD, NEW, OTHER = (f"2026013{day}T120000Z-aa" for day in (0, 1, 2))
# Its machine tells more memory.
ELSEWHERE: dict[str, Json] = {**HOST, "memory_bytes": 2**34}


def add(results: Path, name: str, launches: int = 6, **changes: Any) -> Path:
    """A run whose trials all ended; `changes` are of its manifest."""
    day = int(name[6:8]) % 28 + 1
    whole = {"started_at": START.replace(month=1, day=day), **changes}
    run_dir = write_manifest(results, name, **whole)
    write_raw(run_dir, plans(launches))
    return run_dir


def of_commit(commit: str, **changes: Json) -> dict[str, Json]:
    return {**VERSIONS, "commit": commit, **changes}


def asking(**changes: Any) -> Experiment:
    return dataclasses.replace(EXPERIMENT, **changes)


def spoil(run_dir: Path, trial: str) -> None:
    """Makes a trial invalid: toxics changed in its window."""
    path = run_dir / "raw" / trial / "trial.json"
    changed = {"toxic_changes": ["downstream at 12:00:01"]}
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def three_runs(results: Path) -> Path:
    """Two runs of one machine and two commits, and one of another machine."""
    add(results, OLD, versions=of_commit("aaaaaaa111"))
    spoil(add(results, NEW, versions=of_commit("bbbbbbb222")), "01-a-closed")
    add(results, OTHER, host=ELSEWHERE, versions=of_commit("bbbbbbb222"))
    return results


def make_site(results: Path, **words: str) -> str:
    """What `make site` says."""
    text = io.StringIO()
    assert site_verb(words, results, Console(file=text, width=120), [Jittery()]) == 0
    return text.getvalue()


def index(results: Path, name: str = "site") -> str:
    return (results / name / "index.html").read_text(encoding="utf-8")


def data(page: str) -> dict[str, Any]:
    """What the page's script works on."""
    [packed] = re.findall('id="data">(.*?)</script>', page)
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return found


def points(place: dict[str, Any]) -> list[dict[str, Any]]:
    """Every point of a place's figures."""
    layers = [layer for figure in place["figures"] for layer in figure["layer"]]
    return [point for layer in layers for point in layer["data"]["values"]]
