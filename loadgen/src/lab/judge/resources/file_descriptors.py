"""The open files of the server, the proxy and the downstream, each against its own limit."""

from copy import replace

from lab.judge.resources.resource import SeenTrial, Standing, Wait, resource

OPEN = "process_open_fds"
# Toxiproxy needs two for each connection, and accepts nothing more for good when it has none: the
# last 3 % are spikes between two scrapes.
NEARLY_ALL = 0.97
# A JVM with a descriptor left to count its open files reports them in most scrapes.
COUNTED = 0.5


@resource("file descriptors")
def file_descriptors(seen: SeenTrial) -> Standing | None:
    """97 % of a limit, or the server cannot count its own: errors, or all that is left.

    Measured: errors"""
    owners = {"server": {"job": "jvm", "server": seen.server}}
    owners |= {job: {"job": job} for job in ("toxiproxy", "downstream")}
    found = [standing for owner, labels in owners.items() if (standing := _of(seen, owner, labels))]
    return max(found, key=lambda standing: (len(standing.waits), standing.full), default=None)


def _of(seen: SeenTrial, owner: str, labels: dict[str, str]) -> Standing | None:
    opened = seen.peak("open", "files", OPEN, **labels)
    most = seen.peak("most", "files", "process_max_fds", **labels)
    lost = owner == "server" and _uncounted(seen)
    if not lost and (opened is None or not most):
        return None
    standing = Standing(most if lost else opened, most, "files", owner)
    if not lost and standing.full < NEARLY_ALL:
        return standing
    # What is not accepted for want of one waits anywhere, and is not counted.
    waits = (Wait("unexplained", part=1.0, measured=False),)
    return replace(standing, failed=seen.error_share, waits=waits)


def _uncounted(seen: SeenTrial) -> bool:
    """A JVM without a spare descriptor cannot open /proc to count its open files: that count is
    missing from its scrapes, which hold everything else. One that is not the lab's may never tell
    them, for reasons of its own."""
    opens, closes = seen.observation.window
    counted, threads = (
        [at for series in seen.observation.series(name, server=seen.server) for at in series.times]
        for name in (OPEN, "jvm_threads_current")
    )
    within = [sum(opens <= at <= closes for at in times) for times in (counted, threads)]
    if not within[1] or within[0] > COUNTED * within[1] or (seen.before.foreign and not counted):
        return False
    share, query = within[0] / within[1], f"count_over_time({OPEN})"
    return seen.noted("counted", share, "of the scrapes", query) is not None
