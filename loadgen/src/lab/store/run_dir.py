"""The folder of a run: results/<UTC time>-<name>."""

import os
import re
import shutil
from datetime import datetime
from pathlib import Path

from lab.errors import CannotWrite, LabError, LabUnreachable, WordError
from lab.store.records import MIB, sync, writing

# A trial with its engine's output (some 100 KiB a second at most), and the run's report.
RESERVE_BYTES = 64 * MIB


def new_run_dir(results: Path, started_at: datetime, name: str) -> Path:
    """A new folder: results/<UTC time>-<name>, with -2, -3 … where that exists. Raises LabError."""
    stamp = f"{started_at:%Y%m%dT%H%M%SZ}-{name}"
    for number in range(1, 100):
        run_dir = results / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            run_dir.mkdir()
        except FileExistsError:
            continue
        except OSError as failure:
            raise CannotWrite(run_dir, failure) from None
        with writing(results):
            sync(results)
        return run_dir
    raise LabError(f"{results} has 99 runs called {stamp}")


def find_run_dir(results: Path, word: str, name: str) -> Path:
    """The folder of a run by its name, or `latest`. Raises WordError naming the word."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", name):
        run_dir = results / name
        if run_dir.is_dir():
            return run_dir.resolve()
    known = sorted(path.name for path in results.glob("*Z-*") if path.is_dir())
    there = f"the newest are {', '.join(known[-3:])}" if known else "there is none yet"
    raise WordError(f"{word}={name} is not a run here; allowed: latest, or a name ({there})")


def point_latest(run_dir: Path) -> None:
    """Point results/latest to the run, in one step. Raises CannotWrite."""
    latest = run_dir.parent / "latest"
    part = run_dir.parent / f".latest-{os.getpid()}"
    with writing(latest):
        part.unlink(missing_ok=True)
        part.symlink_to(run_dir.name)
        part.replace(latest)


def check_space(results: Path, what: str = "a run") -> None:
    """Raises LabError unless there is room for RESERVE_BYTES; LabUnreachable where the folder
    cannot be used."""
    try:
        free = shutil.disk_usage(results).free
    except OSError as failure:
        raise LabUnreachable(f"cannot use {results}: {failure.strerror}") from None
    if free < RESERVE_BYTES:
        needed = RESERVE_BYTES // MIB
        raise LabError(f"{results} has {free // MIB} MiB free; {what} needs {needed} MiB")
