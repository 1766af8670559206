"""The service behind the server: how slow toxics make it, by how much it is later than its delay,
and how it fails."""

from lab.judge.excess import slowing_ms
from lab.judge.resources.resource import SeenTrial, Standing, Wait, resource
from lab.judge.stages import of_place


@resource("downstream")
def downstream(seen: SeenTrial) -> Standing | None:
    """By how much it was later than its delay; toxics that at least double R0, where connections
    are short.

    Measured: yes"""
    if not seen.call.route.calls_downstream:
        return None
    toxics_ms, stage = slowing_ms(seen), of_place(seen, "downstream")
    used, loops = seen.cpu_of("downstream")
    late_s = seen.mean_time("late", "lab_downstream_lag_seconds") or 0.0
    if toxics_ms:
        seen.noted("added by toxics", toxics_ms, "ms", "read back from Toxiproxy before the trial")
    part = 1 - (stage.for_cpu if stage else 0.0)
    lag_ms = None if seen.split else late_s * 1000
    return Standing(
        *(used, loops, "CPUs"),
        failed=0.0 if seen.before.toxics.unpredicted else seen.failed_calls("refused", "error"),
        waits=(Wait("downstream", ms=lag_ms, part=part), Wait("path", ms=toxics_ms)),
    )
