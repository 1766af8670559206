"""What the threads of a stage did: the share of the time at work, and of that on a CPU.

Run-queue delay is in thread-seconds: a thread that waits for 1 ms delays every request behind it,
so it is never divided by requests. A request waits for a stage only while that is at work: running
or in the run queue. By this model the time that requests are later at a stage has two parts:
runq / (run + runq) × the share of the window at work is *for want of a CPU*, and
run / (run + runq) × that share is the stage's own work. The rest waited for neither.
"""

from dataclasses import dataclass

from lab.judge.metrics import PROCESS_RUN, PROCESS_RUNQ, RUN, RUNQ, without_none
from lab.judge.splits import DOWNSTREAM, PROXY, thread_s
from lab.judge.trial import Trial

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
CLASSES = {"queue": WORKING, "own": WORKING, "unexplained": READING}
PROCESSES = {"path": PROXY, "downstream": DOWNSTREAM}
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


def of_place(trial: Trial, place: str) -> Stage | None:
    """The stage that what waits at a place waits for; None where its times are not known."""
    if place == "generator":
        return _generator(trial)
    if place in PROCESSES:
        return _stage(trial, PROCESS_RUN, PROCESS_RUNQ, process=PROCESSES[place])
    return of_classes(trial, CLASSES.get(place, ()))


def of_classes(trial: Trial, classes: tuple[str, ...]) -> Stage | None:
    there = [name for name in trial.server_metrics().values_of("threads", RUNQ) if name in classes]
    stages = [_stage(trial, RUN, RUNQ, server=trial.server, threads=name) for name in there]
    timed = without_none(*stages)
    if not timed or len(timed) < len(stages):
        return None
    run_s, runq_s = sum(stage.run_s for stage in timed), sum(stage.runq_s for stage in timed)
    return Stage(run_s, runq_s, timed[0].window_s)


def busy_shares(trial: Trial, label: str, name: str) -> list[float]:
    """For which share of its time each thread was busy that a counter has under this label."""
    shares = (
        trial.server_metrics(**{label: thread}).rate(thread, "of its time", name)
        for thread in filter(None, trial.server_metrics().values_of(label, name))
    )
    return [min(1.0, share) for share in without_none(*shares)]


def for_cpu(trial: Trial, place: str, stage: Stage, cpus: float) -> float:
    """The part of the waiting at a place of the server that is for want of one of so many CPUs.
    Carriers share one queue: where there are as many as CPUs, who waits for one waits for a CPU."""
    carriers = _threads(trial, "carrier")
    if place == "queue" and carriers is not None and carriers >= cpus:
        return stage.at_work
    return 1.0 if _saturates(trial, cpus) else stage.for_cpu


def _saturates(trial: Trial, cpus: float) -> bool:
    """True if a class of the server's threads, as many as it has CPUs or more, was always at work:
    then what waits for the threads waits for the CPUs."""
    for name in FEW:
        stage, count = of_classes(trial, (name,)), _threads(trial, name)
        if stage is None or count is None or count < cpus:
            continue
        if stage.run_s + stage.runq_s >= HOT * count * stage.window_s:
            return True
    return False


def _threads(trial: Trial, name: str) -> float | None:
    metrics = trial.metrics(server=trial.server, threads=name)
    return metrics.mean("threads", "threads", "lab_threads")


def _generator(trial: Trial) -> Stage | None:
    reading, usage = trial.reading, trial.usage
    run_s, runq_s = reading.generator_run_s, reading.generator_runq_s
    if run_s is None or runq_s is None:
        run_s, runq_s = usage.window_cpu_s, usage.window_wait_s
    if run_s is None or runq_s is None:
        return None
    # A CPU quota stops threads that are ready to run: they wait, and for no CPU of the host.
    runq_s *= 1 - min(1.0, (usage.window_throttled_s or 0.0) / reading.window_s)
    return Stage(run_s, runq_s, reading.window_s)


def _stage(trial: Trial, run: str, runq: str, **labels: str) -> Stage | None:
    run_s, runq_s = (thread_s(trial.observation, name, **labels) for name in (run, runq))
    if run_s is None or runq_s is None:
        return None
    return Stage(run_s, runq_s, trial.observation.window_s)
