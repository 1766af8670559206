"""Carriers that virtual threads kept while they waited, below native code or a class being
initialised; before JDK 24 also inside `synchronized` (JEP 491). Seen where waits are watched."""

from lab.judge.resources.lock import WAITED, waited_s, watched
from lab.judge.resources.resource import Standing, Trial, Wait, resource

# Kept for this share of the time they are taken to be kept all the time: the recording tells of a
# wait about a second late, an eighth of a window of 8 s.
KEPT = 0.8


@resource("pinned carriers")
def pinned_carriers(trial: Trial) -> Standing | None:
    """Where waits are watched: queue, while 80 % are kept.

    Measured: yes

    The seconds in which they were kept, per second, are the mean number of carriers that were
    (Little's law). The time for which a request itself keeps one is its own: more carriers would
    not shorten it."""
    carriers = trial.before.carriers
    kept = trial.metrics(server=trial.server, kind="pinned").rate("kept", "threads", WAITED)
    if not watched(trial) or not carriers or kept is None:
        return None
    sites = waited_s(trial, "pinned")
    queued = trial.server_metrics().mean("queued", "threads", "lab_virtual_thread_scheduler_queued")
    waiting = Wait("queue", ms=None if trial.split else trial.each_ms(queued), part=1.0)
    return Standing(
        *(min(float(carriers), kept), carriers, "threads", max(sites, key=sites.__getitem__)),
        waits=(waiting,) if kept >= KEPT * carriers else (),
    )
