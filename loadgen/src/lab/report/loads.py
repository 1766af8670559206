"""The loads of a run as a table: all that was measured of them."""

from __future__ import annotations

from collections.abc import Sequence

from lab.judge.grouping import Load
from lab.judge.values import MOST_ERRORS
from lab.report.blocks import Paragraph, Section, Table
from lab.report.comparison import median_of
from lab.report.table import NOTHING, rate

LEGEND = (
    "bound: the most the load and the settings allow, predicted before the run. closed: each "
    "connection sends again as soon as it is answered. open: a constant rate is offered, and "
    "p95 counts from when a request was due; raw p95 from when it was sent. req/s: answers that "
    "were no errors, as are those of all latencies. Latencies in ms "
    "(12.3s: seconds), medians over launches of valid trials, with the interval of order "
    "statistics (at least 95 %) from 6 launches on. errors: HTTP errors, socket errors and "
    "timeouts of whole runs, warm-up included, with their largest share in a valid trial where "
    f"that is above {MOST_ERRORS:.0%}. window: how long was measured, where that differs. "
    f"{NOTHING}: cannot be told; as a bound: only computing limits, or no such bound is known."
)
# The columns that most runs have one value of.
SAME = ("route", "engine", "window")
MEASURED = ("connections", "server", "bound", "closed req/s", "closed raw p95", "offered/s",
            "open req/s", "open p95", "open raw p95", "errors", "valid", "launches")  # fmt: skip


def table(
    label: str, header: Sequence[str], rows: Sequence[Sequence[str]], legend: str, names: int
) -> Table:
    """A table of loads. Of its first `names` columns, which say what load it is, it has those that
    tell any: those of SAME where they differ, others where any row has a value."""

    def tells(at: int) -> bool:
        said = {row[at] for row in rows}
        return len(said) > 1 if header[at] in SAME else said != {NOTHING}

    kept = [at for at in range(len(header)) if at >= names or tells(at)]
    shown = [[row[at] for at in kept] for row in (header, *rows)]
    many = sum(at < names for at in kept)
    return Table(shown[0], shown[1:], label, legend, names=many, folds=True)


def measured(loads: Sequence[Load]) -> Section:
    places = {load.route for load in loads}, {load.engine for load in loads}
    same = ", ".join(names.pop() for names in places if len(names) == 1)
    rows = [
        (
            load.route,
            load.engine,
            windows(load.closed_s, load.open_s),
            str(load.concurrency),
            load.lane,
            rate(load.bound_rps),
            median_of(load.closed_rps, "goodput"),
            median_of(load.closed_p95_ms, "p95"),
            offered(load),
            median_of(load.open_rps, "goodput"),
            median_of(load.open_p95_ms, "p95"),
            median_of(load.open_raw_p95_ms, "p95"),
            _errors(load),
            f"{load.valid} of {load.trials}",
            _launches(load),
        )
        for load in loads
    ]
    whole = table("Loads", (*SAME, *MEASURED), rows, LEGEND, names=len(SAME) + 2)
    return Section("Loads", [Paragraph(same and f"All: {same}."), whole])


def offered(load: Load) -> str:
    return NOTHING if load.offered_rps is None else str(load.offered_rps)


def windows(*lengths_s: int | None) -> str:
    known = dict.fromkeys(f"{length} s" for length in lengths_s if length is not None)
    return ", ".join(known) or NOTHING


def _errors(load: Load) -> str:
    if load.errors is None:
        return NOTHING
    share = f" ({load.error_share:.0%})" if load.error_share > MOST_ERRORS else ""
    return f"{load.errors}{share}"


def _launches(load: Load) -> str:
    """The launches of the median that has the fewest."""
    medians = [of for of in (load.closed_rps, load.open_rps) if of is not None]
    if not medians:
        return "0"
    least = min(medians, key=lambda of: of.count)
    if least.interval is not None:
        return str(least.count)
    return f"no interval ({least.count} launch{'es' if least.count > 1 else ''})"
