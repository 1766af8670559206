"""Event loop threads: all time outside the selector is work, or blocked. A connection stays with
its loop, so the busiest counts."""

from lab.judge.resources.resource import SeenTrial, Standing, Wait, known, resource
from lab.judge.stages import HOT, OF_SERVER, of_classes


@resource("event loop")
def event_loop(seen: SeenTrial) -> Standing | None:
    """Queue, own work and what no part saw, while the busiest loop works 90 % of its time, and
    there are fewer loops than CPUs or they sleep on purpose.

    Measured: with run-queue times, all loops full"""
    mine, name = {"server": seen.server}, "lab_event_loop_busy_seconds_total"
    loops = seen.each("loop", name, **mine)
    rates = known(*(seen.rate(at, "of its time", name, loop=at, **mine) for at in loops))
    if not rates or seen.before.foreign:
        return None
    busy, stage = [min(1.0, rate) for rate in rates], of_classes(seen, ("loop",))
    sleeps = seen.before.settings.get("block_the_loop") is True
    # With as many loops as CPUs, all of them at work, the CPUs are short, unless loops sleep.
    hot = max(busy) >= HOT and (sleeps or len(busy) < (seen.cpus or len(busy)))
    part = 1 - min(1.0, stage.runq_s / (sum(busy) * seen.window_s)) if hot and stage else 1.0
    sure = sum(busy) >= HOT * len(busy) and (sleeps or stage is not None)
    waits = tuple(Wait(place, part=part, measured=sure) for place in OF_SERVER if hot)
    return Standing(sum(busy), len(busy), "loops", waits=waits)
