"""The verb `executors`: sleeping tasks on a pool of platform threads and on virtual threads.

Every measurement is one fresh JVM, started by the launcher in the container `executors`; the
executors take turns, so that a drift of the machine meets both. What a JVM said is on disk
before the next one starts.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import httpx
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.campaign.run_record import begin, ending
from lab.campaign.tools import Place
from lab.errors import LabError, LabUnreachable, WordError
from lab.experiments.reading import refuse_unknown, rules
from lab.experiments.reading.settings import Given, Settings
from lab.judge.intervals import MedianOf, median_of
from lab.model import Fairness
from lab.store import manifest
from lab.store.records import csv_text, from_json, write_text, writing
from lab.store.run_dir import check_space
from lab.system.host import System

NAME = "executors"
RAW = "launches.jsonl"
CSV = "executors.csv"
EXECUTORS = ("fixed-pool", "virtual-threads")
WORDS = ("LAUNCHES", "TASKS", "SLEEP", "POOL")
MAX_BOUND_MS = 600_000
START_DEADLINE_S = 30.0
# The launcher ends a JVM after 10 times its bound and 30 s; its answer comes after that.
DEADLINE_BOUNDS, DEADLINE_S = 10, 45.0
_SLEEP = re.compile(r"([1-9]\d{0,4})(ms|s)", re.ASCII)
MIB = 2**20
# From this width on the table has all its columns.
WIDE = 100
INTERVAL_WIDTH = len("[102.3–104.5]")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure: `launches` JVMs for each executor."""

    launches: int = 6
    tasks: int = 10_000
    sleep_ms: int = 100
    pool_size: int = 200

    def bound_ms(self, executor: str) -> int:
        """The least time the tasks can take: rounds of the pool, or one sleep for all."""
        rounds = math.ceil(self.tasks / self.pool_size) if executor == "fixed-pool" else 1
        return rounds * self.sleep_ms


@dataclass(frozen=True, slots=True)
class Launch:
    """What one JVM measured; the launcher's program says how and when each was read.

    Raises ValueError for what cannot be, such as tasks done before they can have slept.
    """

    executor: str
    tasks: int
    sleep_ms: int
    pool_size: int
    bound_ms: int
    elapsed_us: int
    heap_before_bytes: int
    heap_peak_bytes: int
    heap_after_bytes: int
    allocated_bytes: int
    gc_count: int
    resident_before_bytes: int
    resident_peak_bytes: int
    resident_after_bytes: int
    platform_threads_before: int
    platform_threads_peak: int
    cpus: int
    max_heap_bytes: int
    jdk: str
    gc: tuple[str, ...]
    jvm_flags: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.executor not in EXECUTORS:
            raise ValueError(f"executor {self.executor} is not one of {', '.join(EXECUTORS)}")
        if self.elapsed_us < self.bound_ms * 1000:
            raise ValueError(f"{self.elapsed_us} µs is less than the bound {self.bound_ms} ms")
        if min(self.heap_before_bytes, self.resident_before_bytes) <= 0:
            raise ValueError("a JVM without memory")

    @property
    def elapsed_ms(self) -> float:
        """From the first hand-over to the last task done."""
        return self.elapsed_us / 1000

    @property
    def heap_delta_bytes(self) -> int:
        """Heap used at its peak, over that before the tasks; garbage included."""
        return self.heap_peak_bytes - self.heap_before_bytes

    @property
    def resident_delta_bytes(self) -> int:
        """Resident memory at its peak, over that before the tasks."""
        return max(self.resident_peak_bytes, self.resident_after_bytes) - self.resident_before_bytes

    @property
    def conditions(self) -> tuple[object, ...]:
        """What must be the same in every JVM of a run."""
        return (
            self.tasks, self.sleep_ms, self.pool_size,
            self.cpus, self.max_heap_bytes, self.jdk, self.gc, self.jvm_flags,
        )  # fmt: skip


class Launcher:
    """The container that starts the JVMs. Calls block until the JVM ended; one thread."""

    def __init__(self, url: str, transport: httpx.BaseTransport | None = None) -> None:
        self._client = httpx.Client(base_url=url, transport=transport, trust_env=False)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def wait(self, system: System) -> None:
        """Wait until it answers. Raises LabUnreachable after START_DEADLINE_S."""
        until = system.monotonic() + START_DEADLINE_S
        while True:
            try:
                if self._client.get("/health", timeout=2.0).is_success:
                    return
            except httpx.HTTPError:
                pass
            if system.monotonic() >= until:
                raise LabUnreachable(
                    f"{self._client.base_url} does not answer; `make executors` starts it"
                )
            system.sleep(0.2)

    def measure(self, plan: Plan, executor: str) -> str:
        """One fresh JVM; returns the line it printed. Raises LabError."""
        path = f"/measure/{executor}/{plan.tasks}/{plan.sleep_ms}/{plan.pool_size}"
        deadline_s = DEADLINE_BOUNDS * plan.bound_ms(executor) / 1000 + DEADLINE_S
        try:
            answer = self._client.post(path, timeout=httpx.Timeout(5.0, read=deadline_s))
        except httpx.HTTPError as failure:
            raise LabUnreachable(f"{executor}: the launcher does not answer: {failure}") from None
        if not answer.is_success:
            raise LabError(f"{executor}: {answer.text.strip()}")
        return answer.text.strip()


def parse(words: Mapping[str, str]) -> Plan:
    """The words of `executors`. Raises WordError."""
    refuse_unknown(words, WORDS, NAME)
    given = {word: Given(f"{NAME}: {word}", (text,), True) for word, text in words.items()}
    settings, usual = Settings(NAME, given), Plan()
    plan = Plan(
        launches=settings.one("LAUNCHES", rules.number(1, 1000), usual.launches),
        tasks=settings.one("TASKS", rules.number(1, 1_000_000), usual.tasks),
        sleep_ms=settings.one("SLEEP", _sleep_ms, usual.sleep_ms),
        pool_size=settings.one("POOL", rules.number(1, 20_000), usual.pool_size),
    )
    longest = max(plan.bound_ms(executor) for executor in EXECUTORS)
    if longest > MAX_BOUND_MS:
        raise WordError(
            f"{NAME}: one measurement would take {longest / 1000:.0f} s at least; allowed: up to "
            f"{MAX_BOUND_MS // 1000} s (TASKS / POOL * SLEEP)"
        )
    return plan


def run(plan: Plan, place: Place, launcher: Launcher, system: System, console: Console) -> int:
    """Measure, write the run's folder, show the table. Returns the exit code.

    Raises LabError; what was measured before is on disk and printed.
    """
    check_space(place.results)
    launcher.wait(system)
    run_dir, record = begin(place, system, NAME, plan, {}, Fairness({}, {}, {}), {})
    order = [executor for _ in range(plan.launches) for executor in EXECUTORS]
    longest_s = sum(plan.bound_ms(executor) for executor in order) / 1000
    console.print(
        f"{plan.tasks} tasks of {plan.sleep_ms} ms, {len(order)} fresh JVMs in turn, "
        f"{longest_s:.0f} s and the JVMs' starts, to results/{run_dir.name}",
        highlight=False,
    )
    raw = run_dir / "raw" / RAW
    with writing(raw.parent):
        raw.parent.mkdir()
    launches: list[Launch] = []

    def end(status: manifest.Status) -> None:
        manifest.write(run_dir, replace(record, status=status, ended_at=system.now()))
        if launches:
            write_text(run_dir / CSV, csv_of(run_dir.name, launches))
            render(console, launches)
            console.print(f"results/{run_dir.name}/{CSV}", highlight=False)

    with ending(run_dir, end, console):
        for number, executor in enumerate(order, start=1):
            line = launcher.measure(plan, executor)
            launch = read_line(line, launches)
            append(raw, line)
            launches.append(launch)
            console.print(
                f"[{number}/{len(order)}] {executor} {launch.elapsed_ms:.1f} ms", highlight=False
            )
    return 0


def read_line(line: str, earlier: Sequence[Launch]) -> Launch:
    """What a JVM printed. Raises LabError unless it is complete, possible, and measured under
    the conditions of the earlier ones."""
    try:
        launch = from_json(Launch, json.loads(line))
    except ValueError as failure:
        raise LabError(f"a JVM printed what cannot be: {failure}") from None
    if earlier and launch.conditions != earlier[0].conditions:
        raise LabError(f"{launch.executor}: its JVM's conditions differ from the first one's")
    return launch


def append(raw: Path, line: str) -> None:
    """Add one line, flushed to disk. Raises CannotWrite."""
    with writing(raw), raw.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def csv_of(run_name: str, launches: Sequence[Launch]) -> str:
    """One row per launch, in the order they ran; bytes and milliseconds."""
    names = [field.name for field in fields(Launch) if field.name != "elapsed_us"]
    names += ["elapsed_ms", "heap_delta_bytes", "resident_delta_bytes"]
    rows = [["run", "launch", *names]]
    for number, launch in enumerate(launches, start=1):
        cells = [getattr(launch, name) for name in names]
        texts = [" ".join(cell) if isinstance(cell, tuple) else str(cell) for cell in cells]
        rows.append([run_name, str(number), *texts])
    return csv_text(rows)


def render(console: Console, launches: Sequence[Launch]) -> None:
    """Print a line for each executor that was measured, and what the columns mean."""
    wide = console.width >= WIDE
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("executor", no_wrap=True)
    table.add_column("bound ms", justify="right")
    table.add_column("elapsed ms", justify="right", min_width=INTERVAL_WIDTH)
    table.add_column("× bound", justify="right")
    table.add_column("heap + MiB", justify="right", min_width=INTERVAL_WIDTH)
    table.add_column("resident + MiB", justify="right", min_width=INTERVAL_WIDTH)
    table.add_column("threads", justify="right")
    if wide:
        table.add_column("allocated MiB", justify="right")
    intervals, collections = [], []
    for executor in EXECUTORS:
        own = [launch for launch in launches if launch.executor == executor]
        if not own:
            continue
        bound_ms, elapsed = own[0].bound_ms, median_of([one.elapsed_ms for one in own])
        intervals.append(_interval_text(elapsed))
        collections.append(f"{executor} {sum(one.gc_count for one in own)}")
        table.add_row(
            executor,
            str(bound_ms),
            _text(elapsed, 1),
            f"{elapsed.median / bound_ms:.2f}",
            _text(median_of([one.heap_delta_bytes for one in own]), MIB),
            _text(median_of([one.resident_delta_bytes for one in own]), MIB),
            str(max(one.platform_threads_peak for one in own)),
            *([_text(median_of([one.allocated_bytes for one in own]), MIB)] if wide else []),
        )
    console.print(table)
    legend = [
        "Medians over JVMs. heap +, resident +: the peak over what was there before the tasks, "
        "garbage included. threads: platform threads at the peak. allocated: what the tasks and "
        "their threads took from the heap, to the byte.",
        *dict.fromkeys(intervals),
    ]
    if any(launch.gc_count for launch in launches):
        legend.append(
            f"The collector ran while the tasks did ({', '.join(collections)} times in all): "
            "heap + is no more than an upper limit."
        )
    console.print(Text("\n".join(legend), style="dim"))


def _interval_text(of: MedianOf) -> str:
    if of.interval is None:
        return f"No interval from {of.count}: 95 % takes 6 JVMs for each executor."
    return (
        f"In brackets from {of.count}: {100 * of.interval.coverage:.1f} % interval of the median "
        "by order statistics (David & Nagaraja)."
    )


def _text(of: MedianOf, unit: int) -> str:
    def number(value: float) -> str:
        return f"{value / unit:.1f}" if value / unit < 999.5 else f"{value / unit:.0f}"

    if of.interval is None:
        return number(of.median)
    return f"{number(of.median)} [{number(of.interval.low)}–{number(of.interval.high)}]"


def _sleep_ms(text: str) -> int:
    found = _SLEEP.fullmatch(text)
    sleep_ms = int(found[1]) * (1000 if found[2] == "s" else 1) if found else 0
    if not 1 <= sleep_ms <= 60_000:
        raise ValueError(f"{text} is not allowed; allowed: 1ms..60s, as 100ms or 2s")
    return sleep_ms
