"""What the smoke tests' runs left in the folder of results."""

import csv
import json
import os
from pathlib import Path
from typing import Any


def results() -> Path:
    return Path(os.environ["LAB_SMOKE_RESULTS"])


def run_of(name: str) -> Path:
    """The folder of the one run of that name."""
    (run,) = results().glob(f"*-{name}")
    return run


def rows_of(name: str) -> list[dict[str, str]]:
    with (run_of(name) / "trials.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def trials_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_of(name) / "trials.jsonl").read_text().splitlines()]
