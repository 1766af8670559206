"""Every framework's lane on a real lab, measured once under the same limits as the others."""

import contextlib
import os

from lab.judge.same_lab import fairness
from lab.kinds.reading.words import server_lists
from lab.subject.lab_server import LabServer
from lab.system.stack import Stack
from support.repo import REPO
from support.stored import Query, Run, is_trusted

LANES = set(dict(server_lists(REPO / "prometheus/servers"))["frameworks"])


def test_a_measured_lane_has_a_row_that_can_be_trusted() -> None:
    run = Run("frameworks")
    trials = {trial["trial"]: trial for trial in run.trials}
    rows = [row for row in run.every_row if row.trial in trials]
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
    with contextlib.closing(Stack(os.environ["LAB_SECRET"])) as stack:
        assert not fairness({lane: LabServer(lane, stack).snapshot() for lane in LANES}).unequal
    record = Run("frameworks").manifest
    assert set(record.servers) == LANES
    assert not record.fairness.unequal
    assert record.fairness.equal["downstream_connections"]
    # As make's line said; .env says 200.
    assert record.servers["spring-mvc"].settings["pool_size"] == 150


METRICS = ("lab_http_requests_total", "lab_downstream_calls_total", "jvm_memory_used_bytes",
           "lab_kernel_accept_queue_length", "lab_downstream_connections_cap")  # fmt: skip


def test_every_lane_is_seen(query: Query) -> None:
    def seen(metric: str) -> set[str]:
        return {series["metric"]["server"] for series in query(f"sum by (server) ({metric})")}

    assert [metric for metric in METRICS if not seen(metric) >= LANES] == []
    assert seen("lab_worker_pool_size") & LANES == {"spring-mvc"}
    loops = {"spring-webflux", "quarkus-reactive", "vertx"}
    assert seen("lab_event_loop_busy_seconds_total") >= loops
