"""What published runs say of their hosts: the tables of docs/hosts.md, to standard output.

Run with PYTHONPATH=loadgen/src:loadgen/tests, as the lab's own code computes them.
"""

import json
import statistics
from collections.abc import Iterator, Sequence
from copy import replace
from pathlib import Path
from typing import Any

from lab.judge.ruler import control_us, expected_rps
from lab.kinds.kind import Outcome, settings_of
from lab.kinds.registry import kind_of
from lab.kinds.search import Search
from lab.model import InUnits, Sustained, around_server_us
from lab.model.host_facts import host_id
from support.published import experiment_of, published, record, rows_of

# Runs of the five plain models on three hosts. The first is what the others are expected from.
RUNS = ("capacity-models", "capacity-models-drawn", "stress")
# How slow a host is: what the control parts cost under this server at these rates, in these runs.
LANE, RATES = "virtual-threads", (500, 4000)
COSTS = {
    "capacity-models": "capacity-models",
    "capacity-models-drawn": "capacity-models-drawn",
    "stress": "capacity-large-pool",
}
Headline = tuple[InUnits, float]


def host_of(name: str) -> str:
    return host_id(record(name)["machine"]) or "unknown"


def headlines(name: str) -> dict[str, Headline]:
    """Each server of a run in units, and the highest rate that met the objective. Its runs recorded
    no host_busy: the CPU time of all parts of the lab is in its place."""
    experiment, rows = experiment_of(name), []
    cpus = record(name)["machine"]["cores"]
    for row in rows_of(name):
        around_us = around_server_us(row)
        if around_us is not None and row.cpu_server_us is not None and row.achieved_rps:
            used = (row.cpu_server_us + around_us) * row.achieved_rps / 1e6
            row = replace(row, host_busy=used / cpus)
        rows.append(row)
    outcome = Outcome(experiment, rows, Path("no-raw-data"), cpus=cpus)
    findings = list(kind_of(experiment).findings(outcome))
    units = {each.server: each for each in findings if isinstance(each, InUnits)}
    found: dict[str, Headline] = {}
    for each in findings:
        if isinstance(each, Sustained) and each.server in units and each.value:
            rate = each.value
            if each.unit == "connections":
                rate = settings_of(Search, experiment).offer(round(rate))[1]
            found.setdefault(each.server, (units[each.server], rate))
    return found


def control_at(name: str, rate: int) -> float:
    """What the control parts cost there in µs per request."""
    its = [row for row in rows_of(name) if (row.server, row.offered_rps) == (LANE, rate)]
    return statistics.median(us for row in its if row.valid and (us := control_us(row)))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for cells in rows:
        yield f"| {' | '.join(cells)} |"
    yield ""


def lines() -> Iterator[str]:
    hosts: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(published.FOLDER.glob("*.json")):
        hosts.setdefault(host_of(path.stem), []).append(json.loads(path.read_text()))
    rows = []
    for host, runs in hosts.items():
        machine, days = runs[0]["machine"], sorted(one["started_at"][:10] for one in runs)
        cpu = f"{machine['cores']} cores, {machine['cpu_model']}, Linux {machine['kernel']}"
        rows.append((f"`{host}`", cpu, f"{len(runs)}, {days[0]} to {days[-1]}"))
    yield from table(("host", "CPUs, kernel", "published runs"), rows)
    every = {name: headlines(name) for name in RUNS}
    yield from table(
        ("server", *(f"`{host_of(name)}`: req/s, units, CPUs busy" for name in RUNS)),
        [(server, *(cell(of.get(server)) for of in every.values())) for server in every[RUNS[0]]],
    )
    yield from table(
        ("server", "host", *(f"expected by {rate}/s" for rate in RATES), "measured"),
        [row for name in RUNS[1:] for row in expected(name, every[RUNS[0]], every[name])],
    )


def cell(of: Headline | None) -> str:
    if of is None:
        return "–"
    units, rate = of
    return f"{rate:,.0f}, {units.value:.2f}{'' if units.lane else ' (own)'}, {units.busy:.0%}"


def expected(
    name: str, here: dict[str, Headline], there: dict[str, Headline]
) -> Iterator[Sequence[str]]:
    """The rate of each server on another host, from its line on the first one."""
    for server, (units, _) in here.items():
        if units.line is None or server not in there:
            continue
        measured, cells = there[server][1], []
        for rate in RATES:
            slower = control_at(COSTS[name], rate) / control_at(COSTS[RUNS[0]], rate)
            rps = expected_rps(units.line, units.cpus, units.busy, slower)
            cells.append(f"{rps:,.0f} ({rps / measured - 1:+.0%}; f = {slower:.2f})")
        yield server, f"`{host_of(name)}`", *cells, f"{measured:,.0f}"


if __name__ == "__main__":
    print("\n".join(lines()))
