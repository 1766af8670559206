"""The dashboards' own code, and the files of the repository that their tests compare."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.dashboards import FOLDER
from support.repo import REPO

sys.path.insert(0, str(REPO / "grafana" / "src"))


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the repository."""
    return REPO


@pytest.fixture(scope="session")
def files() -> dict[str, Any]:
    """Every dashboard as it is in its file, by the file's name."""
    return {file.stem: json.loads(file.read_text()) for file in FOLDER.glob("*.json")}


@pytest.fixture(scope="session")
def compose() -> dict[str, Any]:
    return yaml.safe_load((REPO / "compose.yaml").read_text())
