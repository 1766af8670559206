"""From what every resource did to the one that limits; or none, or unknown.

A resource that is full makes those before it full, too: a request holds a worker while it waits
for a connection to the downstream. So of several that are full the inner one is named, the one
that the others wait for. What nothing full explains is unknown: a wrong name is a defect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lab.judge.gates import parts
from lab.judge.gates.generator import overloaded
from lab.judge.verdict import downstream, foreign, machine, server_limits, threads
from lab.judge.verdict.evidence import SeenTrial
from lab.model import HIGH, NONE, UNKNOWN, Judgement, Measurement, Observation, Standing, Verdict

# What a suspect needs to be named at all.
NAMED = 0.55
# Measured of the load's own bound: then nothing else limits.
AT_LOAD_BOUND = 0.93
# An open load that is answered is no proof of capacity, but its rate is all there was. So much of
# it without an error, and not overloaded.
ANSWERED = 0.98
FEW_ERRORS = 0.05
# No more than this of a trial whose own figures are in doubt.
DOUBTED = 0.6
# A second resource that is full, and that the first does not explain, makes the first less sure.
RIVAL = 0.75

_STANDINGS: tuple[Callable[[SeenTrial], Standing | None], ...] = (
    machine.generator,
    downstream.timeout,
    server_limits.file_descriptors,
    server_limits.ports,
    downstream.toxiproxy,
    downstream.downstream,
    downstream.connections,
    server_limits.garbage_collection,
    server_limits.server_cpu,
    threads.carrier_threads,
    threads.event_loop,
    machine.host_cpu,
    threads.worker_pool,
    server_limits.accept_queue,
)
# What being full of the first explains of the others, which then are no rivals.
_EXPLAINS: dict[str, frozenset[str]] = {
    "generator": frozenset(("host CPU",)),
    "downstream timeout": frozenset(("worker pool", "downstream", "Toxiproxy")),
    "file descriptors": frozenset(("accept queue", "downstream", "worker pool", "host CPU")),
    "ports": frozenset(("downstream", "worker pool")),
    "Toxiproxy": frozenset(
        ("worker pool", "downstream connections", "downstream timeout", "downstream")
    ),
    "downstream": frozenset(("worker pool", "downstream connections", "downstream timeout")),
    "downstream connections": frozenset(("worker pool", "downstream timeout")),
    "garbage collection": frozenset(
        ("server CPU", "host CPU", "carrier threads", "event loop", "worker pool", "accept queue")
    ),
    "server CPU": frozenset(
        (
            "host CPU",
            "carrier threads",
            "event loop",
            "worker pool",
            "garbage collection",
            "accept queue",
        )
    ),
    "carrier threads": frozenset(("worker pool", "accept queue")),
    "event loop": frozenset(("accept queue", "worker pool")),
    # Not the loops, carriers and quotas: where they are full on a full machine, both may bind.
    "host CPU": frozenset(("generator", "accept queue")),
    "worker pool": frozenset(("accept queue", "downstream timeout")),
    "accept queue": frozenset(),
}
# A pool that gives just what its size over its time allows needs no CPU to explain it, though
# the CPUs may be full as well: then they are the next wall.
_AT_OWN_BOUND = 0.96
_POOLS = frozenset(("worker pool", "downstream connections"))
# What a load that got all it can have may still be limited by: who asks, and who answers.
_OF_THE_LOAD = frozenset(("generator", "downstream"))
_CPU = frozenset(("garbage collection", "server CPU", "host CPU", "carrier threads", "event loop"))


def verdict_of(
    measurement: Measurement, judgement: Judgement, observation: Observation | None
) -> Verdict:
    """What limited a trial. Never raises: what cannot be told is UNKNOWN, and says why."""
    try:
        return _verdict(measurement, judgement, observation)
    except (ValueError, ArithmeticError) as failure:
        return Verdict(UNKNOWN, 0.0, f"unknown: its series cannot be judged: {failure}")


def _verdict(
    measurement: Measurement, judgement: Judgement, observation: Observation | None
) -> Verdict:
    reading = measurement.reading
    if reading is None:
        return Verdict(UNKNOWN, 0.0, "unknown: the trial gave no figures")
    if observation is None:
        return Verdict(UNKNOWN, 0.0, "unknown: no series of its window were stored")
    seen = SeenTrial(measurement, judgement, reading, observation)
    missing = tuple(
        f"Prometheus did not see the whole window of {job}"
        for job in parts.jobs(measurement.record)
        if not observation.covers(job)
    )
    found = [one for one in (ask(seen) for ask in _STANDINGS) if one is not None]
    # Of equals the one that is asked first, which is the inner one.
    ranked = tuple(sorted(found, key=lambda one: -one.score))
    name, confidence, sentence = _named(seen, ranked)
    if not judgement.valid and name != "generator":
        confidence = min(confidence, DOUBTED)
    if measurement.record.plan.script:
        missing = (*missing, "the toxics changed in the window by script: it is judged as one")
    refusing = seen.error_share >= FEW_ERRORS and measurement.record.before.setting("queue_bound")
    if missing or (refusing and name != "worker pool"):
        confidence = min(confidence, DOUBTED)
    if measurement.record.before.foreign:
        unknown = tuple(foreign.missing(seen, ranked))
        missing = (*missing, *unknown)
        # That the load had all it can have takes no evidence but the rate, or an R0 that was not
        # measured on a machine as full as this one.
        sure = name == NONE and (measurement.record.plan.mode == "open" or not _any_full(ranked))
        if (unknown or name == NONE) and not sure:
            confidence = min(confidence, DOUBTED)
    return Verdict(name, round(confidence, 2), sentence, ranked, missing)


def _any_full(ranked: Sequence[Standing]) -> bool:
    return any(one.score >= HIGH for one in ranked)


def _named(seen: SeenTrial, ranked: tuple[Standing, ...]) -> tuple[str, float, str]:
    plan, at_bound = seen.record.plan, seen.at_load_bound
    enough = ANSWERED if plan.mode == "open" else AT_LOAD_BOUND
    # Beside a spike there are connections whose answers are not among those measured.
    kept_up = at_bound >= enough and seen.error_share < FEW_ERRORS and plan.spike is None
    kept_up = kept_up and not seen.beyond_r0 and not overloaded(seen.record, seen.reading)
    full = [one for one in ranked if one.score >= HIGH]
    if kept_up:
        # All that this load can have was had: what is full as well takes nothing away.
        full = [one for one in full if one.resource in _OF_THE_LOAD]
    if full:
        first = _inner(full)
        rivals = [
            one
            for one in full
            if one is not first and one.resource not in _EXPLAINS[first.resource]
        ]
        confidence = first.score * (RIVAL if rivals else 1.0)
        sentence = first.sentence
        if rivals:
            sentence += f" (full as well: {', '.join(one.resource for one in rivals)})"
        return first.resource, confidence, sentence
    if kept_up:
        return NONE, 0.9, _none(seen)
    if ranked and seen.reading.samples and ranked[0].score >= NAMED:
        return ranked[0].resource, ranked[0].score, ranked[0].sentence
    sentence = "unknown: no resource was full"
    if not seen.reading.samples:
        sentence += ", and nothing was answered"
    if at_bound:
        of = "the rate offered" if plan.mode == "open" else "N / R0"
        sentence += f", and {seen.rps:,.0f} req/s are {at_bound:.0%} of {of}"
    if seen.error_share:
        sentence += f", with {seen.error_share:.0%} errors"
    return UNKNOWN, 0.0, sentence


def _inner(full: list[Standing]) -> Standing:
    """The one that explains most of the others; of equals the one with the higher score."""

    def explained(one: Standing) -> int:
        return sum(other.resource in _EXPLAINS[one.resource] for other in full)

    if any(one.resource in _POOLS and one.score >= _AT_OWN_BOUND for one in full):
        full = [one for one in full if one.resource not in _CPU]
    return max(full, key=lambda one: (explained(one), one.score))


def _none(seen: SeenTrial) -> str:
    plan = seen.record.plan
    if plan.offered_rps is not None:
        return (
            f"none: the {plan.offered_rps:,} req/s offered were answered, {seen.rps:,.0f} measured"
        )
    bound = plan.concurrency / seen.r0_s
    return (
        f"none: the load itself; {plan.concurrency} connections / {seen.r0_s:g} s = {bound:,.0f} "
        f"req/s, measured {seen.rps:,.0f}"
    )
