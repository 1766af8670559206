"""The proxy: its CPU and its toxics, and the connections that wait until it accepts them.

Toxiproxy sets connections up one after another: it accepts one, connects it to the downstream, and
only then accepts the next. Meanwhile the kernel holds the others in its accept queue, and the calls
on them wait.
"""

from __future__ import annotations

from lab.judge.gates.parts import PART_CPU
from lab.judge.verdict.downstream import FELT, cpu_of, failed_calls, past_deadline
from lab.judge.verdict.evidence import EXCESS, SeenTrial, kept, value
from lab.model import Standing

# What the downstream tells of the network namespace that it shares with the proxy
# (go/downstream/service/accept_queues.go).
_QUEUE = "lab_path_accept_queue_"
_LISTENERS = {"toxiproxy": "Toxiproxy's", "downstream": "the downstream's"}
# The queues are felt when this share of the load's connections stands in them, and they limit when
# that is most of what the load lost against N / R0 (or the rate offered).
_STANDING = 0.05
_MOST = 0.5


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
    if share >= _STANDING:
        lost = 1 - min(1.0, seen.at_load_bound)
        # Nobody measured the answers of a peak's own connections.
        sure = plan.spike is None and share >= _MOST * lost
        score = 0.93 if sure else 0.6
    return Standing(
        "connection set-up",
        utilisation=max((min(1.0, one.value) for one in kept(*busy.values())), default=None),
        saturation=waiting,
        waiting="connections",
        errors=value(late),
        score=score,
        sentence=sentence,
        evidence=kept(*lengths.values(), *longest.values(), *busy.values(), made, late),
    )


def toxiproxy(seen: SeenTrial) -> Standing | None:
    """The proxy: its CPU, and toxics whose effect no bound covers. Its descriptors are part of
    `server_limits.file_descriptors`."""
    if not seen.call.route.calls_downstream or seen.record.before.direct:
        return None
    mine = {"server": seen.server}
    taken = seen.mean_time(
        "mean downstream call", "lab_downstream_call_seconds", phase="call", **mine
    )
    failed = failed_calls(seen)
    used = cpu_of(seen, "toxiproxy")
    toxics = seen.record.before.toxics.unpredicted
    cpu = value(used)
    score = 0.9 if cpu is not None and cpu >= PART_CPU else 0.4 * (cpu or 0.0)
    sentence = "Toxiproxy: " + (
        f"{cpu:.0%} of its CPUs" if cpu is not None else "its CPU is not known"
    )
    if toxics:
        names = "; ".join(toxics)
        share = value(failed) or 0.0
        excess_s = taken.value - seen.hold_s if taken and seen.hold_s else 0.0
        if share >= FELT:
            score, sentence = 0.93, f"Toxiproxy: {share:.0%} of the calls failed under {names}"
        elif (
            taken is not None
            and excess_s > 0
            and excess_s >= EXCESS * seen.hold_s
            # Else the connections that the toxic costs are the cause: `connection_set_up`.
            and _accept_wait_s(seen) < _MOST * excess_s
        ):
            # On a full machine every call takes longer, with or without a toxic.
            score = 0.7 if seen.crowded else 0.93
            sentence = f"Toxiproxy: a call takes {taken.value:.2f} s instead of {seen.hold_s:g} s"
            sentence += f" under {names}"
    return Standing(
        "Toxiproxy",
        utilisation=cpu,
        errors=value(failed),
        score=min(1.0, score),
        sentence=sentence,
        evidence=kept(taken, failed, used),
    )


def _accept_wait_s(seen: SeenTrial) -> float:
    """How long a downstream call waits in the accept queues, on average over all calls, in seconds
    (Little's law: their mean length over the rate of calls). 0 where nobody knows."""
    waited = seen.observation.increase(f"{_QUEUE}connection_seconds_total")
    calls = seen.observation.increase("lab_downstream_calls_total", server=seen.server)
    return waited / calls if waited and calls else 0.0
