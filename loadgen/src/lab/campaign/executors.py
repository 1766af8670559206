"""The verb `executors`: sleeping tasks on a pool of platform threads and on virtual threads.

Every measurement is one fresh JVM, started by the launcher in the container `executors`: cold, with
an AOT cache, or warmed up. Executors and starts take turns, so that a drift of the machine meets
all. What a JVM said is on disk before the next one starts.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from lab.campaign.run_record import begin, ending
from lab.campaign.tools import Place
from lab.errors import LabError
from lab.experiments.reading import refuse_unknown, rules
from lab.experiments.reading.settings import Given, Settings
from lab.model import Fairness
from lab.model.executors import LONGEST_ROUND_MS, Asked, ExecutorsPlan, Launch
from lab.report import executors as report
from lab.store import manifest
from lab.store.records import from_json, write_text, writing
from lab.store.run_dir import check_space
from lab.system.executors import Launcher
from lab.system.host import System

NAME = "executors"
RAW = "launches.jsonl"
WORDS = ("LAUNCHES", "TASKS", "SLEEP", "POOL", "WARMUP")
MOST_THREADS = 20_000
_SLEEP = re.compile(r"([1-9]\d{0,4})(ms|s)", re.ASCII)


def parse(words: Mapping[str, str]) -> ExecutorsPlan:
    """The words of `executors`. Raises WordError."""
    refuse_unknown(words, WORDS, NAME)
    given = {word: Given(f"{NAME}: {word}", (text,), True) for word, text in words.items()}
    settings, usual = Settings(NAME, given), ExecutorsPlan()
    return ExecutorsPlan(
        launches=settings.one("LAUNCHES", rules.number(1, 1000), usual.launches),
        tasks=settings.one("TASKS", rules.number(1, 1_000_000), usual.tasks),
        sleep_ms=settings.one("SLEEP", _sleep_ms, usual.sleep_ms),
        pool_size=settings.one("POOL", rules.number(1, MOST_THREADS), usual.pool_size),
        warmup=settings.one("WARMUP", rules.number(1, 1000), usual.warmup),
    )


def left_out(plan: ExecutorsPlan) -> str | None:
    """Why the pool is not measured, in one line; None where it is."""
    if "fixed-pool" in plan.executors:
        return None
    takes_s, most_s = plan.bound_ms("fixed-pool") / 1000, LONGEST_ROUND_MS // 1000
    threads = math.ceil(plan.tasks / (LONGEST_ROUND_MS // plan.sleep_ms))
    enough = f"POOL={threads} is" if threads <= MOST_THREADS else f"not even POOL={MOST_THREADS} is"
    return (
        f"fixed-pool is left out: its {plan.pool_size} platform threads sleep {takes_s:.0f} s in a "
        f"round, and a round may take {most_s} s; {enough} enough"
    )


def run(
    plan: ExecutorsPlan, place: Place, launcher: Launcher, system: System, console: Console
) -> int:
    """Measure, write the run's folder, show the table. Returns the exit code.

    Raises LabError; what was measured before is on disk and printed.
    """
    check_space(place.results)
    launcher.wait(system)
    run_dir, record = begin(place, system, NAME, plan, {}, Fairness({}, {}, {}), {})
    order, missing = list(plan.order), left_out(plan)
    least_s = sum(plan.bound_ms(one.executor) * (plan.rounds(one) + 1) for one in order) / 1000
    console.print(
        f"{plan.tasks} tasks of {plan.sleep_ms} ms, {len(order)} fresh JVMs in turn, at least "
        f"{least_s:.0f} s and the JVMs' starts, to results/{run_dir.name}"
    )
    if missing is not None:
        console.print(missing)
    raw = run_dir / "raw" / RAW
    with writing(raw.parent):
        raw.parent.mkdir()
    launches: list[Launch] = []

    def end(status: manifest.Status) -> None:
        manifest.write(run_dir, replace(record, status=status, ended_at=system.now()))
        if launches:
            write_text(run_dir / report.NAME, report.csv_of(run_dir.name, launches))
            report.render(console, launches)
            if missing is not None:
                console.print(missing)
            console.print(f"results/{run_dir.name}/{report.NAME}")

    with ending(run_dir, end, console):
        for executor in plan.executors:
            # The JVM that writes the cache has a heap too: none of the two is touched in advance.
            launcher.measure(plan, Asked(executor, "train", "memory"))
            console.print(f"{executor}: its AOT cache is trained")
        for number, one in enumerate(order, start=1):
            line = launcher.measure(plan, one)
            launch = read_line(line, launches)
            append(raw, line)
            launches.append(launch)
            console.print(
                f"[{number}/{len(order)}] {one.executor} {one.start}, for {one.purpose}: "
                f"{launch.elapsed_ms:.1f} ms"
            )
    return 0


def read_line(line: str, earlier: Sequence[Launch]) -> Launch:
    """What a JVM printed. Raises LabError unless it is complete, possible, and measured under
    the conditions of the earlier ones."""
    try:
        launch = from_json(Launch, json.loads(line))
    except ValueError as failure:
        raise LabError(f"a JVM printed an impossible result: {failure}") from None
    if earlier and launch.conditions != earlier[0].conditions:
        raise LabError(f"{launch.executor}: its JVM's conditions differ from the first one's")
    return launch


def append(raw: Path, line: str) -> None:
    """Add one line, flushed to disk. Raises CannotWrite."""
    with writing(raw), raw.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def _sleep_ms(text: str) -> int:
    found = _SLEEP.fullmatch(text)
    sleep_ms = int(found[1]) * (1000 if found[2] == "s" else 1) if found else 0
    if not 1 <= sleep_ms <= 60_000:
        raise ValueError(f"{text} is not allowed; allowed: 1ms..60s, as 100ms or 2s")
    return sleep_ms
