"""Every error the lab raises on purpose.

* LabError
  * WordError      - a word of the command line is unknown or has a bad value (exit 2)
  * LabUnreachable - a part of the lab does not answer, or answers nonsense (exit 1)
    * Refused      - it answered, and did not do what it was asked for (exit 1)
  * EngineError    - a load engine cannot run (exit 1)
  * RawDataError   - an engine's raw output cannot be read; names file and line (exit 1)
  * CannotWrite    - a file cannot be written: full disk, read-only folder (exit 1)
  * Interrupted    - the user or the system asked to stop (exit 130)

The message of each is one line for the user: what is wrong, what is allowed, where.
"""

from __future__ import annotations

from pathlib import Path


class LabError(Exception):
    """Base of all; `exit_code` is what the process ends with."""

    exit_code = 1


class WordError(LabError):
    """A word of the command line is unknown or has a bad value."""

    exit_code = 2


class LabUnreachable(LabError):  # noqa: N818 - it names what happened
    """A part of the lab does not answer in time, or not as its contract says."""


class Refused(LabUnreachable):
    """A part of the lab did not do what it was asked for, and says why."""


class EngineError(LabError):
    """A load engine is missing, refused its command line, or could not reach the server."""


class RawDataError(LabError):
    """An engine's raw output is not what that engine writes.

    `line` counts from 1; None where the file as a whole is wrong (empty, truncated).
    """

    def __init__(self, path: Path, line: int | None, problem: str) -> None:
        self.path = path
        self.problem = problem
        self.line = line
        where = f"{path}:{line}" if line is not None else str(path)
        super().__init__(f"{where}: {problem}")

    @property
    def said(self) -> str:
        """What is wrong, by the file's name alone: for a record in the same folder."""
        where = self.path.name if self.line is None else f"{self.path.name}:{self.line}"
        return f"{where}: {self.problem}"


class CannotWrite(LabError):  # noqa: N818 - it names what happened
    """A file or folder cannot be written, as on a full disk or in a read-only folder."""

    def __init__(self, path: object, failure: OSError) -> None:
        super().__init__(f"cannot write {path}: {failure.strerror or failure}")


class Interrupted(LabError):  # noqa: N818 - it names what happened
    """SIGINT or SIGTERM arrived; what was measured is kept."""

    exit_code = 130
