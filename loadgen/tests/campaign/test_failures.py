"""What a failure costs: a disk that fails at any write, files that were damaged, a power cut."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lab.campaign.derive import derive
from lab.errors import CannotWrite, LabError
from lab.load.engines import ENGINES
from lab.store import csv
from support.bench import Bench
from support.disk import Disk, failing_disk
from support.fakes import FakeLab

__all__ = ["failing_disk"]
LOADS: dict[str, Any] = {"servers": ("a",), "modes": ("open",), "concurrencies": (100, 200)}


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without their figures, which take most of a short run's time."""
    monkeypatch.setattr("lab.campaign.derive.page.build", lambda *_: ("page", {"load": "<svg/>"}))
    monkeypatch.setattr("lab.campaign.derive.page.png", lambda svg: b"png")


def fresh(ready: Bench, number: int) -> Bench:
    """The same bench in a folder of its own, on a lab that nobody has touched."""
    results = ready.place.results / f"{number}"
    results.mkdir()
    return Bench(dataclasses.replace(ready.place, results=results), FakeLab())


@pytest.mark.parametrize("once", [True, False], ids=["once", "from then on"])
@pytest.mark.usefixtures("plain")
def test_whichever_write_fails_the_rows_stay_and_the_run_goes_on_later(
    ready: Bench, failing_disk: Disk, *, once: bool
) -> None:
    failing_disk.writes = 0
    whole = fresh(ready, 999)
    whole.run(**LOADS)
    writes, number = failing_disk.writes, 0
    failing_disk.once = once
    assert writes > 40
    for number in range(writes):
        bench = fresh(ready, number)
        failing_disk.writes, failing_disk.fails_at, failing_disk.failed = 0, number, []
        where = f"write {number}"
        before_s = bench.lab.system.elapsed_s
        try:
            status = bench.run(**LOADS)
        except LabError as failure:
            # One line, that names what could not be written.
            assert "\n" not in str(failure), where
            assert "No space left on device" in str(failure), where
        else:
            # What could not be written is missing in a report, or it was only the undo of something.
            assert status == 0, where
        failing_disk.fails_at = None
        where = f"{where}, {failing_disk.failed[:1]}"
        assert failing_disk.failed, where
        assert not list(bench.place.results.rglob("*.part")), where
        assert all(process.poll() is not None for process in bench.lab.system.processes), where
        if not (bench.run_dir / "manifest.json").exists():
            assert bench.lab.system.elapsed_s == before_s, where  # Nothing was measured.
            continue
        manifest = bench.manifest
        rows = bench.csv
        assert whole.csv.startswith(rows), where
        assert rows == "" or rows.endswith("\n"), where
        if once and manifest["status"] == "running":
            assert "manifest.json" in failing_disk.failed[0], where
        if manifest["status"] != "complete":
            assert bench.resume() == 0, where
        assert bench.csv.startswith(rows), where
        same = ("trial", "achieved_rps", "valid")
        assert bench.column(*same) == whole.column(*same), where
        assert bench.manifest["status"] == "complete", where
