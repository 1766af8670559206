"""Asks the host, through files, for changes that only the host can make for a trial.

The driver has no Docker socket, on purpose. It writes `<n>.request.json` to a folder of its own
below results/.hands/. `images/hands.sh` runs beside it on the host, makes the change if it is in
a fixed list (lab.model.knobs.HOST), and writes `<n>.answer.json`:

    {"server":"virtual-threads","settings":{"SERVER_CPUS":"0.5"}}      no settings: the defaults
    {"server":"generator","settings":{"GENERATOR_CPUS":"0.05"}}        the driver's own container
    {"ok":true}    or    {"ok":false,"error":"one line"}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from lab.errors import LabError
from lab.store.records import write_text
from lab.system.host import Clock

DEADLINE_S = 90.0
POLL_S = 0.1


class HostChanges:
    """Asks for one change after the other. `folder` None: nobody on the host answers, as when the
    control page started this driver."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._asked = 0

    def change(self, server: str, settings: Mapping[str, str], clock: Clock) -> None:
        """Recreate the server's container with these settings, all others at their defaults. When
        this returns the host has done it. Raises LabError, and Interrupted when the clock does."""
        if self._folder is None or not self._folder.is_dir():
            raise LabError("host settings need `make`: nobody on the host answers")
        self._asked += 1
        request = self._folder / f"{self._asked}.request.json"
        answer = self._folder / f"{self._asked}.answer.json"
        whole = {"server": server, "settings": dict(settings)}
        write_text(request, json.dumps(whole, separators=(",", ":")))
        until = clock.monotonic() + DEADLINE_S
        while (said := _read(answer)) is None:
            if clock.monotonic() >= until:
                # Too late is not done later, behind the driver's back.
                request.unlink(missing_ok=True)
                raise LabError(
                    f"the host did not answer within {DEADLINE_S:.0f} s: {_text(server, settings)}"
                )
            clock.sleep(POLL_S)
        answer.unlink(missing_ok=True)
        if said.get("ok") is not True:
            raise LabError(f"the host refused {_text(server, settings)}: {said.get('error')}")


def _read(path: Path) -> Mapping[str, object] | None:
    """An answer; None where it is not there yet, or not all of it."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) else {"error": "an answer that is none"}


def _text(server: str, settings: Mapping[str, str]) -> str:
    return f"{server} with {' '.join(f'{k}={v}' for k, v in settings.items()) or 'its defaults'}"
