"""The loads of a run as tables: at a glance, and all that was measured of them."""

from __future__ import annotations

from collections.abc import Sequence

from lab.judge.compare import MOST_ERRORS
from lab.judge.gates.generator import KEPT_UP
from lab.judge.grouping import Load, lane_of
from lab.model import Mode, Row
from lab.report.blocks import Paragraph, Section, Table
from lab.report.comparison import median_text
from lab.report.table import NOTHING, rate
from lab.report.verdicts import NO_VALID

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
GLANCE = ("server", "highest closed req/s", "at connections", "of its bound there",
          "raw p95 there", "highest rate kept/s", "over connections", "p95 there")  # fmt: skip
GLANCE_LEGEND = (
    f"Of the valid trials of this run. Kept: at least {KEPT_UP * 100:g} % of what was offered was "
    f"answered. {NOTHING}: none of them, or nothing that bounds. Latencies in ms."
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
            median_text(load.closed_rps, "goodput_rps"),
            median_text(load.closed_p95_ms, "raw_p95_ms"),
            offered(load),
            median_text(load.open_rps, "goodput_rps"),
            median_text(load.open_p95_ms, "p95_ms"),
            median_text(load.open_raw_p95_ms, "raw_p95_ms"),
            _errors(load),
            f"{load.valid} of {load.trials}",
            _launches(load),
        )
        for load in loads
    ]
    whole = table("Loads", (*SAME, *MEASURED), rows, LEGEND, names=len(SAME) + 2)
    return Section("Loads", [Paragraph(same and f"All: {same}."), whole])


def at_a_glance(loads: Sequence[Load], rows: Sequence[Row]) -> Section:
    """The highest closed throughput of each lane, beside its bound there, and the highest
    offered rate that it kept."""
    lanes: dict[tuple[str, str, str], list[Load]] = {}
    for load in loads:
        lanes.setdefault((load.route, load.engine, load.lane), []).append(load)
    lines = []
    for lane, its in lanes.items():
        own = [row for row in rows if (row.route, row.engine, lane_of(row)) == lane]
        closed = [(load.closed_rps.median, load) for load in its if load.closed_rps is not None]
        kept = [(load.offered_rps or 0, load) for load in its if _keeps(load)]
        best = max(closed, key=lambda one: one[0], default=None)
        # Of equal rates the one that is harder to keep.
        most = max(kept, key=lambda one: (one[0], one[1].concurrency), default=None)
        lines.append(
            (
                *lane,
                *(_highest(*best) if best else _none_of(own, "closed", 4)),
                *(_kept(most[1]) if most else _none_of(own, "open", 3)),
            )
        )
    header, title = ("route", "engine", *GLANCE), "At a glance"
    return Section(title, [table(title, header, lines, GLANCE_LEGEND, names=3)])


def offered(load: Load) -> str:
    """The rate that is offered in its open trials."""
    return NOTHING if load.offered_rps is None else str(load.offered_rps)


def windows(*lengths_s: int | None) -> str:
    """The length of windows, or lengths where they differ."""
    known = dict.fromkeys(f"{length} s" for length in lengths_s if length is not None)
    return ", ".join(known) or NOTHING


def _keeps(load: Load) -> bool:
    return load.open_kept is not None and load.open_kept.median >= KEPT_UP


def _highest(median_rps: float, load: Load) -> tuple[str, str, str, str]:
    return (
        median_text(load.closed_rps, "goodput_rps"),
        str(load.concurrency),
        f"{median_rps / load.bound_rps:.0%}" if load.bound_rps else NOTHING,
        median_text(load.closed_p95_ms, "raw_p95_ms"),
    )


def _kept(load: Load) -> tuple[str, str, str]:
    return (
        rate(load.offered_rps),
        str(load.concurrency),
        median_text(load.open_p95_ms, "p95_ms"),
    )


def _none_of(rows: Sequence[Row], mode: Mode, columns: int) -> tuple[str, ...]:
    """So many cells of a lane that has no figure of a mode."""
    valid = [row.valid for row in rows if row.mode == mode]
    first = NO_VALID if valid and not any(valid) else NOTHING
    return (first, *(NOTHING,) * (columns - 1))


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
