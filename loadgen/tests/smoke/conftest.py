"""Tests that look at a running lab from inside its network; `.ci/smoke.sh` starts them."""

import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from lab.system.http import TokenAuth
from support.stored import Cells, Query, Run, Values, Window, ends

# Without a lab there is nothing to look at: `pytest` alone leaves this folder out.
if "LAB_SMOKE_RESULTS" not in os.environ:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def run() -> Run:
    return Run("smoke")


@pytest.fixture(scope="session")
def rows(run: Run) -> list[Cells]:
    return run.rows


@pytest.fixture(scope="session")
def window(rows: list[Cells]) -> Window:
    """The time of the run."""
    began, ended = zip(*map(ends, rows), strict=True)
    return min(began), max(ended)


@pytest.fixture(scope="session")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=60, auth=TokenAuth(os.environ["LAB_SECRET"])) as client:
        yield client


@pytest.fixture(scope="session")
def prometheus() -> str:
    return "http://prometheus:9090"


@pytest.fixture(scope="session")
def query(client: httpx.Client, prometheus: str) -> Query:
    """Run an instant query, now or at a time; the answer is Prometheus's list of series."""

    def ask(promql: str, at: float | None = None) -> list[dict[str, Any]]:
        asked = {"query": promql} | ({} if at is None else {"time": str(at)})
        answer = client.get(f"{prometheus}/api/v1/query", params=asked)
        answer.raise_for_status()
        return answer.json()["data"]["result"]

    return ask


@pytest.fixture(scope="session")
def values(client: httpx.Client, prometheus: str) -> Values:
    """The values that Prometheus has of a label of these series."""

    def ask(label: str, series: str) -> list[str]:
        url = f"{prometheus}/api/v1/label/{label}/values"
        return client.get(url, params={"match[]": series}).json()["data"]

    return ask
