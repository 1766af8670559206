"""Every framework's lane on a real lab, measured once under the same limits as the others."""

import contextlib
import os

import pytest

from lab.judge.fairness import compare
from lab.kinds.reading.words import server_lists
from lab.store import manifest
from lab.subject.lab_server import LabServer
from lab.system.stack import Stack, Urls
from support.repo import REPO
from support.stored import Query, is_trusted, run_of, trials_of
from support.table import read_rows

LANES = set(dict(server_lists(REPO / "prometheus/servers"))["frameworks"])


def test_a_measured_lane_has_a_row_that_can_be_trusted() -> None:
    trials = {trial["trial"]: trial for trial in trials_of("frameworks")}
    every = read_rows(run_of("frameworks") / "trials.csv")
    rows = [row for row in every if row.trial in trials]
    assert {row.server for row in rows} == LANES
    for row in rows:
        # Seconds of a small load leave something to compile.
        assert is_trusted(trials[row.trial], "cold-unsteady"), (row.trial, row.invalid_reasons)
        assert not row.http_errors, row.trial
        assert row.raw_p50_ms >= 200, row.trial
        assert row.predicted_rps is not None
        assert row.window_s is not None
        # But for a burst of all connections at the edge of the window.
        assert row.achieved_rps <= row.predicted_rps * (1.05 + 0.2 / row.window_s), row.trial


def test_no_lane_has_other_limits() -> None:
    with contextlib.closing(Stack(Urls.read(os.environ))) as stack:
        assert not compare({lane: LabServer(lane, stack).snapshot() for lane in LANES}).unequal
    record = manifest.read(run_of("frameworks"))
    assert set(record.servers) == LANES
    assert not record.fairness.unequal
    assert record.fairness.equal["downstream_connections"]
    # As make's line said; .env says 200.
    assert record.servers["spring-mvc"].settings["pool_size"] == 150


@pytest.mark.parametrize(
    "metric",
    [
        "lab_http_requests_total",
        "lab_downstream_calls_total",
        "lab_kernel_accept_queue_length",
        "lab_downstream_connections_cap",
        "jvm_memory_used_bytes",
    ],
)
def test_every_lane_is_seen(query: Query, metric: str) -> None:
    seen = {series["metric"]["server"] for series in query(f"sum by (server) ({metric})")}
    assert seen >= LANES


def test_a_pool_is_seen_where_there_is_one_and_loops_where_there_are(query: Query) -> None:
    pools = {s["metric"]["server"] for s in query("lab_worker_pool_size")} & LANES
    assert pools == {"spring-mvc"}
    loops = {s["metric"]["server"] for s in query("lab_event_loop_busy_seconds_total")} & LANES
    assert loops >= {"spring-webflux", "quarkus-reactive", "vertx"}
