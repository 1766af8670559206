"""Reads the output of the program `ref` (go/ref): how fast this machine computes."""

import json

from lab.model import Ref

REF = "ref"
# It takes a second where nothing else runs.
REF_TIMEOUT_S = 20.0
PROBES = ("compute_one", "compute_all", "wake", "net")


def read_ref(output: str | None) -> Ref | None:
    """None without output, or if a probe counted nothing."""
    if output is None:
        return None
    found = json.loads(output)
    if any(found[probe]["cpu_seconds"] <= 0 or not found[probe]["count"] for probe in PROBES):
        return None
    per_s = (found[probe]["count"] / found[probe]["cpu_seconds"] for probe in PROBES)
    # With one CPU a hand-over is another operation.
    program = f"{found['source']} {found['compiler']} {found['arch']} {found['cpus']}-cpu"
    return Ref(program, *per_s)
