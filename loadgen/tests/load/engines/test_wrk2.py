"""wrk2's real output, answers worked out by hand from the captures."""

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import astuple

from lab.errors import RawDataError, WordError
from lab.load.engines.wrk2 import (
    OUTPUT,
    Spectrum,
    Wrk2,
    good_bounds,
    parse,
    pause_s,
    start_check,
)
from lab.model import Counts, Reading, TrialPlan, good_share
from load.engines.conftest import plan
from support.fakes import cells

Raw = Callable[[str], Path]
# Connections, rate and duration of the captures that have others than `plan`.
PLANNED: dict[str, tuple[int, int | None, int]] = {
    "02-all-500": (20, 200, 1),
    "02c-mixed-10pct-503": (20, 200, 1),
    "03-never-answers": (20, 200, 1),
    "03c-answers-after-3s-T2s": (20, 200, 3),
    "04-server-closes-without-answer": (20, 200, 1),
    "05c-conns-not-multiple-of-threads": (50, 300, 9),
    "06b-stall-3s-after-calibration-U": (20, 500, 11),
    "08-saturated-c100-max500rps-R1000": (100, 1000, 9),
    "09-5000conns-R5000-d30": (5000, 5000, 7),
    "09c-5000conns-R1000-d30-false-timeouts": (5000, 1000, 7),
    "11-server-restart-midrun": (50, 1000, 3),
    "12-ulimit-200-c1000": (1000, 1000, 9),
}


def read(raw: Raw, capture: str, planned: TrialPlan | None = None) -> Reading:
    return Wrk2().read(planned or plan(*PLANNED.get(capture, ())), raw(capture))


def refuse(raw: Raw, capture: str, planned: TrialPlan | None = None) -> RawDataError:
    with pytest.raises(RawDataError) as refused:
        read(raw, capture, planned)
    return refused.value


def test_a_healthy_open_run_gives_corrected_and_raw_percentiles(raw: Raw) -> None:
    # -t2 -c100 -d20: calibrated at 10 s + 5 ms × 50 = 10.25 s, so a window of 9.75 s.
    reading = read(raw, "01b-healthy-U")
    assert (reading.window_s, reading.samples) == (pytest.approx(9.75), 19500)
    assert reading.achieved_rps == pytest.approx(2000.0)
    for latency, ms in (
        (reading.corrected, (6.577, 6.547, 7.535, 8.31, 11.864)),
        (reading.raw, (5.711, 5.651, 6.267, 6.86, 10.856)),
    ):
        assert astuple(latency) == pytest.approx(ms)
    assert reading.remarks == ()
    # Counts cover the whole run and say so.
    assert reading.counts == Counts(None, 38898, 0, 0, None, None, pytest.approx(20.01))


def test_a_goodput_that_is_only_known_within_bounds_is_said(raw: Raw) -> None:
    # 240 of 2402 answers were 503, 380 of them in the window: none of these, or 240.
    reading = read(raw, "02c-mixed-10pct-503")
    assert good_share(reading) == pytest.approx(1 - 240 / 2402)
    assert cells(reading.remarks) == [
        "errors-of-run least=0.368421 most=1 run=0.900083",
        "latencies-mixed errors=240 answers=380 allowed=0.001",
    ]
    # Their latencies may be those of errors.
    assert (reading.corrected, reading.raw) == (None, None)
    # Where all were errors there is nothing to doubt.
    all_errors = read(raw, "02-all-500")
    assert cells(all_errors.remarks) == ["latencies-mixed errors=381 answers=381 allowed=0.001"]


@pytest.mark.parametrize(("errors", "kept"), [(19, True), (20, False)])
def test_a_few_errors_move_nothing(raw: Raw, errors: int, kept: bool) -> None:
    path = raw("01b-healthy-U") / OUTPUT
    line = f"  Non-2xx or 3xx responses: {errors}\nRequests/sec:"
    path.write_text(path.read_text().replace("Requests/sec:", line))
    # 19 of 19,500 answers are 0.097 %. The mean of all is that of Little's law.
    reading = Wrk2().read(plan(), path.parent)
    assert (reading.raw is not None, reading.corrected is not None) == (kept, kept)
    assert reading.answer_ms == pytest.approx(5.711)


def test_the_bounds_of_the_share_of_successes() -> None:
    for requests, errors, samples, bounds in (
        (1000, 0, 600, (1.0, 1.0)),
        (1000, 100, 600, (1 - 100 / 600, 1.0)),
        # 400 answers were before the window, so at least 100 errors were in it.
        (1000, 500, 600, (1 - 500 / 600, 1 - 100 / 600)),
        (1000, 900, 600, (0.0, 1 - 500 / 600)),
        (600, 60, 600, (0.9, 0.9)),
    ):
        found = good_bounds(requests, errors, samples)
        assert found == pytest.approx(bounds), (requests, errors)


def told(reading: Reading, path: str) -> object:
    """A part of a reading by its path, `raw.p95_ms`; None where a part of it is None."""
    found: object = reading
    for name in path.split("."):
        found = None if found is None else getattr(found, name)
    return found


NO_ANSWERS = {"samples": 0, "achieved_rps": 0, "corrected": None, "raw": None}
# Calibrated at 10.125 s of 14 s; read 47, and write 421225 while connections were refused.
RESTARTED = {"counts.socket_errors": 47, "counts.sent": None, "achieved_rps": 3566 / 3.875}


@pytest.mark.parametrize(
    ("capture", "says"),
    [
        # Without -U there is no raw latency.
        ("01-healthy-latency", {"raw": None, "corrected.p95_ms": 9.135}),
        # Overload: corrected latency in seconds.
        ("08-saturated-c100-max500rps-R1000", {"corrected.p50_ms": 7671.807}),
        ("08-saturated-c100-max500rps-R1000", {"corrected.p95_ms": 9904.127}),
        ("08-saturated-c100-max500rps-R1000", {"corrected.p99_ms": 10100}),
        # -t2 -c20 -d22: 10 s + 5 ms × 10 = 10.05 s, a window of 11.95 s.
        ("06b-stall-3s-after-calibration-U", {"window_s": 11.95, "achieved_rps": 5972 / 11.95}),
        ("06b-stall-3s-after-calibration-U", {"corrected.mean_ms": 382.435, "raw.p99_ms": 4.02}),
        ("06b-stall-3s-after-calibration-U", {"corrected.p95_ms": 2414.591}),
        # -d30: calibrated at 10 + 12.5 = 22.5 s. Printed: 3995 req/s, opening included; yet they
        # kept their rate.
        ("09-5000conns-R5000-d30", {"window_s": 7.5, "achieved_rps": 37258 / 7.5}),
        ("09c-5000conns-R1000-d30-false-timeouts", {"counts.timeouts": None}),
        ("09c-5000conns-R1000-d30-false-timeouts", {"counts.socket_errors": 0}),
        ("02-all-500", {"counts.ok": 0, "counts.http_errors": 2402}),
        ("02c-mixed-10pct-503", {"counts.ok": 2162, "counts.http_errors": 240}),
        ("03-never-answers", NO_ANSWERS),
        ("04-server-closes-without-answer", NO_ANSWERS),
        ("03c-answers-after-3s-T2s", {"samples": 20, "raw.p50_ms": 3002.367}),
        ("07-short-2s", {"window_s": 2.0}),
        ("11-server-restart-midrun", RESTARTED),
        ("12-ulimit-200-c1000", {"counts.socket_errors": 0}),
    ],
)
def test_a_run_is_read(raw: Raw, capture: str, says: dict[str, float | None]) -> None:
    reading = read(raw, capture)
    for path, value in says.items():
        assert told(reading, path) == (value and pytest.approx(value, rel=1e-9)), path


def test_a_closed_run_has_no_corrected_latency(raw: Raw) -> None:
    # Its connections were never on pace: what wrk2 calls corrected means nothing then.
    reading = read(raw, "08-saturated-c100-max500rps-R1000", plan(100, None, 9))
    assert (reading.corrected, reading.raw.p50_ms, reading.raw.p95_ms) == (None, 201.087, 204.287)
    assert reading.achieved_rps == pytest.approx(4848 / 9.75, rel=1e-9)


@pytest.mark.parametrize(
    ("capture", "says"),
    [
        ("09c-5000conns-R1000-d30-false-timeouts", "wrk2-waiting timeout_s=30 checks="),
        ("11-server-restart-midrun", "wrk2-attempts attempts=421225"),
        ("12-ulimit-200-c1000", "wrk2-attempts attempts=805"),
        ("07-short-2s", "wrk2-uncalibrated calibrated=0 threads=2"),
        ("05c-conns-not-multiple-of-threads", "wrk2-connections opened=48 planned=50 threads="),
    ],
)
def test_what_is_wrong_with_a_run_is_said(raw: Raw, capture: str, says: str) -> None:
    assert any(one.startswith(says) for one in cells(read(raw, capture).remarks))


@pytest.mark.parametrize(
    ("capture", "says"),
    [
        ("10-refused-at-start", "unable to connect to 127.0.0.1:9999"),
        ("10g-unresolvable", "unable to resolve"),
        ("10b-no-rate", "Throughput MUST be specified"),
        ("10d-bad-duration", "Usage:"),
    ],
)
def test_a_run_that_did_not_start_is_refused(raw: Raw, capture: str, says: str) -> None:
    refused = refuse(raw, capture)
    assert says in refused.problem
    assert refused.line is not None


def test_another_plan_than_the_run_s_is_refused(raw: Raw) -> None:
    assert "the plan says 50" in refuse(raw, "01b-healthy-U", plan(concurrency=50)).problem
    # A closed run without -U.
    closed = refuse(raw, "01-healthy-latency", plan(offered_rps=None))
    assert "Uncorrected" in closed.problem


@pytest.mark.parametrize("keep", [0, 1, 3, 22, 60, 100, 180, 182, 183, 184])
def test_a_file_that_is_cut_off_is_refused(raw: Raw, keep: int) -> None:
    path = raw("01b-healthy-U") / OUTPUT
    lines = path.read_text().splitlines()
    assert len(lines) == 185
    path.write_text("\n".join(lines[:keep]))
    with pytest.raises(RawDataError) as refused:
        Wrk2().read(plan(), path.parent)
    assert (refused.value.line, refused.value.problem) == (
        keep or None,
        "is no whole output of wrk2",
    )


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("Requests/sec:", "Demands/sec:", "is no whole output of wrk2"),
        ("Recorded Latency", "Latency", "has no Recorded Latency (run with -L)"),
        ("=        6.577, Std", "=         -nan, Std", "without a mean"),
        ("Total count    =        19500", "Total count    =        19499", "the spectra disagree"),
    ],
)
def test_what_wrk2_never_prints_is_refused(raw: Raw, old: str, new: str, problem: str) -> None:
    path = raw("01b-healthy-U") / OUTPUT
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert problem in refuse_file(path)


@pytest.mark.parametrize(
    "capture", ["01b-healthy-U", "02c-mixed-10pct-503", "11-server-restart-midrun"]
)
def test_a_damaged_line_changes_no_figure(raw: Raw, capture: str) -> None:
    path, random = raw(capture) / OUTPUT, Random(56)
    whole, lines = parse(path), path.read_text().splitlines(keepends=True)
    refused = 0
    for number, line in enumerate(lines):
        for _ in range(min(3, len(line) - 1)):
            at = random.randrange(len(line) - 1)
            damaged = f"{line[:at]}x{line[at + 1 :]}"
            path.write_text("".join([*lines[:number], damaged, *lines[number + 1 :]]))
            try:
                found = parse(path)
            except RawDataError:
                refused += 1
            else:
                # Which makes the trial invalid.
                uncalibrated = found.calibrations < found.threads
                assert uncalibrated or found == whole, damaged
    assert refused > 2 * len(lines)


def refuse_file(path: Path) -> str:
    with pytest.raises(RawDataError) as refused:
        Wrk2().read(plan(), path.parent)
    return refused.value.problem


def test_a_summary_rounded_to_minutes_cannot_leave_the_rows_around_it() -> None:
    spectrum = Spectrum(
        summary=((0.99, 90_000.0),), rows=((0.5, 1.0), (1.0, 2.0)), mean_ms=1, max_ms=2, count=9
    )
    assert [spectrum.at(share) for share in (0.5, 0.75, 0.99)] == pytest.approx([1.0, 1.5, 2.0])


@pytest.mark.parametrize(
    ("printed", "ms"),
    [("1.50us", 0.0015), ("1.50ms", 1.5), ("1.50s", 1500), ("1.50m", 90_000), ("1.50h", 5.4e6)],
)
def test_every_unit_becomes_milliseconds(raw: Raw, printed: str, ms: float) -> None:
    path = raw("06b-stall-3s-after-calibration-U") / OUTPUT
    path.write_text(re.sub(r"100\.000% +\S+", f"100.000%  {printed}", path.read_text(), count=1))
    said = parse(path)
    assert dict(said.recorded.summary)[1.0] == pytest.approx(ms)
    # As they were printed.
    assert dict(said.uncorrected.summary)[0.5] == pytest.approx(0.155)
    assert dict(said.uncorrected.summary)[0.99] == pytest.approx(4.02)
    assert dict(said.recorded.summary)[0.9] == pytest.approx(1820)


def test_the_run_is_lengthened_by_the_calibration() -> None:
    schedule = Wrk2().schedule(plan(concurrency=5000, duration_s=15), Path())
    assert schedule.window_offset_s == 22.5
    assert schedule.run_s == 38  # 37.5 rounded up: -d takes whole seconds
    assert schedule.window_s == 15.5
    assert "-d38s" in schedule.argv
    assert "-U" in schedule.argv
    assert schedule.argv[schedule.argv.index("--timeout") + 1] == "30s"
    # It has no other warm-up.
    with pytest.raises(WordError, match=r"WARMUP=30s is not allowed with wrk2.*ENGINE=pacer"):
        Wrk2().schedule(plan(warmup_s=30), Path())
    # Closed load offers more than any capacity.
    assert "-R10000000" in Wrk2().schedule(plan(offered_rps=None), Path()).argv


def test_threads_divide_the_connections() -> None:
    cases = [(100, 2, 2), (1, 8, 1), (7, 2, 1), (9, 4, 3), (5000, 64, 8), (3, 64, 3)]
    for concurrency, cores, threads in cases:
        argv = Wrk2().schedule(plan(concurrency=concurrency, cores=cores), Path()).argv
        assert f"-t{threads}" in argv, (concurrency, cores)


def test_few_connections_send_in_bursts() -> None:
    # A round takes 40 / 120 = 333 ms; 20 connections of a thread begin within 100 ms.
    assert pause_s(plan(40, 120), 2) == pytest.approx(0.2333, abs=0.001)
    # 1000 connections begin within 5 s, a round takes 0.2 s: no pause between rounds.
    assert pause_s(plan(2000, 9000), 2) == 0
    assert pause_s(plan(40, None), 2) == 0


def test_a_thread_that_overslept_its_start_is_missed_by_its_sockets() -> None:
    # Half a second after a good start each of two threads has opened 100 of its 200.
    check = start_check(400, 2)
    assert (check.after_s, check.least_sockets, check.most) == (0.5, 150, 12)
    # Fewer connections than are opened in that time: all of them, and half of one thread's.
    assert start_check(40, 2).least_sockets == 30
    assert start_check(7, 1).least_sockets == 4
    # With more than that hardly one is good.
    assert (start_check(999, 2).most, start_check(1000, 2).most) == (12, 3)
