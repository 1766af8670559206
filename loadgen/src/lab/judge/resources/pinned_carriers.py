"""Carriers that virtual threads kept while they waited, below native code or a class being
initialised; before JDK 24 also inside `synchronized` (JEP 491). Seen where waits are watched."""

from lab.judge.resources.lock import WAITED, watched
from lab.judge.resources.resource import SeenTrial, Standing, Wait, resource
from lab.judge.stages import HOT


@resource("pinned carriers")
def pinned_carriers(seen: SeenTrial) -> Standing | None:
    """Where waits are watched: the time kept, and the queue while 90 % are kept.

    Measured: yes

    The seconds in which they were kept, per second, are the mean number of carriers that were
    (Little's law)."""
    carriers, mine = seen.before.carriers, {"server": seen.server, "kind": "pinned"}
    kept = seen.rate("kept", "threads", WAITED, **mine)
    if not watched(seen) or not carriers or kept is None:
        return None
    rise = seen.observation.increase
    sites = {
        site: rise(WAITED, site=site, **mine) or 0.0 for site in seen.each("site", WAITED, **mine)
    }
    name = "lab_virtual_thread_scheduler_queued"
    queued = seen.mean("queued", "threads", name, server=seen.server)
    waiting = Wait("queue", ms=None if seen.split else seen.each_ms(queued), part=1.0)
    waits = Wait("own", ms=seen.each_ms(kept)), waiting
    return Standing(
        *(min(float(carriers), kept), carriers, "threads", max(sites, key=sites.__getitem__)),
        waits=waits if kept >= HOT * carriers else (),
    )
