from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from lab.live.control.runs import Runs, policy
from lab.report.page.html import head
from live.control.conftest import Scene

pytestmark = pytest.mark.anyio

NAME = "20250601T120000Z-sweep"


def run_in(results: Path, name: str = NAME, **manifest: object) -> Path:
    folder = results / name
    for raw in ("raw/01-a", "recorded/01-a-recorded"):
        (folder / raw).mkdir(parents=True)
        (folder / raw / "trial.json").write_text("{}")
    experiment = {"kind": "spike", "question": "why\nso?\n", "concurrencies": [5]}
    whole = {"status": "complete", "experiment": experiment, **manifest}
    (folder / "manifest.json").write_text(json.dumps(whole))
    (folder / "trials.csv").write_text("trial,valid\n1,true\n2,false\n")
    (folder / "report.html").write_text("<!doctype html><title>r</title>")
    (folder / "REPORT.md").write_text("# r\n")
    return folder


def test_the_newest_runs_come_first_with_what_they_leave(tmp_path: Path) -> None:
    run_in(tmp_path)
    run_in(tmp_path, "20250701T120000Z-bench", status="running")
    (tmp_path / "latest").symlink_to(NAME)
    (tmp_path / "stray.txt").write_text("x")
    newest, older = Runs(tmp_path).newest()
    assert (newest.name, newest.status) == ("20250701T120000Z-bench", "running")
    assert (older.kind, older.question, older.trials, older.valid) == ("spike", "why so?", 2, 1)
    assert older.files == ("report.html", "REPORT.md", "trials.csv", "manifest.json")


def test_a_site_of_runs_is_no_run(tmp_path: Path) -> None:
    run_in(tmp_path)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "lab-site.json").write_text("{}")
    assert [run.name for run in Runs(tmp_path).newest()] == [NAME]


def test_broken_runs_are_listed_as_what_they_are(tmp_path: Path) -> None:
    folder = run_in(tmp_path)
    (folder / "manifest.json").write_text("[")
    (folder / "trials.csv").unlink()
    (only,) = Runs(tmp_path).newest()
    assert (only.status, only.kind, only.trials) == ("unknown", "other", None)
    assert Runs(tmp_path / "nosuch").newest() == ()


def test_what_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    folder = run_in(tmp_path)
    runs = Runs(tmp_path)
    (first,) = runs.newest()
    assert runs.newest() == (first,)
    assert runs.newest()[0] is first
    (folder / "trials.csv").write_text("trial,valid\n1,true\n")
    os.utime(folder / "trials.csv", (1, 1))
    assert runs.newest()[0].trials == 1


@pytest.mark.parametrize(
    ("file", "kind", "sandboxed"),
    [
        ("report.html", "text/html; charset=utf-8", True),
        ("REPORT.md", "text/markdown; charset=utf-8", False),
        ("trials.csv", "text/csv; charset=utf-8", False),
        ("manifest.json", "application/json", False),
        ("figures/p95.svg", "image/svg+xml", True),
        ("figures/p95.png", "image/png", False),
    ],
)
async def test_files_of_a_run_have_their_types(
    scene: Scene, file: str, kind: str, sandboxed: bool
) -> None:
    folder = run_in(scene.results)
    (folder / "figures").mkdir()
    for name in ("p95.svg", "p95.png"):
        (folder / "figures" / name).write_text("x")
    answer = await scene.client.get(f"/results/{NAME}/{file}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == kind
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert ("sandbox" in answer.headers["content-security-policy"]) == sandboxed
    assert "allow-same-origin" not in answer.headers["content-security-policy"]
    listed = (await scene.client.get("/api/runs")).json()["runs"]
    assert listed[0]["name"] == NAME


def test_of_a_report_only_its_own_script_may_run(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    report.write_text(head("r", ""), encoding="utf-8")
    [own] = re.findall("script-src ([^;]*);", report.read_text(encoding="utf-8"))
    allowed = policy(report) or ""
    assert own.count("sha256-") == 2
    assert f"script-src {own};" in allowed
    assert "sandbox allow-scripts;" in allowed
    # What stands anywhere else is not believed.
    report.write_text(f"<!DOCTYPE html>\n{report.read_text(encoding='utf-8')}", encoding="utf-8")
    assert "script-src 'none';" in (policy(report) or "")
    report.write_text("<p>of an older version, without a script</p>", encoding="utf-8")
    assert "script-src 'none';" in (policy(report) or "")
    assert "unsafe-eval" not in allowed


@pytest.mark.parametrize(
    "path",
    [
        f"{NAME}/raw/01-a/trial.json",
        f"{NAME}/recorded/01-a-recorded/trial.json",
        f"{NAME}/../secret.json",
        f"{NAME}/..%2f..%2fsecret.json",
        f"{NAME}/%2e%2e/secret.json",
        "..%2fsecret.json/x.json",
        f"{NAME}//etc/passwd.json",
        f"{NAME}/link.json",
        f"{NAME}/away/secret.json",
        f"{NAME}/.hidden.json",
        f"{NAME}/script.py",
        f"{NAME}/nosuch.json",
        f"{NAME}/figures",
        f"{NAME}/a%00b.json",
        "elsewhere/secret.json",
        "nosuch/manifest.json",
    ],
)
async def test_nothing_else_is_served(scene: Scene, path: str) -> None:
    folder = run_in(scene.results)
    outside = scene.results.parent / "outside"
    outside.mkdir()
    secret = outside / "secret.json"
    for place in (secret, scene.results / "secret.json", folder / ".hidden.json",
                  folder / "script.py"):  # fmt: skip
        place.write_text("secret")
    (folder / "link.json").symlink_to(secret)
    (folder / "away").symlink_to(outside)
    (folder / "figures").mkdir()
    (scene.results / "elsewhere").symlink_to(outside)
    answer = await scene.client.get(f"/results/{path}")
    # A path without a file leads to itself with a slash at its end, and so to nothing.
    assert answer.status_code in (307, 404)
    assert "secret" not in answer.text


def test_latest_is_a_run(tmp_path: Path) -> None:
    run_in(tmp_path)
    (tmp_path / "latest").symlink_to(NAME)
    assert Runs(tmp_path).file("latest", "REPORT.md") == tmp_path / NAME / "REPORT.md"
