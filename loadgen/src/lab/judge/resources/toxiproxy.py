"""The proxy: its one loop, and toxics whose effect no bound covers. Its descriptors are part of
`file_descriptors`."""

from lab.judge.resources.resource import Standing, Trial, Wait, resource
from lab.judge.resources.stages import HOT, of_place


@resource("Toxiproxy")
def toxiproxy(trial: Trial) -> Standing | None:
    """Path, where its one loop runs 90 % of its time; or all of it, under a toxic that no bound
    covers.

    Measured: with run-queue times; a toxic's effect is inferred"""
    if not trial.calls_downstream or trial.before.direct:
        return None
    call_s, (used, loops) = trial.mean_call_s(), trial.cpu_of("toxiproxy")
    toxics, stage, waits = trial.before.toxics.unpredicted, of_place(trial, "path"), []
    if used and loops and used >= HOT * loops:
        part = stage.own_work if stage else 1.0
        waits.append(Wait("path", part=part, measured=stage is not None))
    if toxics and call_s:
        # Their delay is measured as part of the path only, together with other waits.
        more_ms = max(0.0, call_s - trial.hold_s) * 1000
        waits.append(Wait("path", ms=more_ms, measured=False))
    failed = trial.failed_calls("refused", "error") if toxics else 0.0
    return Standing(used, loops, "CPUs", "; ".join(toxics), failed=failed, waits=tuple(waits))
