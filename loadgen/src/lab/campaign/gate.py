"""The verb `gate`: is the candidate worse than the base? Of stored runs, or of two images.

BASE=<run>[:<server>[@<arm>]]   and CANDIDATE: nothing is measured
BASE=<image>    and CANDIDATE, and the words of bench: both are arms of one run of fresh JVMs
LIMITS=<file>   instead of gate.toml; make hands on what it says
"""

from __future__ import annotations

import math
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
from lab.campaign.sides import Asked, Paired, Run, missing_lanes, pair, read_sides
from lab.errors import CannotWrite, LabError, RawDataError, WordError
from lab.experiments import loads
from lab.experiments.growth import OF_JVM, in_window, of_container
from lab.experiments.loads import Loads
from lab.experiments.plans import of_verb
from lab.experiments.reading import Here, refuse_target, refuse_unknown
from lab.experiments.reading.words import as_given
from lab.judge.compare import MORE_IS_BETTER, Figure, Limits, Overall, cells_of, compare_all
from lab.judge.intervals import LEAST_VALUES
from lab.judge.same_lab import image_ids, services
from lab.load.engines import ENGINES, Engine
from lab.model import Experiment, Row
from lab.model.knobs import IMAGE_NAME
from lab.report import gate as report
from lab.report.text import cell_names
from lab.store.records import to_json, write_text, writing
from lab.store.run_dir import new_run_dir
from lab.store.series import load_or_none

SIDES = Asked("gate", "BASE", "CANDIDATE")
WORDS = (SIDES.a, SIDES.b, "LIMITS")
# What a candidate may differ in: it is what is judged.
JUDGED = ("commit", "images")
ARMS = ("base", "candidate")
FIGURES: tuple[Figure, ...] = ("goodput", "p99", "cpu", "memory")
# The file of limits in the checkout.
DEFAULT = "gate.toml"
# What the driver ends with. Whatever goes wrong ends with 1 or 2, so an answer is another number;
# ./lab makes 1 and 3 of these (host/lab.sh).
WORSE, UNTOLD = 11, 13
STATUS: Mapping[Overall, int] = {"not worse": 0, "worse": WORSE, "cannot tell": UNTOLD}


@dataclass(frozen=True, slots=True)
class LimitsFile:
    """The text of the file of limits, and what the user calls that file."""

    text: str
    file: str = DEFAULT

    def read(self) -> dict[Figure, Limits]:
        """The limit of each figure that has one. Raises WordError."""
        try:
            tables = tomllib.loads(self.text)
        except (ValueError, RecursionError) as failure:
            raise WordError(f"{self.file}: is not TOML: {failure}") from None
        allowed = ", ".join(FIGURES)
        unknown = [name for name in tables if name not in FIGURES]
        if unknown:
            raise WordError(f"{self.file}: {unknown[0]} is no figure; allowed: {allowed}")
        if not tables:
            raise WordError(f"{self.file}: there is no limit; allowed: {allowed}")
        return {
            figure: self._limits(figure, tables[figure]) for figure in FIGURES if figure in tables
        }

    def _limits(self, figure: Figure, table: object) -> Limits:
        is_least = figure in MORE_IS_BETTER
        key = "at_least" if is_least else "at_most"
        given = table.get(key) if isinstance(table, dict) and len(table) == 1 else None
        # bool is an int to isinstance, and no number; 0 is none that is allowed.
        number = float(given) if isinstance(given, int | float) and given is not True else 0.0
        if is_least and 0 < number <= 1:
            return Limits(low=number)
        if not is_least and 1 <= number < math.inf:
            return Limits(high=number)
        numbers = "a number above 0 and at most 1" if is_least else "a number from 1 on"
        raise WordError(f"{self.file}: a limit of {figure} is {key} = {numbers}, and no other key")


def is_of_images(words: Mapping[str, str]) -> bool:
    """True if the sides are images, which have a slash. Raises WordError where only one is."""
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
    load = {word: value for word, value in words.items() if word not in WORDS}
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
    names = (f"{run}:{server}@{arm}" for arm in ARMS)
    return dict(zip((SIDES.a, SIDES.b), names, strict=True))


def parse(
    words: Mapping[str, str], results: Path, engines: Sequence[Engine] = ENGINES
) -> tuple[Run, Run]:
    """Both sides of stored runs. Raises as `read_sides`."""
    refuse_unknown(words, WORDS, "gate")
    return read_sides(words, results, engines, SIDES)


def gate_verb(
    words: Mapping[str, str],
    results: Path,
    limits: LimitsFile,
    console: Console,
    now: datetime,
    engines: Sequence[Engine] = ENGINES,
) -> int:
    """`gate` of stored runs: judge them, say it, and write it to a folder of its own in the
    candidate's run. Returns 0, WORSE or UNTOLD.

    Raises WordError, and LabError where these may not be compared or nothing can be judged.
    """
    allowed = limits.read()
    base, candidate = parse(words, results, engines)
    paired = pair(base, candidate, JUDGED)
    _refuse_missing(base, candidate, paired)
    every = [one for run in (base, candidate) for one in run.record.servers.values()]
    unread = any(one.foreign and not one.scraped for one in every)
    memory = memory_of({run.name: run.folder for run in (base, candidate)}, unread=unread)
    comparisons = compare_all(paired.lanes, allowed, memory)
    asked = {one.question.figure for of in comparisons for one in of.answers}
    if not asked:
        raise LabError(
            f"gate: nothing can be judged: {limits.file} limits {', '.join(allowed)}, and base and "
            "candidate have no load in common that tells any of it"
        )
    notes = [*_one_image(base, candidate), *paired.notes]
    if not asked.intersection(("goodput", "p99")):
        notes += [
            f"{figure} is not judged: no load here has it"
            for figure in ("goodput", "p99")
            if figure in allowed
        ]
    try:
        notes += between(base, candidate, paired, engines)
    except CannotWrite as failure:
        # It is no limit, so the answer does not wait for it.
        notes.append(f"no comparison of recordings: {failure}")
    judged = report.Gate(base.title, candidate.title, comparisons, notes)
    folder = _write(judged, candidate.folder / "gates", now)
    report.render(console, judged, f"results/{candidate.name}/gates/{folder.name}")
    return STATUS[judged.answer]


def _refuse_missing(base: Run, candidate: Run, paired: Paired) -> None:
    """A candidate without a server or a load that its base had would pass by leaving it out, and a
    search has chosen its loads. Raises LabError."""
    for run in (base, candidate):
        if run.record.experiment.kind == "capacity":
            raise LabError(
                f"gate: {run.name} searched its loads; compare the intervals of what both hold, or "
                "judge runs at one load"
            )
    missing = missing_lanes(base, candidate)
    if missing:
        raise LabError(
            f"gate: the candidate has no {', '.join(missing)}, which the base has; name what is to "
            f"be judged, as {SIDES.a}=<run>:<server>"
        )
    for (_, a), (lane, b) in paired.lanes:
        had, has = cells_of(a), cells_of(b)
        names = cell_names([*had, *(cell for cell in has if cell not in had)])
        lacking = [names[cell] for cell in had if cell not in has]
        if lacking:
            raise LabError(
                f"gate: {lane} has no load {lacking[0]}, which the base has; it has "
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


def _one_image(base: Run, candidate: Run) -> Iterator[str]:
    """A note where base and candidate were the same image: under two names, or in two runs."""
    known = [(run.name, image_ids(run.record)) for run in (base, candidate)]
    for name in dict.fromkeys((*candidate.servers, *services(candidate.record))):
        ids = [images.get(name) for _, images in known]
        if base.name != candidate.name and ids[0] is not None and ids[0] == ids[1]:
            yield f"{name} is one image in both runs, {ids[0]}: whatever changed is not in it"
    names = loads.arms_of(candidate.record.experiment).images
    images = candidate.record.host.get("images")
    if names and isinstance(images, dict):
        same = {str(one["id"]) for name in names.values() if (one := images.get(name))}
        if len(same) == 1:
            both = " and ".join(names.values())
            yield f"{both} are one image, {same.pop()}: whatever changed is not in it"


def _write(judged: report.Gate, parent: Path, now: datetime) -> Path:
    """A new folder with what was judged. Raises CannotWrite."""
    with writing(parent):
        parent.mkdir(exist_ok=True)
    folder = new_run_dir(parent, now, "gate")
    for name, text in report.files(judged).items():
        write_text(folder / name, text)
    return folder
