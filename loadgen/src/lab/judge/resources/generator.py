"""The load engine: by how much it sent late, or thought between two requests of a connection. What
it waited for a CPU meanwhile is the host's."""

from lab.judge.quantities import cores_of
from lab.judge.resources.resource import DRIVER, FULL, SeenTrial, Standing, Wait, resource
from lab.judge.stages import of_place


@resource("generator")
def generator(seen: SeenTrial) -> Standing | None:
    """By how much it sent late, or Z, without its own run queue.

    Measured: yes"""
    usage, cores = seen.record.usage, cores_of(seen.record, seen.reading)
    if usage.window_cpu_s is None:
        return None
    used, stage = usage.window_cpu_s / seen.reading.window_s, of_place(seen, "generator")
    stopped_s = usage.window_throttled_s or 0.0
    waits = [Wait("generator", part=1 - (stage.for_cpu if stage else 0.0))]
    # At its limit it also reads answers late.
    if (at_limit := max(stopped_s / seen.reading.window_s, used / cores)) >= FULL:
        waits.append(Wait("unexplained", part=min(1.0, at_limit)))
    seen.noted("used", used, "CPUs", DRIVER)
    seen.noted("throttled", stopped_s, "s", DRIVER)
    return Standing(used, cores, "CPUs", waits=tuple(waits))
