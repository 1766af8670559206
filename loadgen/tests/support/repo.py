"""Where the checkout is that the tests are of."""

import os
import subprocess
from pathlib import Path

REPO = Path(os.environ.get("LAB_REPO") or Path(__file__).resolve().parents[3])


def matches_in_bash(pattern: str, value: str) -> bool:
    """Whether host/changes.sh takes the value for one of this pattern."""
    return subprocess.run(["bash", "-c", "[[ $2 =~ ^($1)$ ]]", "", pattern, value]).returncode == 0
