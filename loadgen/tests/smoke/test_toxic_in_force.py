"""A toxic added with the lab's own verb: in force, exported, and felt in the latency."""

import time

import httpx
import pytest

from support.dashboards import lab
from support.stored import Query, eventually

SHOWN = ("Delay set on the way", "Toxics in force")
ADDED_S = 0.3


def test_toxiproxy_and_prometheus_have_it(client: httpx.Client, query: Query) -> None:
    toxics = client.get("http://toxiproxy:8475/proxies/downstream/toxics").json()
    assert [(t["type"], t["attributes"]["latency"]) for t in toxics] == [("latency", 300)]
    eventually(
        lambda: [r["value"][1] for r in query('lab_toxics_in_force{proxy="downstream"}')] == ["1"],
        60,
        "one toxic in force as Prometheus sees it",
    )


def test_the_dashboard_shows_it_and_marks_it(query: Query) -> None:
    marks = [mark.expr for mark in lab().annotations if "lab_toxics_changed" in mark.expr]
    shown = [one.bare or one.expr for panel, one in lab().queries() if panel.title in SHOWN]
    absent = 'lab_toxic_attribute{attribute="toxicity"} != 1'
    asked = {*marks, *shown} - {absent}
    assert len(asked) == len(marks) + len(shown) - 1 > 4

    def is_drawn() -> bool:
        added = query("lab_toxics_added_latency_seconds")
        latency = query('lab_toxic_attribute{attribute="latency"}')
        seen = [float(one["value"][1]) for one in (*added, *latency)]
        return seen == [ADDED_S, 1000 * ADDED_S] and all(map(query, asked)) and not query(absent)

    eventually(is_drawn, 60, "the toxic, its delay and its mark")


@pytest.mark.parametrize("model", ["fixed-pool", "virtual-threads"])
def test_every_answer_takes_that_much_longer(client: httpx.Client, model: str) -> None:
    for _ in range(3):
        start = time.monotonic()
        answer = client.get(f"http://{model}:8080/downstream")
        assert answer.status_code == 200
        assert time.monotonic() - start >= 0.2 + ADDED_S
