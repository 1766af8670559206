"""What the smoke tests' runs left in the folder of results."""

import csv
import gzip
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.model import AGAIN

# Fixtures of the smoke tests: whether a trial is valid but for a busy machine (valid, reasons, and
# beginnings of reasons that are allowed too), an instant query of Prometheus, and a wait of so many
# seconds until something is true, with what did not come true.
Trusted = Callable[..., bool]
Query = Callable[[str], list[dict[str, Any]]]
Eventually = Callable[[Callable[[], bool], float, str], None]

# What makes a trial invalid on a machine that is busy or slow, whatever the lab does.
# `.ci/faults.sh` shows that faults which are planted make trials invalid.
BUSY = (
    "the window began with a backlog: ",
    "cold JVM: the JIT compiler ran for ",
    "not steady: ",
    "the downstream was late by ",
    "the generator sent late",
    "the generator began its load late",
    "the generator was starved: its threads waited ",
)


def excused(reasons: Sequence[str], allowed: tuple[str, ...]) -> bool:
    """Whether an invalid trial has reasons, and every one begins with an allowed text."""
    return bool(reasons) and all(reason.startswith(allowed) for reason in reasons)


def results() -> Path:
    return Path(os.environ["LAB_SMOKE_RESULTS"])


def run_of(name: str) -> Path:
    """The folder of the one run of that name."""
    (run,) = results().glob(f"*-{name}")
    return run


def rows_of(name: str) -> list[dict[str, str]]:
    """The rows of a run, without those that a busy machine made invalid and that were repeated."""
    with (run_of(name) / "trials.csv").open(newline="") as file:
        return last_tries(list(csv.DictReader(file)))


def trials_of(name: str) -> list[dict[str, Any]]:
    """As `rows_of`, from trials.jsonl."""
    lines = (run_of(name) / "trials.jsonl").read_text().splitlines()
    return last_tries([json.loads(line) for line in lines])


def series_of(trial: dict[str, Any]) -> list[dict[str, str]]:
    """The labels of each series that was kept of a trial."""
    path = results() / trial["run"] / "raw" / trial["trial"]
    with gzip.open(path / "series.jsonl.gz", "rt") as file:
        next(file)
        return [json.loads(line)["labels"] for line in file]


def last_tries[T: Mapping[str, Any]](rows: Sequence[T]) -> list[T]:
    """The rows of trials that were not measured again."""
    names = {row["trial"] for row in rows}
    return [row for row in rows if f"{row['trial']}{AGAIN}" not in names]
