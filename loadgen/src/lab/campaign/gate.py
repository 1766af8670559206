"""The verb `gate`: is the candidate worse than the base? Of stored runs, or of two images.

BASE=<run>[,<run>…][:<server>[@<arm>]]   and CANDIDATE, ACROSS=limits: nothing is measured
BASE=<image>     and CANDIDATE, and the words of bench: both are arms of one run of fresh JVMs
LIMITS=<file>    instead of gate.toml; make hands on what it says
"""

from __future__ import annotations

import re
import statistics
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path

from rich.console import Console

from lab.campaign.recorded_sides import between
from lab.campaign.sides import Asked, Paired, Pool, missing_lanes, pair, read_pools
from lab.errors import CannotWrite, LabError, RawDataError, WordError
from lab.experiments import loads
from lab.experiments.growth import OF_JVM, in_window, of_container
from lab.experiments.loads import Loads
from lab.experiments.plans import of_verb
from lab.experiments.reading import Here, refuse_target, refuse_unknown
from lab.experiments.reading.words import as_given
from lab.judge import gate
from lab.judge.gate import FIGURES, Figure, Limit
from lab.judge.grouping import Cell, without_shorter
from lab.judge.intervals import LEAST_VALUES
from lab.judge.same_lab import image_ids, services
from lab.load.engines import ENGINES, Engine
from lab.model import Experiment, Row
from lab.model.knobs import IMAGE_NAME
from lab.report import gate as report
from lab.report.comparison import cell_names
from lab.store.records import to_json, write_text, writing
from lab.store.run_dir import new_run_dir
from lab.store.series import load_or_none

SIDES = Asked("gate", "BASE", "CANDIDATE")
OF_RUNS = (SIDES.a, SIDES.b, "LIMITS", "ACROSS")
OF_IMAGES = (SIDES.a, SIDES.b, "LIMITS")
# What a candidate may differ in without being told: it is what is judged.
EXPECTED = ("commit", "images")
ARMS = ("base", "candidate")
# The file of limits in the checkout.
DEFAULT = "gate.toml"
# What the driver ends with. Whatever goes wrong ends with 1 or 2, so an answer is another number;
# ./lab makes 1 and 3 of these (host/lab.sh).
WORSE, UNTOLD = 11, 13
STATUS: Mapping[gate.Answer, int] = {"not worse": 0, "worse": WORSE, "cannot tell": UNTOLD}


@dataclass(frozen=True, slots=True)
class Limits:
    """The text of the file of limits, and what the user calls that file."""

    text: str
    file: str = DEFAULT

    def read(self) -> dict[Figure, Limit]:
        """The limit of each figure that has one. Raises WordError."""
        try:
            tables = tomllib.loads(self.text)
        except (ValueError, RecursionError) as failure:
            raise WordError(f"{self.file}: is not TOML: {failure}") from None
        found: dict[Figure, Limit] = {}
        for name, table in tables.items():
            figure = next((one for one in FIGURES if one == name), None)
            if figure is None:
                raise WordError(f"{self.file}: {name} is no figure; allowed: {', '.join(FIGURES)}")
            found[figure] = self._limit(figure, table)
        if not found:
            raise WordError(f"{self.file}: there is no limit; allowed: {', '.join(FIGURES)}")
        return found

    def _limit(self, figure: Figure, table: object) -> Limit:
        key, _, _ = gate.allowed(figure).partition(" ")
        given = table.get(key) if isinstance(table, dict) and len(table) == 1 else None
        # bool is an int to isinstance, and no number; 0 is none that is allowed.
        number = given if isinstance(given, int | float) and given is not True else 0
        try:
            return Limit(figure, float(number))
        except ValueError as failure:
            raise WordError(f"{self.file}: {failure}, and no other key") from None


def is_of_images(words: Mapping[str, str]) -> bool:
    """Whether the sides are images, which have a slash in their names. Raises WordError where only
    one of them is."""
    found = [word for word in (SIDES.a, SIDES.b) if "/" in words.get(word, "")]
    if len(found) == 1:
        raise WordError(
            f"gate: {found[0]}={words[found[0]]} is an image, the other side is none; allowed: two "
            "runs, or two images"
        )
    return bool(found)


def of_images(words: Mapping[str, str], here: Here) -> tuple[Experiment, tuple[str, ...]]:
    """The run whose arms are the two images: the words are those of bench. One load, closed unless
    there is a RATE, on 6 fresh JVMs of each. Raises WordError."""
    refuse_target(words, "gate")
    images = dict(zip(ARMS, (words[SIDES.a], words[SIDES.b]), strict=True))
    for word, image in zip((SIDES.a, SIDES.b), images.values(), strict=True):
        if not re.fullmatch(IMAGE_NAME, image, re.ASCII):
            raise WordError(f"gate: {word}={image} is not the name of an image; as lab/x:1.2")
    server = words.get("SERVER", re.split("[:@]", images["base"].rpartition("/")[2])[0])
    if server not in here.servers:
        raise WordError(
            f"gate: {server} is no server of the lab that is up; SERVER= says of which server the "
            f"images are: {', '.join(here.servers)}"
        )
    if re.fullmatch(rf"concurrency-lab/[^:]+:{re.escape(here.tag)}", images["base"]):
        raise WordError(
            f"gate: {SIDES.a}={images['base']} is built anew from this checkout before it is "
            f"measured; give it a name of its own, as `docker tag {images['base']} "
            f"{images['base'].removesuffix(here.tag)}base`"
        )
    usual = {
        "SERVER": server,
        "MODE": "open" if "RATE" in words else "closed",
        "LAUNCHES": str(LEAST_VALUES),
        "NAME": "gate",
    }
    load = {word: value for word, value in words.items() if word not in OF_IMAGES}
    experiment, notes = of_verb("bench", {**usual, **load}, here, called="gate")
    if not experiment.launches:
        raise WordError("gate: LAUNCHES=0 is not allowed; allowed: 1..100, 6 or more can be judged")
    asked = replace(
        experiment,
        arms=ARMS,
        own={**experiment.own, **to_json(Loads(images=images))},
        words=as_given(words),
        question=f"Is {images['candidate']} worse than {images['base']}?",
    )
    return asked, notes


def arms_of(run: str, server: str) -> dict[str, str]:
    """The words for the sides of such a run."""
    names = (f"{run}:{server}@{arm}" for arm in ARMS)
    return dict(zip((SIDES.a, SIDES.b), names, strict=True))


def parse(
    words: Mapping[str, str], results: Path, engines: Sequence[Engine] = ENGINES
) -> tuple[Pool, Pool, tuple[str, ...]]:
    """Both sides of stored runs, and what they may differ in beside EXPECTED. Raises as
    `read_pools`."""
    refuse_unknown(words, OF_RUNS, "gate")
    return read_pools(words, results, engines, SIDES)


def gate_verb(
    words: Mapping[str, str],
    results: Path,
    limits: Limits,
    console: Console,
    now: datetime,
    engines: Sequence[Engine] = ENGINES,
) -> int:
    """`gate` of stored runs: judge them, say it, and write it to a folder of its own in the
    candidate's run. Returns 0, WORSE or UNTOLD.

    Raises WordError, and LabError where these may not be compared or nothing can be judged.
    """
    allowed = limits.read()
    base, candidate, across = parse(words, results, engines)
    paired = pair(base, candidate, across, EXPECTED)
    asked = _asked(base, candidate, paired, allowed)
    if not asked:
        raise LabError(
            f"gate: nothing can be judged: {limits.file} limits {', '.join(allowed)}, and base and "
            "candidate have no load in common that tells any of it"
        )
    notes = [*_one_image(base, candidate), *paired.notes, *_alone(paired)]
    notes += _requests_not_judged(asked, allowed)
    try:
        notes += between(base, candidate, paired, engines)
    except CannotWrite as failure:
        # It is no limit, so the answer does not wait for it.
        notes.append(f"no comparison of recordings: {failure}")
    judged = gate.judge(
        base.named(base.lane), candidate.named(candidate.lane), asked, notes, paired.looks
    )
    of = candidate.runs[0].folder
    folder = _write(judged, of / "gates", now)
    report.render(console, judged, f"results/{of.name}/gates/{folder.name}")
    return STATUS[judged.answer]


def _asked(
    base: Pool, candidate: Pool, paired: Paired, limits: Mapping[Figure, Limit]
) -> list[gate.Asked]:
    """Every limit that these runs tell something about. Raises LabError."""
    _refuse_missing_lanes(base, candidate)
    runs = (*base.runs, *candidate.runs)
    for run in runs:
        if run.record.experiment.kind == "capacity":
            raise LabError(
                f"gate: {run.name} searched its loads; compare the intervals of what both hold, or "
                "judge runs at one load"
            )
    _refuse_missing(paired)
    every = [one for run in runs for one in run.record.servers.values()]
    unread = any(one.foreign and not one.scraped for one in every)
    memory = memory_of({run.name: run.folder for run in runs}, unread=unread)
    return gate.of_loads(paired.lanes, limits, memory, paired.looks)


def _refuse_missing_lanes(base: Pool, candidate: Pool) -> None:
    """A candidate without a server that its base had would pass by leaving it out. Raises
    LabError."""
    missing = missing_lanes(base, candidate)
    if missing:
        raise LabError(
            f"gate: the candidate has no {', '.join(missing)}, which the base has; name what is to "
            f"be judged, as {SIDES.a}=<run>:<server>"
        )


def _refuse_missing(paired: Paired) -> None:
    """A candidate without a load that its base had would pass by leaving it out. Raises
    LabError."""
    for (_, a), (lane, b) in paired.lanes:
        had, has = (dict.fromkeys(map(Cell.of, without_shorter(rows))) for rows in (a, b))
        names = cell_names([*had, *(cell for cell in has if cell not in had)])
        missing = [names[cell] for cell in had if cell not in has]
        if missing:
            raise LabError(
                f"gate: {lane} has no load {missing[0]}, which the base has; it has "
                f"{'; '.join(names[cell] for cell in has)}"
            )


def memory_of(
    folders: Mapping[str, Path], *, unread: bool = False
) -> Callable[[Row], float | None]:
    """What tells the resident memory of a trial's server, in bytes: the median of its window. Where
    the JVM of any run is `unread`, or there is none, that of the container, of all runs: it is
    another figure. So it never stands in for a JVM that did not answer for a time. A trial's series
    are read once."""

    def of(row: Row) -> float | None:
        return read(row.run, row.trial, row.server)

    @cache
    def read(run: str, trial: str, server: str) -> float | None:
        try:
            seen = load_or_none(folders[run] / "raw" / trial)
        except RawDataError:
            return None
        if seen is None:
            return None
        figure = of_container(server) if unread else OF_JVM
        values = [value for _, value in in_window(seen, figure)]
        return statistics.median(values) if values else None

    return of


def _one_image(base: Pool, candidate: Pool) -> Iterator[str]:
    """A note where base and candidate were the same image: under two names, or in two runs."""
    was, now = base.runs[0], candidate.runs[0]
    if was.name != now.name:
        before, after = image_ids(was.record), image_ids(now.record)
        for name in dict.fromkeys((*candidate.servers, *services(now.record))):
            if before.get(name) is not None and before[name] == after.get(name):
                yield (
                    f"{name} is one image in both runs, {after[name]}: whatever changed is not in "
                    "it"
                )
    for run in candidate.runs:
        names = loads.arms_of(run.record.experiment).images
        known = run.record.host.get("images")
        if names and isinstance(known, dict):
            ids = {str(one["id"]) for name in names.values() if (one := known.get(name))}
            if len(ids) == 1:
                both = " and ".join(names.values())
                yield f"{both} are one image, {ids.pop()}: whatever changed is not in it"


def _requests_not_judged(
    asked: Sequence[gate.Asked], limits: Mapping[Figure, Limit]
) -> Iterator[str]:
    """A note where the file limits what requests get, and no load here has that figure."""
    told = {one.limit.figure for one in asked}
    for figure, other, loads_of in (("p99", "goodput", "closed"), ("goodput", "p99", "open")):
        if figure in limits and not told.intersection(("goodput", "p99")):
            yield f"{figure} is not judged: all loads are {loads_of}, and take a limit of {other}"


def _alone(paired: Paired) -> Iterator[str]:
    for name, rows in (side for sides in paired.lanes for side in sides):
        invalid = sum(not row.valid for row in rows)
        if invalid:
            are = "are" if invalid > 1 else "is"
            yield f"{invalid} of {len(rows)} trials of {name} {are} invalid and not judged"


def _write(judged: gate.Gate, parent: Path, now: datetime) -> Path:
    """A new folder with what was judged. Raises CannotWrite."""
    with writing(parent):
        parent.mkdir(exist_ok=True)
    folder = new_run_dir(parent, now, "gate")
    for name, text in report.files(judged).items():
        write_text(folder / name, text)
    return folder
