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

    run_dir, rows = _run(results, name)
    status = json.loads((run_dir / "manifest.json").read_text())["status"]
    found = [*problems(status, rows, trials.split(","), hit)]
    later = _run(results, after)[1] if after else rows
    found += filter(None, map(false_figures, later if after else ()))
    last = last_tries(later)[-1]
    if not last["valid"] and not excused((reason["code"] for reason in last["reasons"]), BUSY):
        found.append(f"the trial after it, {last['trial']}, is invalid")
    for row in (*rows, *(later if after else ())):
        print(
            f"{row['trial']}: {row['achieved_rps']} req/s, p50 {row['raw_p50_ms']} ms, "
            f"{'valid' if row['valid'] else row['reasons']}, notes {row['notes']}"
        )
    for one in found:
        print(f"WRONG: {one}")
    return 1 if found else 0


def _run(results: Path, name: str) -> tuple[Path, list[dict[str, Any]]]:
    """The folder of the one run of that name, and its rows, with lists of reasons and notes."""
    (run_dir,) = results.glob(f"*Z-{name}")
    lines = (run_dir / "trials.jsonl").read_text().splitlines()
    return run_dir, [json.loads(line) for line in lines]


def table(cells: Sequence[Mapping[str, str]], passed: Mapping[tuple[str, str], str]) -> str:
    """The table of the page: a row for each fault, a column for each phase."""
    lines = [
        f"| fault | {' | '.join(PHASES)} |",
        f"|---|{'---|' * len(PHASES)}",
    ]
    known = {(one["fault"], one["phase"]) for one in cells}
    for fault in dict.fromkeys(one["fault"] for one in cells):
        said = [
            "·" if (fault, phase) not in known else passed.get((fault, phase), "not yet run")
            for phase in PHASES
        ]
        lines.append(f"| {fault} | {' | '.join(said)} |")
    ran = sum((one["fault"], one["phase"]) in passed for one in cells)
    lines += ["", f"{ran} of {len(cells)} cells have run and passed."]
    return "\n".join(lines) + "\n"


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
    rows = {(one["fault"], one["phase"]): one for one in read(PASSED)}
    if new:
        names = ("fault", "phase", "date", "seconds")
        for line in Path(new).read_text().split():
            one = dict(zip(names, line.split(","), strict=True))
            rows[one["fault"], one["phase"]] = one
    order = [(one["fault"], one["phase"]) for one in read(TABLE)]
    lines = [",".join(rows[key].values()) for key in order if key in rows]
    PASSED.write_text("\n".join(["fault,phase,date,seconds", *lines]) + "\n")
    PAGE.write_text(with_table(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "judged":
        sys.exit(judged(Path(sys.argv[2]), *sys.argv[3:]))
    sys.exit(write_page(*sys.argv[2:]))
