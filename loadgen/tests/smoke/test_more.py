"""What only runs when it is named: frameworks as they ship, and the blocking models on JDK 21."""

import json
import platform
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from lab.experiments.reading.words import server_lists
from lab.judge.fairness import FREE
from support.repo import REPO

# The downstream's answer; a server's answers to so many requests for each of its CPUs.
ANSWER_S = 0.2
TURNS = 8
TRIES = 5
SHIPPED = dict(server_lists(REPO / "prometheus/servers"))["shipped"]
# A row of docs/frameworks.md: lanes, the name of what was read back, its value in each twin.
ROW = re.compile(r"^\| ([a-z, -]+) \| `(\w+)` \| (\S+) \| (\S+) \|", re.MULTILINE)

type Ask = Callable[[str, str], Mapping[str, Any]]


@pytest.fixture
def ask(client: httpx.Client) -> Ask:
    """What a server tells on its management port."""
    return lambda server, path: client.get(f"http://{server}:8081{path}").raise_for_status().json()


@pytest.mark.parametrize("shipped", SHIPPED)
def test_a_framework_as_it_ships_differs_so(client: httpx.Client, ask: Ask, shipped: str) -> None:
    answer = client.get(f"http://{shipped}:8080/downstream").raise_for_status()
    assert answer.headers["lab-model"] == shipped
    lane = shipped.removesuffix("-shipped")
    levelled, own = (ask(server, "/settings")["settings"] for server in (lane, shipped))
    twins = {name: (levelled[name], own[name]) for name in own if name not in FREE}
    framework, its = levelled["framework"], own["framework"]
    twins |= {name: (framework[name], its[name]) for name in its}
    values = {
        name: tuple(json.dumps(value).strip('"') for value in both) for name, both in twins.items()
    }
    page = (REPO / "docs/frameworks.md").read_text()
    if lane == "spring-webflux" and platform.machine() != "x86_64":
        # As it ships it has no native transport there.
        values["transport"] = ("nio", "native")
    assert {name: twins for name, twins in values.items() if len(set(twins)) > 1} == {
        name: tuple(twins) for lanes, name, *twins in ROW.findall(page) if lane in lanes.split(", ")
    }


def test_on_jdk_21_no_lane_has_what_needs_a_preview_class(client: httpx.Client, ask: Ask) -> None:
    for server in ("virtual-threads", "thread-per-connection"):
        assert "/aggregate" not in ask(server, "/identity")["routes"], server
        assert client.get(f"http://{server}:8080/aggregate").status_code == 404, server


def test_a_wait_in_synchronized_keeps_its_carrier_on_jdk_21_and_no_longer_on_25(ask: Ask) -> None:
    def seconds(server: str, jdk: str) -> float:
        identity, url = ask(server, "/identity"), f"http://{server}:8080/synchronized"
        assert identity["jdk"].startswith(jdk), server
        requests = TURNS * int(identity["cpus"])
        begun = time.monotonic()
        anyone = httpx.Limits(max_connections=None)
        with httpx.Client(limits=anyone, timeout=30) as many, ThreadPoolExecutor(requests) as pool:
            answers = list(pool.map(lambda _: many.get(url), range(requests)))
        assert {answer.status_code for answer in answers} == {200}
        return time.monotonic() - begun

    # There is a carrier for each CPU, and it waits for one answer after the other.
    for server in ("virtual-threads", "thread-per-connection"):
        assert seconds(server, "21.") >= TURNS * ANSWER_S, server
    # All wait at once. A busy machine has some tries to show it.
    assert min(seconds("netty-virtual", "25.") for _ in range(TRIES)) < TURNS * ANSWER_S / 2
