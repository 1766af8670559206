import json
from pathlib import Path

import pytest

from lab.campaign.tools import Place
from support.bench import Bench
from support.fakes import FakeLab
from support.runs import HOST_FILE


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    (tmp_path / "host.json").write_text(json.dumps(HOST_FILE))
    return tmp_path


@pytest.fixture
def ready(home: Path, lab: FakeLab) -> Bench:
    return Bench(Place(home / "results", home / "host.json", 20_000, 2), lab)
