"""Asks the host for changes that only the host can make for a trial.

The driver has no Docker socket, on purpose. `host/changes.sh` runs beside it on the host, and they
share two folders of /lab: only the driver writes to `requests`, only the host to `answers`. A
request is a symbolic link that leads nowhere. Its name is its number, from 1 on, and its target is
its text, so that the host opens no file that a container could have put there:

    SERVER=virtual-threads          a server; no other line: all its settings by default
    SERVER_CPUS=0.5
    SERVER=my-service               a service of the user's: a new container, as it is
    FRESH=yes
    SERVER=my-service               with what its subject's [levers] name (lab.model.own_lever)
    ENV_POOL_SIZE=40
    OWN_CPUS=2
    SERVER=generator                the driver's own container
    GENERATOR_CPUS=0.05

The host makes the change if `allowed` lists each line. The answer, a file of the same name, is a
code: `ok`, or one of `REFUSALS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lab.errors import LabError, LabUnreachable, Refused
from lab.model import OwnLever
from lab.model.knobs import CPUS, GENERATOR, GENERATOR_CPUS, HOST, IMAGE
from lab.system.host import Clock

DEADLINE_S = 90.0
POLL_S = 0.1
FRESH = "FRESH"
# The services of the user's own, in the list.
OWN = "OWN_SERVER"
WITHDRAWN = "withdrawn"
FAILED = "failed"
REFUSALS = {
    "not-allowed": "this change is not on the host's list",
    "takes-away": "the container has more than that now; [levers] of its subject ask for less",
    "another-image": "its image was replaced after this run began to change it",
    FAILED: "the change failed",
}
# On the host.
LOG = ".lab/<project>/logs/changes.log"


def allowed(
    servers: Sequence[str],
    images: Sequence[str] = (),
    own: Sequence[str] = (),
    levers: Iterable[OwnLever] = (),
) -> dict[str, str]:
    """The names that a line of a request may have, each with what its value may be, as a POSIX
    extended regular expression. The host's only list: it is written down before a driver starts.
    `images` are those that the user has named for a server: none, and no other, may be started.
    `own` are services of the user's: only these get what `levers` name, and nothing else."""
    every = {**HOST, GENERATOR_CPUS: CPUS, FRESH: "yes"}
    if images:
        every[IMAGE] = "|".join(image.replace(".", r"\.") for image in images)
    if own:
        every[OWN] = "|".join(own)
    for lever in levers:
        every.update(lever.patterns)
    return {"SERVER": "|".join((*servers, *own, GENERATOR)), **every}


class HostChanges:
    """Asks for one change after the other. `home` has the two folders. Where it has none, or is
    None, nobody on the host answers, as on several machines."""

    def __init__(self, home: Path | None) -> None:
        self._home = home
        self._asked = 0

    def change(self, server: str, settings: Mapping[str, str], clock: Clock) -> None:
        """Recreate the server's container with these settings, all others at their defaults. When
        this returns the host has done it. Raises LabUnreachable where the host does not answer,
        Refused where it could not do it, LabError where there is no host to ask, and Interrupted
        when the clock does."""
        if self._home is None or not (self._home / "requests").is_dir():
            raise LabError("host settings need `make`: nobody on the host answers")
        self._asked += 1
        request = self._home / "requests" / str(self._asked)
        answer = self._home / "answers" / str(self._asked)
        lines = {"SERVER": server, **settings}
        _write(request, "\n".join(f"{name}={value}" for name, value in lines.items()))
        until = clock.monotonic() + DEADLINE_S
        while (code := _read(answer)) is None:
            if clock.monotonic() >= until:
                # Too late is not done later, behind the driver's back.
                _write(request, WITHDRAWN)
                raise LabUnreachable(
                    f"the host did not answer within {DEADLINE_S:.0f} s: {_text(server, settings)}"
                )
            clock.sleep(POLL_S)
        if code != "ok":
            why = REFUSALS.get(code, REFUSALS[FAILED])
            raise Refused(f"the host refused {_text(server, settings)}: {why} ({LOG})")

    def fresh(self, server: str, clock: Clock) -> None:
        """Put a new container in the place of the server's, as it is. Raises as `change`."""
        self.change(server, {FRESH: "yes"}, clock)


def _write(request: Path, text: str) -> None:
    """There as a whole, also in the place of another text."""
    part = request.with_name("part")
    try:
        part.symlink_to(text)
        part.replace(request)
    except OSError as failure:
        raise LabError(f"the host cannot be asked: {failure.strerror}") from None


def _read(answer: Path) -> str | None:
    """A code; None where it is not there yet."""
    try:
        return answer.read_text(encoding="ascii").strip()
    except OSError:
        return None


def _text(server: str, settings: Mapping[str, str]) -> str:
    return f"{server} with {' '.join(f'{k}={v}' for k, v in settings.items()) or 'its defaults'}"
