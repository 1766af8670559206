"""The connections that the kernel holds until the server accepts them (listen(2), backlog). One
that finds the queue full is sent again after a second or more."""

from lab.judge.resources.resource import SeenTrial, Standing, Wait, resource

RESENT_MS = 1000.0
# Fewer are an accident: p95 of 200 connections is the tenth slowest.
OVERFLOWS = 10


@resource("accept queue")
def accept_queue(seen: SeenTrial) -> Standing | None:
    """Its mean length ÷ answers per second; a second for each connection that found it full.

    Measured: the length"""
    mine, name = {"server": seen.server}, "lab_kernel_accept_queue_length"
    over = seen.total("refused", "connections", "lab_kernel_listen_overflows_total", **mine)
    if over is None:
        return None
    length = seen.mean("length", "connections", name, **mine)
    longest = seen.peak("longest", "connections", name, **mine)
    refused, spike = over if over >= OVERFLOWS else 0.0, seen.plan.spike
    again = Wait("connect", ms=refused * RESENT_MS / seen.requests, measured=False)
    return Standing(
        *(longest, seen.before.setting("backlog"), "connections"),
        # A peak's connections are none of the measured requests.
        failed=min(1.0, refused / spike.extra) if spike else 0.0,
        waits=(Wait("connect", ms=seen.each_ms(length) or 0.0), again),
    )
