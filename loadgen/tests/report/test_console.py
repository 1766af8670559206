"""What a run prints at its end."""

import io
from copy import replace
from typing import Any

import pytest
from rich.console import Console

from lab.judge.compare import lanes
from lab.model import STRONG, Mode, Row
from lab.report.console import ended
from lab.report.result import Result
from support.fakes import plan
from support.planned import experiment, row
from support.results import result, verdict

SERVERS = ("fixed-pool", "virtual-threads", "event-loop", "netty", "netty-virtual")
BENCH = experiment(name="bench", servers=SERVERS, words=("CONC=2000",))


def trial(server: str, mode: Mode, number: int, **changes: Any) -> Row:
    load = {"concurrency": 2000, "offered_rps": 9000 if mode == "open" else None}
    of = plan(mode, trial=f"{number:02d}-{server}", server=server, **load)
    figures = {"achieved_rps": 8890.0 + number, "raw_p95_ms": 263.0, "p95_ms": 713.0}
    more = {"expected_rps": 9500.0, "expected_p95_ms": 210.0, "http_errors": 3, "ok": 90_000}
    return row(of, **figures, **more, **changes)


def bench(**changes: Any) -> Result:
    """Five servers, a closed and an open load."""
    loads = [(server, mode) for mode in ("closed", "open") for server in SERVERS]
    rows = [trial(*load, number) for number, load in enumerate(loads, start=1)]
    verdicts = {one.trial: verdict("worker pool", STRONG) for one in rows}
    rows[3] = replace(rows[3], valid=False, invalid_reasons="cold-restarted")
    return result(rows, verdicts, comparisons=lanes(rows), experiment=BENCH, **changes)


def printed(shown: Result, width: int = 120) -> list[str]:
    out = io.StringIO()
    ended(Console(file=out, width=width, force_terminal=True, color_system=None), shown)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [120, 80])
def test_a_bench_of_five_servers_fits_a_screen(width: int) -> None:
    lines = printed(bench(), width)
    # With the path of the report, which follows.
    assert len(lines) < 40
    answers = [line for line in lines if "reached" in line]
    assert [line.split()[0] for line in answers] == [*SERVERS]
    table = [line for line in lines if line.startswith(("closed ", "open "))]
    assert len(table) == 10
    # The prediction stands beside the measurement.
    assert all("9,500" in line for line in table)
    assert sum("1 of 10 trials invalid" in line for line in lines) == 1
    assert lines[-1].startswith("10 trials, 1 of them invalid, 2026-01-31, host ")


@pytest.mark.parametrize("width", [160, 118, 80])
def test_the_widest_row_is_neither_cut_nor_wider_than_the_console(width: int) -> None:
    load = {"concurrency": 10_000, "offered_rps": 45_000}
    widest = row(plan("open", server="virtual-threads", arm="healthy-virtual-threads", **load))
    figures = {"achieved_rps": 44_944.0, "p95_ms": 23_456.0, "expected_rps": 45_000.0}
    lines = printed(result([replace(widest, **figures)], experiment=BENCH), width)
    assert max(map(len, lines)) <= width
    text = "".join(lines)
    for cell in ("10,000", "44,944", "23,456", "45,000"):
        assert cell in text
    assert "…" not in text.replace("EXP=…", "")
