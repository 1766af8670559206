"""Was the server's state constant: one state in both halves of the window, and always answering?

Rates and latencies come second by second: from the engine where it keeps them, else from the
server's own counters, which Prometheus reads once a second.

Two halves differ where their means do by more than LEAST_DRIFT, and by more than the scatter of the
seconds explains, of which there are two tests: Welch's t-test of the halves (B. L. Welch,
Biometrika 34 (1947) 28) sees a jump, and the t-test of a line through all seconds sees a slope, in
short windows too. Each gets half of FALSE_ALARM (Bonferroni), so at most FALSE_ALARM of the steady
windows are called unsteady while their seconds are independent. The seconds of real trials scatter
by 0 to 2 %, where LEAST_DRIFT leaves next to none. Where they scatter by 5 to 10 % and depend on
each other, it can be one in seven (docs/method.md).
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from lab.judge.checks.check import Found, check, stored
from lab.judge.metrics import REQUESTS
from lab.judge.trial import Trial

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


@check("goodput-drift", "invalidates", "load", repeatable=True, symptom=True)
def goodput_drift(trial: Trial) -> Found:
    """The halves of the window differ in goodput by more than {LEAST_DRIFT:.0%}, and by more than
    chance explains. Or, in an overloaded open load, by more than the whole window lacks and
    {SCATTERS:g} times what its seconds scatter: then only one half was overloaded

    In a closed load goodput shows all (N = X·R). Spikes and scripts are unsteady on purpose. A
    server that the load itself overloads lacks as much in both halves; one in whose window a burst
    of late answers ended is no finding.
    """
    if _on_purpose(trial):
        return
    steps = steps_of(trial)
    means = drifted(rates(steps, good=True), trial.reading.window_s, 0.0)
    if means is None and silent_s(trial, steps) is None:
        means = overload_drift(trial, steps)
    if means is not None:
        yield {"first_rps": means[0], "second_rps": means[1]}


@check("latency-drift", "invalidates", "load", repeatable=True, symptom=True)
def latency_drift(trial: Trial) -> Found:
    """The same of the mean latency, and by more than {LEAST_DRIFT_MS:g} ms, in an open load that
    was kept, whether it rose or fell"""
    if _on_purpose(trial) or not trial.is_open or trial.overloaded:
        return
    steps, window_s = steps_of(trial), trial.reading.window_s
    if drifted(rates(steps, good=True), window_s, 0.0) is not None:
        return
    times = [(step, step.mean_ms) for step in steps if step.mean_ms is not None]
    means = drifted(times, window_s, LEAST_DRIFT_MS)
    if means is not None:
        yield {"first_ms": means[0], "second_ms": means[1]}


@check("server-silent", "invalidates", "load", server_failed=True)
def server_silent(trial: Trial) -> Found:
    """Next to no answers for at least {LEAST_SILENT_S:g} s and {LEAST_SILENT_LATENCIES:g} median
    latencies, for longer than [drawn delays](delays.md) explain, and the figures of the window do
    not fit the load for it. This is the server's finding"""
    silence_s = silent_s(trial, steps_of(trial))
    if silence_s is not None:
        yield {"silence_s": silence_s}


server_paused = stored(
    "server-paused",
    "notes",
    "as above, but the figures fit the load: the answers came later, and their latencies show the "
    "pause",
)
DRIFTS = frozenset((goodput_drift.code, latency_drift.code))


def _on_purpose(trial: Trial) -> bool:
    return trial.plan.spike is not None or bool(trial.plan.script)


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


@dataclass(frozen=True, slots=True)
class Halves:
    """A value of each step in both halves of a window. A step across the middle is in neither."""

    first: Sequence[float]
    second: Sequence[float]

    @property
    def means(self) -> tuple[float, float]:
        return statistics.fmean(self.first), statistics.fmean(self.second)

    @property
    def apart(self) -> float:
        return abs(self.means[1] - self.means[0])

    @property
    def usual_scatter(self) -> float:
        """The standard deviation of the difference of both means without bursts: from the median
        absolute deviation (1 / 1.4826 of the standard deviation of a normal distribution)."""
        steps = [*self.first, *self.second]
        middle = statistics.median(steps)
        usual = 1.4826 * statistics.median([abs(value - middle) for value in steps])
        return usual * math.sqrt(1 / len(self.first) + 1 / len(self.second))


def halves_of(values: Sequence[tuple[Step, float]], window_s: float) -> Halves | None:
    """None where a half has too few steps."""
    first = [value for step, value in values if step.ends_s <= window_s / 2]
    second = [value for step, value in values if step.starts_s >= window_s / 2]
    return Halves(first, second) if min(len(first), len(second)) >= LEAST_STEPS else None


def steps_of(trial: Trial) -> tuple[Step, ...]:
    """The steps of the window, in their order; none where they are unknown."""
    if trial.reading.seconds:
        return tuple(
            Step(at, at + 1, second.answers, second.good, second.mean_ms)
            for at, second in enumerate(trial.reading.seconds)
        )
    labels = {"job": "server", "server": trial.server, "route": trial.route}

    def rises(name: str, **more: str) -> dict[tuple[float, float], float]:
        steps = trial.observation.steps(name, **labels, **more)
        return {(start, end): rise for start, end, rise in steps}

    answers = "lab_http_requests_total"
    ended, aborted = rises(answers), rises(answers, outcome="aborted")
    good = rises(answers, outcome="ok")
    # Of what was worked on: a refusal is an answer without a time.
    timed, time_s = (rises(f"{REQUESTS}_{part}", phase="total") for part in ("count", "sum"))
    opens = trial.observation.window[0]
    return tuple(
        Step(
            step[0] - opens,
            step[1] - opens,
            count - aborted.get(step, 0.0),
            good.get(step, 0.0),
            time_s[step] / timed[step] * 1000 if timed.get(step) and step in time_s else None,
        )
        for step, count in ended.items()
    )


def rates(steps: Sequence[Step], *, good: bool) -> list[tuple[Step, float]]:
    return [(step, (step.good if good else step.answers) / step.length_s) for step in steps]


def overload_drift(trial: Trial, steps: Sequence[Step]) -> tuple[float, float] | None:
    """The rates of both halves of an open load that was overloaded in one of them only: by more
    than half, what the whole window lacks is the difference between its halves."""
    halves = halves_of(rates(steps, good=False), trial.reading.window_s)
    offered = trial.offered_rps
    if halves is None or offered is None or not trial.overloaded:
        return None
    least = max(offered - trial.ended_rps, SCATTERS * halves.usual_scatter)
    return halves.means if halves.apart > least else None


def drifted(
    values: Sequence[tuple[Step, float]], window_s: float, least: float
) -> tuple[float, float] | None:
    """The means of both halves, where they differ by more than matters and by more than the scatter
    explains; else None."""
    halves = halves_of(values, window_s)
    if halves is None or halves.apart <= max(least, LEAST_DRIFT * max(halves.means)):
        return None
    # Slow to import, and seldom needed.
    from scipy.stats import linregress, ttest_ind_from_stats

    (first, second), (mean_a, mean_b) = (halves.first, halves.second), halves.means
    spread_a, spread_b = statistics.stdev(first), statistics.stdev(second)
    sides = mean_a, spread_a, len(first), mean_b, spread_b, len(second)
    # Two halves without any scatter are no proof of a jump where they are short: seconds of few
    # answers are often equal. The slope shows it.
    scattered = max(spread_a, spread_b) > 0
    jump = ttest_ind_from_stats(*sides, equal_var=False).pvalue if scattered else 1.0
    slope = linregress([step.starts_s for step, _ in values], [value for _, value in values]).pvalue
    return halves.means if min(jump, slope) < FALSE_ALARM / 2 else None


def silent_s(trial: Trial, steps: Sequence[Step]) -> float | None:
    """The longest time on end in which the server answered next to nothing; None where it always
    answered, or where that is unknown. A long step, in which the server did not answer Prometheus
    either, counts without the time that its answers usually take, and so does the time after the
    last step, with the answers that the engine counted beyond those of the steps."""
    reading = trial.reading
    answered_rps = [step.answers / step.length_s for step in steps if step.answers]
    if not answered_rps or reading.answer_ms is None:
        return None
    usual_rps = statistics.median_high(answered_rps)
    long_s = max(LONG_STEP_S, LONG_STEPS * statistics.median(step.length_s for step in steps))
    rest_s = reading.window_s - steps[-1].ends_s
    if rest_s > long_s:
        counted = sum(step.answers for step in steps) + steps[0].starts_s * usual_rps
        rest = max(0.0, reading.samples - counted)
        steps = (*steps, Step(steps[-1].ends_s, reading.window_s, rest, 0.0, None))
    longest_s = silence_s = 0.0
    for step in steps:
        of_step_s = max(0.0, step.length_s - step.answers / usual_rps)
        none = step.answers < SILENT * usual_rps * step.length_s
        silence_s = silence_s + of_step_s if none or step.length_s > long_s else 0.0
        longest_s = max(longest_s, silence_s)
    usual_ms = reading.raw.p50_ms if reading.raw else reading.answer_ms
    pause_s = LEAST_SILENT_LATENCIES * usual_ms / 1000
    return (
        longest_s if longest_s >= max(LEAST_SILENT_S, pause_s, _silent_by_draw_s(trial)) else None
    )


def _silent_by_draw_s(trial: Trial) -> float:
    """How long no answer may come for no other reason than the draw of the delays; 0 where all
    requests wait alike. Each of those in flight has (E[R²] / E[R]) / 2 left on average
    (`crossing_s`). So at most one moment in 1,000 finds all of them with more than this left
    (Markov's inequality), and none has more than the longest delay."""
    spread = trial.spread
    if spread is None:
        return 0.0
    in_flight = max(1.0, trial.reading.in_flight)
    left_s = trial.crossing_s / 2 * math.pow(1000, 1 / in_flight)
    return min(spread.longest_ms / 1000, left_s)
