"""The verb `executors`: sleeping tasks on a pool of platform threads and on virtual threads.

Every measurement is one fresh JVM, started by the launcher in the container `executors`; the
executors take turns, so that a drift of the machine meets both. What a JVM said is on disk
before the next one starts.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Literal

import httpx
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.errors import Interrupted, LabError, LabUnreachable, WordError
from lab.experiments.reading import refuse_unknown
from lab.judge.intervals import MedianOf, median_of
from lab.model import Json
from lab.store.manifest import code_versions
from lab.store.records import from_json, read_object, to_json, write_json
from lab.store.run_dir import check_space, new_run_dir
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


@dataclass(frozen=True, slots=True)
class Summary:
    """The launches of one executor."""

    executor: str
    bound_ms: int
    elapsed_ms: MedianOf
    heap_delta_bytes: MedianOf
    resident_delta_bytes: MedianOf
    allocated_bytes: MedianOf
    platform_threads_peak: int
    gc_count: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The keys of manifest.json. `host` is what make read off the machine, as it is."""

    run: str
    status: Literal["running", "complete", "interrupted", "failed"]
    started_at: datetime
    ended_at: datetime | None
    experiment: Plan
    versions: Mapping[str, Json]
    host: Mapping[str, object]
    format_version: int = 1


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
    usual = Plan()
    plan = Plan(
        launches=_number(words, "LAUNCHES", usual.launches, 1000),
        tasks=_number(words, "TASKS", usual.tasks, 1_000_000),
        sleep_ms=_sleep_ms(words, usual.sleep_ms),
        pool_size=_number(words, "POOL", usual.pool_size, 20_000),
    )
    longest = max(plan.bound_ms(executor) for executor in EXECUTORS)
    if longest > MAX_BOUND_MS:
        raise WordError(
            f"{NAME}: one measurement would take {longest / 1000:.0f} s at least; allowed: up to "
            f"{MAX_BOUND_MS // 1000} s (TASKS / POOL * SLEEP)"
        )
    return plan


def run(
    plan: Plan, results: Path, host_file: Path, launcher: Launcher, system: System, console: Console
) -> int:
    """Measure, write the run's folder, show the table. Returns the exit code.

    Raises LabError; what was measured before is on disk and printed.
    """
    check_space(results)
    launcher.wait(system)
    host = read_object(host_file)
    started_at = system.now()
    run_dir = new_run_dir(results, started_at, NAME)
    order = [executor for _ in range(plan.launches) for executor in EXECUTORS]
    longest_s = sum(plan.bound_ms(executor) for executor in order) / 1000
    console.print(
        f"{plan.tasks} tasks of {plan.sleep_ms} ms, {len(order)} fresh JVMs in turn, "
        f"{longest_s:.0f} s and the JVMs' starts, to results/{run_dir.name}",
        highlight=False,
    )
    versions = code_versions(host)
    status: Literal["complete", "interrupted", "failed"] = "failed"

    def manifest(now: Literal["running", "complete", "interrupted", "failed"]) -> None:
        ended_at = None if now == "running" else system.now()
        record = Manifest(run_dir.name, now, started_at, ended_at, plan, versions, host)
        write_json(run_dir / "manifest.json", record)

    manifest("running")
    raw = run_dir / "raw" / RAW
    raw.parent.mkdir()
    launches: list[Launch] = []
    try:
        for number, executor in enumerate(order, start=1):
            line = launcher.measure(plan, executor)
            launch = read_line(line, launches)
            append(raw, line)
            launches.append(launch)
            console.print(
                f"[{number}/{len(order)}] {executor} {launch.elapsed_ms:.1f} ms", highlight=False
            )
        status = "complete"
    except Interrupted:
        status = "interrupted"
        raise
    finally:
        manifest(status)
        if launches:
            write_csv(run_dir / CSV, run_dir.name, launches)
            render(console, summarise(launches))
            console.print(f"results/{run_dir.name}/{CSV}", highlight=False)
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
    """Add one line, flushed to disk."""
    with raw.open("a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def write_csv(path: Path, run_name: str, launches: Sequence[Launch]) -> None:
    """One row per launch, in the order they ran; bytes and milliseconds."""
    names = [field.name for field in fields(Launch) if field.name != "elapsed_us"]
    derived = ("elapsed_ms", "heap_delta_bytes", "resident_delta_bytes")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["run", "launch", *names, *derived])
        for number, launch in enumerate(launches, start=1):
            cells = [to_json(getattr(launch, name)) for name in (*names, *derived)]
            texts = [" ".join(cell) if isinstance(cell, list) else cell for cell in cells]
            writer.writerow([run_name, number, *texts])


def summarise(launches: Sequence[Launch]) -> list[Summary]:
    """One summary per executor that was measured."""
    summaries = []
    for executor in EXECUTORS:
        own = [launch for launch in launches if launch.executor == executor]
        if own:
            summaries.append(
                Summary(
                    executor=executor,
                    bound_ms=own[0].bound_ms,
                    elapsed_ms=median_of([one.elapsed_ms for one in own]),
                    heap_delta_bytes=median_of([one.heap_delta_bytes for one in own]),
                    resident_delta_bytes=median_of([one.resident_delta_bytes for one in own]),
                    allocated_bytes=median_of([one.allocated_bytes for one in own]),
                    platform_threads_peak=max(one.platform_threads_peak for one in own),
                    gc_count=sum(one.gc_count for one in own),
                )
            )
    return summaries


def render(console: Console, summaries: Sequence[Summary]) -> None:
    """Print the table, and what its columns mean."""
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
    for one in summaries:
        table.add_row(
            one.executor,
            str(one.bound_ms),
            _text(one.elapsed_ms, 1),
            f"{one.elapsed_ms.median / one.bound_ms:.2f}",
            _text(one.heap_delta_bytes, MIB),
            _text(one.resident_delta_bytes, MIB),
            str(one.platform_threads_peak),
            *([_text(one.allocated_bytes, MIB)] if wide else []),
        )
    console.print(table)
    legend = [
        "Medians over JVMs. heap +, resident +: the peak over what was there before the tasks, "
        "garbage included. threads: platform threads at the peak. allocated: what the tasks and "
        "their threads took from the heap, to the byte.",
        *dict.fromkeys(_interval_text(one.elapsed_ms) for one in summaries),
    ]
    if any(one.gc_count for one in summaries):
        legend.append(
            "The collector ran while the tasks did ("
            + ", ".join(f"{one.executor} {one.gc_count}" for one in summaries)
            + " times in all): heap + is no more than an upper limit."
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


def _number(words: Mapping[str, str], key: str, usual: int, most: int) -> int:
    given = words.get(key)
    if given is None:
        return usual
    if not re.fullmatch(r"[1-9]\d{0,6}", given, re.ASCII) or int(given) > most:
        raise WordError(f"{NAME}: {key}={given} is not allowed; allowed: 1..{most}")
    return int(given)


def _sleep_ms(words: Mapping[str, str], usual: int) -> int:
    given = words.get("SLEEP")
    if given is None:
        return usual
    found = _SLEEP.fullmatch(given)
    sleep_ms = int(found[1]) * (1000 if found[2] == "s" else 1) if found else 0
    if not 1 <= sleep_ms <= 60_000:
        raise WordError(f"{NAME}: SLEEP={given} is not allowed; allowed: 1ms..60s, as 100ms or 2s")
    return sleep_ms
