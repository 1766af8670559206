import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.app.tools import Place
from support.bench import Bench
from support.disk import Disk, watch
from support.fakes import FakeLab
from support.runs import HOST_FILE


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in ("results", "servers"):
        (tmp_path / folder).mkdir()
    (tmp_path / "host.json").write_text(json.dumps(HOST_FILE))
    (tmp_path / "servers" / "core.json").write_text('[{"targets": ["a", "b"]}]')
    return tmp_path


@pytest.fixture
def ready(home: Path, lab: FakeLab) -> Bench:
    warm_jvms = home / "results" / ".warm-jvms.json"
    return Bench(Place(home / "results", home / "host.json", 20_000, 2, warm_jvms=warm_jvms), lab)


@pytest.fixture
def failing_disk(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """The disk of the folder of results."""
    watch()
    fsync = os.fsync

    def flush(number: int) -> None:
        if Disk.current is not None:
            Disk.current.write("fsync", number)
        fsync(number)

    monkeypatch.setattr(os, "fsync", flush)
    Disk.current = Disk(home / "results", "fake.txt")
    yield Disk.current
    Disk.current = None
