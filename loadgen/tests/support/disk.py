"""A disk that fails at a chosen write: every way in which a file or folder below it is changed."""

from __future__ import annotations

import errno
import functools
import os
import sys
from pathlib import Path
from typing import Any, ClassVar

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = {"os.mkdir", "os.rename", "os.symlink"}


class Disk:
    """Counts the writes below `root`; from the one with number `fails_at` on they raise OSError,
    only that one with `once`. Removing works, as it does on a full disk. Files named in `engine`
    are the load engine's own."""

    current: ClassVar[Disk | None] = None

    def __init__(self, root: Path, *engine: str) -> None:
        self.root = str(root.resolve())
        self.engine = engine
        self.fails_at: int | None = None
        self.once = False
        self.writes = 0
        self.failed: list[str] = []

    def fail(self, number: int, *, once: bool) -> None:
        """The write with this number from now on will fail; those after it too if not once."""
        self.writes, self.fails_at, self.once, self.failed = 0, number, once, []

    def works(self) -> None:
        """Nothing fails any more."""
        self.fails_at = None

    def write(self, what: str, path: object) -> None:
        if isinstance(path, int):
            path = f"/proc/self/fd/{path}"
        if not isinstance(path, str | os.PathLike):
            return
        text = os.path.realpath(os.fspath(path))
        if not text.startswith(self.root) or text.endswith(self.engine):
            return
        number = self.writes
        self.writes += 1
        if self.fails_at is None or number < self.fails_at:
            return
        if number > self.fails_at and self.once:
            return
        self.failed.append(f"{what} {text.removeprefix(self.root)}")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))


def _hook(event: str, args: tuple[Any, ...]) -> None:
    disk = Disk.current
    if disk is None:
        return
    if event in _CHANGES:
        disk.write(event, args[-2] if event == "os.symlink" else args[0])
    elif event == "open" and isinstance(args[2], int) and args[2] & _WRITES:
        disk.write("open", args[0])


@functools.cache
def watch() -> None:
    """Hear of every change. An audit hook cannot be taken out: without a disk it does nothing."""
    sys.addaudithook(_hook)
