"""A measurement from a trial's folder: the figures that have support, or why there are none."""

import shutil
from pathlib import Path

import pytest

from lab.errors import RawDataError
from lab.judge.checks.data import damaged
from lab.load.engines.wrk2 import OUTPUT, Wrk2
from lab.load.measure import RECORD, measure, supported
from lab.model import Measurement, Reading, needed_samples, remarks_in
from lab.store.records import write_json
from load.engines.conftest import CAPTURES, plan
from support.fakes import FakeEngine, cells, latency, reading, record


@pytest.mark.parametrize(
    ("samples", "p95", "p99"), [(1000, True, True), (999, True, False), (199, False, False)]
)
def test_percentiles_without_support_are_left_out(samples: int, p95: bool, p99: bool) -> None:
    # Ten samples must lie beyond a percentile.
    assert (needed_samples(0.95), needed_samples(0.99)) == (200, 1000)
    said = supported(reading(100.0, samples=samples))
    for one in (said.corrected, said.raw):
        assert (one.p95_ms is not None, one.p99_ms is not None) == (p95, p99)
    assert bool(said.remarks) == (not p99)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """The folder of a trial."""
    write_json(tmp_path / RECORD, record())
    return tmp_path


def test_an_engine_that_tells_them_apart_leaves_nothing_out() -> None:
    counts = {"window_ok": 600, "window_http_errors": 900, "all_ms": 50.0}
    said = supported(reading(100.0, **counts, failed=latency(1), late=latency(0)))
    # 600 answers have a p95 and no p99. 900 errors have that too, and 1,500 requests both.
    assert (said.raw.p95_ms, said.raw.p99_ms) == (210, None)
    assert (said.failed.p95_ms, said.failed.p99_ms, said.late.p99_ms) == (11, None, 20)
    assert cells(said.remarks) == ["percentiles-left-out percentile=99 samples=600 needed=1000"]


def test_unreadable_output_is_a_measurement_without_reading(raw: Path, engine: FakeEngine) -> None:
    def read(*_: object) -> Reading:
        raise ValueError("percentiles must not fall")

    engine.broken = "ends before the spectrum"
    problem = damaged.remark(problem="fake.txt:7: ends before the spectrum")
    assert measure(raw, [engine]) == Measurement(record(), None, problem)
    engine.read = read
    problem = damaged.remark(
        problem="the output of wrk2 is not what it writes: percentiles must not fall"
    )
    assert measure(raw, [engine]) == Measurement(record(), None, problem)
    with pytest.raises(RawDataError, match="no engine is called wrk2"):
        measure(raw, [])


@pytest.mark.parametrize(
    ("status", "how"),
    [
        (1, "failed engine=wrk2 status=1"),
        (-9, "killed engine=wrk2 signal=SIGKILL"),
        (-40, "killed engine=wrk2 signal=%340"),
    ],
)
def test_an_engine_that_failed(raw: Path, engine: FakeEngine, status: int, how: str) -> None:
    failed = record(status=status)
    write_json(raw / RECORD, failed)
    (raw / "fake.txt").write_text("figures\nError: database or disk is full\n")
    [problem] = remarks_in(f"engine-{how} words=Error:%20database%20or%20disk%20is%20full")
    assert measure(raw, [engine]) == Measurement(failed, None, problem)


def test_an_engine_that_failed_may_have_had_a_warm_up_that_it_refuses_now(raw: Path) -> None:
    shutil.copy(CAPTURES / "wrk2-01b-healthy-U.txt", raw / OUTPUT)
    write_json(raw / RECORD, record(plan(engine="wrk2", warmup_s=30), status=1))
    assert measure(raw, [Wrk2()]).problem.code == "engine-failed"
