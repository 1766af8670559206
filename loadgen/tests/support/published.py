"""The files of docs/results/, read back as rows of the lab, and their numbers beside a page's.

What a mark's first line can have, for each cell of a row, or for each number with brackets of a
text:

    -                     not recomputed
    A goodput_rps         the median of the first lane's launches with its interval; B: the second
                          lane, or a lane by its name. A metric, or any column of numbers
    @ goodput_rps         of the case that the row begins with
    B/A cpu_server_us     the ratio, Hodges-Lehmann
    A bottleneck          whom the verdicts name, and how often: none, 6 of 6 (1 strong). Where no
                          trial is valid: ports, not valid (weak)
    A valid               valid trials of all: 5 of 8 valid
    –                     as the cell of a number: no trial is valid, or none has this number
    A held                what a search of capacity found: 979 [917, 1,000]
    gate 1.1 worse        the share of gates of so many launches as the row begins with that say so,
                          drawn from the launches of the file, with the candidate's CPU time x 1.1
    gates worse           how many gates of so many launches, one after the other as the file has
                          them, say so: 3 of 5
    found NAME            the findings of that name of the server that the row begins with: their
                          median and range, or of only one with an interval that. With `, 2 of 3`
                          where one launch has no value. As the run had them where they do not
                          follow from rows
    capacity              of a whole block of capacity: the lines of its answer

A file of several loads has the cells of those that are meant behind its name, without spaces:
`loops[mode=closed,route=/]`.
"""

import csv as plain_csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lab.experiments.kind import Outcome, settings_of
from lab.experiments.registry import kind_of
from lab.experiments.searching.deprived import ARMS, Deprived
from lab.experiments.searching.state import Capacity
from lab.experiments.searching.told import NAME as CAPACITY
from lab.experiments.searching.told import SEPARATOR
from lab.judge.compare import Values
from lab.judge.gates import LATENCY_ROSE
from lab.judge.grouping import Cell, Measure, lane_of, per_launch, without_shorter
from lab.judge.intervals import CONFIDENCE, Interval, median_of
from lab.model import LIFTED, STRONG, Experiment, Finding, Row, goodput
from lab.report.page.by_load import by_load
from lab.report.page.figure import alone
from lab.report.page.lane_styles import LaneStyles
from lab.store import csv
from lab.store.records import csv_text, from_json
from support.repo import script
from support.resampled import in_turn, shares

published = script("published")

PAIR = ("pair-proxied", "pair-direct")

NUMBER = r"(?:(?<!\w)-)?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
BRACKETS = rf"(?P<open>[\[(])(?P<low>{NUMBER})(?:, | to | )(?P<high>{NUMBER})[\])]"
IN_CELL = re.compile(rf"×?(?P<mid>{NUMBER})(?: {BRACKETS})?")
IN_TEXT = re.compile(rf"×?(?P<mid>{NUMBER}) {BRACKETS}")


def record(name: str) -> dict[str, Any]:
    """What is kept of the manifest of a file's run."""
    file, _ = published.source(name)
    return json.loads((published.FOLDER / f"{file}.json").read_text())


def _whole(name: str, columns: Sequence[str], to: Path) -> Path:
    """The file with all columns that the lab's own reader wants: what is left out is empty. Of
    `loops[mode=closed,route=/]` only the rows with these cells. Raises ValueError for none."""
    stem, wanted = published.source(name)
    with (published.FOLDER / f"{stem}.csv").open(newline="") as file:
        rows = [
            row
            for row in plain_csv.DictReader(file)
            if all(row.get(column, "") == cell for column, cell in wanted.items())
        ]
    if not rows or not wanted.keys() <= set(columns):
        raise ValueError(f"{name}: no row has these cells")
    run = record(name)["run"]
    lines = [[run if one == "run" else row.get(one, "") for one in columns] for row in rows]
    to.write_text(csv_text([columns, *lines]))
    return to


def rows_of(name: str) -> tuple[Row, ...]:
    """The trials of a file, but for those past Toxiproxy with which searches once ended. One that
    was ended before its window, as its load was lost, is one whose latency rose."""
    with TemporaryDirectory() as folder:
        rows = csv.read(_whole(name, Row.columns(), Path(folder) / csv.NAME))
    return tuple(
        replace(row, invalid_reasons=row.invalid_reasons.replace("ended as lost", LATENCY_ROSE))
        for row in rows
        if row.arm not in PAIR
    )


def experiment_of(name: str) -> Experiment:
    """The experiment of a file's run."""
    plain = dict(record(name)["experiment"])
    own = plain.pop(plain["kind"], {})
    missing = {"rate_rps": None, "warmup_s": None}
    return from_json(Experiment, {**missing, **plain, "own": own})


def problems(mark: Any) -> Iterator[str]:
    """What a page says otherwise than the files of a mark."""
    lines = mark.block.splitlines()
    if mark.cells == ("capacity",):
        inside = [line for line in lines if line and not line.startswith("```")]
        yield from _beside_capacity(inside, [name for _, names in mark.rows for name in names])
        return
    for label, files in mark.rows:
        for name in files:
            yield from _of_row(mark, label, name)


def _of_row(mark: Any, label: str, name: str) -> Iterator[str]:
    begin = re.compile(re.escape(label) + r"(?![\w-])")
    if mark.block.startswith("|"):
        bare = [line.strip("| ") for line in mark.block.splitlines()]
        found = [line for line in bare if begin.match(line)]
        if len(found) != 1:
            yield f"{label}: {len(found)} rows begin so"
            return
        texts = [cell.strip() for cell in found[0][len(label) :].split("|")[1:]]
        if len(texts) != len(mark.cells):
            yield f"{label}: {len(texts)} cells, and the mark has {len(mark.cells)}"
            return
    else:
        whole = " ".join(mark.block.split())
        start = begin.search(whole)
        texts = [one[0] for one in IN_TEXT.finditer(whole[start.end() :])] if start else []
        if len(texts) < len(mark.cells):
            yield f"{label}: {len(texts)} numbers after it, and the mark has {len(mark.cells)}"
            return
    rows = rows_of(name)
    its_case = next((lane for lane in map(lane_of, rows) if lane.endswith(f"@{label}")), label)
    for text, named in zip(texts, mark.cells, strict=False):
        cell = re.sub("^@ ", f"{its_case} ", named)
        beside = _beside_held if cell.endswith(" held") else _wrong
        if cell.startswith("found "):
            wrong = _beside_found(text, cell.removeprefix("found "), label, name)
        elif cell.startswith("gates "):
            wrong = _beside_real_gates(text, cell.removeprefix("gates "), label, name)
        elif cell.startswith("gate "):
            wrong = _beside_gates(text, cell.removeprefix("gate "), label, name)
        else:
            wrong = None if cell == "-" else beside(text, cell, rows, name)
        if wrong:
            yield f"{label}, {named} of {name}: the page says {text}, the file {wrong}"


def _wrong(text: str, asked: str, rows: Sequence[Row], _: str) -> str | None:
    """What the rows say, where the page says something else."""
    lane, _, metric = asked.partition(" ")
    if metric in ("bottleneck", "valid"):
        said = _verdict(_lane(rows, lane)) if metric == "bottleneck" else _valid(_lane(rows, lane))
        return None if text in said else said[-1]
    if lane == "B/A":
        values = Values.of(_lane(rows, "A"), _lane(rows, "B"), _measure(metric))
        ratio = values.ratio(CONFIDENCE)
        assert values.paired, "sides that took no turns have no range of pairs"
        each = [b / a for a, b in zip(values.a, values.b, strict=True)]
        return otherwise(text, ratio.ratio, ratio.interval, each)
    own = _lane(rows, lane)
    if metric == "predicted_rps":
        # Of the load and the settings, whatever came of the trial.
        own = [replace(one, valid=True) for one in own]
    values_of = per_launch(own, _measure(metric))
    if not values_of:
        return None if text == "–" else "nothing of a valid trial"
    of = median_of(values_of)
    return otherwise(text, of.median, of.interval, values_of)


def _beside_found(text: str, asked: str, server: str, name: str) -> str | None:
    """As `_wrong`, of the findings of that name of each launch of a server."""
    of = (server, asked)
    its = [one for one in _found(name) if (one.server, one.name) == of]
    all_of = [one.value for one in its]
    values = [one for one in all_of if one is not None]
    if len(its) == 1 and values and its[0].low is not None and its[0].high is not None:
        return otherwise(text, *values, Interval(its[0].low, its[0].high, CONFIDENCE), [])
    if not values:
        return None if text == "–" else f"nothing in {len(all_of)} launches"
    count = "" if len(values) == len(all_of) else f", {len(values)} of {len(all_of)}"
    if not text.endswith(count):
        return f"a value in {len(values)} of {len(all_of)} launches"
    middle = median_of(values)
    return otherwise(text.removesuffix(count), middle.median, middle.interval, values)


def _found(name: str) -> tuple[Finding, ...]:
    """The findings of a file's run."""
    kept = record(name).get("findings")
    if kept is not None:
        return tuple(from_json(Finding, one) for one in kept)
    return _findings(experiment_of(name), rows_of(name))


def _beside_gates(text: str, asked: str, launches: str, name: str) -> str | None:
    """As `_wrong`, of the gates of so many launches that are drawn from the file's."""
    cpu, _, answer = asked.partition(" ")
    said = f"{_gates(name, int(launches), float(cpu)).get(answer, 0.0):.1%}"
    return None if text.replace(" ", "") == said else said


def _beside_real_gates(text: str, answer: str, launches: str, name: str) -> str | None:
    """As `_wrong`, of the gates of so many launches that the file has one after the other."""
    answers = in_turn(rows_of(name), int(launches))
    said = f"{answers.count(answer)} of {len(answers)}"
    return None if text == said else said


@cache
def _gates(name: str, launches: int, cpu: float) -> Mapping[str, float]:
    return shares(rows_of(name), launches, cpu)


def _measure(name: str) -> Measure:
    """Goodput, or a column of numbers."""
    return goodput if name == "goodput_rps" else attrgetter(name)


def _lane(rows: Sequence[Row], name: str) -> list[Row]:
    """The rows of a lane at the one load that it has."""
    wanted = _named(rows, name)
    own = [row for row in without_shorter(rows) if lane_of(row) == wanted]
    loads = set(map(Cell.of, own))
    assert len(loads) == 1, f"{wanted} has {len(loads)} loads"
    return own


def _named(rows: Sequence[Row], lane: str) -> str:
    """The name of the first lane (A), of the second one (B), or of one by its name."""
    lanes = list(dict.fromkeys(map(lane_of, rows)))
    return lanes["AB".index(lane)] if lane in ("A", "B") else lane


def _verdict(rows: Sequence[Row]) -> list[str]:
    """Whom the verdicts of the valid trials name, without and with how strong the evidence is.
    Where none is valid, whom all name, which says so."""
    valid = [row for row in rows if row.valid]
    told = valid or rows
    name, count = Counter(row.bottleneck for row in told).most_common(1)[0]
    strong = sum(row.strength == STRONG for row in told if row.bottleneck == name)
    how = "weak" if not strong else "strong" if strong == count else f"{strong} strong"
    if len(rows) == 1 and not valid:
        return [f"{name}, not valid ({how})"]
    said = f"{name}, {count} of {len(told)}{'' if valid else ', none valid'}"
    return [said, f"{said} ({how})"]


def _valid(rows: Sequence[Row]) -> list[str]:
    said = f"{sum(row.valid for row in rows)} of {len(rows)}"
    return [f"{said} valid", said]


def otherwise(
    text: str, mid: float, interval: Interval | None, values: Sequence[float]
) -> str | None:
    """What a median or ratio of these values is, where `text` is not that, rounded: with its
    interval in [], or the range of fewer than 6 values in (). None where it is."""
    found = IN_CELL.fullmatch(text)
    ends = (interval.low, interval.high) if interval else (min(values), max(values))
    says = f"{mid:,.3f} {'[' if interval else '('}{ends[0]:,.3f} {ends[1]:,.3f}"
    if found is None:
        return says
    alone = len(values) == 1 and found["open"] is None
    if not alone and found["open"] != ("[" if interval else "("):
        return says
    printed = (found["mid"],) if alone else (found["mid"], found["low"], found["high"])
    fit = all(map(is_rounded, printed, (mid, *ends)))
    return None if fit else says


def is_rounded(printed: str, value: float) -> bool:
    """Whether a printed number is this value, rounded to its digits. A value that lies in the
    middle may be rounded either way: the file has it rounded itself."""
    decimals = len(printed.partition(".")[2])
    return abs(float(printed.replace(",", "")) - value) <= 0.5 * 10.0**-decimals + 1e-9


def capacities(name: str) -> dict[str, str]:
    """What a page says of each server of a file of `capacity`, as a pattern: what it holds and what
    gave way, with any figures of the verdict; then, where the page has it, what came of a lift of
    whatever. The file has neither the figures nor what was lifted."""
    rows, experiment = rows_of(name), experiment_of(name)
    objective = settings_of(Capacity, experiment).objective
    found: dict[str, str] = {}
    for answer in _findings(experiment, rows):
        if answer.name != CAPACITY:
            continue
        own = [row for row in rows if row.server == answer.server]
        # Without a lift the lab says why there was none, from its whole manifest.
        was_lifted = any(row.arm == LIFTED for row in own)
        said = _findings(replace(experiment, servers=(answer.server,)), own, prove=was_lifted)
        more = [one.text for one in said if one.name == LIFTED]
        if less := [row for row in own if row.arm in ARMS]:
            more.append(Deprived.of(objective, round(answer.value or 0), less).text)
        parts = (f"(?: {_pattern(text)})?" for text in more)
        found[answer.server] = _pattern(answer.text) + "".join(parts)
    return found


def curve(name: str) -> str:
    """The figure of p99 against the rate of a file of `capacity`, as its report had it."""
    rows, experiment = rows_of(name), experiment_of(name)
    limits = kind_of(experiment).limits
    assert limits is not None, f"{name} is no run of capacity"
    (place,) = by_load(rows, LaneStyles.of(experiment.servers, rows), limits(experiment))
    (found,) = (one for one in place.figures if one.name.startswith("p99-"))
    return alone(found.svg)


def _beside_held(text: str, asked: str, rows: Sequence[Row], name: str) -> str | None:
    """As `_wrong`, of what a server holds, whose lane is asked for."""
    server = _named(rows, asked.removesuffix(" held"))
    found = _findings(experiment_of(name), rows)
    (one,) = (one for one in found if (one.name, one.server) == (CAPACITY, server))
    if one.value is None or one.low is None or one.high is None:
        return one.text
    return otherwise(text, one.value, Interval(one.low, one.high, CONFIDENCE), [])


def _findings(
    experiment: Experiment, rows: Sequence[Row], *, prove: bool = False
) -> tuple[Finding, ...]:
    own = {**experiment.own, **({"prove": prove} if "prove" in experiment.own else {})}
    outcome = Outcome(replace(experiment, own=own), rows, Path("no-raw-data"))
    return kind_of(experiment).findings(outcome)


def _pattern(text: str) -> str:
    holds, _, then = text.partition(SEPARATOR)
    before, lifted, after = holds.partition("what is not recorded")
    whole = re.escape(before) + (".+?" if lifted else "") + re.escape(after)
    if not then:
        return whole
    # Between the name of what gave way and the strength come the verdict's figures.
    name = re.split(r": | \(", then)[0]
    rest = re.escape(then.removeprefix(name))
    return f"{whole};? then: {re.escape(name)}(?:, [^:;]+?)?{rest}"


def _beside_capacity(lines: Sequence[str], files: Sequence[str]) -> Iterator[str]:
    told = {server: said for name in files for server, said in capacities(name).items()}
    # A line that begins with a space goes on with the one before.
    whole = [" ".join(one.split()) for one in re.split(r"\n(?! )", "\n".join(lines))]
    if [one.partition(" ")[0] for one in whole] != list(told):
        yield f"other servers than {', '.join(told)}"
        return
    for one in whole:
        server, _, page = one.partition(" ")
        if not re.fullmatch(told[server], page):
            said = told[server].replace("\\", "")
            yield f"{server}: the page says {page}, the file {said}"
