"""The repository the tests look at, and the dashboards' own code within it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

REPO = Path(os.environ.get("LAB_REPO") or Path(__file__).resolve().parents[3])
sys.path.insert(0, str(REPO / "grafana" / "src"))


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the repository."""
    return REPO
