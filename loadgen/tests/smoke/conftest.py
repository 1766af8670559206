"""Tests that look at a running lab from inside its network; `.ci/smoke.sh` starts them."""

import os
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.system.tokens import TokenAuth
from support.stored import BUSY, Eventually, Query, Trusted, excused, rows_of, run_of

# Without a lab there is nothing to look at: `pytest` alone leaves this folder out.
if "LAB_SMOKE_RESULTS" not in os.environ:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def is_trusted() -> Trusted:
    """Whether a trial is valid, but for reasons that a busy machine alone explains."""
    return lambda valid, reasons, *also: valid or excused(reasons, (*BUSY, *also))


@pytest.fixture(scope="session")
def run() -> Path:
    """The folder of the one run the smoke test made under the name `smoke`."""
    return run_of("smoke")


@pytest.fixture(scope="session")
def rows() -> list[dict[str, str]]:
    """Its trials."""
    return rows_of("smoke")


@pytest.fixture(scope="session")
def window(rows: list[dict[str, str]]) -> tuple[float, float]:
    """The time of the run, in seconds since 1970."""
    marks = [row[mark] for row in rows for mark in ("started_at", "ended_at")]
    times = [datetime.fromisoformat(mark).timestamp() for mark in marks]
    return min(times), max(times)


@pytest.fixture(scope="session")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=60, auth=TokenAuth(os.environ["LAB_SECRET"])) as client:
        yield client


@pytest.fixture(scope="session")
def prometheus() -> str:
    return os.environ["LAB_PROMETHEUS_URL"]


@pytest.fixture(scope="session")
def query(client: httpx.Client, prometheus: str) -> Query:
    """Run an instant query; the answer is Prometheus's list of series."""

    def ask(promql: str) -> list[dict[str, Any]]:
        answer = client.get(f"{prometheus}/api/v1/query", params={"query": promql})
        answer.raise_for_status()
        return answer.json()["data"]["result"]

    return ask


@pytest.fixture(scope="session")
def eventually() -> Eventually:
    """Poll until something is true, or fail saying what did not come true."""

    def wait(true: Callable[[], bool], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
            time.sleep(0.5)

    return wait
