"""The load engine: by how much it sent late, or thought between two requests of a connection. What
it waited for a CPU meanwhile is the host's."""

from lab.judge.resources.resource import DRIVER, FULL, Standing, Trial, Wait, resource
from lab.judge.resources.stages import of_place


@resource("generator")
def generator(trial: Trial) -> Standing | None:
    """By how much it sent late, or Z, without its own run queue.

    Measured: yes"""
    usage, cores, window_s = trial.usage, trial.cores, trial.reading.window_s
    if usage.window_cpu_s is None:
        return None
    used, stage = usage.window_cpu_s / window_s, of_place(trial, "generator")
    stopped_s = usage.window_throttled_s or 0.0
    waiting = [Wait("generator", part=1 - (stage.for_cpu if stage else 0.0))]
    # At its limit it also reads answers late.
    if (at_limit := max(stopped_s / window_s, used / cores)) >= FULL:
        waiting.append(Wait("unexplained", part=min(1.0, at_limit)))
    trial.note("used", used, "CPUs", DRIVER)
    trial.note("throttled", stopped_s, "s", DRIVER)
    return Standing(used, cores, "CPUs", waits=tuple(waiting))
