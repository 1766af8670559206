"""Did the window show one state? Its halves are compared, and times without an answer are found.

Rates and latencies come second by second: from the engine where it keeps them, else from the
server's own counters, which Prometheus reads once a second.

The window is not steady where its halves differ by more than LEAST_DRIFT, and by more than the
scatter of the seconds explains: Welch's t-test (B. L. Welch, Biometrika 34 (1947) 28) at
FALSE_ALARM. So at most one steady window in 100 is called unsteady. Where the seconds scatter by
2 %, it is far fewer (tests/judge/test_steady.py counts them, also for seconds that depend on each
other). A short window shows less: docs/invalid.md.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from lab.judge.gates.generator import overloaded
from lab.model import Observation, Reading, TrialRecord
from lab.model.routes import parse

# The margin within which two sides are the same in practice (lab.judge.compare).
LEAST_DRIFT = 0.05
LEAST_DRIFT_MS = 1.0
FALSE_ALARM = 0.01
# A server that pauses for less (a collection, a full machine) has not stopped. Neither has one
# that answers in bursts: between these there may be a latency.
LEAST_SILENT_S = 2.0
LEAST_SILENT_LATENCIES = 2
# A step with less than this share of the usual rate has next to no answers.
SILENT = 0.1
# Counters are read once a second. Where two readings are further apart, the server did not answer
# the one between.
LONG_STEP_S = 2.0
UNSTEADY = "not steady"
STOPPED = "the server stopped answering"


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of the window, in seconds from its start: its answers, those without errors, and
    their mean latency (None without an answer)."""

    starts_s: float
    ends_s: float
    answers: float
    good: float
    mean_ms: float | None

    @property
    def length_s(self) -> float:
        """How long it lasted."""
        return self.ends_s - self.starts_s


def steps_of(
    record: TrialRecord, reading: Reading, observation: Observation | None
) -> tuple[Step, ...]:
    """The steps of the window, in their order; none where nobody can tell them."""
    if reading.seconds:
        return tuple(
            Step(at, at + 1, one.answers, one.good, one.mean_ms)
            for at, one in enumerate(reading.seconds)
        )
    if observation is None or record.before.foreign:
        return ()
    of = {"job": "server", "server": record.plan.server}
    of["route"] = parse(record.plan.route).route.path
    timed, time_s, good = (
        {(start, end): rise for start, end, rise in observation.steps(name, **of, **only)}
        for name, only in (
            ("lab_http_request_seconds_count", {"phase": "total"}),
            ("lab_http_request_seconds_sum", {"phase": "total"}),
            ("lab_http_requests_total", {"outcome": "ok"}),
        )
    )
    opens = observation.window[0]
    return tuple(
        Step(
            step[0] - opens,
            step[1] - opens,
            answers,
            good.get(step, 0.0),
            time_s[step] / answers * 1000 if answers and step in time_s else None,
        )
        for step, answers in timed.items()
    )


def drift(
    record: TrialRecord, reading: Reading, steps: Sequence[Step]
) -> tuple[str | None, str | None]:
    """(reason, note) where the second half of the window differs from the first.

    In a closed load goodput tells all (N = X·R). In an open load that is held, only latency can
    drift. Where it falls, the window began before the load was steady: a reason. Where it rises,
    that is how the server behaves under this load: a note. The corrected latency of an overloaded
    load grows by nature, and is not asked. Spikes and scripts are unsteady on purpose.
    """
    if record.plan.spike is not None or record.plan.script:
        return None, None
    middle_s = reading.window_s / 2
    rates = _halves([(step, step.good / step.length_s) for step in steps], middle_s)
    if _differ(*rates, 0.0):
        way, figures = _change(*rates, "req/s")
        return f"{UNSTEADY}: goodput {way} {figures}", None
    if record.plan.mode == "closed" or overloaded(record, reading):
        return None, None
    times = [(step, step.mean_ms) for step in steps if step.mean_ms is not None]
    latencies = _halves(times, middle_s)
    if not _differ(*latencies, LEAST_DRIFT_MS):
        return None, None
    way, figures = _change(*latencies, "ms")
    text = f"the mean latency {way} {figures}"
    return (f"{UNSTEADY}: {text}", None) if way == "fell" else (None, text)


def _halves(
    values: Sequence[tuple[Step, float]], middle_s: float
) -> tuple[list[float], list[float]]:
    """The values of both halves; a step across the middle is in neither."""
    first = [value for step, value in values if step.ends_s <= middle_s]
    return first, [value for step, value in values if step.starts_s >= middle_s]


def _differ(first: Sequence[float], second: Sequence[float], least: float) -> bool:
    """Whether the means differ by more than matters, and by more than the scatter explains."""
    if min(len(first), len(second)) < 2:
        return False
    means = statistics.fmean(first), statistics.fmean(second)
    if abs(means[1] - means[0]) <= max(least, LEAST_DRIFT * max(means)):
        return False
    if statistics.pvariance(first) == statistics.pvariance(second) == 0:
        return True
    from scipy.stats import ttest_ind

    return bool(ttest_ind(first, second, equal_var=False).pvalue < FALSE_ALARM)


def _change(first: Sequence[float], second: Sequence[float], unit: str) -> tuple[str, str]:
    """Which way the mean went, and from where to where."""
    means = statistics.fmean(first), statistics.fmean(second)
    way = "rose" if means[1] > means[0] else "fell"
    figures = f"from {means[0]:.0f} to {means[1]:.0f} {unit}"
    return way, f"{figures} between the halves of the window"


def silent_s(reading: Reading, steps: Sequence[Step]) -> float | None:
    """The longest time on end in which the server answered next to nothing; None where it always
    answered, or where nobody can tell.

    A long step, in which the server did not answer Prometheus either, counts without the time
    that its answers usually take. So does the time after the last step, with the answers that the
    engine counted beyond those of the steps.
    """
    rates = [step.answers / step.length_s for step in steps if step.answers]
    if not rates or reading.raw is None:
        return None
    usual_rps = statistics.median_high(rates)
    rest_s = reading.window_s - steps[-1].ends_s
    if rest_s > LONG_STEP_S:
        known = sum(step.answers for step in steps) + steps[0].starts_s * usual_rps
        rest = max(0.0, reading.samples - known)
        steps = (*steps, Step(steps[-1].ends_s, reading.window_s, rest, 0.0, None))
    longest_s = silence_s = 0.0
    for step in steps:
        of_step_s = max(0.0, step.length_s - step.answers / usual_rps)
        none = step.answers < SILENT * usual_rps * step.length_s
        silence_s = silence_s + of_step_s if none or step.length_s > LONG_STEP_S else 0.0
        longest_s = max(longest_s, silence_s)
    pause_s = LEAST_SILENT_LATENCIES * reading.raw.p50_ms / 1000
    return longest_s if longest_s >= max(LEAST_SILENT_S, pause_s) else None
