"""The verb `gate`: a comparison with a file of limits, whose answer is the exit status.

BASE=<run>[:<server>[@<arm>]]   and CANDIDATE: of stored runs; nothing is measured
BASE=<image>    and CANDIDATE, and the words of bench: both are arms of one run of fresh JVMs
LIMITS=<file>   instead of gate.toml; make hands on its text (LAB_LIMITS), as no container sees it
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import replace
from datetime import UTC, datetime
from pathlib import Path

from lab.app.call import Call
from lab.app.compare import STATUS, compare_sides, is_search
from lab.app.run import run
from lab.app.sides import check_sides, notes_of, read_sides
from lab.app.tools import open_lab, screen
from lab.errors import LabError, WordError
from lab.judge.compare import Figure, Limits
from lab.judge.intervals import LEAST_VALUES
from lab.kinds.kind import ToMeasure
from lab.kinds.loads import Loads
from lab.kinds.plans import of_verb
from lab.kinds.reading import refuse_target, refuse_unknown
from lab.kinds.reading.words import as_given
from lab.load.engines import ENGINES, Engine
from lab.model import Remark
from lab.model.knobs import IMAGE_NAME
from lab.report import gate as report
from lab.report.remarks import say
from lab.store.records import to_json, write_text, writing
from lab.store.run_dir import new_run_dir

SIDES = ("BASE", "CANDIDATE")
WORDS = (*SIDES, "LIMITS")
ARMS = ("base", "candidate")
# The key of each figure's limit, and from where to where it may be.
LIMITS: Mapping[Figure, tuple[str, float, float]] = {
    "goodput": ("at_least", 0.01, 1),
    "p99": ("at_most", 1, 100),
    "cpu": ("at_most", 1, 100),
    "memory": ("at_most", 1, 100),
}


def check(call: Call) -> None:
    """Raises LabError for wrong words or limits."""
    limits_of(call)
    if images_of(call.words):
        of_images(call)
    else:
        refuse_unknown(call.words, WORDS, call.verb)
        check_sides(call, *SIDES)


def gate(call: Call) -> int:
    """Of two images, or of stored runs. Returns as `judge`. Raises LabError."""
    check(call)
    if not images_of(call.words):
        return judge(call)
    experiment, notes = of_images(call)

    def judge_arms(run_dir: Path) -> int:
        lanes = (f"{run_dir.name}:{experiment.servers[0]}@{arm}" for arm in ARMS)
        return judge(replace(call, words=dict(zip(SIDES, lanes, strict=True))))

    with open_lab(call) as lab:
        return run(experiment, lab, notes, judge=judge_arms)


def limits_of(call: Call) -> dict[Figure, Limits]:
    """The limit of each figure that has one. Raises WordError."""
    file = call.words.get("LIMITS", "gate.toml")
    try:
        tables = tomllib.loads(call.variables.get("LAB_LIMITS", ""))
    except (ValueError, RecursionError) as failure:
        raise WordError(f"{file}: is not TOML: {failure}") from None
    limits: dict[Figure, Limits] = {}
    for figure, (key, least, most) in LIMITS.items():
        table = tables.get(figure)
        number = table.get(key) if isinstance(table, dict) and len(table) == 1 else None
        # True is 1 to Python, and no number.
        if isinstance(number, int | float) and number is not True and least <= number <= most:
            limits[figure] = Limits(low=number) if key == "at_least" else Limits(high=number)
    wrong = next((name for name in tables if name not in limits), "" if limits else "nothing")
    if wrong:
        allowed = (
            f"[{figure}] {key} = {least:g} to {most:g}"
            for figure, (key, least, most) in LIMITS.items()
        )
        raise WordError(f"{file}: {wrong} is no limit; allowed: {'; '.join(allowed)}")
    return limits


def images_of(words: Mapping[str, str]) -> tuple[str, ...]:
    """The two images that are the sides, which have a slash; none of stored runs. Raises WordError
    if only one is an image."""
    given = [word for word in SIDES if "/" in words.get(word, "")]
    if len(given) == 1:
        raise WordError(
            f"gate: {given[0]}={words[given[0]]} is an image, the other side is none; allowed: two "
            "runs, or two images"
        )
    return tuple(words[word] for word in given)


def of_images(call: Call) -> ToMeasure:
    """The run whose arms are the two images: the words are those of bench. One load, closed unless
    there is a RATE, on 6 fresh JVMs of each. Raises WordError."""
    words, here = call.words, call.here
    refuse_target(words, "gate")
    base, candidate = images_of(words)
    for image in (base, candidate):
        if not re.fullmatch(IMAGE_NAME, image, re.ASCII):
            raise WordError(f"gate: {image} is not the name of an image; allowed: as lab/x:1.2")
    server = words.get("SERVER", re.split("[:@]", base.rpartition("/")[2])[0])
    if server not in here.servers:
        raise WordError(
            f"gate: {server} is no server of the lab that is up; SERVER= says of which server the "
            f"images are: {', '.join(here.servers)}"
        )
    if re.fullmatch(rf"concurrency-lab/[^:]+:{re.escape(here.tag)}", base):
        raise WordError(
            f"gate: BASE={base} is built anew from this checkout before it is measured; give it a "
            f"name of its own, as `docker tag {base} {base.removesuffix(here.tag)}base`"
        )
    load = {
        "SERVER": server,
        "MODE": "open" if "RATE" in words else "closed",
        "LAUNCHES": str(LEAST_VALUES),
        "NAME": "gate",
        **{word: value for word, value in words.items() if word not in WORDS},
    }
    experiment, notes = of_verb("bench", load, here, called="gate")
    if not experiment.launches:
        raise WordError("gate: LAUNCHES=0 is not allowed; allowed: 1..100, 6 or more can be judged")
    images = Loads(images={"base": base, "candidate": candidate})
    experiment = replace(
        experiment,
        arms=ARMS,
        own={**experiment.own, **to_json(images)},
        words=as_given(words),
        question=f"Is {candidate} worse than {base}?",
    )
    return experiment, notes


def judge(call: Call, engines: Sequence[Engine] = ENGINES) -> int:
    """Judge stored runs, print it, and write it to a new folder in the candidate's run. Returns a
    number of STATUS. Raises WordError, and LabError if these are no gate: a search chose the loads,
    or the candidate would pass by leaving out what its base had."""
    limits = limits_of(call)
    base, candidate = read_sides(call, engines, *SIDES)
    for side in filter(is_search, (base, candidate)):
        raise LabError(
            f"gate: {side.record.run} searched its loads; allowed: runs at given loads "
            "(`compare` takes two searches)"
        )
    notes = [*notes_of(call.verb, base, candidate)]
    alike = base.folder != candidate.folder and base.servers == candidate.servers
    if alike and "images" not in {note.values.get("word") for note in notes}:
        notes.append(Remark("same-images"))
    result = compare_sides(base, candidate, limits)
    if result.lacking:
        raise LabError(
            f"gate: the candidate has no {', '.join(result.lacking)}, which the base has; allowed: "
            "another candidate, or what is to be judged, as BASE=<run>:<server>"
        )
    asked = {answer.question.figure for pair in result.comparisons for answer in pair.answers}
    # A closed load has a goodput, an open one a p99: a load is judged by one of them.
    judged = asked | ({"goodput", "p99"} if asked & {"goodput", "p99"} else set())
    notes += [Remark("not-judged", {"figure": figure}) for figure in limits if figure not in judged]
    texts = [say("runs", note.code, **note.values) for note in notes]
    gate = report.Gate(base.title, candidate.title, result.comparisons, [*texts, *result.recorded])
    gates = candidate.folder / "gates"
    with writing(gates):
        gates.mkdir(exist_ok=True)
    folder = new_run_dir(gates, datetime.now(UTC), "gate")
    for name, text in report.files(gate).items():
        write_text(folder / name, text)
    shown = f"results/{candidate.folder.name}/gates/{folder.name}"
    report.render(screen(call.variables), gate, shown)
    return STATUS[gate.answer]
