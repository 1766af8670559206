"""Connection set-up: what waits until the proxy, and the downstream behind it, accept it.

Toxiproxy sets connections up one after another: it accepts one, connects it to the downstream, and
only then accepts the next. Meanwhile the kernel holds the others in its accept queue, and the calls
on them wait.
"""

from __future__ import annotations

from lab.judge.verdict.downstream import past_deadline
from lab.judge.verdict.evidence import SeenTrial, kept, value
from lab.model import Standing

NAME = "connection set-up"
# What the downstream tells of the network namespace that it shares with the proxy
# (downstream/service/accept_queues.go).
_QUEUE = "lab_path_accept_queue_"
_LISTENERS = {"toxiproxy": "Toxiproxy's", "downstream": "the downstream's"}
# The queues are felt when this share of the load's connections stands in them, and they limit when
# that is this share of what the load lost against N / R0 (or the rate offered).
FELT = 0.05
MOST_OF_LOSS = 0.5


def connection_set_up(seen: SeenTrial) -> Standing | None:
    """The accept queues between the server and the downstream, and the rate at which connections
    get out of them."""
    if not seen.call.route.calls_downstream:
        return None
    lengths, longest, busy = (
        {
            listener: ask(f"{what} {whose} accept queue", unit, _QUEUE + name, listener=listener)
            for listener, whose in _LISTENERS.items()
        }
        for ask, what, unit, name in (
            (seen.rate, "mean length of", "connections", "connection_seconds_total"),
            (seen.peak, "longest seen of", "connections", "length"),
            (seen.rate, "not empty:", "of the time", "occupied_seconds_total"),
        )
    )
    known = {listener: one.value for listener, one in lengths.items() if one is not None}
    # Without the proxy's nothing is known: the downstream is quick to accept.
    if "toxiproxy" not in known:
        return None
    made = seen.rate("set up", "connections per s", "lab_downstream_accepted_connections_total")
    late = past_deadline(seen)
    plan = seen.record.plan
    waiting = sum(known.values())
    connections = plan.concurrency + (plan.spike.extra if plan.spike else 0)
    share = waiting / connections
    score = min(0.5, 5 * share)
    where = _LISTENERS[max(known, key=lambda listener: known[listener])]
    sentence = f"connection set-up: {waiting:.0f} of {connections:,} connections"
    sentence += f" stood in {where} accept queue"
    most = max((one.value for one in kept(*longest.values())), default=None)
    if most is not None:
        sentence += f", {most:,.0f} at most"
    if waiting and made and made.value:
        # Little's law: a queue's mean length over the rate at which it is left.
        sentence += f", {waiting / made.value:.2g} s each; {made.value:,.0f} a second were set up"
    if share >= FELT:
        lost = 1 - min(1.0, seen.at_load_bound)
        # Nobody measured the answers of a peak's own connections.
        sure = plan.spike is None and share >= MOST_OF_LOSS * lost
        score = 0.93 if sure else 0.6
    return Standing(
        NAME,
        utilisation=max((min(1.0, one.value) for one in kept(*busy.values())), default=None),
        saturation=waiting,
        waiting="connections",
        errors=value(late),
        score=score,
        sentence=sentence,
        evidence=kept(*lengths.values(), *longest.values(), *busy.values(), made, late),
    )
