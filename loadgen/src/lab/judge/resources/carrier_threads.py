"""Platform threads that carry virtual ones (JEP 444); before JDK 24 one is kept by a virtual thread
that waits in `synchronized` (JEP 491)."""

from __future__ import annotations

from lab.judge.predict import pinned_carriers
from lab.judge.resources.resource import FULL, Resource, holding
from lab.judge.seen import SeenTrial, known
from lab.judge.stages import HOT, OF_SERVER, of_classes
from lab.model import Evidence, Standing, Wait

NAME = "carrier threads"
SCHEDULER = "lab_virtual_thread_scheduler_"


def _standing(seen: SeenTrial) -> Standing | None:
    if kept := pinned_carriers(seen.call, seen.before):
        return _in_synchronized(seen, kept)
    mine, stage = {"server": seen.server}, of_classes(seen, ("carrier",))
    carriers, mounted, queued = (
        seen.mean(what, "threads", SCHEDULER + what, **mine)
        for what in ("parallelism", "mounted", "queued")
    )
    there = seen.before.setting("virtual_thread_parallelism")
    if not carriers or not mounted or carriers.value <= 0 or not there:
        return None
    count, part = carriers.value, stage.own_part if stage else 1.0
    # With as many carriers as CPUs, all of them at work, the CPUs are short.
    hot = count < (seen.cpus or 0.0) and mounted.value >= HOT * count
    sure = stage is not None
    waits = tuple(Wait(place, part=part, measured=sure) for place in OF_SERVER if hot)
    figures = known(carriers, mounted, queued)
    return Standing(
        NAME, min(count, mounted.value), count, "threads", waits=waits, evidence=figures
    )


def _in_synchronized(seen: SeenTrial, carriers: int) -> Standing:
    """No gauge of such a JDK shows them; how many are kept follows from the answers."""
    law, kept = "Little's law: achieved_rps × the time of a wait", seen.rps * seen.hold_s
    held_s, inside = carriers / seen.rps if seen.rps else 0.0, ("own", "path", "downstream")
    full = kept >= FULL * carriers
    return Standing(
        *(NAME, min(float(carriers), kept), carriers, "threads"),
        waits=tuple(Wait(place, part=1.0) for place in ("queue", "unexplained") if full),
        held=holding(seen, carriers, seen.hold_s, held_s, inside),
        evidence=(Evidence("kept", kept, "threads", law),),
    )


CARRIER_THREADS = Resource(NAME, "virtual_thread_parallelism", _standing)
