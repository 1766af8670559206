"""What Prometheus saw of the bench: every target up, every dashboard query with data."""

import contextlib
import csv
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from lab.dashboards import PrometheusReader, Window, ask, load

REPO = Path(__file__).parents[3]


def test_every_target_is_up(client: httpx.Client, prometheus: str) -> None:
    targets = client.get(f"{prometheus}/api/v1/targets").json()["data"]["activeTargets"]
    down = {t["scrapeUrl"]: t["lastError"] for t in targets if t["health"] != "up"}
    assert down == {}
    jobs = {t["labels"]["job"] for t in targets}
    assert jobs >= {"server", "jvm", "downstream", "toxiproxy", "cadvisor", "loadgen"}


def test_the_probe_ran_beside_every_trial(
    query: Callable[[str], list[dict[str, Any]]],
) -> None:
    seen = {r["metric"]["server"] for r in query("lab_probe_requests_total > 0")}
    assert seen >= {"fixed-pool", "virtual-threads"}


def test_every_dashboard_query_answers_for_the_time_of_the_run(prometheus: str, run: Path) -> None:
    with (run / "trials.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    marks = [row[mark] for row in rows for mark in ("started_at", "ended_at")]
    times = [datetime.fromisoformat(mark).timestamp() for mark in marks]
    window = Window(min(times), max(times), 2)
    with contextlib.closing(PrometheusReader(prometheus)) as reader:
        answers = ask(reader, load(REPO / "grafana" / "dashboards"), window)
    assert len(answers) > 20
    assert [f"{answer.where}: {answer.expr}" for answer in answers if not answer.samples] == []
