"""Threads that read requests and hand them to workers: a serial thread each."""

from lab.judge.metrics import RUN
from lab.judge.resources.resource import Standing, Trial, resource, waits
from lab.judge.resources.stages import HOT, busy_shares, of_classes


@resource("front")
def front(trial: Trial) -> Standing | None:
    """What no part saw, while the busiest front runs 90 % of its time.

    Measured: with run-queue times, all fronts full"""
    # Without times of threads: outside its selector a front may also wait for a CPU.
    run = busy_shares(trial, "front", RUN)
    run = run or busy_shares(trial, "front", "lab_front_busy_seconds_total")
    if not run:
        return None
    stage = of_classes(trial, ("front",))
    hot = max(run) >= HOT and len(run) < (trial.cpus or len(run))
    sure = stage is not None and sum(run) >= HOT * len(run)
    part = stage.own_work if stage else max(run)
    waiting = waits(("unexplained",) if hot else (), part, measured=sure)
    return Standing(sum(run), len(run), "threads", waits=waiting)
