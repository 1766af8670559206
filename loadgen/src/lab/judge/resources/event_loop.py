"""Event loop threads: all time outside the selector is work, or blocked. A connection stays with
its loop, so the busiest counts."""

from lab.judge.resources.resource import Standing, Trial, resource, waits
from lab.judge.resources.stages import HOT, OF_SERVER, busy_shares, of_classes


@resource("event loop")
def event_loop(trial: Trial) -> Standing | None:
    """Queue, own work and what no part saw, while the busiest loop works 90 % of its time, and
    there are fewer loops than CPUs or they sleep on purpose.

    Measured: with run-queue times, all loops full"""
    busy = busy_shares(trial, "loop", "lab_event_loop_busy_seconds_total")
    if not busy:
        return None
    stage = of_classes(trial, ("loop",))
    sleeps = trial.before.settings.get("block_the_loop") is True
    # With as many loops as CPUs, all of them at work, the CPUs are short, unless loops sleep.
    hot = max(busy) >= HOT and (sleeps or len(busy) < (trial.cpus or len(busy)))
    waited = stage.runq_s / (sum(busy) * trial.observation.window_s) if hot and stage else 0.0
    sure = sum(busy) >= HOT * len(busy) and (sleeps or stage is not None)
    waiting = waits(OF_SERVER if hot else (), 1 - min(1.0, waited), measured=sure)
    return Standing(sum(busy), len(busy), "loops", waits=waiting)
