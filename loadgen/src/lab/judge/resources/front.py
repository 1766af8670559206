"""Threads that read requests and hand them to workers: a serial thread each."""

from lab.judge.resources.resource import SeenTrial, Standing, Wait, known, resource
from lab.judge.stages import HOT, of_classes
from lab.judge.thread_times import RUN


@resource("front")
def front(seen: SeenTrial) -> Standing | None:
    """What no part saw, while the busiest front runs 90 % of its time.

    Measured: with run-queue times, all fronts full"""
    mine, stage = {"server": seen.server}, of_classes(seen, ("front",))
    # Without times of threads: outside its selector a front may also wait for a CPU.
    for name in (RUN, "lab_front_busy_seconds_total"):
        fronts = [at for at in seen.each("front", name, **mine) if at]
        rates = known(*(seen.rate(at, "of its time", name, front=at, **mine) for at in fronts))
        if rates:
            break
    else:
        return None
    run = [min(1.0, rate) for rate in rates]
    hot = max(run) >= HOT and len(run) < (seen.cpus or len(run))
    sure = stage is not None and sum(run) >= HOT * len(run)
    wait = Wait("unexplained", part=stage.own_work if stage else max(run), measured=sure)
    waits = (wait,) if hot else ()
    return Standing(sum(run), len(run), "threads", waits=waits)
