"""The server's deadline for a downstream call. One that is longer than an answer takes is a symptom
of something slow."""

from __future__ import annotations

from lab.judge.resources.resource import Resource
from lab.judge.seen import SeenTrial, known
from lab.model import Standing


def _standing(seen: SeenTrial) -> Standing | None:
    limit_ms, mine = seen.before.setting("downstream_timeout_ms"), {"server": seen.server}
    if not seen.call.route.calls_downstream or not limit_ms:
        return None
    name = "lab_downstream_calls_total"
    late = seen.total("past the deadline", "calls", name, outcome="timeout", **mine)
    # Of drawn delays 5 % are above their p95.
    below = limit_ms <= seen.p95_hold_s * 1000
    return Standing(
        *("downstream timeout", seen.hold_s * 1000, limit_ms, "ms"),
        failed=seen.failed_calls("timeout") if below else 0.0,
        evidence=known(late),
    )


DOWNSTREAM_TIMEOUT = Resource("downstream timeout", "downstream_timeout_ms", _standing)
