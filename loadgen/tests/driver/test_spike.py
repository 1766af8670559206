"""Recovery after a spike, on seconds whose recovery is known by hand."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from driver.fakes import FakeEngine, plan, record, snapshot
from driver.planned import all_of, experiment, row
from lab import spike
from lab.engines.histogram import Histogram
from lab.engines.oha import ANSWERS, Oha, Second, answers
from lab.errors import WordError
from lab.records import write_json
from lab.types import Experiment, Finding, Peak, Row, Spike

SPIKE = Spike(extra=900, extra_rps=None, calm_s=10, peak_s=5, repeats=2, tolerance=0.25, steady_s=3)
# A warm-up of 10 s, then 10 calm, 5 peak, 10 calm, 5 peak, 10 calm.
WINDOW = (10.0, 50.0)
PEAKS = (Peak(20.0, 25.0), Peak(35.0, 40.0))


def second(ms: float, count: int = 400) -> Histogram:
    histogram = Histogram()
    histogram.add(round(ms * 1000), count)
    return histogram


def felt(changes: Mapping[int, float | None] | None = None) -> dict[int, Histogram]:
    """200 ms in every second but those; None: no answer in it."""
    at = dict.fromkeys(range(10, 50), 200.0) | dict(changes or {})
    return {s: second(ms) for s, ms in at.items() if ms is not None}


def test_recovery_is_counted_from_the_spikes_end_to_the_first_of_the_steady_seconds() -> None:
    slow = dict.fromkeys(range(21, 29), 900.0) | {30: 400.0} | dict.fromkeys(range(35, 40), 300.0)
    calm_ms, found = spike.recoveries(felt(slow), WINDOW, PEAKS, SPIKE)
    assert calm_ms == pytest.approx(200, rel=0.001)
    # 29 is calm, 30 is not, 31 32 33 are: recovered at 31, 6 s after 25.
    assert found[0].after_s == 6.0
    assert found[0].worst_ms == pytest.approx(900, rel=0.001)
    assert found[0].watched_s == 10.0
    # Slow during the spike only: as before at once.
    assert found[1].after_s == 0.0
    assert found[1].worst_ms == pytest.approx(300, rel=0.001)


def test_what_is_within_the_tolerance_is_calm() -> None:
    within = dict.fromkeys(range(25, 35), 249.0)
    assert spike.recoveries(felt(within), WINDOW, PEAKS, SPIKE)[1][0].after_s == 0.0
    above = dict.fromkeys(range(25, 35), 251.0)
    assert spike.recoveries(felt(above), WINDOW, PEAKS, SPIKE)[1][0].after_s is None


def test_a_second_without_answers_is_not_calm() -> None:
    silent = dict.fromkeys(range(22, 27), None)
    _, found = spike.recoveries(felt(silent), WINDOW, PEAKS, SPIKE)
    assert found[0].after_s == 2.0
    assert found[0].worst_ms == float("inf")


def test_two_steady_seconds_before_the_next_spike_are_not_three() -> None:
    late = dict.fromkeys(range(25, 33), 900.0)
    assert spike.recoveries(felt(late), WINDOW, PEAKS, SPIKE)[1][0].after_s is None


def test_only_whole_seconds_after_the_end_count() -> None:
    peaks = (Peak(20.4, 25.6), PEAKS[1])
    _, found = spike.recoveries(felt(), WINDOW, peaks, SPIKE)
    # 26, 27 and 28 are steady; 26 begins 0.4 s after the end.
    assert found[0].after_s == pytest.approx(0.4)
    assert found[0].watched_s == pytest.approx(9.4)


def test_too_few_answers_a_second_have_no_p95() -> None:
    few = {at: second(200.0, 199) for at in range(10, 50)}
    with pytest.raises(ValueError, match=r"199 answers a second in the calm .* needs 200"):
        spike.recoveries(few, WINDOW, PEAKS, SPIKE)
    with pytest.raises(ValueError, match="0 answers a second"):
        spike.recoveries(felt(), WINDOW, (Peak(10.0, 12.0),), SPIKE)


def spiky(**changes: object) -> Experiment:
    whole = {"kind": "spike", "spike": SPIKE, "modes": ("open",), "engines": ("oha",)}
    return experiment(**{**whole, "duration_s": SPIKE.total_s, **changes})


def order_of(of: Experiment) -> list[object]:
    snapshots = {"a": snapshot(), "b": snapshot()}
    return list(
        all_of(spike.design(of, snapshots, {"oha": Oha()}, lambda s, r: f"http://{s}{r}", 2))
    )


def test_each_server_has_a_trial_of_its_own_load_and_the_spikes_beside_it() -> None:
    order = spike.design(
        spiky(), {"a": snapshot()}, {"oha": Oha()}, lambda s, r: f"http://{s}{r}", 2
    )
    plans = all_of(order)
    assert [one.trial for one in plans] == ["01-a-open-c100", "02-b-open-c100"]
    assert (plans[0].duration_s, plans[0].offered_rps, plans[0].engine) == (40, 450, "oha")
    # 90 % of 900 / 0.2 s.
    assert plans[0].spike is not None
    assert plans[0].spike.extra_rps == 4050
    assert order.total == 2


def test_with_a_given_rate_the_spike_asks_as_much_per_connection() -> None:
    assert all(p.spike.extra_rps == 630 for p in order_of(spiky(rate_rps=70)))  # type: ignore[attr-defined]
    own = Spike(900, 55, 10, 5, 2, 0.25, 3)
    assert all(p.spike.extra_rps == 55 for p in order_of(spiky(spike=own)))  # type: ignore[attr-defined]


def test_launches_alternate() -> None:
    trials = [p.trial for p in order_of(spiky(launches=2))]  # type: ignore[attr-defined]
    assert trials == [
        "01-a-open-c100-l1", "02-b-open-c100-l1", "03-b-open-c100-l2", "04-a-open-c100-l2",
    ]  # fmt: skip


def test_a_spike_without_a_rate_is_refused() -> None:
    with pytest.raises(WordError, match="RATE=auto"):
        order_of(spiky(routes=("/compute",)))
    closed = FakeEngine()
    closed.modes = frozenset(("closed",))
    with pytest.raises(WordError, match="no engine that does MODE=open"):
        spike.design(spiky(), {"a": snapshot()}, {"wrk": closed}, lambda s, r: "", 2)


def keep(run_dir: Path, one: Row, seconds: Mapping[int, Histogram], *peaks: Peak) -> None:
    """The raw folder of a trial, in oha's own format."""
    raw = run_dir / "raw" / one.trial
    raw.mkdir(parents=True)
    of = plan(trial=one.trial, engine="oha", offered_rps=400, duration_s=40, spike=SPIKE)
    write_json(raw / "trial.json", record(of, window_offset_s=10.0, peaks=peaks))
    with gzip.open(raw / ANSWERS, "wt") as file:
        file.write(json.dumps({"format": 1, "unit": "us"}) + "\n")
        for at, histogram in seconds.items():
            packed = {
                "sum": histogram.sum_us,
                "max": histogram.max_us,
                "buckets": sorted(histogram.buckets.items()),
            }
            line = {"second": at, "statuses": {"200": histogram.buckets.total()}, "lag": 0}
            file.write(json.dumps({**line, "raw": packed, "corrected": packed}) + "\n")


def findings(tmp_path: Path, *rows: Row, **changes: object) -> list[Finding]:
    return list(spike.findings(spiky(servers=("a",), **changes), rows, tmp_path))


def trial(name: str = "01-a", **changes: object) -> Row:
    return row(plan(trial=name, engine="oha"), **changes)


def test_findings_are_each_spike_and_the_median(tmp_path: Path) -> None:
    one = trial()
    keep(tmp_path, one, felt(dict.fromkeys(range(20, 29), 900.0)), *PEAKS)
    first, second_, median = findings(tmp_path, one)
    assert (first.name, first.value, first.unit) == ("recovery time, spike 1", 4.0, "s")
    assert first.text == (
        "spike 1 of 2: p95 900 ms in the worst second, back to 200 ms × 1.25 for 3 s on end "
        "after 4.0 s"
    )
    assert second_.value == 0.0
    assert (median.name, median.value, median.low) == ("recovery time, median", 2.0, None)
    assert median.text == "recovered after 2.0 s, median over 2 spikes in 1 launch, no interval"


def test_not_recovered_is_said_and_is_no_number(tmp_path: Path) -> None:
    one = trial()
    keep(tmp_path, one, felt(dict.fromkeys(range(20, 50), 900.0)), *PEAKS)
    first, _, median = findings(tmp_path, one)
    assert first.value is None
    assert first.text.endswith("not back to 200 ms × 1.25 in 10 s")
    assert (median.value, median.text) == (
        None, "not recovered, median over 2 spikes in 1 launch",
    )  # fmt: skip


def test_six_launches_have_an_interval(tmp_path: Path) -> None:
    rows = []
    for launch in range(1, 7):
        one = trial(f"0{launch}-a", launch=launch)
        slow = {at: 900.0 for start in (25, 40) for at in range(start, start + launch)}
        keep(tmp_path, one, felt(slow), *PEAKS)
        rows.append(one)
    median = findings(tmp_path, *rows, launches=6)[-1]
    assert (median.value, median.low, median.high) == (3.5, 1.0, 6.0)


@pytest.mark.parametrize(
    ("changes", "peaks", "seconds", "says"),
    [
        ({"valid": False, "invalid_reasons": "toxics"}, PEAKS, felt(), "invalid: toxics"),
        ({}, (), felt(), "no spike was run"),
        ({}, PEAKS, {at: second(200, 300) for at in range(10, 50)}, "300 of 400 req/s were answ"),
        ({}, PEAKS, {}, "0 of 400 req/s were answered before the first spike: there is no calm"),
    ],
)
def test_what_has_no_recovery_time_says_why(
    tmp_path: Path,
    changes: dict[str, object],
    peaks: tuple[Peak, ...],
    seconds: dict[int, Histogram],
    says: str,
) -> None:
    one = trial(**changes)
    keep(tmp_path, one, seconds, *peaks)
    (only,) = findings(tmp_path, one)
    assert only.value is None
    assert only.text.startswith(says)


def test_seconds_of_oha_are_read_from_its_raw_folder(tmp_path: Path) -> None:
    one = trial()
    keep(tmp_path, one, {3: second(200.0)}, *PEAKS)
    (only,) = answers(tmp_path / "raw" / one.trial)
    assert isinstance(only, Second)
    assert (only.second, only.corrected.buckets.total()) == (3, 400)


def test_a_trial_whose_answers_are_lost_says_so(tmp_path: Path) -> None:
    one = trial()
    keep(tmp_path, one, felt(), *PEAKS)
    (tmp_path / "raw" / one.trial / ANSWERS).unlink()
    (only,) = findings(tmp_path, one)
    assert only.value is None
    assert ANSWERS in only.text
