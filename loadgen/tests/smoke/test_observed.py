"""What Prometheus saw of the bench: every target up, every dashboard query with data."""

import json
import re
import socket
from bisect import bisect_left
from typing import Any

import httpx
import pytest

from lab.live.agent.metrics import BUCKETS_S, KEPT_S
from support.dashboards import filled, lab, load
from support.repo import REPO
from support.stored import Cells, Query, Run, Values, Window, ends, eventually, offered_routes

VOCABULARY = REPO / "prometheus" / "vocabulary.json"
# Of toxics, and none is in force or was: test_toxic_in_force.py asks for these. By default nobody
# watches locks, and a pool's queue has no bound.
ABSENT = (
    *("lab_toxic_attribute", "lab_toxics_changed_timestamp_seconds"),
    *("lab_wait_seconds_total", "lab_worker_pool_queue_bound"),
)
# Either the load itself tells what clients see, or a probe does.
ONLY_OF_A_LOAD = ('source="load"', "lab_client_requests_waiting", "lab_client_connections_open")
ONLY_OF_A_PROBE = ("lab_client_requests_skipped_total",)


def test_every_target_is_up(client: httpx.Client, prometheus: str) -> None:
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


def scrapes(query: Query, row: Cells) -> dict[str, int]:
    """How many times each server was scraped while a trial ran, if at all."""
    began, ended = ends(row)
    found = query(f'count_over_time(up{{job="server"}}[{(ended - began) * 1000:.0f}ms])', ended)
    return {one["metric"]["server"]: int(one["value"][1]) for one in found}


def test_only_the_measured_server_is_scraped_closely(query: Query, rows: list[Cells]) -> None:
    # 1/s and 1/15 s, fewer on a busy machine. A trial takes a few seconds, so most idle servers
    # have no scrape in it: over all trials, and a server without one counts as well.
    seen = [(row["server"], scrapes(query, row)) for row in rows]
    servers = {server for _, found in seen for server in found}
    measured = sum(found.get(server, 0) for server, found in seen)
    others = sum(n for server, found in seen for name, n in found.items() if name != server)
    assert measured > 2 * others / max(1, len(servers) - 1)


# Samples that a scrape may bring: a tenth more than what was counted. Every one is written beside
# the load, and Prometheus takes some 8 µs for it (docs/overhead.md).
# The agent's are latencies of both phases of an open load, twice: of one trial they stay for 10 s,
# and here the next begins by then.
MOST_SAMPLES = {"jvm": 130, "downstream": 95, "toxiproxy": 60, "prometheus": 900, "loadgen": 900}
# And of a server: for each route of the servers in the last hour, and besides.
FOR_EACH_ROUTE, BESIDES = 310, 275


def test_a_scrape_does_not_grow_unnoticed(query: Query) -> None:
    routes = query("count by (route) (count_over_time(lab_http_requests_total[1h]))")
    most = {**MOST_SAMPLES, "server": FOR_EACH_ROUTE * len(routes) + BESIDES}
    counted = "max by (job) (max_over_time(scrape_samples_post_metric_relabeling[1h]))"
    seen = {one["metric"]["job"]: float(one["value"][1]) for one in query(counted)}
    assert seen.keys() >= most.keys()
    assert {job: seen[job] for job in most if seen[job] > most[job]} == {}


def test_what_has_the_engines_socket_is_out_of_the_servers_reach() -> None:
    # This test is where the servers are, and they know each other by name.
    assert socket.getaddrinfo("prometheus", 9090)
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("cadvisor", 8080)


def seen_by_clients(query: Query, row: Cells, asked: str, **labels: str) -> list[dict[str, Any]]:
    """The answer for what Prometheus last saw of a trial's clients: `%s` in the query are their
    labels and that time."""
    where = {"server": row["server"], "route": row["route"].partition("?")[0], "mode": row["mode"]}
    matchers = ", ".join(f'{name}="{value}"' for name, value in (where | labels).items())
    began, ended = ends(row)
    # The agent keeps them so long. Another trial of the server has another mode.
    last = f"{{{matchers}}}[{ended + KEPT_S - began:.0f}s]"
    return query(asked % last, ended + KEPT_S)


def streams(row: Cells) -> bool:
    return row["engine"] == "pacer"


def test_in_every_trial_its_load_or_a_probe_told(query: Query, rows: list[Cells]) -> None:
    for row in rows:
        asked = "sum by (source) (last_over_time(lab_client_requests_total%s)) > 0"
        found = seen_by_clients(query, row, asked)
        sources = [one["metric"]["source"] for one in found]
        assert sources == ["load" if streams(row) else "probe"], row["trial"]


def test_what_a_load_told_live_is_what_its_row_says(query: Query, rows: list[Cells]) -> None:
    for row in filter(streams, rows):
        since, p95 = ("due", "p95_ms") if row["mode"] == "open" else ("sent", "raw_p95_ms")
        window = {"source": "load", "phase": "measure"}
        last = "last_over_time(lab_client_request_seconds_bucket%s)"
        asked = f"histogram_quantile(0.95, sum by (le) ({last}))"
        (live,) = seen_by_clients(query, row, asked, since=since, **window)
        at = bisect_left(BUCKETS_S, float(row[p95]) / 1000)
        # It lies in the bucket of the row's own.
        assert BUCKETS_S[at - 1] <= float(live["value"][1]) <= BUCKETS_S[at], row["trial"]


def test_every_dashboard_query_answers_for_the_time_of_the_run(
    client: httpx.Client, prometheus: str, rows: list[Cells], window: Window, run: Run
) -> None:
    # Each side of Compare asks for one trial: of some, a busy machine has too few samples. Only an
    # open one offers a rate.
    by_load = any(map(streams, rows))
    absent = (*ABSENT, *(ONLY_OF_A_PROBE if by_load else ONLY_OF_A_LOAD))
    asked = {
        f"{board.uid}/{title}/{query.ref}": query.bare or query.expr
        for board in load()
        for title, query in (
            *((panel.title, query) for panel, query in board.queries()),
            *(("marks", mark) for mark in board.annotations),
        )
    }
    left = {w: e for w, e in asked.items() if not any(name in e for name in absent)}
    assert len(left) > 100
    for row in (row for row in rows if row["mode"] == "open"):
        path = row["route"].partition("?")[0]
        values = {"server": ".+", "service": ".+", "route": path, "__rate_interval": "8s"}
        for side in "ab":
            of = {
                "run": run.folder.name,
                "trial": row["trial"],
                "server": row["server"],
                "route": path,
            }
            # Grafana moves both to one moment. Prometheus 2.53 refuses an offset of 0.
            values |= {f"{name}_{side}": value for name, value in {**of, "shift": "1"}.items()}
        told = {
            w for w, e in left.items() if samples(client, prometheus, filled(e, values), window)
        }
        left = {where: expr for where, expr in left.items() if where not in told}
    assert left == {}


def samples(client: httpx.Client, prometheus: str, expr: str, window: Window) -> list[str]:
    """Every sample of the answer that is a number, one a second."""
    asked = {"query": expr, "start": str(window[0]), "end": str(window[1]), "step": "1"}
    answer = client.get(f"{prometheus}/api/v1/query_range", params=asked)
    assert answer.is_success, (expr, answer.text)
    series = answer.json()["data"]["result"]
    return [value for one in series for _, value in one["values"] if value != "NaN"]


def test_a_driver_that_is_gone_is_not_counted(query: Query) -> None:
    memory = 'service:container_memory_working_set_bytes:sum{service="driver"}'
    assert query(f"last_over_time({memory}[10m])")
    eventually(lambda: query(memory) == [], 120, "no memory of a driver that has ended")


def test_a_container_that_somebody_started_by_hand_is_no_server(query: Query) -> None:
    """.ci/smoke.sh started one before the bench, with the labels of a server's image."""
    assert query('count_over_time(container_start_time_seconds{service="fixed-pool"}[10m])')
    assert query('count_over_time(container_start_time_seconds{name=~".+-by-hand"}[10m])') == []


def test_what_labels_say_is_in_the_vocabulary(values: Values) -> None:
    for metrics in json.loads(VOCABULARY.read_text()).values():
        for name, metric in metrics.items():
            for label, known in metric.get("values", {}).items():
                seen = values(label, f'{{__name__=~"{name}(_bucket)?"}}')
                assert set(seen) <= set(known), (name, label)


def test_every_route_that_was_asked_for_can_be_chosen(query: Query, rows: list[Cells]) -> None:
    assert {row["route"].partition("?")[0] for row in rows} <= offered_routes(query)
    assert lab().variables["route"] in offered_routes(query)


def test_every_chooser_offers_something(values: Values) -> None:
    questions = {question.query for board in load() for question in board.questions}
    found = (re.fullmatch(r"label_values\((.+), (\w+)\)", query) for query in questions)
    asked = [match.groups() for match in found if match]
    assert len(asked) >= 2
    for series, label in asked:
        assert len(values(label, series)) >= 2, series
