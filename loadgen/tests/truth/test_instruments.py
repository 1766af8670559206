"""The load engines against a server that knows its own latencies, read as the lab reads them.

A slow machine makes the server late as well. So nothing is expected of the script of latencies,
only that an engine tells what the server's own log tells. Between the two are the times in which
the server has not yet seen a request, and the engine has not yet seen its answer. Where CPUs are
short these are long, for any process that waits: a third one tells how long on each CPU, and that
much is allowed besides. A check that fails is made once more.
"""

import bisect
import contextlib
import dataclasses
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest

from lab.load.engines import ENGINES, Engine
from lab.model import Latency, Mode, Reading, TrialPlan

HERE = Path(__file__).parent
ENGINES_HERE = [engine for engine in ENGINES if engine.version() is not None]
RATE_RPS, CONNECTIONS, WARMUP_S = 250, 100, 1
# What an engine may be off: the larger of the two, and so many waits for a CPU.
SHARE, MOST_MS, WAITS = 0.01, 2.0, 3
TAIL_SHARE = 0.02
STOPPED_AFTER_S = 2.0


@dataclasses.dataclass(frozen=True)
class Truth:
    """Arrival and answer of every request, in the order of answers, in s of CLOCK_MONOTONIC."""

    log: tuple[tuple[float, float], ...]
    began_s: float

    def window(self, offset_s: float, length_s: float) -> range:
        """Which of them were answered in this window after the load began."""
        answered = [at for _, at in self.log]
        edges = (self.began_s + offset_s, self.began_s + offset_s + length_s)
        return range(*(bisect.bisect_left(answered, edge) for edge in edges))


@dataclasses.dataclass(frozen=True)
class Measured:
    reading: Reading
    truth: Truth
    within: range
    wait_ms: float

    def off(self, told: Latency | None, truth_ms: Sequence[float], share: float) -> list[str]:
        """The percentiles that differ from the truth by more than allowed."""
        assert told is not None
        wrong = []
        for of, value in ((0.5, told.p50_ms), (0.95, told.p95_ms), (0.99, told.p99_ms)):
            true = at(truth_ms, of)
            allowed = max(share * true, MOST_MS) + WAITS * self.wait_ms
            if value is None or abs(value - true) > allowed:
                limits = f"true {true:.1f}, allowed ± {allowed:.1f}"
                wrong.append(f"p{100 * of:g}: told {value} ms, {limits}")
        return wrong


class Sleepers:
    """A thread on each CPU that sleeps and wakes up: how late it is woken is how long that CPU
    takes to be had. One long wait delays all that is due meanwhile, and is one late awakening: to
    count it once would be coordinated omission."""

    SLEEP_S = 0.005

    def __init__(self) -> None:
        self._over = threading.Event()
        cpus = sorted(os.sched_getaffinity(0))
        self._late_s: dict[int, list[float]] = {cpu: [] for cpu in cpus}
        self._threads = [threading.Thread(target=self._sleep, args=(cpu,)) for cpu in cpus]
        for thread in self._threads:
            thread.start()

    def _sleep(self, cpu: int) -> None:
        os.sched_setaffinity(0, {cpu})
        while not self._over.is_set():
            began = time.monotonic()
            time.sleep(self.SLEEP_S)
            self._late_s[cpu].append(time.monotonic() - began - self.SLEEP_S)

    def wait_ms(self) -> float:
        """The end of it: the 99th percentile of what something due at any moment waits, on the CPU
        where that is longest."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        return 1000 * max(at(waits(late, self.SLEEP_S), 0.99) for late in self._late_s.values())


class Server:
    """The scripted server as a process of its own."""

    def __init__(self, folder: Path, latencies_s: Sequence[float]) -> None:
        self._log = folder / "server.log"
        script = folder / "latencies"
        script.write_text("\n".join(map(str, latencies_s)))
        self.process = subprocess.Popen(
            [sys.executable, HERE / "scripted_server.py", self._log, script],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/"

    def since(self, from_s: float) -> Truth:
        """What it logged of the load that began then."""
        lines = (line.split() for line in self._log.read_text().splitlines())
        log = sorted(((float(a), float(b)) for a, b in lines), key=lambda one: one[1])
        mine = tuple(one for one in log if one[0] >= from_s)
        return Truth(mine, min(arrived for arrived, _ in mine))

    def stop_for(self, seconds: float) -> None:
        """Stop the process as a whole (SIGSTOP), and let it go on."""
        os.kill(self.process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.process.pid, signal.SIGCONT)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def serving(folder: Path, latencies_s: Sequence[float]) -> Iterator[Server]:
    server = Server(folder, latencies_s)
    try:
        yield server
    finally:
        server.close()


def measured(
    engine: Engine, mode: Mode, duration_s: int, server: Server, raw: Path, stop_s: float = 0
) -> Measured:
    """A load on the server, as a trial makes it. With `stop_s` it stops for so long in the
    window."""
    plan = TrialPlan(
        trial="t",
        server="scripted",
        url=server.url,
        route="/",
        engine=engine.name,
        mode=mode,
        concurrency=CONNECTIONS if mode == "open" else 20,
        offered_rps=RATE_RPS if mode == "open" else None,
        predicted_rps=None,
        duration_s=duration_s,
        warmup_s=WARMUP_S if engine.name != "wrk2" else None,
        cores=1,
    )
    raw.mkdir()
    schedule = engine.schedule(plan, raw)
    for name, text in schedule.files.items():
        (raw / name).write_text(text)
    from_s = time.monotonic()
    stop_at_s = schedule.window_offset_s + STOPPED_AFTER_S - WARMUP_S
    stopper = threading.Timer(stop_at_s, server.stop_for, (stop_s,))
    if stop_s:
        stopper.start()
    sleepers = Sleepers()
    with (raw / schedule.output).open("wb") as output:
        streams = {"stdout": output, "stderr": subprocess.STDOUT}
        subprocess.run(schedule.argv, input=schedule.stdin.encode(), check=False, **streams)
    wait_ms = sleepers.wait_ms()
    truth = server.since(from_s)
    within = truth.window(schedule.window_offset_s, schedule.window_s)
    return Measured(engine.read(plan, raw), truth, within, wait_ms)


def at(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of all does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def waits(late_s: Sequence[float], every_s: float) -> list[float]:
    """What is due every so often waits: for an awakening that is late by 0.1 s, one waits 0.1 s,
    the next 0.1 s - every_s, and so on."""
    counts = ((late, max(1, math.ceil(late / every_s))) for late in late_s)
    return [late - nth * every_s for late, count in counts for nth in range(count)]


def test_a_long_wait_is_that_of_all_that_was_due_in_it() -> None:
    assert waits([0.0, 0.0125], 0.005) == pytest.approx([0.0, 0.0125, 0.0075, 0.0025])


def once_more(check: Callable[[int], list[str]]) -> None:
    """Nothing is wrong at the first try, or at a second."""
    wrong = check(1) and check(2)
    assert wrong == []


def modes(*wanted: Mode) -> list[object]:
    pairs = product(ENGINES_HERE, wanted)
    return [pytest.param(engine, mode, id=f"{engine.name}-{mode}") for engine, mode in pairs]


@pytest.mark.parametrize(("engine", "mode"), modes("closed", "open"))
def test_an_engine_tells_true_percentiles(engine: Engine, mode: Mode, tmp_path: Path) -> None:
    # No gaps, so that a request more or less moves no percentile far.
    rng = random.Random(5)
    bodies, tails = ([rng.uniform(*of) for _ in range(900)] for of in ((0.02, 0.06), (0.06, 0.16)))
    script = [rng.choice(tails) if rng.random() < 0.1 else rng.choice(bodies) for _ in range(2000)]

    def check(tries: int) -> list[str]:
        with serving(tmp_path, script) as server:
            found = measured(engine, mode, 4, server, tmp_path / f"{tries}")
        truth_ms = [1000 * (b - a) for a, b in (found.truth.log[at] for at in found.within)]
        wrong = found.off(found.reading.raw, truth_ms, SHARE)
        if mode == "open":
            # It was never overloaded: from when a request was due is from when it was sent.
            wrong += found.off(found.reading.corrected, truth_ms, SHARE)
        if abs(found.reading.samples - len(truth_ms)) > 0.02 * len(truth_ms):
            wrong.append(f"{found.reading.samples} answers, and {len(truth_ms)} were sent")
        return wrong

    once_more(check)


@pytest.mark.parametrize("stop_s", [1, 3])
@pytest.mark.parametrize(("engine", "mode"), modes("open"))
def test_a_stop_is_in_the_tail(engine: Engine, mode: Mode, stop_s: int, tmp_path: Path) -> None:
    """Coordinated omission: what was due while nothing was answered waited from then on. All take
    equally long, so the n-th answer is that of the n-th request. It is due n / rate after a
    beginning that the arrivals before the stop tell: pacer sends less while it connects."""

    def check(tries: int) -> list[str]:
        with serving(tmp_path, [0.02]) as server:
            found = measured(engine, mode, stop_s + 3, server, tmp_path / f"{tries}", stop_s)
        log, steady = found.truth.log, found.within[: RATE_RPS // 2]
        began_s = min(log[at][0] - at / RATE_RPS for at in steady)
        truth_ms = [1000 * (log[at][1] - (began_s + at / RATE_RPS)) for at in found.within]
        assert max(truth_ms) > 900 * stop_s
        return found.off(found.reading.corrected, truth_ms, TAIL_SHARE)

    once_more(check)
