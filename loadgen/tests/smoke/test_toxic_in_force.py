"""A toxic added with the lab's own verb: in force, exported, and felt in the latency."""

import contextlib
import os
import time
from collections.abc import Sequence

import httpx
import pytest

from lab.system.dashboards.asking import Answer, ask
from lab.system.dashboards.model import Window, load
from lab.system.http import Http
from lab.system.prometheus import Prometheus
from support.repo import REPO
from support.stored import Eventually, Query

DASHBOARDS = REPO / "grafana" / "dashboards"
ADDED_S = 0.3


def test_toxiproxy_has_it(client: httpx.Client) -> None:
    toxics = client.get(f"{os.environ['LAB_TOXIPROXY_URL']}/proxies/downstream/toxics").json()
    assert [(t["type"], t["attributes"]["latency"]) for t in toxics] == [("latency", 300)]


def test_prometheus_has_it(
    query: Query,
    eventually: Eventually,
) -> None:
    eventually(
        lambda: [r["value"][1] for r in query('lab_toxics_in_force{proxy="downstream"}')] == ["1"],
        60,
        "one toxic in force as Prometheus sees it",
    )


def test_the_dashboard_shows_it_and_marks_when_it_came(
    prometheus: str, eventually: Eventually
) -> None:
    boards = tuple(board for board in load(DASHBOARDS) if board.uid == "lab")

    def drawn(answers: Sequence[Answer], where: str, of: str) -> Answer:
        (found,) = (one for one in answers if one.where.startswith(where) and of in one.expr)
        return found

    def is_drawn() -> bool:
        now = time.time()
        reader = Prometheus(prometheus, http)
        answers = ask(reader, boards, Window(now - 10, now, 1), everything=True)
        told = drawn(answers, "lab/Toxics in force/C without", "lab_toxic_attribute")
        attributes = {one.labels["attribute"]: one.points[-1][1] for one in told.series}
        added = drawn(answers, "lab/Delay set on the way", "lab_toxics_added_latency_seconds")
        marks = drawn(answers, "lab/marks Toxics", "lab_toxics_changed_timestamp_seconds")
        return (
            attributes.get("latency") == 1000 * ADDED_S
            and [one.points[-1][1] for one in added.series] == [ADDED_S]
            and marks.samples > 0
        )

    with contextlib.closing(Http()) as http:
        eventually(is_drawn, 60, "the toxic, its delay and its mark")


@pytest.mark.parametrize("model", ["fixed-pool", "virtual-threads"])
def test_every_answer_takes_that_much_longer(client: httpx.Client, model: str) -> None:
    for _ in range(3):
        start = time.monotonic()
        answer = client.get(f"http://{model}:8080/downstream")
        assert answer.status_code == 200
        assert time.monotonic() - start >= 0.2 + ADDED_S
