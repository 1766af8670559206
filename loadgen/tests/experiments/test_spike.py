"""Spikes: their trials, and what is found of each."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lab.errors import WordError
from lab.experiments import spike
from lab.experiments.kind import Outcome
from lab.load.engines.histogram import Histogram
from lab.load.engines.pacer import PACKED, Pacer
from lab.model import Experiment, Finding, Peak, Row, Spike
from support.altered import invalid
from support.felt import PEAKS, felt, keep_trial, planned, second, trial
from support.planned import all_of, experiment, planner

SPIKE = Spike(extra=900, extra_rps=None, calm_s=10, peak_s=5, repeats=2, tolerance=0.25, steady_s=3)
TOO_FEW = {at: second(200, 300) for at in range(10, 50)}


def spiky(**changes: object) -> Experiment:
    whole = {"kind": "spike", "own": SPIKE, "modes": ("open",), "engines": ("pacer",)}
    return experiment(**{**whole, "duration_s": SPIKE.total_s, **changes})


def extra_rps(of: Experiment) -> set[int | None]:
    """The rates of the spikes of all trials."""
    plans = all_of(spike.design(planner(of, Pacer())))
    return {one.spike.extra_rps if one.spike else None for one in plans}


def test_each_server_has_a_trial_of_its_own_load_and_the_spikes_beside_it() -> None:
    order = spike.design(planner(spiky(), Pacer()))
    plans = all_of(order)
    assert [one.trial for one in plans] == ["01-a-open-c100", "02-b-open-c100"]
    assert (plans[0].duration_s, plans[0].offered_rps, plans[0].engine) == (40, 148, "pacer")
    # 900 / 1.2 / (2.5 × 0.2 s).
    assert (plans[0].spike.extra_rps, order.most) == (1500, 2)
    # Launches alternate.
    plans = all_of(spike.design(planner(spiky(launches=2), Pacer())))
    assert [one.trial for one in plans] == [
        "01-a-open-c100-l1", "02-b-open-c100-l1", "03-b-open-c100-l2", "04-a-open-c100-l2",
    ]  # fmt: skip


def test_with_a_given_rate_the_spike_asks_as_much_per_connection() -> None:
    with pytest.raises(WordError, match="RATE=auto"):
        extra_rps(spiky(routes=("/compute",)))
    assert extra_rps(spiky(rate_rps=70)) == {630}
    assert extra_rps(spiky(own=Spike(900, 55, 10, 5, 2, 0.25, 3))) == {55}


def kept(
    run_dir: Path,
    seconds: Mapping[int, Histogram],
    *peaks: Peak,
    name: str = "01-a",
    statuses: Mapping[int, str] | None = None,
    **cells: object,
) -> Row:
    """A trial's row with these cells; its seconds are on the disk."""
    of = planned(name, spike=SPIKE)
    keep_trial(run_dir / "raw" / name, of, seconds, statuses, peaks=peaks)
    return trial(name, **cells)


def findings(tmp_path: Path, *rows: Row, **changes: object) -> list[Finding]:
    return list(spike.findings(Outcome(spiky(servers=("a",), **changes), rows, tmp_path)))


def of_launches(
    run_dir: Path,
    count: int,
    why: Mapping[int, str] | None = None,
    slow: Callable[[int], Mapping[int, float | None]] = lambda launch: {},
) -> tuple[list[Row], Finding]:
    """Launches, of which some are invalid for a reason, and their median."""
    rows = []
    for launch in range(1, count + 1):
        reason = (why or {}).get(launch, "")
        cells = {"launch": launch, "valid": not reason, "invalid_reasons": reason}
        rows.append(kept(run_dir, felt(slow(launch)), *PEAKS, name=f"{launch:02}-a", **cells))
    return rows, findings(run_dir, *rows, launches=count)[-1]


def test_findings_are_each_spike_and_the_median(tmp_path: Path) -> None:
    one = kept(tmp_path, felt(dict.fromkeys(range(20, 29), 900.0)), *PEAKS)
    first, second_, median = findings(tmp_path, one)
    assert (first.name, first.value, first.unit) == ("recovery time, spike 1", 4.0, "s")
    assert first.text == (
        "spike 1 of 2: p95 900 ms in the worst second, back to 200 ms × 1.25 for 3 s on end "
        "after 4.0 s"
    )
    assert second_.value == 0.0
    assert (median.name, median.value, median.low) == ("recovery time, median", 2.0, None)
    assert median.text == "recovered after 2.0 s, median over 2 spikes in 1 launch, no interval"
    # What is no calm for good is said.
    one = kept(tmp_path / "again", felt(dict.fromkeys(range(28, 35), 900.0)), *PEAKS)
    first, *_ = findings(tmp_path / "again", one)
    assert first.text.endswith(
        "back to 200 ms × 1.25 for 3 s on end after 0.0 s, and 7 of the 7 s after these above it "
        "again"
    )


def test_error_answers_are_no_recovery_however_quick(tmp_path: Path) -> None:
    """A breaker that opens in the spike, and refuses from then on within 2 ms."""
    quick, refused = (dict.fromkeys(range(21, 50), said) for said in (2.0, "503"))
    first, *_ = findings(tmp_path, kept(tmp_path, felt(quick), *PEAKS, statuses=refused))
    assert first.value is None
    assert first.text.startswith("spike 1 of 2: no good answer at all in a second, 5")
    assert "answers were errors, not back to 200 ms × 1.25" in first.text


# Seven of which one may be anything have no interval; nine have.
@pytest.mark.parametrize(("count", "end"), [(7, None), (9, 0.0)])
def test_silent_launches_widen_the_interval(tmp_path: Path, count: int, end: float | None) -> None:
    _, median = of_launches(tmp_path, count, {1: "generator-late"})
    assert (median.value, median.low, median.high) == (0.0, end, end)


def test_six_launches_have_an_interval(tmp_path: Path) -> None:
    def slow(launch: int) -> dict[int, float | None]:
        return {at: 900.0 for start in (25, 40) for at in range(start, start + launch)}

    _, median = of_launches(tmp_path, 6, slow=slow)
    assert (median.value, median.low, median.high) == (3.5, 1.0, 6.0)


def test_a_launch_in_which_the_server_failed_did_not_recover(tmp_path: Path) -> None:
    rows, median = of_launches(tmp_path, 7, {3: "jvm-restarted", 4: "generator-late"})
    assert (median.value, median.low) == (0.0, None)
    assert median.text == (
        "recovered after 0.0 s, median over 10 spikes in 5 of 7 launches, and 1 in which the "
        "server failed, no interval"
    )
    alone = findings(tmp_path, rows[2])[-1]
    assert alone.value is None
    assert alone.text.startswith("not recovered, median over 0 spikes in 0 of 1 launch, and 1 in")


@pytest.mark.parametrize(
    ("cells", "peaks", "seconds", "says"),
    [
        (invalid("toxics-touched"), PEAKS, felt(), "invalid: toxics-touched"),
        ({}, (), felt(), "no spike was run"),
        ({}, PEAKS, TOO_FEW, "300 of 400 req/s were answ"),
        ({}, PEAKS, {}, "0 of 400 req/s were answered before the first disturbance: there"),
        ({}, PEAKS, None, PACKED),
    ],
    ids=["invalid", "no spike", "too few answers", "no answers", "answers that are lost"],
)
def test_what_has_no_recovery_time_says_why(
    tmp_path: Path,
    cells: dict[str, object],
    peaks: tuple[Peak, ...],
    seconds: dict[int, Histogram] | None,
    says: str,
) -> None:
    one = kept(tmp_path, felt() if seconds is None else seconds, *peaks, **cells)
    if seconds is None:
        (tmp_path / "raw" / one.trial / PACKED).unlink()
    (only,) = findings(tmp_path, one)
    assert only.value is None
    assert only.text.startswith(says) or (says == PACKED and PACKED in only.text)
