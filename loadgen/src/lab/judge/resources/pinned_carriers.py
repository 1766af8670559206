"""Carriers that virtual threads kept while they waited, below native code or a class being
initialised; before JDK 24 also inside `synchronized` (JEP 491). Seen where waits are watched."""

from __future__ import annotations

from lab.judge.resources.lock import WAITED, watched
from lab.judge.resources.resource import Resource
from lab.judge.seen import SeenTrial, known, value
from lab.judge.stages import HOT
from lab.model import Standing, Wait

NAME = "pinned carriers"


def _standing(seen: SeenTrial) -> Standing | None:
    """The seconds in which they were kept, per second, are the mean number of carriers that were
    (Little's law)."""
    carriers, mine = seen.before.carriers, {"server": seen.server, "kind": "pinned"}
    kept = seen.rate("kept", "threads", WAITED, **mine)
    if not watched(seen) or not carriers or kept is None:
        return None
    sites = {
        site: value(seen.rate("kept", "threads", WAITED, site=site, **mine)) or 0.0
        for site in seen.each("site", WAITED, **mine)
    }
    site = max(sites, key=sites.__getitem__)
    name = "lab_virtual_thread_scheduler_queued"
    queued = seen.mean("queued", "threads", name, server=seen.server)
    waiting = Wait("queue", ms=None if seen.split else seen.each_ms(value(queued)), part=1.0)
    waits = Wait("own", ms=seen.each_ms(kept.value)), waiting
    full = kept.value >= HOT * carriers
    return Standing(
        *(NAME, min(float(carriers), kept.value), carriers, "threads", site),
        waits=waits if full else (),
        evidence=known(kept, queued),
    )


PINNED_CARRIERS = Resource(NAME, "pin_ms", _standing)
