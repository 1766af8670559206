"""What the smoke tests' runs left in the folder of results."""

import csv
import gzip
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from lab.model import AGAIN, remarks_in
from support.dashboards import filled, lab

# Fixtures of the smoke tests: an instant query of Prometheus, now or at a time, and the values that
# it has of a label of series.
Query = Callable[..., list[dict[str, Any]]]
Values = Callable[[str, str], list[str]]
# A row of trials.csv.
Cells = dict[str, str]
# When something began and ended, in seconds since 1970.
Window = tuple[float, float]

# What makes a trial invalid on a machine that is busy or slow, whatever the lab does.
# `.ci/faults.sh` shows that faults which are planted make trials invalid.
BUSY = (
    "backlog",
    "compiling",
    "goodput-drift",
    "latency-drift",
    "generator-late",
    "generator-began-late",
    "generator-starved",
    "generator-thinks",
)


def excused(codes: Iterable[str], allowed: Iterable[str]) -> bool:
    """True if an invalid trial has reasons, and all of them are allowed."""
    known = {*codes}
    return bool(known) and known <= {*allowed}


def is_trusted(row: Mapping[str, Any], *also: str) -> bool:
    """True if a row or a trial is valid, or every reason is one that a busy machine alone explains,
    or one of these."""
    codes = [one["code"] for one in row.get("reasons", ())]
    codes += [one.code for one in remarks_in(row["invalid_reasons"])]
    return row["valid"] in (True, "true") or excused(codes, (*BUSY, *also))


def assert_answered(row: Mapping[str, str]) -> None:
    """A row can be trusted, and every answer in it came after the downstream's delay."""
    assert is_trusted(row), row
    assert int(row["ok"]) > 0, row
    assert int(row["http_errors"]) == 0, row
    assert float(row["raw_p50_ms"]) >= 200, row


def eventually(is_true: Callable[[], object], seconds: float, what: str) -> None:
    """Asks until it is true, or fails and says what did not come true."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.5)


def offered_routes(query: Query) -> set[str]:
    """The routes that the dashboard Lab offers."""
    (route,) = (question.query for question in lab().questions if question.variable == "route")
    asked = route.removeprefix("query_result(").removesuffix(")")
    return {one["metric"]["route"] for one in query(filled(asked, {"__range": "1h"}))}


def ends(row: Mapping[str, str]) -> Window:
    """Of a trial."""
    began, ended = (datetime.fromisoformat(row[at]) for at in ("started_at", "ended_at"))
    return began.timestamp(), ended.timestamp()


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
