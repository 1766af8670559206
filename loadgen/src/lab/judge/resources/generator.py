"""The load engine: by how much it sent late, or thought between two requests of a connection. What
it waited for a CPU meanwhile is the host's."""

from __future__ import annotations

from lab.judge.quantities import cores_of
from lab.judge.resources.resource import FULL, Resource
from lab.judge.seen import SeenTrial
from lab.judge.stages import of_place
from lab.model import Evidence, Standing, Wait

_DRIVER = "raw/<trial>/trial.json, usage"


def _standing(seen: SeenTrial) -> Standing | None:
    usage, cores = seen.record.usage, cores_of(seen.record, seen.reading)
    if usage.window_cpu_s is None:
        return None
    used, stage = usage.window_cpu_s / seen.reading.window_s, of_place(seen, "generator")
    stopped_s = usage.window_throttled_s or 0.0
    waits = [Wait("generator", part=1 - (stage.for_cpu if stage else 0.0))]
    # At its limit it also reads answers late.
    if (at_limit := max(stopped_s / seen.reading.window_s, used / cores)) >= FULL:
        waits.append(Wait("unexplained", part=min(1.0, at_limit)))
    figures = [
        Evidence("used", used, "CPUs", _DRIVER),
        Evidence("throttled", stopped_s, "s", _DRIVER),
    ]
    return Standing("generator", used, cores, "CPUs", waits=tuple(waits), evidence=tuple(figures))


GENERATOR = Resource("generator", "", _standing)
