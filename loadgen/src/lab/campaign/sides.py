"""The sides of `compare` (A and B) and of `gate` (BASE and CANDIDATE): which run and lane each is,
and whether they may be compared.

    A=<run>[:<server>[@<arm>]]   the same for B

Runs of different hosts are never compared. `compare` names all else that differs. A gate refuses
it, but for the commit and the servers' images, which it judges. Fails closed: what only one run
recorded differs (lab.judge.same_lab).

Every trial is judged again from its raw data. So both sides are judged by the rules of this
version, whatever version measured them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lab.campaign.derive import judged_again
from lab.errors import LabError, WordError
from lab.experiments import loads
from lab.experiments.registry import kind_of
from lab.judge.compare import Comparison, Side, compare_all
from lab.judge.fairness import between_models
from lab.judge.grouping import lane_of
from lab.judge.same_lab import PARTS, Difference, Kind, between_labs, between_snapshots, services
from lab.load.engines import ENGINES, Engine
from lab.model import Row
from lab.store import manifest
from lab.store.run_dir import find_run_dir

# What a run of trials records of its driver.
LIMITS = ("open_files", "generator_cores")
# What a user calls each kind of difference.
WORD_OF: Mapping[Kind, str] = {
    "host": "host",
    "limits": "limits",
    "images": "images",
    "commit": "commit",
    "uncommitted": "commit",
    "build": "images",
    "jvm": "limits",
    "settings": "limits",
    "toxics": "limits",
    "delay": "limits",
    "engine": "engine",  # part of every load that is compared, so no difference of two sides
}
NOT_RECORDED = "not recorded"
_LANE = re.compile(r"[a-z0-9][a-z0-9.-]*(@[A-Za-z0-9._-]+)?")


class Unlike(NamedTuple):
    """A difference of two runs: what a user calls its kind, and what it is. `lab`: it is one of the
    lab's own parts, which a gate never judges."""

    word: str
    text: str
    lab: bool = False


class Asked(NamedTuple):
    """The verb that asks, and its words for the two sides."""

    verb: str
    a: str
    b: str


COMPARE = Asked("compare", "A", "B")


@dataclass(frozen=True, slots=True)
class Run:
    """One side: the word for it, a run as it is on disk with its trials judged again, and the lane
    that is meant (None: every lane)."""

    word: str
    record: manifest.Manifest
    every: tuple[Row, ...]
    folder: Path
    lane: str | None

    @property
    def name(self) -> str:
        """The folder in results/ that it was measured into."""
        return self.record.run

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for row in self.every if self._means(row))

    def _means(self, row: Row) -> bool:
        # A server without an arm means all of its arms.
        return self.lane in (None, lane_of(row), row.server)

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.server for row in self.rows))

    @property
    def title(self) -> str:
        return self.named(self.lane)

    def named(self, lane: str | None) -> str:
        return f"{self.name}:{lane}" if lane else self.name


@dataclass(frozen=True, slots=True)
class Paired:
    """Two sides: their pairs of lanes, and notes on both."""

    lanes: tuple[tuple[Side, Side], ...]
    notes: tuple[str, ...]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return compare_all(self.lanes)


def read_sides(
    words: Mapping[str, str],
    results: Path,
    engines: Sequence[Engine] = ENGINES,
    asked: Asked = COMPARE,
) -> tuple[Run, Run]:
    """Both sides. Raises WordError, or LabError where a run cannot be read or has no raw data."""
    a, b = (_run(asked.verb, word, words, results, engines) for word in (asked.a, asked.b))
    if (a.lane is None) != (b.lane is None):
        without, given = (a.word, b.lane) if a.lane is None else (b.word, a.lane)
        raise WordError(
            f"{asked.verb}: {without}={words[without]} names no server, the other side does; "
            f"allowed: both or neither, as {without}=<run>:{given}"
        )
    if {(row.run, row.trial) for row in a.rows} & {(row.run, row.trial) for row in b.rows}:
        raise WordError(
            f"{asked.verb}: the trials of {a.name} are on both sides; allowed: other runs, or "
            f"other servers or arms of one, as {a.word}=<run>:<server> {b.word}=<run>:<other>"
        )
    return a, b


def _run(
    verb: str, word: str, words: Mapping[str, str], results: Path, engines: Sequence[Engine]
) -> Run:
    given = words.get(word)
    if given is None:
        raise WordError(f"{verb}: {word} is missing; give a run of results/, as {word}=latest")
    name, colon, lane = given.partition(":")
    if colon and not _LANE.fullmatch(lane):
        raise WordError(
            f"{verb}: {word}={given} is not allowed; allowed: {word}=<run>[:<server>[@<arm>]]"
        )
    folder = find_run_dir(results, word, name)
    kind = manifest.read(folder).experiment
    if kind_of(kind).changes_lab:
        raise LabError(
            f"{folder.name} is of kind {kind.kind}: the lab was changed from trial to trial on "
            "purpose, so it is no side of a comparison"
        )
    run = Run(word, *judged_again(folder, engines), folder, lane or None)
    if not run.rows:
        lanes = dict.fromkeys(map(lane_of, run.every))
        raise WordError(
            f"{verb}: {word}={given} has no trials; its servers: {', '.join(lanes) or 'none'}"
        )
    return run


def pair(a: Run, b: Run, judged: Sequence[str] | None = None) -> Paired:
    """A against B: the lanes meant, or every lane that both have. `judged`: all that they may
    differ in; None: in anything but the host. Raises LabError where they differ in more."""
    notes = []
    for word, text, lab in unlike(a, b):
        if word == "host":
            text += "; results of different hosts are never compared"
        if word == "host" or (judged is not None and (lab or word not in judged)):
            raise LabError(f"{a.word} and {b.word} differ in {word}: {text}")
        notes.append(f"differs in {word}: {text}")
    notes += _run_notes(a, b)
    if a.lane is not None and b.lane is not None:
        return Paired((((a.title, a.rows), (b.title, b.rows)),), tuple(notes))
    lanes_a, lanes_b = (dict.fromkeys(map(lane_of, side.rows)) for side in (a, b))
    shared = [lane for lane in lanes_a if lane in lanes_b]
    if not shared:
        raise LabError(
            f"{a.word} has {', '.join(lanes_a)} and {b.word} {', '.join(lanes_b)}, none in common; "
            f"name one on each side, as {a.word}=<run>:<server>"
        )
    for side, lanes in ((a, lanes_a), (b, lanes_b)):
        alone = [lane for lane in lanes if lane not in shared]
        if alone:
            notes.append(f"only in {side.word}: {', '.join(alone)}")
    return Paired(tuple((_side(a, lane), _side(b, lane)) for lane in shared), tuple(notes))


def _side(run: Run, lane: str) -> Side:
    return run.named(lane), [row for row in run.rows if lane_of(row) == lane]


def missing_lanes(a: Run, b: Run) -> tuple[str, ...]:
    """The lanes of A that B was not measured in, where no lane of A is named."""
    if a.lane is not None:
        return ()
    has = set(map(lane_of, b.rows))
    return tuple(lane for lane in dict.fromkeys(map(lane_of, a.rows)) if lane not in has)


def _run_notes(a: Run, b: Run) -> Iterator[str]:
    if a.name != b.name:
        yield (
            f"{a.word} and {b.word} are different runs, one after the other and not interleaved: "
            "what drifted on the machine between them is part of every difference, and in no "
            "interval"
        )
    for run in {run.name: run for run in (a, b)}.values():
        scale = run.record.experiment.scale
        if scale != 1:
            yield f"{run.name} ran with SCALE={scale:g}: a quick look, not a result"
        if run.record.status != "complete":
            yield f"{run.name} is {run.record.status}, not complete"


def unlike(a: Run, b: Run) -> list[Unlike]:
    """The differences of two runs that affect their servers, in the order of WORD_OF. A run does
    not differ from itself in host, images and commit."""
    found = [*_servers(a, b)]
    if a.name != b.name:
        for what in ("arrivals", "target", "requests"):
            was, now = (getattr(run.record.experiment, what) for run in (a, b))
            if was != now:
                found.append(Unlike("limits", f"the {what} of {a.name} and of {b.name} are others"))
        found += [
            Unlike(word, f"the arms of {run.name} have {what} of their own", lab=True)
            for word, what in (("images", "images"), ("limits", "settings"))
            for run in (a, b)
            if getattr(loads.arms_of(run.record.experiment), what)
        ]
        both = [server for server in a.servers if server in b.servers]
        if a.record.experiment.target:
            # What it calls may be among them.
            both += [name for run in (a, b) for name in services(run.record)]
        for one in between_labs(a.record, b.record, LIMITS, (*both, *PARTS)):
            word, lab = WORD_OF[one.kind], one.name in PARTS
            found += [Unlike(word, text, lab) for text in _texts(one, a, b)]
    order = [*dict.fromkeys(WORD_OF.values())]
    return sorted(found, key=lambda one: order.index(one.word))


def _servers(a: Run, b: Run) -> Iterator[Unlike]:
    """Of the same server everything counts; of different servers what must be the same for all
    models (see lab.judge.fairness)."""
    pairs = [(server, server) for server in a.servers if server in b.servers]
    for one, other in pairs or [(a.servers[0], b.servers[0])]:
        before, after = a.record.servers.get(one), b.record.servers.get(other)
        if before is None or after is None:
            missing = one if before is None else other
            yield Unlike("limits", f"the settings of {missing} are {NOT_RECORDED}")
            continue
        between = between_snapshots if one == other else between_models
        for difference in between(before, after):
            texts = [*_texts(difference, a, b)]
            if difference.kind not in ("toxics", "delay"):
                was = f"{difference.name} is {_short(difference.was)} for {one} of {a.name}"
                texts = [f"{was}, {_short(difference.now)} for {other} of {b.name}"]
            yield from (Unlike(WORD_OF[difference.kind], text) for text in texts)


def _texts(one: Difference, a: Run, b: Run) -> Iterator[str]:
    if one.name == "commit_dirty":
        for run, dirty in ((a, one.was), (b, one.now)):
            if dirty is not False:
                yield f"{run.name} ran code that was not committed, so it is like no other"
    elif one.kind != "engine":
        yield f"{one.name} is {_short(one.was)} in {a.name}, {_short(one.now)} in {b.name}"


def _short(value: object) -> str:
    text = NOT_RECORDED if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
