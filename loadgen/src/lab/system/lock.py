"""One measurement at a time. Two loads disturb each other, and the figures of neither show it.

What measures claims the lab: flock(2) on a folder that all containers of the lab share (the volume
`lock` of compose.yaml). The kernel lifts it however its holder ends. It is no file in results/: on
Docker Desktop for Mac two processes can both get a lock on a bind mount (docker/for-mac#7004).
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lab.errors import LabError

FOLDER = "lock"
# `make up` takes a shared lock for an instant to look: try again.
TRIES = 5
PAUSE_S = 0.1


@contextmanager
def claimed(folder: Path) -> Iterator[tuple[int, ...]]:
    """Hold the lab while the context lasts. Yields the descriptors that hold it, for processes
    that may outlive this one; none without the folder. Raises LabError if another measurement
    holds it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        yield ()
        return
    except OSError as failure:
        raise LabError(f"cannot open {folder}: {failure.strerror}") from None
    try:
        for _ in range(TRIES):
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(PAUSE_S)
        else:
            raise LabError("another measurement is under way; wait for its end")
        yield (descriptor,)
    finally:
        os.close(descriptor)
