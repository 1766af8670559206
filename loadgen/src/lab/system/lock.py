"""One measurement at a time. Two loads disturb each other, and the figures of neither show it.

What measures claims the lab: flock(2) on a folder that all containers of the lab share (the volume
`lock` of compose.yaml). The kernel lifts it however its holder ends. It is no file in results/: on
Docker Desktop for Mac two processes can both get a lock on a bind mount (docker/for-mac#7004).
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.errors import LabError

FOLDER = "lock"
# Whoever only looks (`is_claimed`, `make up`) shares it for an instant: ask again.
TRIES = 5
PAUSE_S = 0.1


@contextmanager
def claimed(folder: Path, other: Callable[[], str | None]) -> Iterator[tuple[int, ...]]:
    """Hold the lab while the context lasts. Yields the descriptors that hold it, for processes
    that may outlive this one: none where there is no such folder, and nothing is held then.

    Raises LabError at once while another measurement holds it; `other` names that one's run,
    None where it is not known.
    """
    descriptor = _open(folder)
    if descriptor is None:
        yield ()
        return
    try:
        if not _locked(descriptor, fcntl.LOCK_EX, TRIES):
            run = other()
            name = "" if run is None else f" (results/{run})"
            raise LabError(f"another measurement is under way{name}; wait for its end")
        yield (descriptor,)
    finally:
        os.close(descriptor)


def is_claimed(folder: Path) -> bool | None:
    """Whether a measurement holds the lab; None where there is no such folder to tell."""
    descriptor = _open(folder)
    if descriptor is None:
        return None
    try:
        return not _locked(descriptor, fcntl.LOCK_SH, 1)
    finally:
        os.close(descriptor)


def _open(folder: Path) -> int | None:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as failure:
        raise LabError(f"cannot open {folder}: {failure.strerror}") from None


def _locked(descriptor: int, kind: int, tries: int) -> bool:
    for number in range(tries):
        if number:
            time.sleep(PAUSE_S)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        return True
    return False
