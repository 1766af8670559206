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
    –                     as the cell of a number: no trial is valid, or none has this number
    A held                what a search of capacity found: 979 [917, 1,000]
    gate 1.1 worse        the share of gates of so many launches as the row begins with that say so,
                          drawn from the launches of the file, with the candidate's CPU time x 1.1;
                          raw-gate: without the control parts as a covariate
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
from copy import replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from lab.judge.grouping import Cell, Measure, lane_of, per_launch, without_shorter
from lab.judge.intervals import CONFIDENCE, Interval, median_of
from lab.judge.values import Values
from lab.kinds.kind import Outcome, settings_of
from lab.kinds.objective import Objective
from lab.kinds.registry import kind_of
from lab.kinds.search import NAME as CAPACITY
from lab.kinds.search import Axis, Search
from lab.model import STRONG, Experiment, Finding, Row, Sustained, goodput
from lab.report.capacity import answers
from lab.report.page.by_load import by_load
from lab.store import csv
from lab.store.csv import csv_text
from lab.store.records import from_json, to_json
from support.repo import script
from support.resampled import in_turn, shares
from support.table import read_rows

published = script("published")

# The arms of the trials past Toxiproxy with which searches once ended.
PAIR = ("pair-proxied", "pair-direct")
AXES: Mapping[str, Axis] = {"capacity": "rate", "stress": "connections"}
ENDED, ROSE = re.compile("ended-as-lost[^;]*"), "latency-drift first_ms=1 second_ms=2"

NUMBER = r"(?:(?<!\w)-)?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
BRACKETS = rf"(?P<open>[\[(])(?P<low>{NUMBER})(?:, | to | )(?P<high>{NUMBER})[\])]"
IN_CELL = re.compile(rf"×?(?P<mid>{NUMBER})(?: {BRACKETS})?")
IN_TEXT = re.compile(rf"×?(?P<mid>{NUMBER}) {BRACKETS}")


def record(name: str) -> dict[str, Any]:
    """What is kept of the manifest of a file's run."""
    file, _ = published.source(name)
    return json.loads((published.FOLDER / f"{file}.json").read_text())


def rows_of(name: str) -> tuple[Row, ...]:
    """The trials of a file; of `loops[mode=closed,route=/]` those with these cells. One that was
    ended before its window, as its load was lost, is one whose latency rose. Raises ValueError for
    no trial."""
    stem, wanted = published.source(name)
    columns, run = Row.columns(), record(name)["run"]
    with (published.FOLDER / f"{stem}.csv").open(newline="") as file:
        every = [{**dict.fromkeys(columns, ""), **row} for row in plain_csv.DictReader(file)]
    kept = [{**row, "run": run} for row in every if wanted.items() <= row.items()]
    if not kept:
        raise ValueError(f"{name}: no row has these cells")
    with TemporaryDirectory() as folder:
        path = Path(folder) / csv.NAME
        path.write_text(csv_text([columns, *([row[at] for at in columns] for row in kept)]))
        rows = read_rows(path)
    return tuple(
        replace(row, invalid_reasons=ENDED.sub(ROSE, row.invalid_reasons))
        for row in rows
        if row.arm not in PAIR
    )


def experiment_of(name: str) -> Experiment:
    """The experiment of a file's run. Trials of runs that were searched by the rules of before
    2026-11-30 are judged by those of today."""
    plain = dict(record(name)["experiment"])
    own = plain.pop(plain["kind"], {})
    if "objective" in own:
        objective = from_json(Objective, own["objective"])
        most, connections = own["most"], own.get("connections", own["most"])
        axis = AXES[plain["kind"]]
        own = to_json(Search((objective,), axis, own["first"], most, 0.08, connections))
    return from_json(Experiment, {"rate_rps": None, "warmup_s": None, **plain, "own": own})


def problems(mark: Any) -> Iterator[str]:
    """The differences between a page and the files of a mark."""
    if mark.cells == ("capacity",):
        inside = [line for line in mark.block.splitlines() if line and not line.startswith("```")]
        yield from _beside_capacity(inside, [name for _, names in mark.rows for name in names])
        return
    for label, files in mark.rows:
        texts = _texts(mark.block, label)
        is_table = mark.block.startswith("|")
        if len(texts) < len(mark.cells) or (is_table and len(texts) > len(mark.cells)):
            yield f"{label}: {len(texts)} cells or numbers after it, not {len(mark.cells)}"
            continue
        for name in files:
            rows = rows_of(name)
            for text, cell in zip(texts, mark.cells, strict=False):
                if cell != "-" and (found := _otherwise(text, cell, label, name, rows)):
                    yield f"{label}, {cell} of {name}: the page says {text}, the file {found}"


def _texts(block: str, label: str) -> list[str]:
    """The cells of the one row of a table that begins with the label; the numbers with brackets
    behind it in a text."""
    begin = re.compile(re.escape(label) + r"(?![\w-])")
    if not block.startswith("|"):
        whole = " ".join(block.split())
        start = begin.search(whole)
        return [found[0] for found in IN_TEXT.finditer(whole[start.end() :])] if start else []
    rows = [line.strip("| ") for line in block.splitlines() if begin.match(line.strip("| "))]
    return [cell.strip() for row in rows for cell in row[len(label) :].split("|")[1:]]


def _otherwise(text: str, asked: str, label: str, name: str, rows: Sequence[Row]) -> str | None:
    """What a file has for a cell of a mark, if the page has something else."""
    first, _, rest = asked.partition(" ")
    match first, rest:
        case "found", _:
            return _beside_found(text, name, rest, label)
        case "gates", _:
            answers = in_turn(rows, int(label))
            return _beside(text, f"{answers.count(rest)} of {len(answers)}")
        case "gate" | "raw-gate", _:
            cpu, _, answer = rest.partition(" ")
            found = _gates(name, int(label), float(cpu), raw=first == "raw-gate")
            return _beside(text.replace(" ", ""), f"{found.get(answer, 0.0):.1%}")
        case _, "held":
            return _beside_found(text, name, CAPACITY, _named(rows, first))
        case "B/A", _:
            values = Values.from_rows(_lane(rows, "A"), _lane(rows, "B"), _measure(rest))
            ratio = values.ratio(CONFIDENCE)
            assert values.paired, "sides that took no turns have no range of pairs"
            each = [b / a for a, b in zip(values.a, values.b, strict=True)]
            return otherwise(text, ratio.ratio, ratio.interval, each)
    cases = (lane for lane in map(lane_of, rows) if lane.endswith(f"@{label}"))
    lane = _lane(rows, next(cases, label) if first == "@" else first)
    if rest == "bottleneck":
        return _beside(text, *_verdict(lane))
    if rest == "predicted_rps":
        # Of the load and the settings, whatever came of the trial.
        lane = [replace(row, valid=True) for row in lane]
    return _beside_values(text, per_launch(lane, _measure(rest)))


def _beside(text: str, *found: str) -> str | None:
    return None if text in found else found[-1]


def _beside_values(text: str, values: Sequence[float]) -> str | None:
    if not values:
        return _beside(text, "–")
    middle = median_of(values)
    return otherwise(text, middle.median, middle.interval, values)


def _beside_found(text: str, file: str, name: str, server: str) -> str | None:
    """As `_otherwise`, of the findings of that name of each launch of a server."""
    kept = record(file).get("findings")
    every = _findings(file) if kept is None else [_finding(each) for each in kept]
    found = [each for each in every if (each.name, each.server) == (name, server)]
    values = [each.value for each in found if each.value is not None]
    ends = [(each.low, each.high) for each in found]
    if len(found) == 1 and values and None not in ends[0]:
        return otherwise(text, *values, Interval(*ends[0], CONFIDENCE), [])
    count = "" if len(values) in (0, len(found)) else f", {len(values)} of {len(found)}"
    if not text.endswith(count):
        return f"a value in {len(values)} of {len(found)} launches"
    return _beside_values(text.removesuffix(count), values)


def _finding(kept: Mapping[str, Any]) -> Finding:
    """As it was kept: until 2026-11-30 with a text."""
    known = {name: value for name, value in kept.items() if name != "text"}
    return msgspec.convert(known, Finding)


@cache
def _gates(name: str, launches: int, cpu: float, *, raw: bool) -> Mapping[str, float]:
    return shares(rows_of(name), launches, cpu, raw=raw)


def _measure(name: str) -> Measure:
    """Goodput, or a column of numbers."""
    return goodput if name == "goodput_rps" else attrgetter(name)


def _lane(rows: Sequence[Row], name: str) -> list[Row]:
    """The rows of a lane at the one load that it has."""
    wanted = _named(rows, name)
    found = [row for row in without_shorter(rows) if lane_of(row) == wanted]
    loads = set(map(Cell.of, found))
    assert len(loads) == 1, f"{wanted} has {len(loads)} loads"
    return found


def _named(rows: Sequence[Row], lane: str) -> str:
    """The name of the first lane (A), of the second one (B), or of one by its name."""
    lanes = list(dict.fromkeys(map(lane_of, rows)))
    return lanes["AB".index(lane)] if lane in ("A", "B") else lane


def _verdict(rows: Sequence[Row]) -> list[str]:
    """Whom the verdicts of the valid trials name (of all, if none is valid), without and with how
    strong the evidence is."""
    valid = [row for row in rows if row.valid]
    named = valid or rows
    name, count = Counter(row.bottleneck for row in named).most_common(1)[0]
    strong = sum(row.strength == STRONG for row in named if row.bottleneck == name)
    how = "weak" if not strong else "strong" if strong == count else f"{strong} strong"
    if len(rows) == 1 and not valid:
        return [f"{name}, not valid ({how})"]
    text = f"{name}, {count} of {len(named)}{'' if valid else ', none valid'}"
    return [text, f"{text} ({how})"]


def otherwise(
    text: str, mid: float, interval: Interval | None, values: Sequence[float]
) -> str | None:
    """What a median or ratio of these values is, where `text` is not that, rounded: with its
    interval in [], or the range of fewer than 6 values in (). None where it is."""
    found = IN_CELL.fullmatch(text)
    ends = (interval.low, interval.high) if interval else (min(values), max(values))
    bracket = "[" if interval else "("
    right = f"{mid:,.3f} {bracket}{ends[0]:,.3f} {ends[1]:,.3f}"
    if found is None:
        return right
    if len(values) == 1 and found["open"] is None:
        return None if is_rounded(found["mid"], mid) else right
    printed = (found["mid"], found["low"], found["high"])
    fit = found["open"] == bracket and all(map(is_rounded, printed, (mid, *ends)))
    return None if fit else right


def is_rounded(printed: str, value: float) -> bool:
    """Whether a printed number is this value, rounded to its digits. A value that lies in the
    middle may be rounded either way: the file has it rounded itself."""
    decimals = len(printed.partition(".")[2])
    return abs(float(printed.replace(",", "")) - value) <= 0.5 * 10.0**-decimals + 1e-9


def curve(name: str) -> str:
    """The figure of p99 against the rate of a file of `capacity`, as its report had it."""
    search = settings_of(Search, experiment_of(name))
    found = [each for each in _findings(name) if isinstance(each, Sustained)]
    drawn = by_load(rows_of(name), search.least_limits(), found)
    (figure,) = (each for each in drawn if each.name.startswith("p99-"))
    return figure.file


def _findings(name: str) -> tuple[Finding, ...]:
    run = experiment_of(name)
    return tuple(kind_of(run).findings(Outcome(run, rows_of(name), Path("no-raw-data"))))


def _beside_capacity(lines: Sequence[str], files: Sequence[str]) -> Iterator[str]:
    right = {}
    for name in files:
        every = answers(experiment_of(name), _findings(name))
        right |= {cells[0]: " ".join(cells) for cells in every if len(cells) > 1}
    # A line that begins with a space goes on with the one before.
    whole = [" ".join(line.split()) for line in re.split(r"\n(?! )", "\n".join(lines))]
    if [line.partition(" ")[0] for line in whole] != list(right):
        yield f"other servers than {', '.join(right)}"
        return
    for line, text in zip(whole, right.values(), strict=True):
        if line != text:
            yield f"the page says {line}, the file {text}"
