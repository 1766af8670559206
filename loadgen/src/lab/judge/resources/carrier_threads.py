"""Platform threads that carry virtual ones (JEP 444); before JDK 24 one is kept by a virtual thread
that waits in `synchronized` (JEP 491)."""

from lab.judge.predict import pinned_carriers
from lab.judge.resources.resource import FULL, SeenTrial, Standing, Wait, holding, resource
from lab.judge.stages import HOT, OF_SERVER, of_classes

SCHEDULER = "lab_virtual_thread_scheduler_"


@resource("carrier threads")
def carrier_threads(seen: SeenTrial) -> Standing | None:
    """Queue, own work and what no part saw, while 90 % are busy and there are fewer than CPUs; on
    JDK 21 carriers that requests keep in `synchronized`.

    Measured: with run-queue times"""
    if kept := pinned_carriers(seen.call, seen.before):
        return _in_synchronized(seen, kept)
    mine, stage = {"server": seen.server}, of_classes(seen, ("carrier",))
    count, mounted, _ = (
        seen.mean(what, "threads", SCHEDULER + what, **mine)
        for what in ("parallelism", "mounted", "queued")
    )
    there = seen.before.setting("virtual_thread_parallelism")
    if not count or mounted is None or not there:
        return None
    # With as many carriers as CPUs, all of them at work, the CPUs are short.
    hot = count < (seen.cpus or 0.0) and mounted >= HOT * count
    # Of the time at work, that on a CPU.
    part = stage.own_work / stage.at_work if stage and stage.at_work else 1.0
    waits = tuple(Wait(place, part=part, measured=stage is not None) for place in OF_SERVER if hot)
    return Standing(min(count, mounted), count, "threads", waits=waits)


def _in_synchronized(seen: SeenTrial, carriers: int) -> Standing:
    """No gauge of such a JDK shows them; how many are kept follows from the answers."""
    kept, law = seen.rps * seen.hold_s, "Little's law: achieved_rps × the time of a wait"
    seen.noted("kept", kept, "threads", law)
    held_s, inside = carriers / seen.rps if seen.rps else 0.0, ("own", "path", "downstream")
    full = kept >= FULL * carriers
    return Standing(
        *(min(float(carriers), kept), carriers, "threads"),
        waits=tuple(Wait(place, part=1.0) for place in ("queue", "unexplained") if full),
        held=holding(seen, carriers, seen.hold_s, held_s, inside),
    )
