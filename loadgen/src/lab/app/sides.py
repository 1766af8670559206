"""The two sides of a comparison: runs on disk, or lanes of them, and what they differ in.

    A=<run>[:<server>[@<arm>]]   and B for `compare`, BASE and CANDIDATE for `gate`

Every trial is judged again from its raw data: both sides are judged by the rules of this version,
whatever version measured them. What only one run recorded differs (lab.judge.same_lab).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import replace
from dataclasses import dataclass
from pathlib import Path

from lab.app.call import Call
from lab.app.derive import judged
from lab.errors import LabError, WordError
from lab.judge import compare
from lab.judge.grouping import lane_of
from lab.judge.same_lab import (
    PARTS,
    Difference,
    Kind,
    between_labs,
    between_models,
    between_snapshots,
    services,
)
from lab.kinds.loads import arms_of
from lab.load.engines import Engine
from lab.model import Remark, Row
from lab.report.remarks import say
from lab.report.result import Result
from lab.store import csv
from lab.store.manifest import Manifest
from lab.store.run_dir import find_run_dir

# A value in a line for people is cut here.
MOST_SHOWN = 40
# What a run of trials records of its driver.
LIMITS = ("open_files", "generator_cores")
# All that two sides may differ in, as a user calls it: the kinds of differences, and the verbs that
# go on with them. The engine is not there: it is part of every load that is compared.
MAY_DIFFER: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "host": (("host",), ()),
    "limits": (("limits", "jvm", "settings", "toxics", "delay"), ("compare",)),
    # Images of the lab's own parts, which are in every request's way.
    "parts": (PARTS, ("compare",)),
    "images": (("images", "build"), ("compare", "gate")),
    "commit": (("commit", "uncommitted"), ("compare", "gate")),
}


@dataclass(frozen=True, slots=True)
class Side:
    """A run on disk, or a lane of it: the word that names it, its folder, what it found, judged
    again, and its rows by lane. `lane` is the one that is meant, which may be a server with all of
    its arms; empty: every lane."""

    word: str
    folder: Path
    result: Result
    lane: str
    lanes: Mapping[str, Sequence[Row]]

    @property
    def record(self) -> Manifest:
        """The run as it was measured."""
        return self.result.manifest

    @property
    def title(self) -> str:
        return f"{self.record.run}:{self.lane}" if self.lane else self.record.run

    @property
    def rows(self) -> list[Row]:
        return [row for rows in self.lanes.values() for row in rows]

    @property
    def servers(self) -> list[str]:
        return list(dict.fromkeys(row.server for row in self.rows))

    def only(self, other: Side) -> list[str]:
        """The lanes that the other side has not, if none is meant."""
        return [] if self.lane else [lane for lane in self.lanes if lane not in other.lanes]


def pairs(a: Side, b: Side) -> list[tuple[compare.Side, compare.Side]]:
    """The rows of A against those of B: of the lanes that are meant, or of each lane of both."""
    lanes = [(lane, lane) for lane in a.lanes if lane in b.lanes]
    return [
        ((f"{a.record.run}:{was}", a.lanes[was]), (f"{b.record.run}:{now}", b.lanes[now]))
        for was, now in ([(a.lane, b.lane)] if a.lane else lanes)
    ]


def check_sides(call: Call, *words: str) -> list[tuple[Path, str]]:
    """The folder and the lane that each of these words names. Raises WordError."""
    given = [(word, *call.words.get(word, "").partition(":")) for word in words]
    return [(find_run_dir(call.results, word, name), lane) for word, name, _, lane in given]


def read_sides(
    call: Call, engines: Sequence[Engine], word_a: str, word_b: str
) -> tuple[Side, Side]:
    """The sides that these words name; a lane that only one of them names is that of both. Raises
    WordError, and LabError if a run cannot be judged again."""
    (folder_a, lane_a), (folder_b, lane_b) = check_sides(call, word_a, word_b)
    a = _side(word_a, folder_a, lane_a or lane_b, engines)
    b = _side(word_b, folder_b, lane_b or lane_a, engines)
    if {(row.run, row.trial) for row in a.rows} & {(row.run, row.trial) for row in b.rows}:
        raise WordError(
            f"{call.verb}: trials of {a.title} are on both sides; allowed: other runs, or other "
            f"servers or arms of one, as {word_a}=<run>:<server> {word_b}=<run>:<other>"
        )
    return a, b


def _side(word: str, folder: Path, lane: str, engines: Sequence[Engine]) -> Side:
    judgement = judged(folder, engines)
    result = judgement.result
    rows = result.rows
    lacking = {*csv.trials(folder / csv.NAME)} - {row.trial for row in rows}
    gone = sorted(lacking | {*judgement.unreadable})
    if gone or not rows:
        missing = f"no raw data of {', '.join(gone)}" if gone else "no raw data"
        raise LabError(f"{folder.name} has {missing}: it cannot be judged again")
    if result.changes_lab:
        raise LabError(
            f"{folder.name} is of kind {result.experiment.kind}: the lab was changed from trial to "
            "trial on purpose, so it is no side of a comparison"
        )
    lanes: dict[str, list[Row]] = {}
    for row in rows:
        if lane in ("", row.server, lane_of(row)):
            lanes.setdefault(lane or lane_of(row), []).append(row)
    if not lanes:
        allowed = ", ".join(dict.fromkeys(map(lane_of, rows)))
        raise WordError(f"{word}={folder.name}:{lane} has no trials; allowed: {allowed}")
    return Side(word, folder, result, lane, lanes)


def notes_of(verb: str, a: Side, b: Side) -> Iterator[Remark]:
    """What a reader must know of the sides. Raises LabError if they differ in what the verb does
    not go on with."""
    sides, differences = f"{a.word} and {b.word}", list(between(a, b))
    for word, (kinds, verbs) in MAY_DIFFER.items():
        for difference in differences:
            name = difference.name
            if (name if name in PARTS else difference.kind) not in kinds:
                continue
            code = "uncommitted" if name == "commit_dirty" else "differs"
            was = f"{shown(difference.was)} for {a.title}"
            now = f"{shown(difference.now)} for {b.title}"
            values = {"sides": sides, "word": word, "name": name, "was": was, "now": now}
            if verb not in verbs:
                allowed = ", ".join(word for word, (_, may) in MAY_DIFFER.items() if verb in may)
                text = say("runs", code, **values)
                raise LabError(f"{text}; allowed to differ in a {verb}: {allowed}")
            yield Remark(code, values)
    if a.folder != b.folder:
        yield Remark("apart", {"sides": sides})
    for record in {side.folder: side.record for side in (a, b)}.values():
        scale = record.experiment.scale
        if scale != 1:
            yield Remark("scaled", {"run": record.run, "scale": scale})
        if record.status != "complete":
            yield Remark("unfinished", {"run": record.run, "status": record.status})
    for side, other in ((a, b), (b, a)):
        if only := side.only(other):
            yield Remark("only", {"side": side.word, "lanes": ", ".join(only)})


def between(a: Side, b: Side) -> Iterator[Difference]:
    """What affects the servers of both sides and is not the same. A run does not differ from itself
    in host, images and commit."""
    was, now = a.record, b.record
    both = [server for server in a.servers if server in b.servers]
    for server in both:
        for difference in between_snapshots(was.servers[server], now.servers[server]):
            yield replace(difference, name=f"{difference.name} of {server}")
    if not both:
        # What must be the same for all models.
        yield from between_models(was.servers[a.servers[0]], now.servers[b.servers[0]])
    if a.folder == b.folder:
        return
    before, after = _asked(a), _asked(b)
    for kind, name in before:
        if before[kind, name] != after[kind, name]:
            yield Difference(kind, name, before[kind, name], after[kind, name])
    # What a target calls may be among the services of the user's own.
    called = (*services(was), *services(now)) if was.experiment.target else ()
    yield from between_labs(was, now, LIMITS, (*both, *called, *PARTS))


def _asked(side: Side) -> dict[tuple[Kind, str], object]:
    """What a side's experiment says of its load, and what sets the arm of its lane apart."""
    experiment = side.record.experiment
    arms = arms_of(experiment)
    return {
        ("limits", "arrivals"): experiment.arrivals,
        ("limits", "target"): experiment.target,
        ("limits", "requests"): experiment.requests,
        ("limits", "settings of arms"): arms.settings and (side.lane, arms.settings),
        ("images", "images of arms"): arms.images and (side.lane, arms.images),
    }


def shown(value: object) -> str:
    """A recorded value in a line for people."""
    text = "not recorded" if value is None else str(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
