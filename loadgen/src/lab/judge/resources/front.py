"""Threads that read requests and hand them to workers: a serial thread each."""

from __future__ import annotations

from lab.judge.resources.resource import Resource
from lab.judge.seen import SeenTrial, known
from lab.judge.stages import HOT, of_classes
from lab.judge.thread_times import RUN
from lab.model import Standing, Wait


def _standing(seen: SeenTrial) -> Standing | None:
    mine, stage = {"server": seen.server}, of_classes(seen, ("front",))
    # Without times of threads: outside its selector a front may also wait for a CPU.
    for name in (RUN, "lab_front_busy_seconds_total"):
        fronts = [at for at in seen.each("front", name, **mine) if at]
        rates = known(*(seen.rate(at, "of its time", name, front=at, **mine) for at in fronts))
        if rates:
            break
    else:
        return None
    run = [min(1.0, rate.value) for rate in rates]
    hot = max(run) >= HOT and len(run) < (seen.cpus or len(run))
    sure = stage is not None and sum(run) >= HOT * len(run)
    wait = Wait("unexplained", part=stage.own_work if stage else max(run), measured=sure)
    waits = (wait,) if hot else ()
    return Standing("front", sum(run), len(run), "threads", waits=waits, evidence=rates)


FRONT = Resource("front", "FRONTS", _standing)
