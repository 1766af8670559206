"""Names the resource that limits a trial, or none, or unknown.

A full resource makes the resources before it full too: a request holds a worker while it waits for
a connection to the downstream. So of several full resources the inner one is named, which the
others wait for. Where no full resource explains the figures, the answer is unknown: a wrong name
would be a defect.

Scores only order the suspects. From STRONG_FROM on a resource is full and something waits for it.
Among these a limit whose formula gives the measured figures comes before one that was just hit.
From WEAK_FROM on a resource is nearly full, or is inferred.
"""

from __future__ import annotations

from collections.abc import Callable

from lab.judge.gates import others, parts
from lab.judge.gates.figures import RATE_ERROR, rate_error_of
from lab.judge.verdict import (
    downstream,
    foreign,
    load,
    locks,
    machine,
    network,
    proxy,
    server_limits,
    threads,
)
from lab.judge.verdict.evidence import SeenTrial, kept
from lab.model import (
    NONE,
    STRONG,
    UNKNOWN,
    WEAK,
    Judgement,
    Measurement,
    Observation,
    SeriesError,
    Standing,
    Verdict,
)

_STANDINGS: tuple[Callable[[SeenTrial], Standing | None], ...] = (
    machine.generator,
    downstream.timeout,
    server_limits.file_descriptors,
    server_limits.ports,
    network.network,
    proxy.connection_set_up,
    proxy.toxiproxy,
    downstream.downstream,
    downstream.connections,
    server_limits.garbage_collection,
    server_limits.server_cpu,
    locks.lock,
    locks.pinned_carriers,
    threads.carrier_threads,
    threads.event_loop,
    machine.host_cpu,
    threads.worker_pool,
    threads.front,
    server_limits.accept_queue,
    load.connections,
)
# What fills where a server's threads get too little CPU time, and where its calls take long.
_OF_THREADS = frozenset(("carrier threads", "event loop", "front", "worker pool", "accept queue"))
_OF_CALLS = frozenset(("worker pool", "downstream connections", "downstream timeout"))
# When the first resource is full, that explains why the others are full: they are no rivals.
# Whatever is full also keeps the load's connections busy (`_explained_by`).
_EXPLAINS: dict[str, frozenset[str]] = {
    "generator": frozenset(("host CPU",)),
    # A call that ends at a short deadline takes its connection with it: the next needs a new one.
    "downstream timeout": frozenset(
        ("worker pool", "downstream", "Toxiproxy", "connection set-up", "network")
    ),
    "file descriptors": frozenset(
        ("accept queue", "downstream", "worker pool", "host CPU", "connection set-up", "network")
    ),
    # Calls without a port fail at once, and clients that come again at once fill the CPUs.
    "ports": frozenset(("downstream", "worker pool", "host CPU")),
    # Whoever waits for a segment that was lost holds what it has.
    "network": _OF_CALLS | {"Toxiproxy"},
    # A full queue drops what comes in on a new connection, and TCP sends it again.
    "connection set-up": _OF_CALLS | {"Toxiproxy", "network"},
    "Toxiproxy": _OF_CALLS | {"downstream"},
    "downstream": _OF_CALLS,
    "downstream connections": frozenset(("worker pool", "downstream timeout")),
    "garbage collection": _OF_THREADS | {"server CPU", "host CPU"},
    "server CPU": _OF_THREADS | {"host CPU", "garbage collection", "lock"},
    # A request holds its worker while it waits. A lock and pinned carriers are rivals: whoever
    # waits for a lock may be pinned, and whoever holds it may wait for a carrier.
    "lock": frozenset(("worker pool", "accept queue")),
    "pinned carriers": frozenset(("carrier threads", "worker pool", "accept queue")),
    "carrier threads": frozenset(("worker pool", "accept queue")),
    "event loop": frozenset(("accept queue", "worker pool")),
    # The first front accepts, too.
    "front": frozenset(("accept queue",)),
    # Loops, fronts, carriers and quotas are left out: on a full machine both may bind.
    "host CPU": frozenset(("generator", "accept queue")),
    "worker pool": frozenset(("accept queue", "downstream timeout")),
    "accept queue": frozenset(),
    "connections of the load": frozenset(),
}
# Only collections that are known to take the CPU time explain full CPUs: pauses that are long
# because the CPUs are full do not.
_BY_CPU_TIME = frozenset(("server CPU", "host CPU"))
# A pool that gives just what its size over its time allows explains itself. CPUs that are full as
# well are the next wall. Only there does a pool score as much.
_AT_OWN_BOUND = 0.96
_POOLS = frozenset(("worker pool", "downstream connections"))
# A load that got all it can have may still be limited by its sender, and by its answerer.
_OF_THE_LOAD = frozenset(("generator", "downstream"))
# What the series and the readings of every server of the lab tell of, whatever its model.
_ALWAYS_TOLD = (
    "generator",
    "file descriptors",
    "garbage collection",
    "server CPU",
    "host CPU",
    "accept queue",
)
_ALWAYS_TOLD_OF_CALLS = ("ports", "connection set-up")
# Resources that only some servers have, and how this server's settings tell that it has them.
_TOLD_IF_THERE: dict[str, Callable[[SeenTrial], bool]] = {
    "worker pool": lambda seen: bool(seen.record.before.setting("pool_size")),
    "downstream connections": lambda seen: (
        bool(seen.record.before.setting("downstream_connections"))
        and seen.call.route.calls_downstream
    ),
    "carrier threads": threads.tells_of_carriers,
    "event loop": lambda seen: bool(seen.record.before.setting("loops")),
    "front": lambda seen: bool(seen.record.before.setting("fronts")),
}
_CPU = frozenset(
    ("garbage collection", "server CPU", "host CPU", "carrier threads", "event loop", "front")
)


def verdict_of(
    measurement: Measurement, judgement: Judgement, observation: Observation | None
) -> Verdict:
    """What limited a trial. The verdict is UNKNOWN, and says why, where nobody can tell: also for
    stored series that are not what the lab writes, and for a route that it no longer has."""
    reading = measurement.reading
    if reading is None:
        return _unknown("the trial gave no figures")
    if measurement.record.plan.hold:
        return _unknown("its connections were held, and asked for nothing more")
    if observation is None:
        return _unknown("no series of its window were stored")
    seen = SeenTrial(measurement, judgement, reading, observation)
    try:
        _ = seen.call
    except ValueError as failure:
        return _unknown(str(failure))
    try:
        return _verdict(seen)
    except SeriesError as failure:
        return _unknown(f"its series cannot be judged: {failure}")


def _unseen(seen: SeenTrial, ranked: tuple[Standing, ...]) -> list[str]:
    """The resources that every server of the lab has, and of which no figure was read. What is
    unseen of a service that is not the lab's, `foreign.missing` says."""
    if seen.record.before.foreign:
        return []
    known = {one.resource for one in ranked}
    asked = [*_ALWAYS_TOLD, *(_ALWAYS_TOLD_OF_CALLS if seen.call.route.calls_downstream else ())]
    asked += [one for one, has in _TOLD_IF_THERE.items() if has(seen)]
    return [one for one in asked if one not in known]


def _hides(unseen: str, name: str, ranked: tuple[Standing, ...]) -> bool:
    """Whether the limit may have been a resource that was not seen instead of the one that is
    named: it takes what a load lacks to all it can have, and makes others full. A pool that gives
    just what its size allows is full by itself."""
    if name == NONE:
        return True
    if any(one.resource == name in _POOLS and one.score >= _AT_OWN_BOUND for one in ranked):
        return False
    return name in _EXPLAINS[unseen]


def _unknown(why: str, ranked: tuple[Standing, ...] = (), missing: tuple[str, ...] = ()) -> Verdict:
    return Verdict(UNKNOWN, "", f"unknown: {why}", ranked, missing)


def _verdict(seen: SeenTrial) -> Verdict:
    record = seen.record
    missing = [
        f"Prometheus did not see the whole window of {job}"
        for job in parts.jobs_unseen(record, seen.observation)
    ]
    found = kept(*(ask(seen) for ask in _STANDINGS))
    # Of equal scores the first counts, which is the inner resource.
    ranked = tuple(sorted(found, key=lambda one: -one.score))
    name, strong, sentence = _named(seen, ranked)
    if record.plan.script:
        missing.append("the toxics changed in the window by script: it is judged as one")
    error = rate_error_of(record, seen.reading)
    if error > RATE_ERROR:
        missing.append(f"how near a bound the rate is: drawn delays vary it by ±{2 * error:.0%}")
    if name == NONE and not load.comparable(seen):
        missing.append("how long an answer takes when nothing waits: latency was not compared")
    if name == "host CPU" and seen.judgement.others_cpu is not None:
        missing.append("what the load would get without the work outside the lab")
    if name == "host CPU" and others.untold(record, seen.observation):
        missing.append("whether work outside the lab took the CPUs")
    refusing = seen.error_share >= load.FEW_ERRORS and record.before.setting("queue_bound")
    doubted = (
        bool(missing)
        or (not seen.judgement.valid and name != "generator")
        or bool(refusing and name != "worker pool")
    )
    if record.before.foreign:
        untold = list(foreign.missing(seen, ranked))
        # What a load gets shows that nothing limits it, where R0 is known: an R0 that was measured
        # on a machine as full as this one is not.
        got_all = name == NONE or (name == "generator" and load.answered(seen))
        full = any(one.strength == STRONG and one.resource != name for one in ranked)
        doubted = doubted or (full if got_all else bool(untold))
        missing += untold
    unseen = _unseen(seen, ranked)
    missing += [f"whether it was the {one}: nothing was read of it" for one in unseen]
    doubted = doubted or any(_hides(one, name, ranked) for one in unseen)
    # Whether a service that is not the lab's has virtual threads, nobody knows.
    if name == UNKNOWN or locks.ended(seen) or (locks.watched(seen) and not record.before.foreign):
        missing += kept(locks.unseen(seen))
    if name == UNKNOWN:
        return _unknown(sentence, ranked, tuple(missing))
    strength = STRONG if strong and not doubted else WEAK
    return Verdict(name, strength, sentence, ranked, tuple(missing))


def _named(seen: SeenTrial, ranked: tuple[Standing, ...]) -> tuple[str, bool, str]:
    """The resource, whether the evidence is strong, and the sentence."""
    answered = load.answered(seen)
    held_up = list(load.held_up(seen)) if answered else []
    had_all = answered and not held_up
    full = [one for one in ranked if one.strength == STRONG]
    beside: list[str] = []
    if had_all:
        # The load had all it can have: a full resource takes nothing away from it, or, at the knee,
        # not yet much. There, what is nearly full may be what the rest was lost to.
        beside = [one.resource for one in ranked if one.strength] if load.at_knee(seen) else []
        full = [one for one in full if one.resource in _OF_THE_LOAD]
    if full:
        first = _inner(full)
        # The connections of the load score so high only where the answers are in time: then nothing
        # that is full keeps them busy.
        rivals = [
            one.resource
            for one in full
            if one is not first
            and (
                one.resource == "connections of the load"
                or one.resource not in _explained_by(first)
            )
        ]
        also = f" (full as well: {', '.join(rivals)})" if rivals else ""
        return first.resource, not rivals, _with(first.sentence + also, held_up)
    if had_all:
        also = f", with {', '.join(beside)} full or nearly so" if beside else ""
        return NONE, not beside, _none(seen) + also
    if ranked and seen.reading.samples and ranked[0].strength:
        return ranked[0].resource, False, _with(ranked[0].sentence, held_up)
    return UNKNOWN, False, _with(_nothing_full(seen), held_up)


def _with(sentence: str, held_up: list[str]) -> str:
    """The sentence, and what shows that a load that was answered was held up."""
    return "; ".join((sentence, *held_up))


def _inner(full: list[Standing]) -> Standing:
    """The resource that explains most of the others; of equal ones that with the higher score."""

    def explained(one: Standing) -> int:
        return sum(other is not one and other.resource in _explained_by(one) for other in full)

    if any(one.resource in _POOLS and one.score >= _AT_OWN_BOUND for one in full):
        full = [one for one in full if one.resource not in (*_CPU, "network")]
    return max(full, key=lambda one: (explained(one), one.score))


def _explained_by(one: Standing) -> frozenset[str]:
    explained = _EXPLAINS[one.resource]
    if one.resource == "garbage collection" and not server_limits.takes_cpus(one):
        explained -= _BY_CPU_TIME
    return explained | {"connections of the load"}


def _nothing_full(seen: SeenTrial) -> str:
    text = "no resource was full"
    if not seen.reading.samples:
        text += ", and nothing was answered"
    if seen.at_load_bound:
        of = "the rate offered" if seen.record.plan.mode == "open" else f"N / {seen.cycle}"
        text += f", and {seen.rps:,.0f} req/s are {seen.at_load_bound:.0%} of {of}"
    if seen.error_share:
        text += f", with {seen.error_share:.0%} errors"
    return text


def _none(seen: SeenTrial) -> str:
    plan, latency = seen.record.plan, seen.reading.corrected or seen.reading.raw
    if plan.offered_rps is not None:
        text = (
            f"none: the {plan.offered_rps:,} req/s offered were answered, {seen.rps:,.0f} measured"
        )
        if latency is not None and seen.expected_ms is not None:
            text += f", in {latency.mean_ms:.3g} ms on average, {seen.expected_ms:.3g} ms expected"
        return text
    return f"none: the load itself; {seen.load_bound_text}, measured {seen.rps:,.0f}"
