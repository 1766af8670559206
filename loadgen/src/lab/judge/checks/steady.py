"""Was the server's state constant: one state in both halves of the window, and always answering?"""

from lab.judge.checks.check import Found, check, stored
from lab.judge.steps import LEAST_DRIFT_MS, drifted, overload_drift, rates, silent_s, steps_of
from lab.judge.trial import Trial


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
