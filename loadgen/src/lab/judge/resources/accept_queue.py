"""The connections that the kernel holds until the server accepts them (listen(2), backlog). One
that finds the queue full is sent again after a second or more."""

from lab.judge.resources.resource import Standing, Trial, Wait, resource
from lab.judge.splits import ACCEPT_QUEUE

RESENT_MS = 1000.0
# Fewer are an accident: p95 of 200 connections is the tenth slowest.
OVERFLOWS = 10


@resource("accept queue")
def accept_queue(trial: Trial) -> Standing | None:
    """Its mean length ÷ answers per second; a second for each connection that found it full.

    Measured: the length"""
    metrics, spike = trial.server_metrics(), trial.plan.spike
    over = metrics.total("refused", "connections", "lab_kernel_listen_overflows_total")
    if over is None:
        return None
    length = metrics.mean("length", "connections", ACCEPT_QUEUE)
    longest = metrics.peak("longest", "connections", ACCEPT_QUEUE)
    refused = over if over >= OVERFLOWS else 0.0
    in_queue = Wait("connect", ms=trial.each_ms(length) or 0.0)
    again = Wait("connect", ms=refused * RESENT_MS / trial.requests, measured=False)
    # A peak's connections are none of the measured requests.
    failed = min(1.0, refused / spike.extra) if spike else 0.0
    backlog = trial.before.setting("backlog")
    return Standing(longest, backlog, "connections", failed=failed, waits=(in_queue, again))
