"""Platform threads that carry virtual ones (JEP 444); before JDK 24 one is kept by a virtual thread
that waits in `synchronized` (JEP 491)."""

from lab.judge.predict import pinned_carriers
from lab.judge.resources.resource import FULL, Standing, Trial, holding, resource, waits
from lab.judge.resources.stages import HOT, OF_SERVER, of_classes

SCHEDULER = "lab_virtual_thread_scheduler_"
INSIDE = ("own", "path", "downstream")


@resource("carrier threads")
def carrier_threads(trial: Trial) -> Standing | None:
    """Queue, own work and what no part saw, while 90 % are busy and there are fewer than CPUs; on
    JDK 21 carriers that requests keep in `synchronized`.

    Measured: with run-queue times"""
    if kept := pinned_carriers(trial.call, trial.before):
        return _in_synchronized(trial, kept)
    stage = of_classes(trial, ("carrier",))
    count, mounted, _ = (
        trial.server_metrics().mean(what, "threads", SCHEDULER + what)
        for what in ("parallelism", "mounted", "queued")
    )
    there = trial.before.setting("virtual_thread_parallelism")
    if not count or mounted is None or not there:
        return None
    # With as many carriers as CPUs, all of them at work, the CPUs are short.
    hot = count < (trial.cpus or 0.0) and mounted >= HOT * count
    # Of the time at work, that on a CPU.
    part = stage.own_work / stage.at_work if stage and stage.at_work else 1.0
    waiting = waits(OF_SERVER if hot else (), part, measured=stage is not None)
    return Standing(min(count, mounted), count, "threads", waits=waiting)


def _in_synchronized(trial: Trial, carriers: int) -> Standing:
    """No gauge of such a JDK shows them; how many are kept follows from the answers."""
    kept = trial.rps * trial.hold_s
    trial.note("kept", kept, "threads", "Little's law: achieved_rps × the time of a wait")
    full = kept >= FULL * carriers
    waiting = waits(("queue", "unexplained") if full else ())
    held_s = carriers / trial.rps if trial.rps else 0.0
    held = holding(trial, carriers, trial.hold_s, held_s, INSIDE)
    used = min(float(carriers), kept)
    return Standing(used, carriers, "threads", waits=waiting, held=held)
