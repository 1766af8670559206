"""What Prometheus saw of the bench: every target up, every dashboard query with data."""

import contextlib
import csv
import json
import re
import socket
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.live.agent.metrics import BUCKETS_S, KEPT_S
from lab.store.panels import legend_of
from lab.system.dashboards.__main__ import ONLY_OF_A_LOAD, ONLY_OF_A_PROBE
from lab.system.dashboards.asking import ask, options, resolve
from lab.system.dashboards.model import Window, load
from lab.system.http import Http
from lab.system.prometheus import Prometheus
from support.repo import REPO
from support.stored import Eventually, Query

DASHBOARDS = REPO / "grafana" / "dashboards"
VOCABULARY = REPO / "prometheus" / "vocabulary.json"
# Of toxics, and none is in force or was: test_toxic_in_force.py asks for these.
TOXICS = ("lab_toxic_attribute", "lab_toxics_changed_timestamp_seconds")


def test_every_target_is_up(client: httpx.Client, prometheus: str, eventually: Eventually) -> None:
    up, jobs = set(), set()

    def all_were_up() -> bool:
        # Prometheus has not asked yet those whose interval it has just changed, and on a busy
        # machine a scrape may come too late.
        targets = client.get(f"{prometheus}/api/v1/targets").json()["data"]["activeTargets"]
        up.update(t["scrapeUrl"] for t in targets if t["health"] == "up")
        jobs.update(t["labels"]["job"] for t in targets)
        missing = {t["scrapeUrl"]: t["lastError"] for t in targets if t["scrapeUrl"] not in up}
        print(missing)
        return not missing

    eventually(all_were_up, 120, "a scrape of every target")
    assert jobs >= {"server", "jvm", "downstream", "toxiproxy", "cadvisor", "loadgen"}


def scrapes(client: httpx.Client, prometheus: str, row: dict[str, str]) -> dict[str, int]:
    """How many times each server was scraped while a trial ran, if at all."""
    began, ended = (
        datetime.fromisoformat(row[mark]).timestamp() for mark in ("started_at", "ended_at")
    )
    asked = f'count_over_time(up{{job="server"}}[{(ended - began) * 1000:.0f}ms])'
    answer = client.get(f"{prometheus}/api/v1/query", params={"query": asked, "time": str(ended)})
    found = answer.json()["data"]["result"]
    return {one["metric"]["server"]: int(one["value"][1]) for one in found}


def test_only_the_server_that_is_measured_is_scraped_closely(
    client: httpx.Client, prometheus: str, rows: list[dict[str, str]]
) -> None:
    # 1/s and 1/15 s, fewer on a busy machine. A trial takes a few seconds, so most idle servers
    # have no scrape in it: over all trials, and a server without one counts as well.
    seen = [(row["server"], scrapes(client, prometheus, row)) for row in rows]
    servers = {server for _, found in seen for server in found}
    measured = sum(found.get(server, 0) for server, found in seen)
    others = sum(n for server, found in seen for name, n in found.items() if name != server)
    assert measured > 2 * others / max(1, len(servers) - 1)


# Samples that a scrape may bring: a tenth more than what was counted. Every one is written beside
# the load, and Prometheus takes some 8 µs for it (docs/overhead.md).
# The agent's are latencies of both phases of an open load, twice: of one trial they stay for 10 s,
# and here the next begins by then.
MOST_SAMPLES = {"jvm": 130, "downstream": 90, "toxiproxy": 60, "prometheus": 900, "loadgen": 900}
# For each of these in the last hour, and besides: a route of the servers.
MOST_FOR_EACH = {
    "server": ("route", "lab_http_requests_total", 310, 240),
}


def test_a_scrape_does_not_grow_unnoticed(query: Query) -> None:
    most = dict(MOST_SAMPLES)
    for job, (what, series, each, besides) in MOST_FOR_EACH.items():
        found = query(f"count by ({what}) (count_over_time({series}[1h]))")
        most[job] = each * len(found) + besides
    counted = "max by (job) (max_over_time(scrape_samples_post_metric_relabeling[1h]))"
    seen = {one["metric"]["job"]: float(one["value"][1]) for one in query(counted)}
    assert seen.keys() >= most.keys()
    assert {job: seen[job] for job in most if seen[job] > most[job]} == {}


def test_what_has_the_engines_socket_is_out_of_the_servers_reach() -> None:
    # This test is where the servers are, and they know each other by name.
    assert socket.getaddrinfo("prometheus", 9090)
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("cadvisor", 8080)


def seen_by_clients(
    client: httpx.Client, prometheus: str, row: dict[str, str], asked: str, **labels: str
) -> list[dict[str, Any]]:
    """The answer for what Prometheus last saw of a trial's clients: `%s` in the query are their
    labels and that time."""
    where = {"server": row["server"], "route": row["route"].partition("?")[0], "mode": row["mode"]}
    matchers = ", ".join(f'{name}="{value}"' for name, value in (where | labels).items())
    began, ended = (
        datetime.fromisoformat(row[mark]).timestamp() for mark in ("started_at", "ended_at")
    )
    # The agent keeps them so long. Another trial of the server has another mode.
    last = f"{{{matchers}}}[{ended + KEPT_S - began:.0f}s]"
    params = {"query": asked % last, "time": str(ended + KEPT_S)}
    answer = client.get(f"{prometheus}/api/v1/query", params=params).json()
    return list(answer["data"]["result"])


def streams(row: dict[str, str]) -> bool:
    return row["engine"] == "pacer"


def test_in_every_trial_its_load_told_what_it_saw_or_a_probe_did(
    client: httpx.Client, prometheus: str, rows: list[dict[str, str]]
) -> None:
    for row in rows:
        asked = "sum by (source) (last_over_time(lab_client_requests_total%s)) > 0"
        found = seen_by_clients(client, prometheus, row, asked)
        sources = [one["metric"]["source"] for one in found]
        assert sources == ["load" if streams(row) else "probe"], row["trial"]


def test_what_a_load_told_live_is_what_its_row_says(
    client: httpx.Client, prometheus: str, rows: list[dict[str, str]]
) -> None:
    for row in filter(streams, rows):
        since, p95 = ("due", "p95_ms") if row["mode"] == "open" else ("sent", "raw_p95_ms")
        window = {"source": "load", "phase": "measure"}
        last = "last_over_time(lab_client_request_seconds_bucket%s)"
        asked = f"histogram_quantile(0.95, sum by (le) ({last}))"
        (live,) = seen_by_clients(client, prometheus, row, asked, since=since, **window)
        at = bisect_left(BUCKETS_S, float(row[p95]) / 1000)
        # It lies in the bucket of the row's own.
        assert BUCKETS_S[at - 1] <= float(live["value"][1]) <= BUCKETS_S[at], row["trial"]


@pytest.fixture(scope="module")
def reader(prometheus: str) -> Iterator[Prometheus]:
    with contextlib.closing(Http()) as http:
        yield Prometheus(prometheus, http)


def test_every_dashboard_query_answers_for_the_time_of_the_run(
    reader: Prometheus, run: Path, rows: list[dict[str, str]], window: Window
) -> None:
    # Only an open trial offers a rate: of such are the two that Compare is to draw. On a busy
    # machine one may have too few samples: then others are drawn.
    offered = [row["trial"] for row in rows if row["mode"] == "open"]
    empty: dict[str, str] = {}
    for at, trial in enumerate(offered):
        chosen = {
            "run_a": run.name,
            "run_b": run.name,
            "trial_a": trial,
            "trial_b": offered[at - 1],
        }
        answers = ask(reader, load(DASHBOARDS), window, chosen, everything=True)
        assert len(answers) > 100
        assert {answer.where.partition("/")[0] for answer in answers} >= {"lab", "lab-compare"}
        nothing = {answer.where: answer.expr for answer in answers if not answer.samples}
        empty = {where: nothing[where] for where in nothing if at == 0 or where in empty}
    by_load = any(map(streams, rows))
    # By default nobody watches locks, and a pool's queue has no bound.
    absent = (
        *(*TOXICS, "lab_wait_seconds_total", "lab_worker_pool_queue_bound"),
        *(ONLY_OF_A_PROBE if by_load else ONLY_OF_A_LOAD),
    )
    assert {w: e for w, e in empty.items() if not any(name in e for name in absent)} == {}


def test_no_two_lines_of_a_panel_have_one_name(reader: Prometheus, window: Window) -> None:
    for board in load(DASHBOARDS):
        answers = ask(reader, (board,), window)
        names = [
            (panel.title, legend_of(query.legend, line.labels))
            for (panel, query), answer in zip(board.queries(), answers, strict=True)
            for line in answer.series
            if line.points
        ]
        assert [name for name, count in Counter(names).items() if count > 1] == [], board.uid


def test_a_driver_that_is_gone_is_not_counted(
    query: Query,
    eventually: Eventually,
) -> None:
    memory = 'service:container_memory_working_set_bytes:sum{service="driver"}'
    assert query(f"last_over_time({memory}[10m])")
    eventually(lambda: query(memory) == [], 120, "no memory of a driver that has ended")


def test_a_container_that_somebody_started_by_hand_is_no_server(query: Query) -> None:
    """.ci/smoke.sh started one before the bench, with the labels of a server's image."""
    assert query('count_over_time(container_start_time_seconds{service="fixed-pool"}[10m])')
    assert query('count_over_time(container_start_time_seconds{name=~".+-by-hand"}[10m])') == []


def test_what_labels_say_is_in_the_vocabulary(client: httpx.Client, prometheus: str) -> None:
    for metrics in json.loads(VOCABULARY.read_text()).values():
        for name, metric in metrics.items():
            for label, known in metric.get("values", {}).items():
                series = f'{{__name__=~"{name}(_bucket)?"}}'
                url = f"{prometheus}/api/v1/label/{label}/values"
                seen = client.get(url, params={"match[]": series}).json()["data"]
                assert set(seen) <= set(known), (name, label)


def test_compare_opens_with_two_trials_of_the_newest_run(reader: Prometheus, run: Path) -> None:
    (compare,) = (board for board in load(DASHBOARDS) if board.uid == "lab-compare")
    assert compare.range_s is not None
    opened = resolve(reader, compare, Window(*compare.range_s, 1))
    # Those that were measured again, too.
    with (run / "trials.csv").open(newline="") as file:
        by_trial = {row["trial"]: row for row in csv.DictReader(file)}
    assert (opened["run_a"], opened["run_b"]) == (run.name, run.name)
    assert (opened["trial_a"], opened["trial_b"]) == (min(by_trial), max(by_trial))
    started = {
        trial: datetime.fromisoformat(row["started_at"]).timestamp()
        for trial, row in by_trial.items()
    }
    for side in "ab":
        row = by_trial[opened[f"trial_{side}"]]
        assert (opened[f"server_{side}"], opened[f"route_{side}"]) == (row["server"], row["route"])
        # The mark is set as the window opens; scrape and rule see it a second or more later.
        begins = compare.range_s[0] - float(opened[f"shift_{side}"])
        assert row["trial"] == min(started, key=lambda trial: abs(begins - started[trial]))


def test_every_route_that_was_asked_for_can_be_chosen(
    reader: Prometheus, rows: list[dict[str, str]], window: Window
) -> None:
    (lab,) = (board for board in load(DASHBOARDS) if board.uid == "lab")
    (route,) = (question for question in lab.questions if question.variable == "route")
    offered = options(reader, route, window, {})
    assert {row["route"].partition("?")[0] for row in rows} <= set(offered)
    assert lab.variables["route"] in offered


def test_every_chooser_offers_something(client: httpx.Client, prometheus: str) -> None:
    asked = set()
    for file in DASHBOARDS.glob("*.json"):
        for variable in json.loads(file.read_text())["templating"]["list"]:
            match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
            if match:
                asked.add(match.groups())
    assert len(asked) >= 2
    for series, label in asked:
        url = f"{prometheus}/api/v1/label/{label}/values"
        assert len(client.get(url, params={"match[]": series}).json()["data"]) >= 2, series
