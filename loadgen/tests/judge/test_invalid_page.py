"""docs/invalid.md names every reason and note that the gates can give, as they are printed."""

import ast
import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

from lab.campaign import preparation
from lab.judge import fairness
from lab.judge.gates import (
    by_accident,
    figures,
    generator,
    held,
    others,
    parts,
    server,
    steady,
    trial,
)
from lab.judge.gates.server import COMPILING
from lab.load import trial as load_trial
from lab.load import warm
from lab.load.engines.base import none_left
from lab.load.engines.pacer import CONNECTED, REOPENED
from lab.load.measure import CLOCK_STEP_S
from lab.load.warm import MAX_WARM_S
from lab.model import AWAY, CLOCK_SET, DAMAGED, JIT_BUSY, NOT_BACK, NOT_BEGUN
from support.repo import REPO

PAGE = (REPO / "docs/invalid.md").read_text(encoding="utf-8")
GATES = (figures, generator, held, others, parts, server, steady, trial)
# They yield no message, but a name that is a part of one.
PARTIAL = ("unread", "_changes", "as_begun", "_assumed")
# Messages that are put together from several, or come from other files.
OTHERS = (
    f"settings {server.CHANGED}: pool_size",
    f"{server.UNTOLD_SETTINGS}: cpuset",
    f"toxics {server.CHANGED}: none became x",
    f"the downstream's delay {server.CHANGED}: 200 became 250 ms",
    f"{server.OTHER_SETTINGS}: pool_size 200 became 300",
    f"{server.OTHER_TOXICS}: none became x",
    f"{server.OTHER_DELAY}: 200 became 250 ms",
    "assumed: the JMX exporter on x:9404 is that of the service on port 80",
    f"{server.GONE}: a: does not answer",
    "the lab could not be read after the load: toxiproxy does not answer",
    f"{steady.UNSTEADY}: goodput fell from 2 to 1 req/s between the halves of the window",
    f"{steady.UNSTEADY}: the mean latency fell from 2 to 1 ms between the halves of the window",
    f"{steady.UNSTEADY}: the mean latency rose from 1 to 2 ms between the halves of the window",
    f"{steady.STOPPED} for 3.0 s of the window",
    figures.NO_ANSWER,
    "the downstream was stopped by its CPU quota for 1.0 s of the window",
    f"{fairness.UNEQUAL}: cpu_quota a=1 b=2",
    f"{server.COLD}: not steady within {MAX_WARM_S:.0f} s: x",
    f"{server.COLD}: nothing was answered without an error for 12 s",
    f"{server.COLD}: {warm.RESTARTED}",
    f"{server.COLD}: {preparation.ANOTHER_JVM}",
    f"{server.COLD}: the JMX exporter stopped answering during the warm-up",
    f"{server.COLD}: the load engine ended early: x",
    f"pacer did not end within {load_trial.OVERTIME_S:.0f} s after its time, and was stopped",
    "wrk2 did not end its warm-up in time, and was stopped",
    f"{NOT_BACK}: it does not answer",
    f"{NOT_BEGUN}: toxiproxy does not answer",
    f"{NOT_BEGUN}: {AWAY}: tested; a: does not answer",
    "pacer ended with status 1: write error: no space left on device",
    f"{DAMAGED}: pacer.jsonl.gz: is not JSON",
    "wrk2 was killed by SIGKILL: it said nothing",
    none_left("port", 2, "window"),
    f"{CLOCK_SET}: it took 10.0 s, and 13.0 s by the wall clock",
    "pacer: on average 4 of 10 connections were open",
    "pacer: connections were opened again 2 times in the window, which had 20 answers",
    "pacer: at most 4 of 10 connections of spike 1 were open at a time",
    "pacer: 4 of 10 requests of spike 1 were sent, the others waited for a connection",
    "p95 may be in part the generator's own: it sent 5 % late by 150.0 ms",
    "pacer: a request had waited for 2.1 s when the window ended, and no answer took longer than "
    "0.1 s: who still waits is in no latency",
    "no latencies: up to 7 of 100 answers were errors, and this engine does not tell their "
    "latencies apart (allowed 0.1%)",
    "wrk2 opened 4 of 5 connections: they do not divide by 2 threads",
    "wrk2 calibrated 1 of its 2 threads: the latencies include the warm-up",
)
# Their texts are those of OTHERS.
GENERAL = ("cold JVM: …", "…: …")


def template(node: ast.expr, module: ModuleType) -> str | None:
    """The text of an expression, with … for what is only known when it is printed."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        found = getattr(module, node.id, "…")
        return found if isinstance(found, str) else "…"
    if isinstance(node, ast.JoinedStr):
        parts = (template(part, module) for part in node.values)
        return "".join(part or "…" for part in parts)
    if isinstance(node, ast.FormattedValue):
        return template(node.value, module) if isinstance(node.value, ast.Name) else "…"
    return None


def messages(module: ModuleType) -> Iterator[str]:
    """What the generators of a module yield as text."""
    for function in ast.walk(ast.parse(inspect.getsource(module))):
        if not isinstance(function, ast.FunctionDef) or function.name in PARTIAL:
            continue
        yields = [node.value for node in ast.walk(function) if isinstance(node, ast.Yield)]
        for text in (template(value, module) for value in yields if value is not None):
            if text and text.strip("…") and text not in GENERAL:
                yield text


def cells(head: str) -> list[list[str]]:
    """The rows of all tables of the page with this head."""
    rows = []
    for table in re.findall(rf"(?m)^\| {head} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE):
        rows += [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    return rows


REASONS, NOTES = cells("reason as printed"), cells("note")
PRINTED = sorted({*(text for module in GATES for text in messages(module)), *OTHERS})


def matches(row: list[str], text: str) -> bool:
    wanted = ".*".join(re.escape(part) for part in row[0].split("…"))
    return re.fullmatch(wanted, text) is not None


@pytest.mark.parametrize("text", PRINTED)
def test_what_is_printed_is_on_the_page(text: str) -> None:
    assert any(matches(row, text) for row in (*REASONS, *NOTES))


@pytest.mark.parametrize("row", [*REASONS, *NOTES], ids=lambda row: row[0])
def test_what_is_on_the_page_is_printed(row: list[str]) -> None:
    if row[0] != "a file name, then a message":
        assert any(matches(row, text) for text in PRINTED)


@pytest.mark.parametrize("row", REASONS, ids=lambda row: row[0])
def test_the_page_says_what_is_measured_again(row: list[str]) -> None:
    assert by_accident([row[0].replace("…", "1")]) == ("*again*" in row[1])


def share(value: float) -> str:
    return f"{value * 100:g} %"


@pytest.mark.parametrize(
    ("reason", "threshold"),
    [
        ("the toxics were not watched", f"more than {server.LONGEST_UNWATCHED_S:g} s"),
        ("step …", f"more than {server.SCRIPT_SLACK_S:g} s"),
        ("spike … lasted", f"more than {generator.PEAK_SLACK_S:g} s"),
        ("spike … was no crowd", f"more than {share(generator.UNTRIED)} of its connections"),
        ("spike … was sent late", f"more than {generator.PEAK_SLACK_S:g} s"),
        ("pacer: on average", f"fewer than {share(CONNECTED)} of"),
        ("pacer: connections were opened", f"{share(REOPENED)} of the answers or more"),
        ("pacer: at most", f"fewer than {share(CONNECTED)} of"),
        ("cold JVM: nothing", f"six cycles of {warm.CYCLE_S:g} s"),
        ("cold JVM: the JIT", f"{share(server.JIT_COLD)} of the CPUs"),
        ("cold JVM: the JIT", f"never above {server.JIT_MOST:g} s"),
        (
            f"{COMPILING} for … s per second of the window (allowed … s): m",
            f"more than {JIT_BUSY} s",
        ),
        ("the generator was the limit", f"at least {share(generator.GENERATOR_CPU)}"),
        ("the generator was starved: its CPU", f"more than {share(generator.THROTTLED)}"),
        ("the generator was starved: its thr", f"more than {share(generator.LAG_SHARE)}"),
        ("the generator was starved: its thr", f"more than {generator.LEAST_LAG_MS:g} ms"),
        ("the generator sent late", f"more than {share(generator.LAG_SHARE)}"),
        ("the generator did not offer", f"{share(generator.KEPT_UP)} of offered"),
        ("the generator did not offer", f"{share(generator.BUSY_CONNECTIONS)} of the conn"),
        ("the clock of the machine", f"more than {CLOCK_STEP_S:g} s"),
        ("the downstream was late", f"more than {parts.LEAST_LATE_MS:g} ms"),
        ("the downstream was late", f"more than {share(parts.LATE_SHARE)}"),
        ("work outside the lab", f"{share(others.OTHERS)} of the machine's"),
        ("work outside the lab", f"at least {share(generator.HOST_CROWDED)} busy"),
        ("work outside the lab", f"for {share(generator.WAITED)} of"),
        ("… used all", f"at least {share(parts.PART_CPU)}"),
        ("too few answers", f"fewer than {figures.MIN_SAMPLES}"),
        ("the server stopped", f"{steady.LEAST_SILENT_S:g} s and "),
        ("the server stopped", f"{steady.LEAST_SILENT_LATENCIES} median latencies"),
        ("the window is too short", f"{figures.LEAST_LATENCIES:g} latencies"),
        ("not steady: goodput", f"more than {share(steady.LEAST_DRIFT)}"),
        ("not steady: the mean", f"more than {steady.LEAST_DRIFT_MS:g} ms"),
        ("Little's law", f"more than {share(figures.LITTLE_TOLERANCE)}"),
        ("faster than the bound", f"bound × {1 + figures.BOUND_SLACK:g}"),
        ("the window began with", f"{share(2 - generator.KEPT_UP)} of offered"),
        ("the host's CPU was", f"at least {share(trial.HOST_FULL)}"),
        ("the host lost", f"at least {share(trial.STEAL_FELT)}"),
        ("the generator waited", f"at least {share(generator.WAITED)}"),
    ],
)
def test_the_page_has_the_thresholds_of_the_code(reason: str, threshold: str) -> None:
    [row] = [row for row in (*REASONS, *NOTES) if row[0].startswith(reason)][:1]
    assert threshold in row[1]
