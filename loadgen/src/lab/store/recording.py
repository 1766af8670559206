"""A recording in the folder of its trial: its stacks as folded text, its flame graph, and in
recording.json what it is of.

collapsed.txt has a line for each stack: frames with semicolons between, a space, the weight.
"""

import copy
from pathlib import Path

from lab.model import Recording
from lab.store.records import UNREADABLE, damaged, read_bytes, read_json, write_json, write_text

NAME, STACKS, GRAPH = "recording.json", "collapsed.txt", "flamegraph.html"
FOLDER = "recorded"


def write(raw: Path, recording: Recording, graph: str) -> None:
    """Keep it and the page of its flame graph with its trial. Raises CannotWrite."""
    lines = (f"{stack} {weight}\n" for stack, weight in recording.stacks.items())
    write_text(raw / STACKS, "".join(lines))
    write_text(raw / GRAPH, graph)
    # Last: with it the recording is whole.
    write_json(raw / NAME, copy.replace(recording, stacks={}))


def load_or_none(raw: Path) -> Recording | None:
    """The recording of a trial; None where it has none. Raises RawDataError."""
    if not (raw / NAME).is_file():
        return None
    recording = read_json(raw / NAME, Recording)
    try:
        lines = read_bytes(raw / STACKS).decode().split("\n")[:-1]
        parted = (line.rpartition(" ") for line in lines)
        return copy.replace(recording, stacks={stack: int(weight) for stack, _, weight in parted})
    except UNREADABLE as failure:
        raise damaged(raw / STACKS, failure) from None
