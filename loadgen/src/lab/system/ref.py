"""Reads what the program `ref` (go/ref) tells of this machine."""

from __future__ import annotations

import json
from typing import Any

from lab.model.ref import Ref

REF = "ref"
# It takes a second where nothing else runs.
REF_TIMEOUT_S = 20.0


def read_ref(output: str | None) -> Ref | None:
    """The figures in its output. None without it, or where a probe counted nothing."""
    if output is None:
        return None
    told: dict[str, Any] = json.loads(output)
    names = ("compute_one", "compute_all", "wake", "net")
    if any(told[name]["cpu_seconds"] <= 0 or not told[name]["count"] for name in names):
        return None
    one, every, wake, net = (told[name]["count"] / told[name]["cpu_seconds"] for name in names)
    # With one CPU a hand-over is another operation.
    program = f"{told['source']} {told['compiler']} {told['arch']} {told['cpus']}-cpu"
    return Ref(program, one, every, wake, net)
