"""What the threads of a stage did: the share of the time at work, and of that on a CPU.

Run-queue delay is in thread-seconds: a thread that waits for 1 ms delays every request behind it,
so it is never divided by requests. A request waits for a stage only while that is at work: run or
in the run queue. So of the time that requests are later at it, runq / (run + runq) × the share of
the window at work is *for want of a CPU*, and run / (run + runq) × that share is the stage's own
work. What is left waited for neither. This is a model.
"""

from dataclasses import dataclass

from lab.judge.seen import SeenTrial
from lab.judge.thread_times import PROCESS_RUN, PROCESS_RUNQ, RUN, RUNQ

# The parts of a request's time at which a stage of threads works, and those of the server.
PLACES = ("generator", "queue", "own", "path", "downstream", "unexplained")
OF_SERVER = ("queue", "own", "unexplained")
# At work for this share of the time a thread leaves no room for a burst: an arrival at random
# waits 4.5 times as long as it is served (M/D/1).
HOT = 0.9
# The classes of a server's threads (ThreadClasses.java) that requests pass: those that read them
# from sockets, and those that work on them.
READING = ("front", "acceptor", "loop")
WORKING = ("worker", "carrier", "loop", "other")
# Classes of few threads, which can be saturated as a whole.
FEW = ("front", "loop", "carrier")


@dataclass(frozen=True, slots=True)
class Stage:
    """Seconds of a stage's threads on a CPU, and in its run queue, in a window."""

    run_s: float
    runq_s: float
    window_s: float

    @property
    def at_work(self) -> float:
        """The share of the window in which some thread was at work, at most."""
        return min(1.0, (self.run_s + self.runq_s) / self.window_s)

    @property
    def for_cpu(self) -> float:
        spent = self.run_s + self.runq_s
        return self.runq_s / spent * self.at_work if spent > 0 else 0.0

    @property
    def own_work(self) -> float:
        return self.at_work - self.for_cpu


def of_place(seen: SeenTrial, place: str) -> Stage | None:
    """The stage of which a place's waiting is; None where its times are not known."""
    if place == "generator":
        return _generator(seen)
    if place in ("path", "downstream"):
        process = {"path": "toxiproxy", "downstream": "downstream"}[place]
        return _stage(seen, PROCESS_RUN, PROCESS_RUNQ, {"process": process})
    classes = {"queue": WORKING, "own": WORKING, "unexplained": READING}.get(place, ())
    return of_classes(seen, classes)


def of_classes(seen: SeenTrial, classes: tuple[str, ...]) -> Stage | None:
    """The stage of a server's threads of these classes, as far as it has them."""
    mine = {"server": seen.server}
    there = [name for name in seen.each("threads", RUNQ, **mine) if name in classes]
    stages = [_stage(seen, RUN, RUNQ, {**mine, "threads": name}) for name in there]
    known = [stage for stage in stages if stage is not None]
    if not known or len(known) < len(stages):
        return None
    run_s, runq_s = sum(stage.run_s for stage in known), sum(stage.runq_s for stage in known)
    return Stage(run_s, runq_s, seen.window_s)


def for_cpu(seen: SeenTrial, place: str, stage: Stage, cpus: float) -> float:
    """The part of the waiting at a place of the server that is for want of one of so many CPUs.
    Carriers share one queue: where there are as many as CPUs, who waits for one waits for a CPU."""
    carriers = seen.mean("threads", "threads", "lab_threads", server=seen.server, threads="carrier")
    if place == "queue" and carriers is not None and carriers >= cpus:
        return stage.at_work
    return 1.0 if saturates(seen, cpus) else stage.for_cpu


def saturates(seen: SeenTrial, cpus: float) -> bool:
    """A class of the server's threads, as many as it has CPUs or more, was always at work: then
    what waits for the threads waits for the CPUs."""
    for name in FEW:
        stage = of_classes(seen, (name,))
        count = seen.mean("threads", "threads", "lab_threads", server=seen.server, threads=name)
        if stage is None or count is None or count < cpus:
            continue
        if stage.run_s + stage.runq_s >= HOT * count * seen.window_s:
            return True
    return False


def _generator(seen: SeenTrial) -> Stage | None:
    reading, usage = seen.reading, seen.record.usage
    run_s, runq_s = reading.generator_run_s, reading.generator_runq_s
    if run_s is None or runq_s is None:
        run_s, runq_s = usage.window_cpu_s, usage.window_wait_s
    if run_s is None or runq_s is None:
        return None
    # A CPU quota stops threads that are ready to run: they wait, and for no CPU of the host.
    runq_s *= 1 - min(1.0, (usage.window_throttled_s or 0.0) / reading.window_s)
    return Stage(run_s, runq_s, reading.window_s)


def _stage(seen: SeenTrial, run: str, runq: str, labels: dict[str, str]) -> Stage | None:
    run_rate, runq_rate = (seen.observation.rate(name, **labels) for name in (run, runq))
    if run_rate is None or runq_rate is None:
        return None
    return Stage(run_rate * seen.window_s, runq_rate * seen.window_s, seen.window_s)
