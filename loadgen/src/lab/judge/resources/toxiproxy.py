"""The proxy: its one loop, and toxics whose effect no bound covers. Its descriptors are part of
`file_descriptors`."""

from lab.judge.resources.resource import SeenTrial, Standing, Wait, resource
from lab.judge.stages import HOT, of_place


@resource("Toxiproxy")
def toxiproxy(seen: SeenTrial) -> Standing | None:
    """Path, where its one loop runs 90 % of its time; or all of it, under a toxic that no bound
    covers.

    Measured: with run-queue times; a toxic's effect is inferred"""
    if not seen.call.route.calls_downstream or seen.before.direct:
        return None
    name, mine = "lab_downstream_call_seconds", {"server": seen.server}
    call = seen.mean_time("mean call", name, phase="call", **mine)
    (used, loops), toxics = seen.cpu_of("toxiproxy"), seen.before.toxics.unpredicted
    stage, waits = of_place(seen, "path"), []
    if used and loops and used >= HOT * loops:
        part = stage.own_work if stage else 1.0
        waits.append(Wait("path", part=part, measured=stage is not None))
    if toxics and call:
        # Their delay is measured as part of the path only, together with other waits.
        more_ms = max(0.0, call - seen.hold_s) * 1000
        waits.append(Wait("path", ms=more_ms, measured=False))
    return Standing(
        *(used, loops, "CPUs", "; ".join(toxics)),
        failed=seen.failed_calls("refused", "error") if toxics else 0.0,
        waits=tuple(waits),
    )
