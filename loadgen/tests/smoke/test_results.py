"""What a short bench left in its run's folder: plumbing, never speed."""

import os

from support.stored import Cells, Run, assert_answered

BENCHED = os.environ["LAB_SMOKE_BENCHED"].split(",")


def test_every_server_was_measured_open_and_closed(rows: list[Cells]) -> None:
    every = sorted((server, mode) for server in BENCHED for mode in ("open", "closed"))
    assert sorted((row["server"], row["mode"]) for row in rows) == every


def test_every_row_can_be_trusted_and_was_answered(rows: list[Cells]) -> None:
    for row in rows:
        assert (row["valid"] == "true") == (row["invalid_reasons"] == ""), row
        assert_answered(row)
        assert float(row["achieved_rps"]) > 0, row


def test_the_prediction_stands_beside_the_measurement(rows: list[Cells]) -> None:
    # 50 connections over 200 ms: at most 250/s, and nobody can measure more, but for a burst of all
    # connections at the edge of the window; what was due before it is another load.
    for row in rows:
        assert float(row["predicted_rps"]) <= 250.001, row
        most = float(row["predicted_rps"]) * (1.05 + 0.2 / float(row["window_s"]))
        backlog = row["invalid_reasons"].startswith("backlog")
        assert float(row["achieved_rps"]) <= most or backlog, row


def test_the_folder_tells_what_ran(run: Run, rows: list[Cells]) -> None:
    manifest = run.json("manifest.json")
    assert manifest["status"] == "complete"
    assert manifest["host"]["cores"] >= 1
    assert manifest["host"]["images"]
    assert set(manifest["servers"]) == set(BENCHED)
    for server in manifest["servers"].values():
        assert "-XX:TieredStopAtLevel=1" in server["identity"]["jvm_flags"]
        assert server["settings"]["downstream_url"] == "http://toxiproxy:8666/"
    # The engine's own output is kept, and `latest` leads to a run.
    for row in rows:
        assert any((run.folder / "raw" / row["trial"]).iterdir()), row
    latest = run.folder.parent / "latest"
    assert latest.is_symlink()
    assert (latest / "trials.csv").exists()
