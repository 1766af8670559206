"""Recordings on real servers: a planted method and a planted lock are seen for what they are."""

import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import httpx
import pytest

from lab.judge.hot import hot, interval, waits
from lab.model import RECORDED, Recording
from lab.store import recording
from lab.system.http import Http
from lab.system.management import Management
from support.stored import Run

SERVER = "fixed-pool"
PLANTED, OTHER = "/compute?limit=200000", "/file?lines=20000"
PRIMES = "lab.spec.Primes.sumUpTo"
# Beyond what so many samples can tell, the share may differ by so much.
POINTS = 0.05


@pytest.fixture(scope="module")
def management() -> Iterator[Management]:
    with closing(Http(secret=os.environ["LAB_SECRET"])) as http:
        yield Management(http, SERVER)


@contextmanager
def recorded(management: Management, kind: str) -> Iterator[list[tuple[Recording, str]]]:
    """What is recorded while the block runs, and its flame graph; there when it has ended."""
    found: list[tuple[Recording, str]] = []
    began = time.time()
    management.start_recording(kind, 60)
    try:
        yield found
    finally:
        found.append(management.end_recording(kind, (began, time.time())))


def test_a_planted_method_has_its_share(client: httpx.Client, management: Management) -> None:
    """The server's process tells how much CPU time each of two routes takes alone; a load of both
    then has a known mixture."""

    def cpu_s() -> float:
        text = client.get(f"http://{SERVER}:9404/metrics").text
        return float(re.findall(r"^process_cpu_seconds_total (\S+)$", text, re.MULTILINE)[0])

    def ask(*routes: str) -> None:
        for route in routes:
            client.get(f"http://{SERVER}:8080{route}").raise_for_status()

    def each_s(route: str, seconds: float) -> float:
        """The CPU time of a request."""
        ask(*[route] * 20)
        before, until, count = cpu_s(), time.monotonic() + seconds, 0
        while time.monotonic() < until:
            ask(route)
            count += 1
        return (cpu_s() - before) / count

    planted_s, other_s = each_s(PLANTED, 2), each_s(OTHER, 2)
    # About as much of one as of the other.
    turns = max(1, round(planted_s / other_s))
    expected = planted_s / (planted_s + turns * other_s)
    with recorded(management, "cpu") as found:
        until = time.monotonic() + 5
        while time.monotonic() < until:
            ask(PLANTED, *[OTHER] * turns)
    [(of, graph)] = found
    [share] = [one.total for one in hot(of) if one.method == PRIMES]
    ends = interval(share, of)
    assert ends is not None
    assert ends[0] - POINTS <= expected <= ends[1] + POINTS, (expected, share, of.samples)
    # A name lacks what it shares with the name before it: here at most package and class.
    assert "sumUpTo" in graph


def test_a_planted_lock_is_named_at_its_site(client: httpx.Client, management: Management) -> None:
    def ask(_: int) -> httpx.Response:
        return client.get(f"http://{SERVER}:8080/?wait_ms=0").raise_for_status()

    management.change_knobs({"lock_ms": 5})
    try:
        with recorded(management, "lock") as found, ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(8 * 20)))
    finally:
        management.change_knobs({"lock_ms": 0})
    [(of, graph)] = found
    assert hot(of)[0].method == "lab.work.faults.OneLock.hold"
    assert hot(of)[0].alone > 0.5
    assert next(iter(waits(of))) == "lock"
    assert "OneLock.hold" in graph


def test_a_bench_keeps_its_recording_beside_its_trials() -> None:
    run = Run("launched")
    folders = sorted((run.folder / "recorded").iterdir())
    # One of each arm, which has one load and one launch here.
    assert [path.name for path in folders] == [f"{row['trial']}{RECORDED}" for row in run.rows]
    for folder in folders:
        record = run.json(f"recorded/{folder.name}/recording.json")
        assert record["events"] == ["jdk.CPUTimeSample"]
        found = recording.load_or_none(folder)
        assert found is not None
        assert found.samples == found.total > 0
        assert "unpack(cpool)" in (folder / "flamegraph.html").read_text()
    assert "with recording / without: CPU per answer " in (run.folder / "REPORT.md").read_text()
