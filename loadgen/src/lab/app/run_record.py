"""The record of a run while it is measured: its folder, and manifest.json from begin to end."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lab.app.tools import Place
from lab.errors import Interrupted
from lab.model import Experiment, Fairness, Json, Snapshot
from lab.report import index
from lab.store import manifest
from lab.store.manifest import Manifest, Status
from lab.store.records import read_object, write_bytes
from lab.store.run_dir import new_run_dir
from lab.system.host import System

RESERVE = ".reserve"
# The manifest takes some 10 KiB, the table and the report of a short run some 100.
RESERVE_BYTES = 256 * 1024
# A value in a line for people is cut here.
MOST_SHOWN = 40


def go_on(record: Manifest) -> str:
    """The command that goes on with a run, under the settings that it began with."""
    return " ".join(("make run", f"RESUME={record.run}", *record.settings))


def begin(
    place: Place,
    system: System,
    experiment: Experiment,
    servers: Mapping[str, Snapshot],
    fairness: Fairness,
    versions: Mapping[str, Json],
    notes: tuple[str, ...],
    target_answers: Mapping[str, str],
) -> tuple[Path, Manifest]:
    """The folder of a new run, and its manifest, which is written. `versions` are those of the
    engines. Raises LabError."""
    started_at = system.now()
    host = read_object(place.host_file)
    run_dir = new_run_dir(place.results, started_at, experiment.name)
    record = Manifest(
        run=run_dir.name,
        status="running",
        started_at=started_at,
        ended_at=None,
        experiment=experiment,
        versions={**manifest.code_versions(host), **versions},
        host=host,
        limits=place.limits,
        servers=servers,
        fairness=fairness,
        notes=notes,
        target_answers=target_answers,
        settings=place.settings,
    )
    manifest.write(run_dir, record)
    return run_dir, record


@contextmanager
def ending(run_dir: Path, end: Callable[[Status], None], console: Console) -> Iterator[None]:
    """Call `end` with how the run ended, whatever ends it, and list all runs. If the run failed,
    what this raises is only printed: the first error is the cause. A reserve on the disk, which is
    given up before, has the room for what `end` writes. Raises CannotWrite."""
    reserve = run_dir / RESERVE
    write_bytes(reserve, bytes(RESERVE_BYTES))

    def ended(status: Status) -> None:
        reserve.unlink(missing_ok=True)
        end(status)
        index.write(run_dir.parent)

    try:
        yield
    except BaseException as first:
        try:
            ended("interrupted" if isinstance(first, Interrupted) else "failed")
        except Exception as second:
            warn(console, f"{type(second).__name__}: {second}")
        raise
    ended("complete")


def say(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)


def warn(console: Console, text: str) -> None:
    say(console, f"warning: {text}")


def shown(value: object) -> str:
    """A recorded value in a line for people."""
    text = "not recorded" if value is None else str(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
