"""The server's own limit of connections to the downstream."""

from lab.judge.metrics import CALLS
from lab.judge.resources.resource import FULL, Standing, Trial, Wait, holding, resource

INSIDE = ("path", "downstream")


@resource("downstream connections")
def downstream_connections(trial: Trial) -> Standing | None:
    """Waiting for one, while 95 % are in use.

    Measured: yes"""
    metrics, rps = trial.server_metrics(), trial.rps
    cap, leased, pending = (
        metrics.mean(what, "connections", f"lab_downstream_connections_{what}")
        for what in ("cap", "leased", "pending")
    )
    if not cap or cap <= 0 or leased is None or not trial.calls_downstream:
        return None
    wait_s = trial.server_metrics(phase="pending").mean_time("mean wait", CALLS)
    waited_ms = trial.each_ms(pending) if wait_s is None else wait_s * 1000
    held_s = trial.mean_call_s() or (cap / rps if rps else trial.hold_s)
    full = max(leased, rps * held_s) >= FULL * cap
    waiting = (Wait("pending", ms=waited_ms),) if full and waited_ms else ()
    held = holding(trial, cap, trial.hold_s, held_s, INSIDE)
    return Standing(min(cap, leased), cap, "connections", waits=waiting, held=held)
