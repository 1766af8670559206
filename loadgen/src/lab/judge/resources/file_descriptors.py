"""The open files of the server, the proxy and the downstream, each against its own limit."""

from __future__ import annotations

from lab.judge.resources.resource import Resource
from lab.judge.seen import SeenTrial, known
from lab.model import Evidence, Standing, Wait

OPEN = "process_open_fds"
# Toxiproxy needs two for each connection, and accepts nothing more for good when it has none: the
# last 3 % are spikes between two scrapes.
NEARLY_ALL = 0.97
# A JVM with a descriptor left to count its open files tells them in most scrapes.
COUNTED = 0.5


def _standing(seen: SeenTrial) -> Standing | None:
    owners = {"server": {"job": "jvm", "server": seen.server}}
    owners |= {job: {"job": job} for job in ("toxiproxy", "downstream")}
    found: list[tuple[float, str, tuple[Evidence, ...]]] = []
    for owner, labels in owners.items():
        opened = seen.peak("open", "files", OPEN, **labels)
        most = seen.peak("most", "files", "process_max_fds", **labels)
        if opened and most and most.value > 0:
            found.append((opened.value / most.value, owner, (opened, most)))
    if lost := _uncounted(seen):
        found.append((1.0, "server", (lost,)))
    if not found:
        return None
    share, owner, figures = max(found, key=lambda entry: entry[0])
    gone = share >= NEARLY_ALL
    used, most_of_it = (figure.value for figure in figures) if not lost else (None, None)
    return Standing(
        *("file descriptors", used, most_of_it, "files", owner),
        failed=seen.error_share if gone else 0.0,
        # What is not accepted for want of one waits anywhere, and nothing counts it.
        waits=(Wait("unexplained", part=1.0, measured=False),) if gone else (),
        evidence=known(*figures),
    )


def _uncounted(seen: SeenTrial) -> Evidence | None:
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
        return None
    return Evidence("counted", within[0] / within[1], "of the scrapes", f"count_over_time({OPEN})")


FILE_DESCRIPTORS = Resource("file descriptors", "NOFILE", _standing)
