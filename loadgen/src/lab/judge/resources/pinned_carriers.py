"""Carriers that virtual threads kept while they waited, below native code or a class being
initialised; before JDK 24 also inside `synchronized` (JEP 491). Seen where waits are watched."""

from lab.judge.resources.lock import WAITED, watched
from lab.judge.resources.resource import SeenTrial, Standing, Wait, resource

# Kept for this share of the time they are taken to be kept all the time: the recording tells of a
# wait about a second late, an eighth of a window of 8 s.
KEPT = 0.8


@resource("pinned carriers")
def pinned_carriers(seen: SeenTrial) -> Standing | None:
    """Where waits are watched: queue, while 80 % are kept.

    Measured: yes

    The seconds in which they were kept, per second, are the mean number of carriers that were
    (Little's law). The time for which a request itself keeps one is its own: more carriers would
    not shorten it."""
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
    return Standing(
        *(min(float(carriers), kept), carriers, "threads", max(sites, key=sites.__getitem__)),
        waits=(waiting,) if kept >= KEPT * carriers else (),
    )
