"""What a short bench left in its run's folder: plumbing, never speed."""

import json
import os
from pathlib import Path

from support.stored import assert_answered

BENCHED = os.environ["LAB_SMOKE_BENCHED"].split(",")


def test_every_server_was_measured_open_and_closed(rows: list[dict[str, str]]) -> None:
    assert sorted((row["server"], row["mode"]) for row in rows) == sorted(
        (server, mode) for server in BENCHED for mode in ("open", "closed")
    )


def test_every_row_can_be_trusted_and_was_answered(rows: list[dict[str, str]]) -> None:
    for row in rows:
        assert (row["valid"] == "true") == (row["invalid_reasons"] == ""), row
        assert_answered(row)
        assert float(row["achieved_rps"]) > 0, row


def test_the_prediction_stands_beside_the_measurement(rows: list[dict[str, str]]) -> None:
    # 50 connections over 200 ms: at most 250/s, and nobody can measure more, but for a burst of all
    # connections at the edge of the window; what was due before it is another load.
    for row in rows:
        assert float(row["predicted_rps"]) <= 250.001, row
        most = float(row["predicted_rps"]) * (1.05 + 0.2 / float(row["window_s"]))
        backlog = row["invalid_reasons"].startswith("the window began with a backlog")
        assert float(row["achieved_rps"]) <= most or backlog, row


def test_the_manifest_tells_what_ran(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert manifest["host"]["cores"] >= 1
    assert manifest["host"]["images"]
    assert set(manifest["servers"]) == set(BENCHED)
    for server in manifest["servers"].values():
        assert "-XX:TieredStopAtLevel=1" in server["identity"]["jvm_flags"]
        assert server["settings"]["downstream_url"] == "http://toxiproxy:8666/"


def test_the_engines_own_output_is_kept_for_every_row(
    run: Path, rows: list[dict[str, str]]
) -> None:
    for row in rows:
        raw = run / "raw" / row["trial"]
        assert any(raw.iterdir()), row


def test_latest_points_to_a_run(run: Path) -> None:
    latest = run.parent / "latest"
    assert latest.is_symlink()
    assert (latest / "trials.csv").exists()
