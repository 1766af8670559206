"""The verb `ref`: what an operation costs on this machine now, in seconds of CPU time."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from lab.app.call import Call
from lab.errors import LabError
from lab.system.host import System
from lab.system.ref import read_ref

TIMES = 9
# An operation of each probe, the field that counts it, and its unit, in seconds.
PROBES = (
    ("a step of a generator of random numbers, one thread", "ref_compute", "ns", 1e-9),
    ("the same, one thread for each CPU", "ref_compute_all", "ns", 1e-9),
    ("a hand-over between two threads", "ref_wake", "µs", 1e-6),
    ("a request over loopback", "ref_net", "µs", 1e-6),
)


def ref(_: Call) -> int:
    for line in ref_lines(System()):
        print(line, flush=True)
    return 0


def ref_lines(system: System) -> Iterator[str]:
    """A line for each probe: median, least and greatest of TIMES runs. Raises LabError."""
    runs = list(filter(None, (read_ref(system.ref()) for _ in range(TIMES))))
    if not runs:
        raise LabError("ref does not run here")
    program = runs[0].program
    yield f"CPU time of an operation, median [least, greatest] of {len(runs)} runs of ref {program}"
    for name, field, unit, unit_s in PROBES:
        costs = [1 / getattr(run, field) / unit_s for run in runs]
        spread = f"[{min(costs):.3g}, {max(costs):.3g}]"
        yield f"{median(costs):9.3g} {spread} {unit}  {name}"
