"""recording.json: what a server's JVM recorded in a trial, in that trial's folder of `recorded/`.

These trials are beside `raw/`, so that nothing that pools or compares trials can take them for
others.
"""

from __future__ import annotations

from pathlib import Path

from lab.model import Recording
from lab.store.records import read_json, write_json

NAME = "recording.json"
FOLDER = "recorded"


def write(raw: Path, recording: Recording) -> None:
    """Keep it with its trial. Raises CannotWrite."""
    write_json(raw / NAME, recording)


def load_or_none(raw: Path) -> Recording | None:
    """The recording of a trial; None where it has none. Raises RawDataError."""
    return read_json(raw / NAME, Recording) if (raw / NAME).is_file() else None
