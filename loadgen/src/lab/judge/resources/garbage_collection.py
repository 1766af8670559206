"""What the collector takes: pauses, in which every thread of the server stands, and CPU time. A
JVM that ends again and again has too little memory for its load."""

import statistics
from itertools import accumulate, pairwise

from lab.judge.metrics import (
    HEAP_AFTER,
    HEAP_USED,
    RUN,
    USED,
    heap_after_collections,
    without_none,
)
from lab.judge.resources.resource import Standing, Trial, Wait, resource
from lab.judge.resources.stages import OF_SERVER, of_place

# One end of a JVM may be anything.
ENDS = 2


@resource("garbage collection")
def garbage_collection(trial: Trial) -> Standing | None:
    """Pauses, as a share of the time in which the server has work; and its share of CPU time.

    Measured: yes"""
    ends, name = _ends(trial), "jvm_gc_collection_seconds_sum"
    # Cycles of concurrent collectors run beside the program, and are no pauses.
    names = [gc for gc in trial.server_metrics().values_of("gc", name) if "Cycles" not in gc]
    rates = (trial.server_metrics(gc=gc).rate(gc, "of the time", name) for gc in names)
    pauses = without_none(*rates)
    again = ends is not None and ends >= ENDS
    if not pauses and not again:
        return None
    paused = min(1.0, sum(pauses))
    _note_heap(trial)
    return Standing(
        *(paused, 1.0, "of the time"),
        failed=float(again),
        waits=tuple(Wait(place, part=_stopped(trial, place, paused)) for place in OF_SERVER),
        takes=_cpu_taken(trial),
    )


def _note_heap(trial: Trial) -> None:
    left = heap_after_collections(trial.observation, server=trial.server)
    within = trial.observation.inside(left)
    mean = statistics.fmean(within) if within else None
    trial.note("heap after collections", mean, "bytes", f"{HEAP_AFTER}, {HEAP_USED}")


def _stopped(trial: Trial, place: str, paused: float) -> float:
    """Of the time in which a stage of the server has something to do, the share in which it stands:
    in a pause it has as much to do as at other times."""
    stage = of_place(trial, place)
    at_work = 1 - paused if stage is None else stage.at_work * (1 - paused)
    return paused / (at_work + paused) if paused else 0.0


def _cpu_taken(trial: Trial) -> tuple[Wait, ...]:
    """The collector's share of the CPU time of the server, and of the machine."""
    collector = trial.observation.rate(RUN, server=trial.server, threads="collector") or 0.0
    used = trial.observation.rate(USED, service=trial.server)
    spent = (trial.usage.host_busy or 0.0) * (trial.cpus or 0.0)
    return tuple(
        Wait(name, part=min(1.0, collector / cpus))
        for name, cpus in (("server CPU", used), ("host CPU", spent))
        if cpus
    )


def _ends(trial: Trial) -> float | None:
    """How often the server's JVM was followed by a later one. None without the lab's contract:
    there may be several JVMs behind one name."""
    name, metrics = "process_start_time_seconds", trial.metrics(job="jvm", server=trial.server)
    every = trial.observation.series(name, **metrics.labels)
    starts = [start for series in every for start in series.values]
    if not starts or not trial.has_contract:
        return None
    later = sum(now > before for before, now in pairwise(accumulate(starts, max)))
    return metrics.note("ended", later, "times", f"changes({metrics.range_of(name)})")
