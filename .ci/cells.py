"""Judges what a cell of .ci/cells.csv has left, and writes the table of docs/reliability.md.

judged RESULTS NAME TRIALS HIT [NEXT]
    the run NAME in the folder RESULTS has each of TRIALS (ends of names, with commas) once; no
    valid row says what is not so; one of them has a remark that begins with HIT (each, where | is
    between several; one, where / is); and what
    was measured after the fault, NEXT or the last trial, can be trusted
page [CELLS]
    CELLS are lines of the runner's cells.csv, each `fault,phase,date,seconds`: they take the
    place of what docs/reliability.csv had of these cells, and the table is written
"""

import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pages import between

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_name("cells.csv")
PAGE = ROOT / "docs/reliability.md"
PASSED = ROOT / "docs/reliability.csv"
PHASES = ("warm-up", "window", "between", "report")
# A closed load of N connections through a downstream of 200 ms: no more than N / 0.2 s, and on an
# idle server not much less; on a machine that others fill it was 0.84. A fault takes a second or
# more of a window of 3 s, so it is outside of this.
DELAY_S = 0.2
LEAST, MOST = 0.7, 1.02
MOST_P50_MS = 280.0


def false_figures(row: Mapping[str, Any]) -> str | None:
    """What a valid row of a closed load says that cannot be so; None: nothing."""
    load = re.search(r"-closed-c(\d+)(-again)?$", row["trial"])
    if load is None or not row["valid"]:
        return None
    share = row["achieved_rps"] / (int(load[1]) / DELAY_S)
    p50_ms = row["raw_p50_ms"]
    if LEAST <= share <= MOST and DELAY_S * 1000 <= p50_ms <= MOST_P50_MS:
        return None
    return (
        f"{row['trial']} is valid, and says {row['achieved_rps']:.0f} req/s, which is {share:.2f} "
        f"of what is possible, and a p50 of {p50_ms:.0f} ms"
    )


def problems(
    status: str, rows: Sequence[Mapping[str, Any]], trials: Sequence[str], hit: str
) -> Iterator[str]:
    """What is wrong with a run that was hit."""
    if status != "complete":
        yield f"the run is {status}"
    names = [row["trial"] for row in rows]
    if len(set(names)) < len(names):
        yield f"a trial is there twice: {', '.join(names)}"
    for trial in dict.fromkeys(trials):
        found = [name for name in names if name.endswith(trial)]
        if len(found) != 1:
            yield f"{trial} is there {len(found)} times: {', '.join(names)}"
    yield from filter(None, map(false_figures, rows))
    from lab.model import Remark

    remarks = [Remark(**at).cell for row in rows for at in (*row["reasons"], *row["notes"])]
    for wanted in filter(None, hit.split("|")):
        if not any(remark.startswith(tuple(wanted.split("/"))) for remark in remarks):
            yield f"no trial says: {wanted}"


def judged(results: Path, name: str, trials: str, hit: str, after: str = "") -> int:
    """Prints what is wrong, and the rows. Returns the exit status."""
    # Of the tests, as a machine that is busy is no fault of a cell.
    from support.stored import BUSY, excused, last_tries

    status, rows = _run(results, name)
    found = [*problems(status, rows, trials.split(","), hit)]
    later = _run(results, after)[1] if after else []
    found += filter(None, map(false_figures, later))
    last = last_tries(later or rows)[-1]
    if not last["valid"] and not excused((reason["code"] for reason in last["reasons"]), BUSY):
        found.append(f"the trial after it, {last['trial']}, is invalid")
    for row in (*rows, *later):
        print(
            f"{row['trial']}: {row['achieved_rps']} req/s, p50 {row['raw_p50_ms']} ms, "
            f"{'valid' if row['valid'] else row['reasons']}, notes {row['notes']}"
        )
    for problem in found:
        print(f"WRONG: {problem}")
    return 1 if found else 0


def _run(results: Path, name: str) -> tuple[str, list[dict[str, Any]]]:
    """The status of the one run of that name, and its rows, with lists of reasons and notes."""
    (folder,) = results.glob(f"*Z-{name}")
    lines = (folder / "trials.jsonl").read_text().splitlines()
    status = json.loads((folder / "manifest.json").read_text())["status"]
    return status, [json.loads(line) for line in lines]


def table(cells: Sequence[Mapping[str, str]], passed: Mapping[tuple[str, str], str]) -> str:
    """The table of the page: a row for each fault, a column for each phase."""
    keys = [(cell["fault"], cell["phase"]) for cell in cells]
    lines = [f"| fault | {' | '.join(PHASES)} |", f"|---|{'---|' * len(PHASES)}"]
    for fault in dict.fromkeys(fault for fault, _ in keys):
        places = [(fault, phase) for phase in PHASES]
        texts = [passed.get(key, "not yet run") if key in keys else "·" for key in places]
        lines.append(f"| {fault} | {' | '.join(texts)} |")
    ran = sum(key in passed for key in keys)
    return "\n".join((*lines, "", f"{ran} of {len(cells)} cells have run and passed.")) + "\n"


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file with a header."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def with_table(page: str) -> str:
    """The page with the table that the two files make."""
    dates = {(one["fault"], one["phase"]): one["date"] for one in read(PASSED)}
    return between(page, "cells", table(read(TABLE), dates))


def write_page(new: str = "") -> int:
    """Take up what passed, and write the table. Returns the exit status."""
    names = ("fault", "phase", "date", "seconds")
    lines = Path(new).read_text().split() if new else ()
    rows = [*read(PASSED), *(dict(zip(names, line.split(","), strict=True)) for line in lines)]
    passed = {(row["fault"], row["phase"]): ",".join(row.values()) for row in rows}
    order = [(cell["fault"], cell["phase"]) for cell in read(TABLE)]
    kept = [",".join(names), *(passed[key] for key in order if key in passed)]
    PASSED.write_text("\n".join(kept) + "\n")
    PAGE.write_text(with_table(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "judged":
        sys.exit(judged(Path(sys.argv[2]), *sys.argv[3:]))
    sys.exit(write_page(*sys.argv[2:]))
