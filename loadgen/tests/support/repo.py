"""Where the checkout is that the tests are of."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

REPO = Path(os.environ.get("LAB_REPO") or Path(__file__).resolve().parents[3])


def matches_in_bash(pattern: str, value: str) -> bool:
    """Whether host/changes.sh takes the value for one of this pattern."""
    return subprocess.run(["bash", "-c", "[[ $2 =~ ^($1)$ ]]", "", pattern, value]).returncode == 0


def script(name: str) -> ModuleType:
    """A script of .ci/ as a module, with those beside it that it imports."""
    folder = str(REPO / ".ci")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)
