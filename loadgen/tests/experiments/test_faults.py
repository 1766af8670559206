"""Scripted faults: their trials, when each began and ended, and what is found of each."""

from collections.abc import Mapping
from pathlib import Path

from lab.experiments import faults
from lab.experiments.faults import Faults
from lab.experiments.kind import Outcome
from lab.load.engines.histogram import Histogram
from lab.load.engines.pacer import Pacer
from lab.model import Experiment, Finding, Peak, ScriptedToxic, ToxicStep
from support.felt import felt, keep_trial, planned, second, trial
from support.planned import all_of, experiment, planner

STEPS = (
    ToxicStep(10, {"TYPE": "latency", "LATENCY": "300"}),
    ToxicStep(15, {"NAME": "latency", "REMOVE": "yes"}),
    ToxicStep(25, {"TYPE": "down"}),
    ToxicStep(30, {"TYPE": "up"}),
)
# As they really were, with a warm-up of 10 s before the window.
MADE = (
    ScriptedToxic(20.0, 20.0, STEPS[0].text, clear=False),
    ScriptedToxic(25.0, 25.0, STEPS[1].text, clear=True),
    ScriptedToxic(35.0, 35.0, STEPS[2].text, clear=False),
    ScriptedToxic(40.0, 40.0, STEPS[3].text, clear=True),
)


def faulty(**changes: object) -> Experiment:
    whole = {"kind": "faults", "own": Faults(STEPS, 0.25, 3), "modes": ("open",)}
    return experiment(**{**whole, "engines": ("pacer",), "duration_s": 40, **changes})


def test_each_server_has_a_trial_with_the_script() -> None:
    plans = all_of(faults.design(planner(faulty(), Pacer())))
    assert [one.trial for one in plans] == ["01-a-open-c100", "02-b-open-c100"]
    assert all(one.script == STEPS for one in plans)
    assert (plans[0].offered_rps, plans[0].duration_s) == (148, 40)


def test_a_fault_lasts_until_nothing_of_the_script_is_left() -> None:
    steps = (
        ScriptedToxic(20.0, 20.1, "slow", clear=False),
        ScriptedToxic(22.0, 22.1, "down", clear=False),
        ScriptedToxic(24.0, 24.1, "up", clear=False),
        ScriptedToxic(26.0, 26.1, "remove slow", clear=True),
        ScriptedToxic(30.0, 30.1, "down", clear=False),
    )
    assert faults.disturbances(steps) == ((Peak(20.0, 26.1), "slow, then down, then up"),)


def found(
    tmp_path: Path,
    seconds: Mapping[int, Histogram],
    statuses: Mapping[int, str] | None = None,
    script: tuple[ScriptedToxic, ...] = MADE,
    **cells: object,
) -> list[Finding]:
    """The findings of a trial of these seconds, with these cells in its row."""
    one, of = trial(**cells), planned("01-a", script=STEPS)
    keep_trial(tmp_path / "raw" / one.trial, of, seconds, statuses, script=script)
    return list(faults.findings(Outcome(faulty(servers=("a",)), [one], tmp_path)))


def test_findings_are_each_fault_and_the_median(tmp_path: Path) -> None:
    # Slow from 20 to 29; quick errors from 35 to 42: refused at once is not recovered.
    slow = dict.fromkeys(range(20, 29), 900.0) | dict.fromkeys(range(35, 42), 2.0)
    refused = dict.fromkeys(range(35, 42), "502")
    latency, down, median = found(tmp_path, felt(slow), refused)
    assert (latency.name, latency.value, latency.unit) == ("recovery time, fault 1", 4.0, "s")
    assert latency.text == (
        "fault 1 of 2 (TYPE=latency LATENCY=300, 5 s): 0 of 6000 answers were errors, slowest "
        "good answer 900 ms, back to 200 ms × 1.25 for 3 s on end after 4.0 s"
    )
    assert down.value == 2.0
    assert "(TYPE=down, 5 s): 2800 of 6000 answers were errors" in down.text
    assert median.value == 3.0
    assert median.text == "recovered after 3.0 s, median over 2 faults in 1 launch, no interval"


def test_errors_of_the_second_in_which_a_fault_began_are_counted(tmp_path: Path) -> None:
    script = (*MADE[:2], ScriptedToxic(35.3, 35.4, STEPS[2].text, clear=False), MADE[3])
    _, down, _ = found(tmp_path, felt(), dict.fromkeys(range(35, 40), "502"), script)
    assert ": 2000 of 6000 answers were errors" in down.text


def test_a_server_that_stays_broken_is_said_and_is_no_number(tmp_path: Path) -> None:
    _, down, median = found(tmp_path, felt(), dict.fromkeys(range(35, 50), "502"))
    assert (down.value, median.value) == (None, None)
    assert down.text.endswith("not back to 200 ms × 1.25 in 10 s")


def test_requests_without_an_answer_are_told(tmp_path: Path) -> None:
    # Half of the connections are reset until 44: those left are as quick as ever.
    halved = {at: second(200, 200) for at in range(40, 44)}
    _, down, _ = found(tmp_path, {**felt(), **halved}, timeouts=7, socket_errors=30)
    assert down.value == 4.0
    lost = "; in the whole run 7 requests timed out, 30 lost their connection"
    assert down.text.endswith("after 4.0 s" + lost)


def test_a_script_of_which_nothing_came_has_no_recovery_time(tmp_path: Path) -> None:
    (only,) = found(tmp_path, felt(), script=())
    assert only.value is None
    assert only.text.startswith("no toxic of the script came and went")
