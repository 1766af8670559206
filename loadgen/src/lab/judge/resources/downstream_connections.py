"""The server's own limit of connections to the downstream."""

from __future__ import annotations

from lab.judge.resources.resource import FULL, Resource, holding
from lab.judge.seen import SeenTrial, known, value
from lab.model import Standing, Wait

INSIDE = ("path", "downstream")


def _standing(seen: SeenTrial) -> Standing | None:
    mine, name, times = (
        {"server": seen.server},
        "lab_downstream_connections_",
        "lab_downstream_call_seconds",
    )
    cap, leased, pending = (
        seen.mean(what, "connections", name + what, **mine) for what in ("cap", "leased", "pending")
    )
    if not cap or not leased or cap.value <= 0 or not seen.call.route.calls_downstream:
        return None
    wait = seen.mean_time("mean wait", times, phase="pending", **mine)
    call = seen.mean_time("mean call", times, phase="call", **mine)
    waited_ms = wait.value * 1000 if wait else seen.each_ms(value(pending))
    held_s = value(call) or (cap.value / seen.rps if seen.rps else seen.hold_s)
    full = max(leased.value, seen.rps * held_s) >= FULL * cap.value
    return Standing(
        *("downstream connections", min(cap.value, leased.value), cap.value, "connections"),
        waits=(Wait("pending", ms=waited_ms),) if full and waited_ms else (),
        held=holding(seen, cap.value, seen.hold_s, held_s, INSIDE),
        evidence=known(cap, leased, pending, wait, call),
    )


DOWNSTREAM_CONNECTIONS = Resource("downstream connections", "downstream_connections", _standing)
