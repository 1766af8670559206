"""The repository the tests look at, and the dashboards' own code within it."""

import sys
from pathlib import Path

import pytest

from support.repo import REPO

sys.path.insert(0, str(REPO / "grafana" / "src"))


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the repository."""
    return REPO
