"""The site where most threads waited for a monitor or a lock, where a server watches them: a lab
server while its knob `lock_watch_ms` is not 0, a service of the user's with the lab's recorder."""

from lab.judge.quantities import HOST_CROWDED
from lab.judge.resources.resource import SeenTrial, Standing, Wait, resource
from lab.judge.stages import of_place

WAITED, WATCHES = "lab_wait_seconds_total", "lab_lock_watch_ms"
# What a server calls all sites beyond the most that it names (LockWatch.java).
OTHER = "other"
# Where threads wait for a CPU longer than they run, the holder of a lock waits for one as well, and
# all others for the holder: then the lock may be a symptom.
SYMPTOM = 0.5


@resource("lock")
def lock(seen: SeenTrial) -> Standing | None:
    """Where waits are watched: threads waiting at the worst site ÷ answers per second.

    Measured: yes; not where the threads wait for a CPU half of their time

    The seconds that threads waited there, per second, are the mean number of threads that wait
    (Little's law), so their time per request follows. For how long it was held is not known, so
    neither is its use."""
    mine, rise = {"server": seen.server}, seen.observation.increase
    sites = [
        (waited_s, kind, site)
        for kind in ("monitor", "lock")
        for site in seen.each("site", WAITED, kind=kind, **mine)
        if (waited_s := rise(WAITED, kind=kind, site=site, **mine)) is not None
    ]
    if not watched(seen) or not sites:
        return None
    _, kind, site = max(sites, key=lambda entry: entry[0])
    level = seen.rate("waiting", "threads", WAITED, kind=kind, site=site, **mine)
    stage = of_place(seen, "own")
    crowded = (seen.record.usage.host_taken or 0.0) >= HOST_CROWDED
    symptom = crowded if stage is None else stage.for_cpu >= SYMPTOM
    waits = (Wait("own", ms=seen.each_ms(level), measured=site != OTHER and not symptom),)
    return Standing(None, None, "threads", site, waits=waits)


def watched(seen: SeenTrial) -> bool:
    """The server counted waits from the start of this trial to its end."""
    return bool(seen.before.lock_watch_ms) and not ended(seen)


def ended(seen: SeenTrial) -> bool:
    """A server that was to watch reports 0 once its stream of events has ended: what was counted
    until then is too little."""
    opens, closes = seen.observation.window
    watches = seen.observation.series(WATCHES, server=seen.server)
    return bool(seen.before.lock_watch_ms) and any(
        opens <= at <= closes for series in watches for at in series.times_of(0)
    )
