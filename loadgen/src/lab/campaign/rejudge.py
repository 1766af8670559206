"""The verbs that need no lab: `report` computes a run again, `compare` sets runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lab.campaign.derive import derive
from lab.campaign.sides import WORDS, Pool, pair, read_pools
from lab.experiments.reading import refuse_unknown
from lab.load.engines import ENGINES, Engine
from lab.report import comparison
from lab.store import manifest
from lab.store.run_dir import find_run_dir


def parse_report(words: Mapping[str, str], results: Path) -> Path:
    """The folder of the run that `report` is about. Raises WordError."""
    refuse_unknown(words, ("RUN",), "report")
    return find_run_dir(results, "RUN", words.get("RUN", "latest"))


def parse_compare(words: Mapping[str, str], results: Path) -> tuple[Pool, Pool, tuple[str, ...]]:
    """The sides A and B of `compare`, and what it compares on purpose. Raises as `read_pools`."""
    refuse_unknown(words, WORDS, "compare")
    return read_pools(words, results)


def report_verb(
    words: Mapping[str, str],
    results: Path,
    console: Console,
    engines: Sequence[Engine] = ENGINES,
) -> int:
    """`report`: every derived file of the run RUN (default: latest), from its raw data.

    Raises WordError, and LabError where the run cannot be read.
    """
    run_dir = parse_report(words, results)
    derived = derive(run_dir, engines)
    valid = sum(row.valid for row in derived.rows)
    _say(console, f"results/{run_dir.name}: {len(derived.rows)} trials, {valid} of them valid")
    status = manifest.read(run_dir).status
    if status != "complete":
        _say(console, f"the run is {status}, not complete")
    for name in derived.unfinished:
        _say(console, f"raw/{name} has no trial.json: that trial never ended, and is left out")
    unchanged = [name for name in derived.files if name not in derived.changed]
    if derived.changed:
        _say(console, f"rebuilt: {', '.join(derived.changed)}")
    if unchanged:
        _say(console, f"unchanged, byte for byte: {', '.join(unchanged)}")
    for name in derived.kept:
        _say(console, f"what it said before differs, and is kept as {name}")
    return 0


def compare_verb(words: Mapping[str, str], results: Path, console: Console) -> int:
    """`compare`: the run or runs A against B, cell by cell. See `lab.campaign.sides` for its words.

    Raises WordError, and LabError where these may not be compared.
    """
    a, b, across = parse_compare(words, results)
    paired = pair(a, b, across)
    for note in paired.notes:
        _say(console, note)
    comparison.render(console, paired.comparisons)
    return 0


def _say(console: Console, line: str) -> None:
    console.print(Text(line), soft_wrap=True)
