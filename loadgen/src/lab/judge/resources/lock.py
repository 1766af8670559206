"""The site where most threads waited for a monitor or a lock, where a server watches them: a lab
server while its knob `lock_watch_ms` is not 0, a service of the user's with the lab's recorder."""

from lab.judge.resources.resource import Standing, Trial, Wait, resource
from lab.judge.resources.stages import of_place
from lab.judge.trial import HOST_CROWDED

WAITED, WATCHES = "lab_wait_seconds_total", "lab_lock_watch_ms"
# What a server calls all sites beyond the most that it names (LockWatch.java).
OTHER = "other"
# Where threads wait for a CPU longer than they run, the holder of a lock waits for one as well, and
# all others for the holder: then the lock may be a symptom.
SYMPTOM = 0.5


@resource("lock")
def lock(trial: Trial) -> Standing | None:
    """Where waits are watched: threads waiting at the worst site ÷ answers per second.

    Measured: yes; not where the threads wait for a CPU half of their time

    The seconds that threads waited there, per second, are the mean number of threads that wait
    (Little's law), so their time per request follows. For how long it was held is not known, so
    neither is its use."""
    sites = [
        (seconds, kind, site)
        for kind in ("monitor", "lock")
        for site, seconds in waited_s(trial, kind).items()
    ]
    if not watched(trial) or not sites:
        return None
    _, kind, site = max(sites, key=lambda entry: entry[0])
    level = trial.server_metrics(kind=kind, site=site).rate("waiting", "threads", WAITED)
    stage = of_place(trial, "own")
    crowded = (trial.usage.host_taken or 0.0) >= HOST_CROWDED
    symptom = crowded if stage is None else stage.for_cpu >= SYMPTOM
    waits = (Wait("own", ms=trial.each_ms(level), measured=site != OTHER and not symptom),)
    return Standing(None, None, "threads", site, waits=waits)


def waited_s(trial: Trial, kind: str) -> dict[str, float]:
    """For how long threads waited at each site, in sum, as far as that is known."""
    labels = {"server": trial.server, "kind": kind}
    sites = trial.metrics(**labels).values_of("site", WAITED)
    rises = {site: trial.observation.increase(WAITED, site=site, **labels) for site in sites}
    return {site: rise for site, rise in rises.items() if rise is not None}


def watched(trial: Trial) -> bool:
    """True if the server counted waits from the start of this trial to its end."""
    return bool(trial.before.lock_watch_ms) and not ended(trial)


def ended(trial: Trial) -> bool:
    """True if a server that was to watch reports 0: its stream of events has ended, and what was
    counted until then is too little."""
    watches = trial.observation.series(WATCHES, server=trial.server)
    reported = [ms for series in watches for ms in trial.observation.inside(series.points)]
    return bool(trial.before.lock_watch_ms) and 0 in reported
