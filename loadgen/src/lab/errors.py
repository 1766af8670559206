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

import re
from pathlib import Path

# Control characters (C0, DEL, C1), line separators, marks that turn the direction of text, a byte
# order mark, and what no encoding has: a terminal acts on them, or a reader is misled.
_ACTIVE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


# A server may say a megabyte where a reason is expected.
_LONGEST = 4_000


def harmless(text: str, keep: str = "") -> str:
    """The text with each active character but those to `keep` written as its escape, as `\\x1b`.
    Other people's text passes through here on its way to a terminal or a Markdown file."""

    def escape(found: re.Match[str]) -> str:
        sign = found[0]
        return sign if sign in keep else sign.encode("unicode_escape").decode("ascii")

    return _ACTIVE.sub(escape, text)


class LabError(Exception):
    """Base of all; `exit_code` is what the process ends with."""

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        cut = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
        super().__init__(harmless(cut))


class WordError(LabError):
    """A word of the command line is unknown or has a bad value."""

    exit_code = 2


class LabUnreachable(LabError):  # noqa: N818 - it names what happened
    """A part of the lab does not answer in time, or not as its contract says. `part` is its name,
    which the message begins with, and `problem` the rest; None if unknown."""

    def __init__(self, problem: str = "", part: str | None = None) -> None:
        super().__init__(problem if part is None else f"{part}: {problem}")
        self.problem, self.part = problem, part


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
        return harmless(f"{where}: {self.problem}")


class CannotWrite(LabError):  # noqa: N818 - it names what happened
    """A file or folder cannot be written, as on a full disk or in a read-only folder."""

    def __init__(self, path: object, failure: OSError) -> None:
        super().__init__(f"cannot write {path}: {failure.strerror or failure}")


class Interrupted(LabError):  # noqa: N818 - it names what happened
    """SIGINT or SIGTERM arrived; what was measured is kept."""

    exit_code = 130
