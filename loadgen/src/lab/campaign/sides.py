"""The sides A and B of `compare` (of `gate`: BASE and CANDIDATE): which runs and lanes, and whether
they may be compared.

    A=<run>[,<run>…][:<server>[@<arm>]]   the same for B; ACROSS=commit,images,limits

Runs of one side are pooled, so they must be alike in host, limits, images and commit; A and B
too, but for what ACROSS names as compared on purpose. Fails closed: see lab.judge.same_lab.

Every trial is judged again from its raw data. So both sides are judged by the rules of this
version, whatever version measured them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from lab.judge.same_lab import (
    PARTS,
    Difference,
    Kind,
    between_labs,
    between_snapshots,
    services,
)
from lab.load.engines import ENGINES, Engine
from lab.model import NOT_AS_IT_IS, Row
from lab.store import manifest
from lab.store.run_dir import find_run_dir

WORDS = ("A", "B", "ACROSS")
ACROSS = ("commit", "images", "limits")
# What a run of trials records of its driver.
LIMITS = ("open_files", "generator_cores")
# What `compare` calls each kind of difference.
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
    """A difference of two runs: the word of ACROSS for it, and what it is, for people. `lab`: it is
    one of the lab's own parts, which a gate never judges."""

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
    """One run as it is on disk, its trials judged again."""

    record: manifest.Manifest
    rows: tuple[Row, ...]
    folder: Path

    @property
    def name(self) -> str:
        """The folder in results/ that it was measured into."""
        return self.record.run


@dataclass(frozen=True, slots=True)
class Pool:
    """One side: its runs, alike in everything, and the lane meant (None: every lane)."""

    word: str
    runs: tuple[Run, ...]
    lane: str | None

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for run in self.runs for row in run.rows if self._means(row))

    def _means(self, row: Row) -> bool:
        # A server without an arm means all of its arms in which it is as it is.
        as_it_is = row.arm not in NOT_AS_IT_IS
        return self.lane in (None, lane_of(row)) or (self.lane == row.server and as_it_is)

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.server for row in self.rows))

    def side(self, lane: str) -> Side:
        return self.named(lane), [row for row in self.rows if lane_of(row) == lane]

    def named(self, lane: str | None) -> str:
        runs = ", ".join(run.name for run in self.runs)
        return f"{runs}:{lane}" if lane else runs


@dataclass(frozen=True, slots=True)
class Paired:
    """What comes of two sides: the pairs of lanes, of how many runs a side is at most, and what
    must be known of them."""

    lanes: tuple[tuple[Side, Side], ...]
    looks: int
    notes: tuple[str, ...]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """A comparison per pair of lanes."""
        return compare_all(self.lanes, self.looks)


def read_pools(
    words: Mapping[str, str],
    results: Path,
    engines: Sequence[Engine] = ENGINES,
    asked: Asked = COMPARE,
) -> tuple[Pool, Pool, tuple[str, ...]]:
    """Both sides and what is compared on purpose. Raises WordError, or LabError where a run
    cannot be read, has no raw data, or the runs of one side are not alike."""
    verb, across = asked.verb, _across(words, asked.verb)
    known: dict[Path, Run] = {}

    def run_of(folder: Path) -> Run:
        if folder not in known:
            known[folder] = _run(folder, engines)
        return known[folder]

    a, b = (_pool(verb, word, words, results, run_of) for word in (asked.a, asked.b))
    if (a.lane is None) != (b.lane is None):
        without, given = (a.word, b.lane) if a.lane is None else (b.word, a.lane)
        raise WordError(
            f"{verb}: {without}={words[without]} names no server, the other side does; allowed: "
            f"both or neither, as {without}=<run>:{given}"
        )
    twice = {(row.run, row.trial) for row in a.rows} & {(row.run, row.trial) for row in b.rows}
    if twice:
        raise WordError(
            f"{verb}: the trials of {min(twice)[0]} are on both sides; allowed: other runs, or "
            f"other servers or arms of one, as {a.word}=<run>:<server> {b.word}=<run>:<other>"
        )
    return a, b, across


def _across(words: Mapping[str, str], verb: str) -> tuple[str, ...]:
    if "ACROSS" not in words:
        return ()
    given = tuple(words["ACROSS"].split(","))
    for one in given:
        if one == "host":
            raise WordError(
                f"{verb}: ACROSS=host is never allowed: what two hosts differ in cannot be named; "
                f"allowed: {', '.join(ACROSS)}"
            )
        if one not in ACROSS:
            raise WordError(f"{verb}: ACROSS={one} is not allowed; allowed: {', '.join(ACROSS)}")
    return given


def _pool(
    verb: str, word: str, words: Mapping[str, str], results: Path, run_of: Callable[[Path], Run]
) -> Pool:
    given = words.get(word)
    if given is None:
        raise WordError(f"{verb}: {word} is missing; give a run of results/, as {word}=latest")
    names, colon, lane = given.partition(":")
    if colon and not _LANE.fullmatch(lane):
        raise WordError(
            f"{verb}: {word}={given} is not allowed; allowed: {word}=<run>[,<run>…]"
            "[:<server>[@<arm>]]"
        )
    found = [find_run_dir(results, word, name) for name in names.split(",")]
    if len(set(found)) != len(found):
        raise WordError(f"{verb}: {word}={given} names the same run twice; allowed: each once")
    pool = Pool(word, tuple(map(run_of, found)), lane or None)
    if not pool.rows:
        lanes = dict.fromkeys(lane_of(row) for run in pool.runs for row in run.rows)
        raise WordError(
            f"{verb}: {word}={given} has no trials; its servers: {', '.join(lanes) or 'none'}"
        )
    for run in pool.runs[1:]:
        for kind, text, _ in unlike(pool.runs[0], run, pool.servers, pool.servers):
            raise LabError(
                f"{word} pools {pool.runs[0].name} and {run.name}, which differ in {kind}: {text}; "
                "only runs alike in host, limits, images and commit are pooled"
            )
    return pool


def _run(folder: Path, engines: Sequence[Engine]) -> Run:
    record = manifest.read(folder)
    experiment = record.experiment
    if kind_of(experiment).changes_lab:
        raise LabError(
            f"{folder.name} is of kind {experiment.kind}: the lab was changed from trial to trial "
            "on purpose, so it is no side of a comparison"
        )
    return Run(*judged_again(folder, engines), folder)


def pair(a: Pool, b: Pool, across: Sequence[str], expected: Sequence[str] = ()) -> Paired:
    """A against B: the lanes meant, or every lane that both have. `expected`: what they may differ
    in beside `across`. Raises LabError where they differ in something else."""
    found: dict[str, list[str]] = {}
    refused: dict[str, list[str]] = {}
    for kind, text, lab in unlike(a.runs[0], b.runs[0], a.servers, b.servers):
        found.setdefault(kind, []).append(text)
        if kind not in across and (lab or kind not in expected):
            refused.setdefault(kind, []).append(text)
    for kind, differences in refused.items():
        more = f" and {len(differences) - 1} more" if len(differences) > 1 else ""
        said = f"{differences[0]}{more}; {_hint(kind)}"
        raise LabError(f"{a.word} and {b.word} differ in {kind}: {said}")
    judged = [
        f"differs in {kind}, which is judged: {text}"
        for kind in expected
        if kind not in across
        for text in found.get(kind, ())
    ]
    notes = [*_across_notes(found, across), *judged, *_run_notes(a, b)]
    looks = max(len(a.runs), len(b.runs))
    if a.lane is not None and b.lane is not None:
        one: tuple[Side, Side] = (a.named(a.lane), a.rows), (b.named(b.lane), b.rows)
        return Paired((one,), looks, tuple(notes))
    lanes_a, lanes_b = (dict.fromkeys(map(lane_of, side.rows)) for side in (a, b))
    if not {*lanes_a} & {*lanes_b}:
        raise LabError(
            f"{a.word} has {', '.join(lanes_a)} and {b.word} {', '.join(lanes_b)}, none in common; "
            f"name one on each side, as {a.word}=<run>:<server>"
        )
    for side, mine, other in ((a, lanes_a, lanes_b), (b, lanes_b, lanes_a)):
        alone = [lane for lane in mine if lane not in other]
        if alone:
            notes.append(f"only in {side.word}: {', '.join(alone)}")
    pairs = tuple((a.side(lane), b.side(lane)) for lane in lanes_a if lane in lanes_b)
    return Paired(pairs, looks, tuple(notes))


def missing_lanes(a: Pool, b: Pool) -> tuple[str, ...]:
    """The lanes of A that B was not measured in, where no lane of A is named. Lanes that are lifted
    or beside a search depend on what it finds, so they may be missing."""
    if a.lane is not None:
        return ()
    has = set(map(lane_of, b.rows))
    own = [lane_of(row) for row in a.rows if row.arm not in NOT_AS_IT_IS]
    return tuple(lane for lane in dict.fromkeys(own) if lane not in has)


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
            f"{a.word} and {b.word} are different runs, one after the other and not interleaved: "
            "what drifted on the machine between them is part of every difference, and in no "
            "interval"
        )
        for name, was, now in _others_config(a.runs[0], b.runs[0]):
            yield (
                f"the images of {name} differ ({_short(was)}, {_short(now)}), so nobody compared "
                "its environment and command: they may differ, too"
            )
    if len(a.runs) > 1 or len(b.runs) > 1:
        yield (
            "runs are pooled: who adds runs until there is an answer finds one by chance, so the "
            "intervals are those of as many looks as a side has runs"
        )
    runs = tuple({run.name: run for run in (*a.runs, *b.runs)}.values())
    for run in runs:
        scale = run.record.experiment.scale
        if scale != 1:
            yield f"{run.name} ran with SCALE={scale:g}: a quick look, not a result"
        if run.record.status != "complete":
            yield f"{run.name} is {run.record.status}, not complete"


def _others_config(a: Run, b: Run) -> Iterator[tuple[str, object, object]]:
    """The services of the user's own whose images differ: name, and both images."""
    was, now = services(a.record), services(b.record)
    for name in was:
        images = was[name].get("image"), now.get(name, {}).get("image")
        if None not in images and images[0] != images[1]:
            yield name, *images


def unlike(a: Run, b: Run, servers_a: Sequence[str], servers_b: Sequence[str]) -> list[Unlike]:
    """The differences of two runs that affect these servers, in the order of WORD_OF. A run does
    not differ from itself in host, images and commit."""
    found = [Unlike(*one) for one in _servers(a, b, servers_a, servers_b)]
    if a.name != b.name:
        of_a, of_b = a.record.experiment.arrivals, b.record.experiment.arrivals
        if of_a != of_b:
            text = f"arrivals are {of_a} in {a.name}, {of_b} in {b.name}"
            found.append(Unlike("limits", text))
        found += [
            Unlike("limits", f"the {what} of {a.name} and of {b.name} are others")
            for what in ("target", "requests")
            if getattr(a.record.experiment, what) != getattr(b.record.experiment, what)
        ]
        found += [
            Unlike(word, f"the arms of {run.name} have {what} of their own", lab=True)
            for word, what in (("images", "images"), ("limits", "settings"))
            for run in (a, b)
            if getattr(loads.arms_of(run.record.experiment), what)
        ]
        both = [server for server in servers_a if server in servers_b]
        if a.record.experiment.target:
            # What it calls may be among them.
            both += [name for run in (a, b) for name in services(run.record)]
        for one in between_labs(a.record, b.record, LIMITS, (*both, *PARTS)):
            word, lab = WORD_OF[one.kind], one.name in PARTS
            found += [Unlike(word, text, lab) for text in _texts(one, a, b)]
    order = [*dict.fromkeys(WORD_OF.values())]
    return sorted(found, key=lambda one: order.index(one.word))


def _servers(
    a: Run, b: Run, servers_a: Sequence[str], servers_b: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Of the same server everything counts; of different servers what must be the same for all
    models (see lab.judge.fairness)."""
    pairs = [(server, server) for server in servers_a if server in servers_b]
    for one, other in pairs or [(servers_a[0], servers_b[0])]:
        before, after = a.record.servers.get(one), b.record.servers.get(other)
        if before is None or after is None:
            missing = one if before is None else other
            yield "limits", f"the settings of {missing} are {NOT_RECORDED}"
            continue
        between = between_snapshots if one == other else between_models
        for difference in between(before, after):
            if difference.kind in ("toxics", "delay"):
                texts = tuple(_texts(difference, a, b))
            else:
                was = f"{difference.name} is {_short(difference.was)} for {one} of {a.name}"
                texts = (f"{was}, {_short(difference.now)} for {other} of {b.name}",)
            for text in texts:
                yield WORD_OF[difference.kind], text


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
