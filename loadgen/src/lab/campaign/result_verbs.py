"""The verbs that need no lab: `report` computes a run again, `compare` sets runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from lab.campaign import capacity_sides
from lab.campaign.derive import derive
from lab.campaign.gate import STATUS, UNTOLD
from lab.campaign.recorded_sides import between
from lab.campaign.run_record import say
from lab.campaign.sides import COMPARE, Run, missing_lanes, pair, read_sides
from lab.experiments.reading import refuse_unknown
from lab.judge.compare import overall
from lab.load.engines import ENGINES, Engine
from lab.report import comparison, index
from lab.report.capacity import ratio_lines
from lab.report.console import write
from lab.store.run_dir import find_run_dir


def parse_report(words: Mapping[str, str], results: Path) -> Path:
    """The folder of the run that `report` is about. Raises WordError."""
    refuse_unknown(words, ("RUN",), "report")
    return find_run_dir(results, "RUN", words.get("RUN", "latest"))


def parse_compare(
    words: Mapping[str, str], results: Path, engines: Sequence[Engine] = ENGINES
) -> tuple[Run, Run]:
    """The sides A and B of `compare`. Raises as `read_sides`."""
    refuse_unknown(words, COMPARE[1:], "compare")
    return read_sides(words, results, engines)


def report_verb(
    words: Mapping[str, str],
    results: Path,
    console: Console,
    engines: Sequence[Engine] = ENGINES,
) -> int:
    """`report`: every derived file of the run RUN (default: latest), from its raw data. Returns 0,
    or UNTOLD where none of it is valid.

    Raises WordError, and LabError where the run cannot be read.
    """
    run_dir = parse_report(words, results)
    derived = derive(run_dir, engines)
    result, changed = derived.result, derived.changed
    count, valid = len(result.rows), len(result.rows) - len(result.invalid)
    say(console, f"results/{run_dir.name}: {count} trials, {valid} of them valid")
    if result.manifest.status != "complete":
        say(console, f"the run is {result.manifest.status}, not complete")
    for name in result.unfinished:
        say(console, f"raw/{name} is left out: its trial never ended, or cannot be read")
    unchanged = [name for name in derived.files if name not in changed]
    if changed:
        say(console, f"rebuilt: {', '.join(changed)}")
    if unchanged:
        say(console, f"unchanged, byte for byte: {', '.join(unchanged)}")
    index.write(results)
    return 0 if valid else UNTOLD


def compare_verb(
    words: Mapping[str, str],
    results: Path,
    console: Console,
    engines: Sequence[Engine] = ENGINES,
) -> int:
    """`compare`: the run A against B, load by load. See `lab.campaign.sides` for its words. Returns
    WORSE where B is worse at a load, UNTOLD where that cannot be told of one that A has, else 0.

    Raises WordError, and LabError where these may not be compared.
    """
    a, b = parse_compare(words, results, engines)
    paired = pair(a, b)
    for note in paired.notes:
        say(console, note)
    if capacities := capacity_sides.ratios(a, b, paired):
        for line in (line for each in capacities for line in ratio_lines(each)):
            say(console, line)
        return STATUS[capacity_sides.overall(a, b, capacities)]
    comparisons = paired.comparisons
    write(console, comparison.tables(comparisons))
    for line in between(a, b, paired, engines):
        say(console, line)
    # Nothing is known of B at a load that it was not measured at.
    alone = any(of.only_a for of in comparisons) or bool(missing_lanes(a, b))
    answer = overall(comparisons)
    return STATUS["cannot tell" if alone and answer == "not worse" else answer]
