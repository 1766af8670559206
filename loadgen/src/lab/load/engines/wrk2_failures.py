"""What wrk2 prints of failures: why it did not run, and the requests that failed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.errors import RawDataError
from lab.judge.checks.load import wrk2_attempts, wrk2_waiting
from lab.load.engines.base import REQUEST_TIMEOUT_S
from lab.model import Counts, Remark

_SOCKET = re.compile(r"\s+Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$")
_STATUS = re.compile(r"\s+Non-2xx or 3xx responses: (\d+)$")
_REFUSALS = ("unable to connect", "unable to resolve", "unable to create thread")


def lines_of(path: Path) -> list[str]:
    """The lines of wrk2's output. Raises RawDataError if it reports that it did not run."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as failure:
        raise RawDataError(path, None, f"cannot be read: {failure.strerror}") from None
    for number, line in enumerate(lines, 1):
        if line.startswith(_REFUSALS):
            raise RawDataError(path, number, f"wrk2 did not run: {line.strip()}")
    return lines


@dataclass(slots=True)
class Failures:
    """The failures of a run. wrk2 prints a line of them only if it counted any.

    `socket_errors` are requests that were sent and lost their connection. `attempts` to connect or
    to send that failed, and connections found waiting at `timeouts` checks, are no numbers of
    requests: they are notes.
    """

    socket_errors: int = 0
    attempts: int = 0
    timeouts: int = 0
    http_errors: int = 0

    def take(self, line: str) -> bool:
        """Count what a line says. False: it is not about failures."""
        if found := _SOCKET.match(line):
            connect, self.socket_errors, write, self.timeouts = map(int, found.groups())
            self.attempts = connect + write
        elif found := _STATUS.match(line):
            self.http_errors = int(found[1])
        else:
            return False
        return True

    def counts(self, requests: int, run_s: float) -> Counts:
        """The accounting of a run with so many answers. wrk2 does not report the requests that were
        unanswered at its end, nor, therefore, how many it sent."""
        return Counts(
            sent=None,
            ok=requests - self.http_errors,
            http_errors=self.http_errors,
            socket_errors=self.socket_errors,
            timeouts=None,
            unfinished=None,
            accounted_s=run_s,
        )

    def remarks(self) -> Iterator[Remark]:
        """What was counted, but not in requests."""
        if self.attempts:
            yield wrk2_attempts.remark(attempts=self.attempts)
        if self.timeouts:
            yield wrk2_waiting.remark(timeout_s=REQUEST_TIMEOUT_S, checks=self.timeouts)
