"""Asks the host, through files, for changes that only the host can make for a trial.

The driver has no Docker socket, on purpose. It writes `<n>.request` to a folder of its own below
results/.host-changes/. `host/changes.sh` runs beside it on the host. It makes the change if
`allowed` lists each line of the request, and writes `<n>.answer`:

    SERVER=virtual-threads          a server; no other line: all its settings by default
    SERVER_CPUS=0.5
    SERVER=my-service               a service of the user's: a new container, as it is
    FRESH=yes
    SERVER=my-service               with what its subject's [levers] name (lab.model.own_lever)
    ENV_POOL_SIZE=40
    OWN_CPUS=2
    SERVER=generator                the driver's own container
    GENERATOR_CPUS=0.05

    ok      or      failed: one line
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lab.errors import LabError, LabUnreachable, Refused
from lab.model import OwnLever
from lab.model.knobs import CPUS, GENERATOR, GENERATOR_CPUS, HOST, IMAGE
from lab.store.records import write_text
from lab.system.host import Clock

DEADLINE_S = 90.0
POLL_S = 0.1
FRESH = "FRESH"
# The services of the user's own, in the list.
OWN = "OWN_SERVER"


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
    """Asks for one change after the other. `folder` None: nobody on the host answers, as on several
    machines."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._asked = 0

    def change(self, server: str, settings: Mapping[str, str], clock: Clock) -> None:
        """Recreate the server's container with these settings, all others at their defaults. When
        this returns the host has done it. Raises LabUnreachable where the host does not answer,
        Refused where it could not do it, LabError where there is no host to ask, and Interrupted
        when the clock does."""
        if self._folder is None or not self._folder.is_dir():
            raise LabError("host settings need `make`: nobody on the host answers")
        self._asked += 1
        request = self._folder / f"{self._asked}.request"
        answer = self._folder / f"{self._asked}.answer"
        lines = {"SERVER": server, **settings}
        write_text(request, "".join(f"{name}={value}\n" for name, value in lines.items()))
        until = clock.monotonic() + DEADLINE_S
        while (said := _read(answer)) is None:
            if clock.monotonic() >= until:
                # Too late is not done later, behind the driver's back.
                request.unlink(missing_ok=True)
                raise LabUnreachable(
                    f"the host did not answer within {DEADLINE_S:.0f} s: {_text(server, settings)}"
                )
            clock.sleep(POLL_S)
        answer.unlink(missing_ok=True)
        if said != "ok":
            problem = said.removeprefix("failed: ")
            raise Refused(f"the host refused {_text(server, settings)}: {problem}")

    def fresh(self, server: str, clock: Clock) -> None:
        """Put a new container in the place of the server's, as it is. Raises as `change`."""
        self.change(server, {FRESH: "yes"}, clock)


def _read(path: Path) -> str | None:
    """An answer; None where it is not there yet, or not all of it."""
    try:
        said = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return said.strip() if said.endswith("\n") else None


def _text(server: str, settings: Mapping[str, str]) -> str:
    return f"{server} with {' '.join(f'{k}={v}' for k, v in settings.items()) or 'its defaults'}"
