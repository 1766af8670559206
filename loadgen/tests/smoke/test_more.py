"""What only runs when it is named: frameworks as they ship, and the blocking models on JDK 21."""

import json
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from lab.kinds.reading.words import server_lists
from support.repo import REPO
from support.stored import Run

# The downstream's answer; a server's answers to so many requests for each of its CPUs.
ANSWER_S = 0.2
TURNS = 8
TRIES = 5
LANES = dict(server_lists(REPO / "prometheus/servers"))["frameworks"]
# A row of docs/frameworks.md: lanes, a name that is read back, and its value in the plain models,
# with the lab's defaults and with the framework's.
ROW = re.compile(r"^\| ([a-z, -]+) \| `(\w+)` \| (\S+) \| (\S+) \| (\S+) \|", re.MULTILINE)
# Settings of every model that a framework may not have.
OF_ALL = ("downstream_keep_idle_s",)

type Ask = Callable[[str, str], Mapping[str, Any]]


@pytest.fixture
def ask(client: httpx.Client) -> Ask:
    """What a server tells on its management port."""
    return lambda server, path: client.get(f"http://{server}:8081{path}").raise_for_status().json()


def texts(name: str, read_back: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(json.dumps(of[name]).strip('"') if name in of else "–" for of in read_back)


def test_the_table_of_differences_is_what_was_read_back(client: httpx.Client, ask: Ask) -> None:
    page = (REPO / "docs/frameworks.md").read_text()
    table = {
        (lane, name): tuple(values)
        for lanes, name, *values in ROW.findall(page)
        for lane in lanes.split(", ")
    }
    plain, by_default = ask("event-loop", "/settings"), Run("frameworks").manifest.servers
    found = {}
    for lane in LANES:
        answer = client.get(f"http://{lane}:8080/downstream").raise_for_status()
        assert answer.headers["lab-model"] == lane
        shipped = ask(lane, "/settings")["settings"]
        of = (plain["settings"], by_default[lane].settings, shipped)
        settings = {(lane, name): texts(name, of) for name in OF_ALL}
        found |= {key: values for key, values in settings.items() if len({*values}) > 1}
        own = ({}, *(settings["framework"] for settings in of[1:]))
        found |= {(lane, name): texts(name, own) for name in shipped["framework"]}
    if platform.machine() != "x86_64":
        # As it ships it has no native transport there.
        found["spring-webflux", "transport"] = table["spring-webflux", "transport"]
    assert found == table


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
