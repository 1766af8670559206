"""What a run needs before it may go on: the same lab, and no half-done trial in its way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lab.errors import LabError
from lab.load.measure import RECORD
from lab.model import Json, Row, Snapshot, TrialRecord
from lab.store.manifest import Manifest
from lab.store.records import read_json
from lab.system.observe import SERIES

# What tells one host, and one build of the lab, from another.
HOST_FACTS = (
    "cpu_model", "cores", "memory_bytes", "kernel", "docker_version", "images", "cpusets",
)  # fmt: skip
CODE_FACTS = ("commit", "commit_dirty")


def check_unfinished(record: Manifest) -> None:
    """Raises LabError for a run in which nothing is left to do."""
    if record.status == "complete":
        raise LabError(f"RESUME={record.run}: that run is complete, nothing is left to do")


def unlike(
    record: Manifest,
    host: Mapping[str, Json],
    snapshots: Mapping[str, Snapshot],
    others: Iterable[tuple[str, object, object]] = (),
) -> None:
    """Raises LabError naming the first thing in which the lab is not what the run began on:
    rows of two labs in one table would be compared as if they were of one. `others` are more
    such things: name, what it was, what it is."""
    for what, was, now in (*others, *_facts(record, host, snapshots)):
        if was != now:
            raise LabError(
                f"RESUME={record.run}: {what} changed since it began ({_short(was)} became "
                f"{_short(now)}); start a new run instead"
            )


def unsure(record: Manifest, snapshots: Mapping[str, Snapshot]) -> Iterator[str]:
    """What nothing tells of a run on a service that is not the lab's, for its notes."""
    for server, now in snapshots.items():
        if not now.foreign:
            continue
        yield f"resumed: whether {server} is the same build is not known"
        was = record.servers[server].jvm_started_ms
        if was is not None and now.jvm_started_ms is not None and was != now.jvm_started_ms:
            yield f"resumed: {server} was restarted since the run began, as its JMX exporter tells"


def _facts(
    record: Manifest, host: Mapping[str, Json], snapshots: Mapping[str, Snapshot]
) -> Iterator[tuple[str, object, object]]:
    for name in CODE_FACTS:
        yield name, record.versions.get(name), host.get(name)
    for name in HOST_FACTS:
        yield f"the host's {name}", record.host.get(name), host.get(name)
    for server, now in snapshots.items():
        was = record.servers[server]
        for name in sorted({*was.settings, *now.settings}):
            yield f"{server}: {name}", was.settings.get(name), now.settings.get(name)
        if was.identity is not None and now.identity is not None:
            yield f"{server}: its JVM's flags", was.identity.jvm_flags, now.identity.jvm_flags
        yield f"{server}: what its JMX exporter tells", _build(was), _build(now)
        yield "the toxics in force", was.toxics.in_force, now.toxics.in_force
        yield "the downstream's delay", was.downstream_delay_ms, now.downstream_delay_ms


def _build(of: Snapshot) -> tuple[object, ...] | None:
    """What a foreign JVM is; it may have been restarted."""
    return (of.exported.jdk, of.exported.max_heap_bytes) if of.exported else None


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def still_running(
    run_dir: Path, rows: Sequence[Row], snapshots: Mapping[str, Snapshot]
) -> dict[str, tuple[int, str | None]]:
    """Launch and arm of the fresh JVMs that still run, by server: those that the server's last
    trial began on. A launch goes on with them, as if there had been no interruption. Raises
    RawDataError without a trial.json."""
    found = {}
    for server, now in snapshots.items():
        last = next((row for row in reversed(rows) if row.server == server and row.launch), None)
        if last is None:
            continue
        record = read_json(run_dir / "raw" / last.trial / RECORD, TrialRecord)
        if now.jvm_started_ms is not None and record.before.jvm_started_ms == now.jvm_started_ms:
            found[server] = last.launch, last.arm
    return found


def without_series(run_dir: Path) -> list[Path]:
    """The raw folders of trials that ended, but whose Prometheus series were not stored yet."""
    return [
        folder.parent
        for folder in sorted((run_dir / "raw").glob(f"*/{RECORD}"))
        if not (folder.parent / SERIES).exists()
    ]


def put_away(run_dir: Path) -> list[str]:
    """Move folders of trials that never finished out of the way, keeping all that is in them;
    the names they have now."""
    moved = []
    for raw in sorted((run_dir / "raw").glob("*")):
        if not raw.is_dir() or (raw / RECORD).exists():
            continue
        target = next(
            folder
            for number in range(1, 10_000)
            if not (folder := run_dir / "abandoned" / f"{raw.name}-{number}").exists()
        )
        target.parent.mkdir(exist_ok=True)
        raw.rename(target)
        moved.append(f"{target.parent.name}/{target.name}")
    return moved
