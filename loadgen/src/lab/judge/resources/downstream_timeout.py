"""The server's deadline for a downstream call. One that is longer than an answer takes is a symptom
of something slow."""

from lab.judge.predict import hold_spread
from lab.judge.resources.resource import Standing, Trial, resource


@resource("downstream timeout")
def downstream_timeout(trial: Trial) -> Standing | None:
    """Errors, where it is shorter than an answer takes (of drawn delays: than 5 % of them).

    Measured: errors"""
    limit_ms, hold_ms = trial.before.setting("downstream_timeout_ms"), trial.hold_s * 1000
    if not trial.calls_downstream or not limit_ms:
        return None
    late = trial.server_metrics(outcome="timeout")
    late.total("past the deadline", "calls", "lab_downstream_calls_total")
    spread = hold_spread(trial.call, trial.before)
    # Of drawn delays 5 % are above their p95.
    below = limit_ms <= (spread.p95_ms if spread else hold_ms)
    failed = trial.failed_calls("timeout") if below else 0.0
    return Standing(hold_ms, limit_ms, "ms", failed=failed)
