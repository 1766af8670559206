"""What the smoke tests' runs left in the folder of results."""

import csv
import gzip
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from lab.model import AGAIN, Row, remarks_in
from lab.store import manifest
from support.dashboards import filled, lab
from support.table import read_rows

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


class Run:
    """The one run of that name. In its `rows` (of trials.csv) and `trials` (of trials.jsonl) those
    are left out that a busy machine made invalid and that were repeated."""

    def __init__(self, name: str) -> None:
        (self.folder,) = results().glob(f"*-{name}")

    @cached_property
    def rows(self) -> list[Cells]:
        with (self.folder / "trials.csv").open(newline="") as file:
            return last_tries(list(csv.DictReader(file)))

    @cached_property
    def trials(self) -> list[dict[str, Any]]:
        lines = (self.folder / "trials.jsonl").read_text().splitlines()
        return last_tries([json.loads(line) for line in lines])

    @cached_property
    def manifest(self) -> manifest.Manifest:
        return manifest.read(self.folder)

    @property
    def every_row(self) -> Sequence[Row]:
        """All of them, as the lab reads them."""
        return read_rows(self.folder / "trials.csv")

    def json(self, name: str) -> Any:
        """A file of its folder."""
        return json.loads((self.folder / name).read_text())

    def record(self, trial: str) -> dict[str, Any]:
        return self.json(f"raw/{trial}/trial.json")

    def lines(self, trial: str, name: str) -> list[dict[str, Any]]:
        """Those of a packed file of a trial."""
        with gzip.open(self.folder / "raw" / trial / name, "rt") as file:
            return [json.loads(line) for line in file]

    def series(self, trial: str) -> list[dict[str, str]]:
        """The labels of each series that was kept of a trial."""
        _, *series = self.lines(trial, "series.jsonl.gz")
        return [each["labels"] for each in series]


def results() -> Path:
    return Path(os.environ["LAB_SMOKE_RESULTS"])


def excused(codes: Iterable[str], allowed: Iterable[str]) -> bool:
    """True if an invalid trial has reasons, and all of them are allowed."""
    known = {*codes}
    return bool(known) and known <= {*allowed}


def is_trusted(row: Mapping[str, Any], *also: str) -> bool:
    """True if a row or a trial is valid, or every reason is one that a busy machine alone explains,
    or one of these."""
    codes = [reason["code"] for reason in row.get("reasons", ())]
    codes += [reason.code for reason in remarks_in(row["invalid_reasons"])]
    return row["valid"] in (True, "true") or excused(codes, (*BUSY, *also))


def assert_answered(row: Cells) -> None:
    """A row can be trusted, and every answer in it came after the downstream's delay."""
    assert is_trusted(row), row
    assert int(row["ok"]) > 0, row
    assert int(row["http_errors"]) == 0, row
    assert float(row["raw_p50_ms"]) >= 200, row


def last_tries[T: Mapping[str, Any]](rows: Sequence[T]) -> list[T]:
    """The rows of trials that were not measured again."""
    names = {row["trial"] for row in rows}
    return [row for row in rows if f"{row['trial']}{AGAIN}" not in names]


def ends(row: Mapping[str, str]) -> Window:
    """Of a trial."""
    began, ended = (datetime.fromisoformat(row[at]) for at in ("started_at", "ended_at"))
    return began.timestamp(), ended.timestamp()


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
    return {series["metric"]["route"] for series in query(filled(asked, {"__range": "1h"}))}
