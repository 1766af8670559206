"""The server's own limit of connections to the downstream."""

from lab.judge.resources.resource import FULL, SeenTrial, Standing, Wait, holding, resource

INSIDE = ("path", "downstream")


@resource("downstream connections")
def downstream_connections(seen: SeenTrial) -> Standing | None:
    """Waiting for one, while 95 % are in use.

    Measured: yes"""
    mine, name, times = (
        {"server": seen.server},
        "lab_downstream_connections_",
        "lab_downstream_call_seconds",
    )
    cap, leased, pending = (
        seen.mean(what, "connections", name + what, **mine) for what in ("cap", "leased", "pending")
    )
    if not cap or cap <= 0 or leased is None or not seen.call.route.calls_downstream:
        return None
    wait_s = seen.mean_time("mean wait", times, phase="pending", **mine)
    call_s = seen.mean_time("mean call", times, phase="call", **mine)
    waited_ms = seen.each_ms(pending) if wait_s is None else wait_s * 1000
    held_s = call_s or (cap / seen.rps if seen.rps else seen.hold_s)
    full = max(leased, seen.rps * held_s) >= FULL * cap
    return Standing(
        *(min(cap, leased), cap, "connections"),
        waits=(Wait("pending", ms=waited_ms),) if full and waited_ms else (),
        held=holding(seen, cap, seen.hold_s, held_s, INSIDE),
    )
