"""The open files of the server, the proxy and the downstream, each against its own limit."""

from copy import replace

from lab.judge.metrics import Metrics, without_none
from lab.judge.resources.resource import Standing, Trial, resource, waits

OPEN = "process_open_fds"
# Toxiproxy needs two for each connection, and accepts nothing more for good when it has none: the
# last 3 % are spikes between two scrapes.
NEARLY_ALL = 0.97
# A JVM with a descriptor left to count its open files reports them in most scrapes.
COUNTED = 0.5


@resource("file descriptors")
def file_descriptors(trial: Trial) -> Standing | None:
    """97 % of a limit, or the server cannot count its own: errors, or all that is left.

    Measured: errors"""
    owners = {"server": trial.metrics(job="jvm", server=trial.server)}
    owners |= {job: trial.metrics(job=job) for job in ("toxiproxy", "downstream")}
    standings = without_none(*(_of_owner(trial, name, metrics) for name, metrics in owners.items()))
    return max(standings, key=lambda standing: (len(standing.waits), standing.full), default=None)


def _of_owner(trial: Trial, owner: str, metrics: Metrics) -> Standing | None:
    opened = metrics.peak("open", "files", OPEN)
    most = metrics.peak("most", "files", "process_max_fds")
    lost = owner == "server" and _uncounted(trial)
    if not lost and (opened is None or not most):
        return None
    standing = Standing(most if lost else opened, most, "files", owner)
    if not lost and standing.full < NEARLY_ALL:
        return standing
    # What is not accepted for want of one waits anywhere, and is not counted.
    unexplained = waits(("unexplained",), measured=False)
    return replace(standing, failed=trial.error_share, waits=unexplained)


def _uncounted(trial: Trial) -> bool:
    """A JVM without a spare descriptor cannot open /proc to count its open files: that count is
    missing from its scrapes, which hold everything else. Without the lab's contract one may never
    report them, for reasons of its own."""
    seen = trial.observation
    opened, threads = (
        seen.series(name, server=trial.server) for name in (OPEN, "jvm_threads_current")
    )
    counts, scrapes = (
        sum(len(seen.inside(series.points)) for series in every) for every in (opened, threads)
    )
    if not scrapes or counts > COUNTED * scrapes or not (opened or trial.has_contract):
        return False
    trial.note("counted", counts / scrapes, "of the scrapes", f"count_over_time({OPEN})")
    return True
