"""Looks at the lab's lock, as `make` does: flock(1), shared, without waiting."""

import fcntl
import os
from pathlib import Path


def is_claimed(folder: Path) -> bool:
    """True if a measurement holds the lab."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
