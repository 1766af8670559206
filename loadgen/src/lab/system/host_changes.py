"""Asks the host to change a container, as the driver has no Docker socket, on purpose.

`host/changes.sh` runs on the host. They share two folders of /lab: only the driver writes to
`requests`, only the host to `answers`. A request is a symbolic link that leads nowhere. Its name is
its number, from 1 on, and its target is the text, so that the host opens no file that a container
could have put there:

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
    """The names that a line of a request may have, and their values as POSIX extended regular
    expressions. The host has this list before a driver starts. Only `images` that the user has
    named may be started. `levers` are for the user's services (`own`)."""
    listed = {**HOST, GENERATOR_CPUS: CPUS, FRESH: "yes"}
    if images:
        listed[IMAGE] = "|".join(image.replace(".", r"\.") for image in images)
    if own:
        listed[OWN] = "|".join(own)
    for lever in levers:
        listed.update(lever.patterns)
    return {"SERVER": "|".join((*servers, *own, GENERATOR)), **listed}


class HostChanges:
    """`home` has the two folders. Without them no host answers, as on several machines."""

    def __init__(self, home: Path | None) -> None:
        self._home = home
        self._asked = 0

    def change(self, server: str, settings: Mapping[str, str], clock: Clock) -> None:
        """Recreate the server's container with these settings, all others at their defaults; done
        when this returns. Raises LabUnreachable if the host does not answer, Refused if it failed,
        LabError without a host, and Interrupted."""
        if self._home is None or not (self._home / "requests").is_dir():
            raise LabError("host settings need `make`: nobody on the host answers")
        self._asked += 1
        request = self._home / "requests" / str(self._asked)
        answer = self._home / "answers" / str(self._asked)
        lines = {"SERVER": server, **settings}
        _write(request, "\n".join(f"{name}={value}" for name, value in lines.items()))
        asked = " ".join(f"{name}={value}" for name, value in settings.items())
        asked = f"{server} with {asked or 'its defaults'}"
        until = clock.monotonic() + DEADLINE_S
        while (code := _read(answer)) is None:
            if clock.monotonic() >= until:
                # Otherwise the host could still do it later.
                _write(request, WITHDRAWN)
                raise LabUnreachable(f"the host did not answer within {DEADLINE_S:.0f} s: {asked}")
            clock.sleep(POLL_S)
        if code != "ok":
            why = REFUSALS.get(code, REFUSALS[FAILED])
            raise Refused(f"the host refused {asked}: {why} ({LOG})")


def _write(request: Path, text: str) -> None:
    """Atomic, also over another text."""
    part = request.with_name("part")
    try:
        part.symlink_to(text)
        part.replace(request)
    except OSError as failure:
        raise LabError(f"the host cannot be asked: {failure.strerror}") from None


def _read(answer: Path) -> str | None:
    try:
        return answer.read_text(encoding="ascii").strip()
    except OSError:
        return None  # It is not there yet.
