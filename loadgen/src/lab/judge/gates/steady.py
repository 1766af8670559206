"""Did the window show one state? Its halves are compared, and times without an answer are found.

Rates and latencies come second by second: from the engine where it keeps them, else from the
server's own counters, which Prometheus reads once a second.

The window is not steady where the means of its halves differ by more than LEAST_DRIFT, and by more
than the scatter of the seconds explains. Two tests ask that: Welch's t-test of the halves (B. L.
Welch, Biometrika 34 (1947) 28) sees a jump, and the t-test of a line through all seconds sees a
slope, in short windows too. Each gets half of FALSE_ALARM (Bonferroni). So at most FALSE_ALARM of
the steady windows are called unsteady while their seconds are independent. The seconds of real
trials scatter by 0 to 2 %, and then LEAST_DRIFT leaves next to none, independent or not. Where they
scatter by 5 to 10 % and depend on each other, it can be one in seven (docs/method.md).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from lab.judge.gates.generator import ended_rps, offered_rps, overloaded
from lab.model import Observation, Reading, TrialRecord
from lab.model.routes import parse

# The margin within which two sides are the same in practice (lab.judge.compare).
LEAST_DRIFT = 0.05
LEAST_DRIFT_MS = 1.0
FALSE_ALARM = 0.01
# Halves of an even overload differ by so many times their scatter in fewer than FALSE_ALARM of the
# windows.
SCATTERS = 3.0
# A mean of a single second is no mean.
LEAST_STEPS = 2
# A server that pauses for less (a collection, a full machine) has not stopped. Neither has one
# that answers in bursts: between these there may be a latency.
LEAST_SILENT_S = 2.0
LEAST_SILENT_LATENCIES = 2
# A step with less than this share of the usual rate has next to no answers.
SILENT = 0.1
# Counters are read once a second, and those of a long window are kept every few seconds. Where two
# readings are further apart than this, and than so many usual steps, the server did not answer the
# one between.
LONG_STEP_S = 2.0
LONG_STEPS = 1.5
UNSTEADY = "not steady"
GOODPUT_FELL = f"{UNSTEADY}: goodput fell"
LATENCY_ROSE = f"{UNSTEADY}: the mean latency rose"
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
    ended, aborted, good, timed, time_s = (
        {(start, end): rise for start, end, rise in observation.steps(name, **of, **only)}
        for name, only in (
            ("lab_http_requests_total", {}),
            ("lab_http_requests_total", {"outcome": "aborted"}),
            ("lab_http_requests_total", {"outcome": "ok"}),
            # Of what was worked on: a refusal is an answer without a time.
            ("lab_http_request_seconds_count", {"phase": "total"}),
            ("lab_http_request_seconds_sum", {"phase": "total"}),
        )
    )
    opens = observation.window[0]
    return tuple(
        Step(
            step[0] - opens,
            step[1] - opens,
            answers - aborted.get(step, 0.0),
            good.get(step, 0.0),
            time_s[step] / timed[step] * 1000 if timed.get(step) and step in time_s else None,
        )
        for step, answers in ended.items()
    )


def drift(record: TrialRecord, reading: Reading, steps: Sequence[Step]) -> str | None:
    """Why the window did not show one state: its second half differs from the first.

    In a closed load goodput tells all (N = X·R). In an open load that is held, only latency can
    drift. A burst of late answers is in the percentiles wherever in the window it falls, so both
    ways count alike: else a trial with an early burst would be measured again, and one with a late
    burst kept. The corrected latency of an overloaded load grows by nature, and is not asked.
    Spikes and scripts are unsteady on purpose.
    """
    if _on_purpose(record):
        return None
    rates = [(step, step.good / step.length_s) for step in steps]
    halves = _drifted(rates, reading.window_s, 0.0)
    if halves is not None:
        return f"{UNSTEADY}: goodput {_change(halves, 'req/s')}"
    if record.plan.mode == "closed" or overloaded(record, reading):
        return None
    times = [(step, step.mean_ms) for step in steps if step.mean_ms is not None]
    halves = _drifted(times, reading.window_s, LEAST_DRIFT_MS)
    return None if halves is None else f"{UNSTEADY}: the mean latency {_change(halves, 'ms')}"


def overload_drift(record: TrialRecord, reading: Reading, steps: Sequence[Step]) -> str | None:
    """Why an open load was overloaded in one half of its window only: by more than half, what the
    whole window lacks is the difference between its halves. A server that the load itself overloads
    lacks as much in both. A burst of late answers lets a window end with a backlog as it lets
    another begin with one (`figures.backlog`), and neither is a finding."""
    rates = [(step, step.answers / step.length_s) for step in steps]
    first, second = _halves(rates, reading.window_s)
    offered = offered_rps(record, reading)
    if _on_purpose(record) or offered is None or not overloaded(record, reading):
        return None
    if min(len(first), len(second)) < LEAST_STEPS:
        return None
    means = statistics.fmean(first), statistics.fmean(second)
    if abs(means[1] - means[0]) <= offered - ended_rps(record, reading):
        return None
    if abs(means[1] - means[0]) <= SCATTERS * _usual_scatter(first, second):
        return None
    return f"{UNSTEADY}: goodput {_change(means, 'req/s')}"


def _usual_scatter(first: Sequence[float], second: Sequence[float]) -> float:
    """The standard deviation of the difference of both halves' means, if all seconds scattered as
    those do that no burst is in: from the median absolute deviation (of a normal distribution
    1 / 1.4826 of its standard deviation), which some outliers do not change."""
    seconds = [*first, *second]
    middle = statistics.median(seconds)
    usual = 1.4826 * statistics.median([abs(one - middle) for one in seconds])
    return usual * math.sqrt(1 / len(first) + 1 / len(second))


def _on_purpose(record: TrialRecord) -> bool:
    return record.plan.spike is not None or bool(record.plan.script)


def _halves(
    values: Sequence[tuple[Step, float]], window_s: float
) -> tuple[list[float], list[float]]:
    """The values of both halves. A step across the middle is in neither."""
    return (
        [value for step, value in values if step.ends_s <= window_s / 2],
        [value for step, value in values if step.starts_s >= window_s / 2],
    )


def _drifted(
    values: Sequence[tuple[Step, float]], window_s: float, least: float
) -> tuple[float, float] | None:
    """The means of both halves, where they differ by more than matters and by more than the scatter
    explains; else None."""
    first, second = _halves(values, window_s)
    if min(len(first), len(second)) < LEAST_STEPS:
        return None
    means = statistics.fmean(first), statistics.fmean(second)
    if abs(means[1] - means[0]) <= max(least, LEAST_DRIFT * max(means)):
        return None
    scatter = statistics.stdev(first), statistics.stdev(second)
    # Slow to import, and seldom needed.
    from scipy.stats import linregress, ttest_ind_from_stats

    halves = means[0], scatter[0], len(first), means[1], scatter[1], len(second)
    # Two halves without any scatter are no proof of a jump where they are short: seconds of few
    # answers are often equal. The slope tells.
    jump = ttest_ind_from_stats(*halves, equal_var=False).pvalue if max(scatter) else 1.0
    slope = linregress([step.starts_s for step, _ in values], [value for _, value in values]).pvalue
    return means if min(jump, slope) < FALSE_ALARM / 2 else None


def _change(means: tuple[float, float], unit: str) -> str:
    """Which way the mean went, and from where to where."""
    way = "rose" if means[1] > means[0] else "fell"
    return f"{way} from {means[0]:.0f} to {means[1]:.0f} {unit} between the halves of the window"


def silent_s(reading: Reading, steps: Sequence[Step], by_draw_s: float = 0.0) -> float | None:
    """The longest time on end in which the server answered next to nothing; None where it always
    answered, or where nobody can tell.

    A long step, in which the server did not answer Prometheus either, counts without the time
    that its answers usually take. So does the time after the last step, with the answers that the
    engine counted beyond those of the steps. Delays that are drawn explain a silence of `by_draw_s`
    (`figures.silent_by_draw_s`).
    """
    rates = [step.answers / step.length_s for step in steps if step.answers]
    if not rates or reading.answer_ms is None:
        return None
    usual_rps = statistics.median_high(rates)
    long_s = max(LONG_STEP_S, LONG_STEPS * statistics.median(step.length_s for step in steps))
    rest_s = reading.window_s - steps[-1].ends_s
    if rest_s > long_s:
        known = sum(step.answers for step in steps) + steps[0].starts_s * usual_rps
        rest = max(0.0, reading.samples - known)
        steps = (*steps, Step(steps[-1].ends_s, reading.window_s, rest, 0.0, None))
    longest_s = silence_s = 0.0
    for step in steps:
        of_step_s = max(0.0, step.length_s - step.answers / usual_rps)
        none = step.answers < SILENT * usual_rps * step.length_s
        silence_s = silence_s + of_step_s if none or step.length_s > long_s else 0.0
        longest_s = max(longest_s, silence_s)
    usual_ms = reading.raw.p50_ms if reading.raw else reading.answer_ms
    pause_s = LEAST_SILENT_LATENCIES * usual_ms / 1000
    return longest_s if longest_s >= max(LEAST_SILENT_S, pause_s, by_draw_s) else None
