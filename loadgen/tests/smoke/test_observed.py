"""What Prometheus saw of the bench: every target up, every dashboard query with data."""

from collections.abc import Callable
from typing import Any

import httpx

from lab import dashboards


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
