"""The service behind the server: how slow toxics make it, by how much it is later than its delay,
and how it fails."""

from lab.judge.resources.excess import slowing_ms
from lab.judge.resources.resource import Standing, Trial, Wait, resource
from lab.judge.resources.stages import of_place


@resource("downstream")
def downstream(trial: Trial) -> Standing | None:
    """By how much it was later than its delay; toxics that at least double R0, where connections
    are short.

    Measured: yes"""
    if not trial.calls_downstream:
        return None
    toxics_ms, stage = slowing_ms(trial), of_place(trial, "downstream")
    used, loops = trial.cpu_of("downstream")
    late_s = trial.metrics().mean_time("late", "lab_downstream_lag_seconds") or 0.0
    if toxics_ms:
        source = "read back from Toxiproxy before the trial"
        trial.note("added by toxics", toxics_ms, "ms", source)
    part = 1 - (stage.for_cpu if stage else 0.0)
    late = Wait("downstream", ms=None if trial.split else late_s * 1000, part=part)
    covered = not trial.before.toxics.unpredicted
    failed = trial.failed_calls("refused", "error") if covered else 0.0
    waiting = (late, Wait("path", ms=toxics_ms))
    return Standing(used, loops, "CPUs", failed=failed, waits=waiting)
