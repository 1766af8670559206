"""Do the load engines agree? Every engine on a load is compared with the first engine on it.

Two engines that measure the same server with the same load must say the same, or one of them
measures itself. The first engine is the first planned one with a trial in the run: an engine that
does not run on the machine was left out. Where the first engine has no valid trial, agreement is
unknown, and no other engine takes its place. We compare the medians of p50 and p95 over a cell's
valid trials: of the corrected latency in an open load, of the raw latency in a closed load. The
corrected latency of an overloaded server grows with the length of the run, which no two engines
have the same: there agreement is unknown. So it is where the verdict names the CPU: an engine takes
from the server what it needs itself. An engine that sends in bursts measures these, and differs.

To agree is to differ by no more than the tolerance in these trials. It is no interval, and says
nothing of smaller differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from lab.judge.compare import overloaded
from lab.load.engines import ENGINES
from lab.load.engines.wrk2 import BURSTS_FROM
from lab.model import Experiment, Finding, Row

# Two engines agree when neither percentile differs by more than this share, or than what
# their clocks and histograms may add: wrk2 rounds waits up by as much as a millisecond.
TOLERANCE = 0.03
LEAST_MS = 2.0
CPU = ("host CPU", "server CPU")
_MODES = {engine.name: engine.modes for engine in ENGINES}


def findings(experiment: Experiment, rows: Sequence[Row]) -> tuple[Finding, ...]:
    """One finding for each load, percentile and engine other than the first. `value` is the share
    by which the engine is above the first engine (negative: below), None where that is unknown.
    Without a second engine there are no findings."""
    tried = {row.engine for row in rows}
    return tuple(_findings([one for one in experiment.engines if one in tried], rows))


def _findings(engines: Sequence[str], rows: Sequence[Row]) -> Iterator[Finding]:
    loads = dict.fromkeys((row.server, row.route, row.mode, row.concurrency) for row in rows)
    for load in loads:
        of_load = [
            row for row in rows if (row.server, row.route, row.mode, row.concurrency) == load
        ]
        here = [one for one in engines if of_load[0].mode in _MODES.get(one, ())]
        for engine in here[1:]:
            for percentile in ("p50", "p95"):
                yield _agreement(percentile, of_load, here[0], engine)


def _agreement(percentile: str, rows: Sequence[Row], first: str, engine: str) -> Finding:
    row = rows[0]
    column = f"{percentile}_ms" if row.mode == "open" else f"raw_{percentile}_ms"
    what = f"{row.route} {row.mode} {row.concurrency}"
    name = f"engines agree on {percentile}: {engine} and {first}, {row.server} {what}"
    theirs, ours = (_median(rows, one, column) for one in (first, engine))
    under = [one for one in (first, engine) if _overloaded(rows, one)]
    why = ""
    if theirs is None or ours is None:
        why = _silence(rows, first if theirs is None else engine, column)
    elif full := [one for one in (first, engine) if _named_cpu(rows, one)]:
        why = f"the CPU limited {row.server} under {' and '.join(full)}, and engines use it, too"
    elif under:
        why = f"{row.server} was overloaded under {' and '.join(under)}, so latency grows with time"
    if theirs is None or ours is None or why:
        text = f"{what}: whether {engine} and {first} agree on {percentile} is unknown: {why}"
        return Finding(name, row.server, 0, None, "share", None, None, text)
    share = ours / theirs - 1
    agree = "agree"
    if abs(share) > TOLERANCE and abs(ours - theirs) > LEAST_MS:
        bursts = [one for one in (first, engine) if _in_bursts(one, row)]
        agree = f"differ, as {' and '.join(bursts)} sends in bursts," if bursts else "DO NOT AGREE"
    text = (
        f"{what}: {engine} and {first} {agree} on {percentile} "
        f"({ours:.1f} and {theirs:.1f} ms, {share:+.1%}; allowed ±{TOLERANCE:.0%} or "
        f"{LEAST_MS:g} ms; medians of {_count(rows, engine)} and {_count(rows, first)})"
    )
    return Finding(name, row.server, 0, share, "share", None, None, text)


def _overloaded(rows: Sequence[Row], engine: str) -> bool:
    return any(overloaded(row) for row in rows if row.engine == engine and row.valid)


def _named_cpu(rows: Sequence[Row], engine: str) -> bool:
    return any(row.bottleneck in CPU for row in rows if row.engine == engine and row.valid)


def _in_bursts(engine: str, load: Row) -> bool:
    """Whether the engine sends such a load in bursts: wrk2 an open one of many connections, wrk
    every load, as it opens all connections at once."""
    many = load.mode == "open" and load.concurrency >= BURSTS_FROM
    return engine == "wrk" or (engine == "wrk2" and many)


def _count(rows: Sequence[Row], engine: str) -> str:
    count = sum(row.engine == engine and row.valid for row in rows)
    return f"{count} trial{'s' if count > 1 else ''}"


def _median(rows: Sequence[Row], engine: str, column: str) -> float | None:
    values = [getattr(row, column) for row in rows if row.engine == engine and row.valid]
    known = [float(value) for value in values if value is not None]
    return median(known) if known else None


def _silence(rows: Sequence[Row], engine: str, column: str) -> str:
    """Why an engine has no figure to compare."""
    own = [row for row in rows if row.engine == engine]
    if any(row.valid for row in own):
        return f"{engine} has no {column}"
    if not own:
        return f"no trial of {engine}"
    reasons = dict.fromkeys(row.invalid_reasons for row in own)
    return f"no valid trial of {engine} ({'; '.join(reasons)})"
