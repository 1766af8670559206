"""The server's deadline for a downstream call. One that is longer than an answer takes is a symptom
of something slow."""

from lab.judge.predict import hold_spread
from lab.judge.resources.resource import SeenTrial, Standing, resource


@resource("downstream timeout")
def downstream_timeout(seen: SeenTrial) -> Standing | None:
    """Errors, where it is shorter than an answer takes (of drawn delays: than 5 % of them).

    Measured: errors"""
    limit_ms, mine = seen.before.setting("downstream_timeout_ms"), {"server": seen.server}
    if not seen.call.route.calls_downstream or not limit_ms:
        return None
    name = "lab_downstream_calls_total"
    seen.total("past the deadline", "calls", name, outcome="timeout", **mine)
    spread = hold_spread(seen.call, seen.before)
    # Of drawn delays 5 % are above their p95.
    below = limit_ms <= (spread.p95_ms if spread else seen.hold_s * 1000)
    return Standing(
        *(seen.hold_s * 1000, limit_ms, "ms"),
        failed=seen.failed_calls("timeout") if below else 0.0,
    )
