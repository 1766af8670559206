"""After `make toxics-reset`: none in force, and the delay is the downstream's alone."""

import os
import time

import httpx
import pytest


def test_toxiproxy_has_none(client: httpx.Client) -> None:
    answer = client.get(f"{os.environ['LAB_TOXIPROXY_URL']}/proxies/downstream/toxics")
    assert answer.json() == []


@pytest.mark.parametrize("model", ["fixed-pool", "virtual-threads"])
def test_the_quickest_of_some_answers_is_below_the_toxics_delay(
    client: httpx.Client, model: str
) -> None:
    quickest = float("inf")
    for _ in range(10):
        start = time.monotonic()
        assert client.get(f"http://{model}:8080/downstream").status_code == 200
        quickest = min(quickest, time.monotonic() - start)
    assert 0.2 <= quickest < 0.5
