"""The service behind the server: how slow toxics make it, by how much it is later than its delay,
and how it fails."""

from __future__ import annotations

from lab.judge.excess import slowing_ms
from lab.judge.resources.resource import Resource
from lab.judge.seen import SeenTrial, known, value
from lab.judge.stages import of_place
from lab.model import Evidence, Standing, Wait

_BEFORE = "read back from Toxiproxy before the trial"


def _standing(seen: SeenTrial) -> Standing | None:
    if not seen.call.route.calls_downstream:
        return None
    toxics_ms, stage = slowing_ms(seen), of_place(seen, "downstream")
    used, loops = seen.cpu_of("downstream")
    late = seen.mean_time("late", "lab_downstream_lag_seconds")
    toxic = Evidence("added by toxics", toxics_ms, "ms", _BEFORE) if toxics_ms else None
    part = 1 - (stage.for_cpu if stage else 0.0)
    lag_ms = None if seen.split else (value(late) or 0.0) * 1000
    return Standing(
        *("downstream", value(used), value(loops), "CPUs"),
        failed=0.0 if seen.before.toxics.unpredicted else seen.failed_calls("refused", "error"),
        waits=(Wait("downstream", ms=lag_ms, part=part), Wait("path", ms=toxics_ms)),
        evidence=known(toxic, late, used),
    )


DOWNSTREAM = Resource("downstream", "toxics", _standing)
