"""The load's lines, from the driver's hands to what Prometheus scrapes."""

import json
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from lab.live.agent.load import HOLD_S, LoadLines
from lab.live.agent.metrics import BUCKETS_S, KEPT_S
from live.conftest import TRIAL, metrics_of, value_of
from support.pacer import second, text

END = text([]).splitlines()[-1].encode()


def line(at: int, **figures: Any) -> bytes:
    """A second with 400 answers."""
    whole = {
        "unfinished": 80,
        "connections": 100,
        "raw": {"sum_us": 80_000_000, "max_us": 200_100, "buckets": [[200_191, 400]]},
        "corrected": {"sum_us": 88_000_000, "max_us": 260_000, "buckets": [[260_095, 400]]},
        "due": 400,
        "ok": 400,
    }
    return json.dumps(second(at, [], [], **whole | figures)).encode()


def header(warmup_s: float) -> bytes:
    return json.dumps({"pacer": "1.0.0", "format": 1, "load": {"warmup_s": warmup_s}}).encode()


class Scene:
    """An agent's half of the stream on a clock that stands still until it is moved."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.trial = TRIAL
        self.metrics = metrics_of(clock)
        self.lines = LoadLines(clock, self.metrics)

    def take(self, *lines: bytes) -> None:
        self.lines.take(self.trial, b"\n".join(lines))

    def pass_second(self, at: int, **figures: Any) -> None:
        """A second passes, and its line comes as it ends."""
        self.clock.now += 1
        self.take(line(at, **figures))

    def value(self, name: str, **labels: str) -> float | None:
        self.lines.count()
        where = {"route": "/downstream", "source": "load", "mode": self.trial.mode}
        return value_of(self.metrics, f"lab_client_{name}", **where, **labels)

    @property
    def ok(self) -> float | None:
        return self.value("requests_total", outcome="ok")

    def latencies(self, phase: str) -> float | None:
        return self.value("request_seconds_count", phase=phase, since="due")


@pytest.fixture
def scene(clock: Any) -> Scene:
    return Scene(clock)


def test_every_figure_of_a_second_counts_and_latencies_by_phase(scene: Scene) -> None:
    scene.take(header(1))
    scene.pass_second(0, ok=7)
    errors = {"socket_errors": {"reset": 2, "closed": 1}, "connect_failed": {"refused": 9}}
    levels = {"unfinished": 130, "waiting": 50, "connections": 80}
    scene.pass_second(1, due=500, ok=390, http_errors=10, timeouts=4, **errors, **levels)
    scene.clock.now += HOLD_S
    for outcome, count in {"ok": 397, "http_error": 10, "timeout": 4, "error": 3}.items():
        assert scene.value("requests_total", outcome=outcome) == count
    assert (scene.latencies("warmup"), scene.latencies("measure")) == (400, 400)
    assert scene.value("requests_offered_total") == 900
    assert scene.value("connect_failures_total") == 9
    # 50 of the 130 wait for a connection: they are not sent.
    assert scene.value("requests_in_flight") == 80
    assert scene.value("requests_waiting") == 50
    assert scene.value("connections_open") == 80


def test_latencies_are_added_in_bulk_by_bucket_with_their_exact_sum(scene: Scene) -> None:
    buckets = [[999, 1], [1000, 2], [1001, 4], [204_927, 8], [60_000_000, 16], [61_000_000, 32]]
    scene.take(header(0), line(0, raw={"sum_us": 123_456, "max_us": 1, "buckets": buckets}))
    scene.clock.now += HOLD_S
    at = {"phase": "measure", "since": "sent"}
    # A latency on the bound is within it.
    counts = {"0.001": 3, "0.00115": 7, "0.2": 7, "0.205": 15, "53.0": None, "60.0": 31, "+Inf": 63}
    for le, count in counts.items():
        assert scene.value("request_seconds_bucket", le=le, **at) == count
    assert scene.value("request_seconds_count", **at) == 63
    assert scene.value("request_seconds_sum", **at) == pytest.approx(0.123456)
    assert scene.value("request_seconds_sum", phase="measure", since="due") == 88.0


def test_a_closed_load_has_no_time_at_which_a_request_was_due(scene: Scene) -> None:
    scene.trial = replace(TRIAL, mode="closed", offered_rps=None)
    scene.take(header(0), line(0, corrected=None))
    scene.clock.now += HOLD_S
    assert scene.value("request_seconds_count", phase="measure", since="sent") == 400
    assert scene.latencies("measure") is None
    assert scene.value("requests_offered_total") is None
    assert scene.ok == 400


def test_each_scrape_brings_one_second_however_late_the_lines_come(scene: Scene) -> None:
    # The driver looks every 0.2 s, so the lines are late by 0 to 0.2 s, each differently. Scrapes
    # fall into just that time.
    start = scene.clock.now
    scene.take(header(0))
    events: list[tuple[float, bytes | None]] = [
        (at + 1 + late, line(at))
        for at, late in enumerate((0.05, 0.2, 0.01, 0.19, 0.0, 0.15, 0.03, 0.2))
    ]
    events += [(at + 1.1 + HOLD_S, None) for at in range(8)]
    events += [(at + 1.1, None) for at in range(8)]
    scrapes: dict[bool, list[float]] = {True: [], False: []}
    for at, written in sorted(events, key=lambda event: event[0]):
        scene.clock.now = start + at
        if written is not None:
            scene.take(written)
        else:
            scrapes[at % 1 < 0.5].append(scene.ok or 0.0)
    for counts in scrapes.values():
        # The clock is set by the promptest line, the third; the scrapes before it may differ.
        assert [after - before for before, after in pairwise(counts[3:])] == [400] * 4


def test_a_load_exists_at_zero_from_its_start_to_some_time_after_its_end(scene: Scene) -> None:
    for trial in ("t1", "t2"):
        scene.trial = replace(TRIAL, trial=trial)
        scene.take(header(3))
        assert (scene.ok, scene.latencies("warmup"), scene.latencies("measure")) == (0, 0, None)
        assert scene.value("requests_offered_total") == 0
        for at in range(5):
            scene.pass_second(at)
        scene.take(END)
        scene.clock.now += HOLD_S
        assert (scene.ok, scene.value("requests_in_flight")) == (2000, 0)
        assert scene.value("connections_open") == 0
    scene.clock.now += KEPT_S
    assert scene.ok == 2000
    scene.clock.now += 0.1
    assert (scene.ok, scene.value("requests_in_flight")) == (None, None)


def test_the_warm_up_is_no_longer_scraped_when_the_window_is_well_under_way(scene: Scene) -> None:
    scene.take(header(1))
    sizes = []
    for at in range(20):
        scene.pass_second(at)
        scene.lines.count()
        sizes.append(sum(len(family.samples) for family in scene.metrics.collect()))
    # Two histograms; four outcomes, two other counters, three levels.
    histograms = 2 * (len(BUCKETS_S) + 3)
    assert (max(sizes), sizes[-1]) == (2 * histograms + 9, histograms + 9)


def test_a_stall_delays_what_was_told_and_loses_none(scene: Scene) -> None:
    scene.take(header(0))
    scene.pass_second(0)
    scene.clock.now += 5
    scene.take(*(line(at) for at in range(1, 6)))
    # The last of them counts in half a second.
    assert scene.ok == 2000
    scene.clock.now += HOLD_S
    assert scene.ok == 2400
    # A last second that is shorter counts when it is over.
    scene.take(line(6, length_s=0.3, ok=120), END)
    scene.clock.now += HOLD_S
    assert scene.ok == 2520
