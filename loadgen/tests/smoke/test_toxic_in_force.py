"""A toxic added with the lab's own verb: in force, exported, and felt in the latency."""

import os
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

ADDED_S = 0.3


def test_toxiproxy_has_it(client: httpx.Client) -> None:
    toxics = client.get(f"{os.environ['LAB_TOXIPROXY_URL']}/proxies/downstream/toxics").json()
    assert [(t["type"], t["attributes"]["latency"]) for t in toxics] == [("latency", 300)]


def test_prometheus_has_it(
    query: Callable[[str], list[dict[str, Any]]],
    eventually: Callable[[Callable[[], bool], float, str], None],
) -> None:
    eventually(
        lambda: [r["value"][1] for r in query('lab_toxics_in_force{proxy="downstream"}')] == ["1"],
        15,
        "one toxic in force as Prometheus sees it",
    )


@pytest.mark.parametrize("model", ["fixed-pool", "virtual-threads"])
def test_every_answer_takes_that_much_longer(client: httpx.Client, model: str) -> None:
    for _ in range(3):
        start = time.monotonic()
        answer = client.get(f"http://{model}:8080/downstream")
        assert answer.status_code == 200
        assert time.monotonic() - start >= 0.2 + ADDED_S
