"""The proxy: its one loop, and toxics whose effect no bound covers. Its descriptors are part of
`file_descriptors`."""

from __future__ import annotations

from lab.judge.resources.resource import Resource
from lab.judge.seen import SeenTrial, known, value
from lab.judge.stages import HOT, of_place
from lab.model import Standing, Wait


def _standing(seen: SeenTrial) -> Standing | None:
    if not seen.call.route.calls_downstream or seen.before.direct:
        return None
    name, mine = "lab_downstream_call_seconds", {"server": seen.server}
    call = seen.mean_time("mean call", name, phase="call", **mine)
    (used, loops), toxics = seen.cpu_of("toxiproxy"), seen.before.toxics.unpredicted
    stage, waits = of_place(seen, "path"), []
    if used and loops and used.value >= HOT * loops.value:
        part = stage.own_work if stage else 1.0
        waits.append(Wait("path", part=part, measured=stage is not None))
    if toxics and call:
        # Their delay is measured as part of the path only: nothing tells it from other waits.
        more_ms = max(0.0, call.value - seen.hold_s) * 1000
        waits.append(Wait("path", ms=more_ms, measured=False))
    return Standing(
        *("Toxiproxy", value(used), value(loops), "CPUs", "; ".join(toxics)),
        failed=seen.failed_calls("refused", "error") if toxics else 0.0,
        waits=tuple(waits),
        evidence=known(call, used),
    )


TOXIPROXY = Resource("Toxiproxy", "SERVER_DOWNSTREAM_URL", _standing)
