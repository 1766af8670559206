"""Where the checkout is that the tests are of."""

import importlib.util
import os
import subprocess
from pathlib import Path
from types import ModuleType

REPO = Path(os.environ.get("LAB_REPO") or Path(__file__).resolve().parents[3])


def matches_in_bash(pattern: str, value: str) -> bool:
    """Whether host/changes.sh takes the value for one of this pattern."""
    return subprocess.run(["bash", "-c", "[[ $2 =~ ^($1)$ ]]", "", pattern, value]).returncode == 0


def program(name: str) -> ModuleType:
    """A program of .ci/ as a module: what its `if __name__` guards has not run."""
    spec = importlib.util.spec_from_file_location(name, REPO / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
