"""The sides A and B of `compare`: which runs and lanes, and whether they may be compared.

    A=<run>[,<run>…][:<server>[@<arm>]]   the same for B; ACROSS=commit,images,limits

Runs of one side are pooled, so they must be alike in host, limits, images and commit; A and B
too, but for what ACROSS names as compared on purpose. Fails closed: what a run did not record is
like nothing else. Only CPU sets, which older versions did not record, may be missing from all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.campaign.as_measured import as_measured
from lab.errors import LabError, WordError
from lab.experiments.registry import kind_of
from lab.judge.compare import Comparison, compare
from lab.judge.fairness import compare as compare_limits
from lab.judge.grouping import lane_of
from lab.model import Experiment, Row, Snapshot
from lab.store import csv, manifest
from lab.store.run_dir import find_run_dir

WORDS = ("A", "B", "ACROSS")
ACROSS = ("commit", "images", "limits")
HOST = ("cpu_model", "cores", "memory_bytes", "kernel", "docker_version")
LIMITS = ("open_files", "generator_cores")
# Whose CPU sets are limits too, though a manifest has them of its host.
CPUSETS = ("loadgen", "toxiproxy", "downstream")
# Besides the servers' own: what is in every request's way.
SHARED_IMAGES = ("toxiproxy", "downstream", "loadgen")
# Of what a server reads back, this comes with its image.
OF_IMAGE = ("version", "jdk")
NOT_RECORDED = "not recorded"
_LANE = re.compile(r"[a-z0-9][a-z0-9.-]*(@[A-Za-z0-9._-]+)?")


@dataclass(frozen=True, slots=True)
class Run:
    """One run as it is on disk."""

    record: manifest.Manifest
    experiment: Experiment
    rows: tuple[Row, ...]

    @property
    def name(self) -> str:
        """Its folder in results/."""
        return self.record.run


@dataclass(frozen=True, slots=True)
class Pool:
    """One side: its runs, alike in everything, and the lane meant (None: every lane)."""

    word: str
    runs: tuple[Run, ...]
    lane: str | None

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows meant, of all runs."""
        return tuple(row for run in self.runs for row in run.rows if self._means(row))

    def _means(self, row: Row) -> bool:
        # A server without an arm means all of its arms.
        return self.lane in (None, row.server, lane_of(row))

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers of its rows."""
        return tuple(dict.fromkeys(row.server for row in self.rows))

    def named(self, lane: str) -> str:
        """A lane of this side, for people."""
        return f"{', '.join(run.name for run in self.runs)}:{lane}"


@dataclass(frozen=True, slots=True)
class Paired:
    """What comes of two sides: a comparison per pair of lanes, and what must be known of them."""

    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]


def read_pools(words: Mapping[str, str], results: Path) -> tuple[Pool, Pool, tuple[str, ...]]:
    """Both sides and what is compared on purpose. Raises WordError, or LabError where a run
    cannot be read or the runs of one side are not alike."""
    across = _across(words)
    a, b = (_pool(word, words, results) for word in ("A", "B"))
    if (a.lane is None) != (b.lane is None):
        without, given = ("A", b.lane) if a.lane is None else ("B", a.lane)
        raise WordError(
            f"compare: {without}={words[without]} names no server, the other side does; allowed: "
            f"both or neither, as {without}=<run>:{given}"
        )
    twice = {(row.run, row.trial) for row in a.rows} & {(row.run, row.trial) for row in b.rows}
    if twice:
        raise WordError(
            f"compare: the trials of {min(twice)[0]} are on both sides; allowed: other runs, or "
            "other servers or arms of one, as A=<run>:<server> B=<run>:<other server>"
        )
    return a, b, across


def _across(words: Mapping[str, str]) -> tuple[str, ...]:
    if "ACROSS" not in words:
        return ()
    given = tuple(words["ACROSS"].split(","))
    for one in given:
        if one == "host":
            raise WordError(
                "compare: ACROSS=host is never allowed: what two hosts differ in cannot be named; "
                f"allowed: {', '.join(ACROSS)}"
            )
        if one not in ACROSS:
            raise WordError(f"compare: ACROSS={one} is not allowed; allowed: {', '.join(ACROSS)}")
    return given


def _pool(word: str, words: Mapping[str, str], results: Path) -> Pool:
    given = words.get(word)
    if given is None:
        raise WordError(f"compare: {word} is missing; give a run of results/, as {word}=latest")
    names, colon, lane = given.partition(":")
    if colon and not _LANE.fullmatch(lane):
        raise WordError(
            f"compare: {word}={given} is not allowed; allowed: {word}=<run>[,<run>…]"
            "[:<server>[@<arm>]]"
        )
    folders = [find_run_dir(results, word, name) for name in names.split(",")]
    if len(set(folders)) != len(folders):
        raise WordError(f"compare: {word}={given} names the same run twice; allowed: each once")
    pool = Pool(word, tuple(map(_run, folders)), lane or None)
    if not pool.rows:
        lanes = dict.fromkeys(lane_of(row) for run in pool.runs for row in run.rows)
        raise WordError(
            f"compare: {word}={given} has no trials; its servers: {', '.join(lanes) or 'none'}"
        )
    for run in pool.runs[1:]:
        for kind, text in unlike(pool.runs[0], run, pool.servers, pool.servers):
            raise LabError(
                f"{word} pools {pool.runs[0].name} and {run.name}, which differ in {kind}: {text}; "
                "only runs alike in host, limits, images and commit are pooled"
            )
    return pool


def _run(folder: Path) -> Run:
    record = manifest.read(folder)
    experiment = record.experiment
    assert isinstance(experiment, Experiment)  # noqa: S101 - manifest.read says so
    if kind_of(experiment).changes_lab:
        raise LabError(
            f"{folder.name} is of kind {experiment.kind}: the lab was changed from trial to trial "
            "on purpose, so it is no side of a comparison"
        )
    path = folder / csv.NAME
    if not path.is_file():
        raise LabError(f"{folder.name} has no {csv.NAME}: `make report RUN={folder.name}` makes it")
    return Run(as_measured(record, folder), experiment, csv.read(path))


def pair(a: Pool, b: Pool, across: Sequence[str]) -> Paired:
    """A against B: the lanes meant, or every lane that both have. Raises LabError where A and B
    differ in what is not compared on purpose."""
    found: dict[str, list[str]] = {}
    for kind, text in unlike(a.runs[0], b.runs[0], a.servers, b.servers):
        found.setdefault(kind, []).append(text)
    for kind, differences in found.items():
        if kind not in across:
            more = f" and {len(differences) - 1} more" if len(differences) > 1 else ""
            raise LabError(f"A and B differ in {kind}: {differences[0]}{more}; {_hint(kind)}")
    notes = [*_across_notes(found, across), *_run_notes(a, b)]
    if a.lane is not None and b.lane is not None:
        return Paired((compare(a.rows, b.rows, a.named(a.lane), b.named(b.lane)),), tuple(notes))
    lanes_a, lanes_b = (dict.fromkeys(map(lane_of, side.rows)) for side in (a, b))
    if not {*lanes_a} & {*lanes_b}:
        raise LabError(
            f"A has {', '.join(lanes_a)} and B {', '.join(lanes_b)}, none in common; name one on "
            "each side, as A=<run>:<server>"
        )
    for side, mine, other in ((a, lanes_a, lanes_b), (b, lanes_b, lanes_a)):
        alone = [lane for lane in mine if lane not in other]
        if alone:
            notes.append(f"only in {side.word}: {', '.join(alone)}")
    comparisons = [
        compare(
            [row for row in a.rows if lane_of(row) == lane],
            [row for row in b.rows if lane_of(row) == lane],
            a.named(lane),
            b.named(lane),
        )
        for lane in lanes_a
        if lane in lanes_b
    ]
    return Paired(tuple(comparisons), tuple(notes))


def _hint(kind: str) -> str:
    if kind == "host":
        return "results of different hosts are never compared"
    return f"ACROSS={kind} compares across it on purpose"


def _across_notes(found: Mapping[str, Sequence[str]], across: Sequence[str]) -> Iterator[str]:
    for kind in across:
        for text in found.get(kind, ["the same on both sides"]):
            yield f"compared across {kind} on purpose: {text}"


def _run_notes(a: Pool, b: Pool) -> Iterator[str]:
    if {run.name for run in a.runs} != {run.name for run in b.runs}:
        yield (
            "A and B are different runs, one after the other and not interleaved: what drifted on "
            "the machine between them is part of every difference"
        )
    runs = tuple({run.name: run for run in (*a.runs, *b.runs)}.values())
    for run in runs:
        if run.experiment.scale != 1:
            yield f"{run.name} ran with SCALE={run.experiment.scale:g}: a quick look, not a result"
        if run.record.status != "complete":
            yield f"{run.name} is {run.record.status}, not complete"
    if len(runs) > 1 and not any(map(_tells_cpus, runs)):
        yield "CPU sets were not recorded on either side"
    seconds = dict.fromkeys(
        f"{row.window_s:g} s" for row in (*a.rows, *b.rows) if row.window_s is not None
    )
    if len(seconds) > 1:
        yield f"measured windows are of different lengths: {', '.join(seconds)}"


def unlike(
    a: Run, b: Run, servers_a: Sequence[str], servers_b: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """In what two runs differ, as far as it touches these servers: (kind, text). Kinds: host,
    limits, images, commit. A run does not differ from itself in host, images and commit."""
    if a.name != b.name:
        for name in HOST:
            yield from _differ("host", name, a, b, a.record.host.get(name), b.record.host.get(name))
        for name in sorted({*LIMITS, *a.record.limits, *b.record.limits}):
            before, after = a.record.limits.get(name), b.record.limits.get(name)
            yield from _differ("limits", name, a, b, before, after)
        for name in CPUSETS if _tells_cpus(a) or _tells_cpus(b) else ():
            yield from _differ("limits", f"CPU set of {name}", a, b, _cpus(a, name), _cpus(b, name))
    yield from _settings(a, b, servers_a, servers_b)
    if a.name == b.name:
        return
    both = [server for server in servers_a if server in servers_b]
    for image in (*both, *SHARED_IMAGES):
        yield from _differ("images", image, a, b, _image(a, image), _image(b, image))
    commits = [run.record.versions.get("commit") for run in (a, b)]
    commits = [None if commit == "unknown" else commit for commit in commits]
    yield from _differ("commit", "commit", a, b, *commits)
    for run in (a, b):
        if run.record.versions.get("commit_dirty") is not False:
            yield "commit", f"{run.name} ran code that was not committed, so it is like no other"


def _differ(
    kind: str, name: str, a: Run, b: Run, before: object, after: object
) -> Iterator[tuple[str, str]]:
    if before is None or after is None or before != after:
        yield kind, f"{name} is {_short(before)} in {a.name}, {_short(after)} in {b.name}"


def _settings(
    a: Run, b: Run, servers_a: Sequence[str], servers_b: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Settings and conditions: of the same server all of them; of different servers those that
    must be the same for all models (see lab.judge.fairness)."""
    pairs = [(server, server) for server in servers_a if server in servers_b]
    for one, other in pairs or [(servers_a[0], servers_b[0])]:
        snapshots = a.record.servers.get(one), b.record.servers.get(other)
        if snapshots[0] is None or snapshots[1] is None:
            missing = one if snapshots[0] is None else other
            yield "limits", f"the settings of {missing} are {NOT_RECORDED}"
            continue
        before, after = snapshots[0], snapshots[1]
        found = compare_limits({"A": before, "B": after})
        unequal = {**found.unequal, **(found.own if one == other else {})}
        for name, values in unequal.items():
            if values["A"] != values["B"]:
                text = f"{name} is {_short(values['A'])} for {_of(a, one)}, "
                text += f"{_short(values['B'])} for {_of(b, other)}"
                yield ("images" if name in OF_IMAGE else "limits"), text
        for name, was, now in _conditions(before, after):
            yield from _differ("limits", name, a, b, was, now)


def _conditions(before: Snapshot, after: Snapshot) -> Iterator[tuple[str, object, object]]:
    was, now = ("; ".join(one.toxics.in_force) or "none" for one in (before, after))
    yield "toxics", was, now
    yield "the downstream's delay in ms", before.downstream_delay_ms, after.downstream_delay_ms


def _of(run: Run, server: str) -> str:
    return f"{server} of {run.name}"


def _tells_cpus(run: Run) -> bool:
    return run.record.host.get("cpusets") is not None


def _cpus(run: Run, name: str) -> str | None:
    """The CPUs a part may use; None where they were not recorded."""
    sets = run.record.host.get("cpusets")
    given = sets.get(name) if isinstance(sets, Mapping) else None
    return None if given is None else str(given) or "all"


def _image(run: Run, name: str) -> object:
    """The id of the image of that name, whatever its registry, project and tag."""
    images = run.record.host.get("images")
    for tag, facts in images.items() if isinstance(images, Mapping) else ():
        if tag.rpartition("/")[2].partition(":")[0] == name and isinstance(facts, Mapping):
            return facts.get("id")
    return None


def _short(value: object) -> str:
    text = NOT_RECORDED if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
