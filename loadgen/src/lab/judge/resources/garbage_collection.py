"""What the collector takes: pauses, in which every thread of the server stands, and CPU time. A
JVM that ends again and again has too little memory for its load."""

from itertools import accumulate, pairwise

from lab.judge.cpu_split import USED
from lab.judge.resources.resource import SeenTrial, Standing, Wait, known, resource
from lab.judge.stages import OF_SERVER, of_place
from lab.judge.thread_times import RUN

# One end of a JVM may be anything.
ENDS = 2


@resource("garbage collection")
def garbage_collection(seen: SeenTrial) -> Standing | None:
    """Pauses, as a share of the time in which the server has work; and its share of CPU time.

    Measured: yes"""
    ends, mine, name = _ends(seen), {"server": seen.server}, "jvm_gc_collection_seconds_sum"
    # Cycles of concurrent collectors run beside the program, and are no pauses.
    names = [gc for gc in seen.each("gc", name, **mine) if "Cycles" not in gc]
    pauses = known(*(seen.rate(gc, "of the time", name, gc=gc, **mine) for gc in names))
    again = ends is not None and ends >= ENDS
    if not pauses and not again:
        return None
    paused = min(1.0, sum(pauses))
    seen.heap_after_collections()
    return Standing(
        *(paused, 1.0, "of the time"),
        failed=float(again),
        waits=tuple(Wait(place, part=_stopped(seen, place, paused)) for place in OF_SERVER),
        takes=_cpu_taken(seen),
    )


def _stopped(seen: SeenTrial, place: str, paused: float) -> float:
    """Of the time in which a stage of the server has something to do, the share in which it stands:
    in a pause it has as much to do as at other times."""
    stage = of_place(seen, place)
    at_work = 1 - paused if stage is None else stage.at_work * (1 - paused)
    return paused / (at_work + paused) if paused else 0.0


def _cpu_taken(seen: SeenTrial) -> tuple[Wait, ...]:
    """The collector's share of the CPU time of the server, and of the machine."""
    collector = seen.observation.rate(RUN, server=seen.server, threads="collector") or 0.0
    used = seen.observation.rate(USED, service=seen.server)
    spent = (seen.record.usage.host_busy or 0.0) * (seen.cpus or 0.0)
    return tuple(
        Wait(name, part=min(1.0, collector / cpus))
        for name, cpus in (("server CPU", used), ("host CPU", spent))
        if cpus
    )


def _ends(seen: SeenTrial) -> float | None:
    """How often the server's JVM was followed by a later one. None of a service that is not the
    lab's: it may be several JVMs behind one name."""
    name, mine = "process_start_time_seconds", {"job": "jvm", "server": seen.server}
    starts = [start for series in seen.observation.series(name, **mine) for start in series.values]
    if not starts or seen.before.foreign:
        return None
    later = sum(now > before for before, now in pairwise(accumulate(starts, max)))
    return seen.noted("ended", later, "times", f"changes({seen.range_of(name, mine)})")
