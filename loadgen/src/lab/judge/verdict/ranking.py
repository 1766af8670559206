"""Names the resource that limits a trial, or none, or unknown.

A full resource makes the resources before it full too: a request holds a worker while it waits for
a connection to the downstream. So of several full resources the inner one is named, which the
others wait for. Where no full resource explains the figures, the answer is unknown: a wrong name
would be a defect.
"""

from __future__ import annotations

from collections.abc import Callable

from lab.judge.gates import parts
from lab.judge.gates.generator import overloaded
from lab.judge.verdict import downstream, foreign, machine, server_limits, threads
from lab.judge.verdict.evidence import SeenTrial, kept
from lab.model import HIGH, NONE, UNKNOWN, Judgement, Measurement, Observation, Standing, Verdict

# A suspect is named from this score on.
NAMED = 0.55
# Nothing else limits a load that reached this share of its own bound.
AT_LOAD_BOUND = 0.93
# An open load that is answered does not prove capacity, but its rate was all there was. This share
# of it must be answered without an error, and it must not be overloaded.
ANSWERED = 0.98
FEW_ERRORS = 0.05
# The most confidence in a trial whose own figures are in doubt.
DOUBTED = 0.6
# A second full resource that the first does not explain lowers the confidence by this factor.
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
# When the first resource is full, that explains why the others are full: they are no rivals.
_EXPLAINS: dict[str, frozenset[str]] = {
    "generator": frozenset(("host CPU",)),
    "downstream timeout": frozenset(("worker pool", "downstream", "Toxiproxy")),
    "file descriptors": frozenset(("accept queue", "downstream", "worker pool", "host CPU")),
    # Calls without a port fail at once, and clients that come again at once fill the CPUs.
    "ports": frozenset(("downstream", "worker pool", "host CPU")),
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
    # Loops, carriers and quotas are left out: on a full machine both may bind.
    "host CPU": frozenset(("generator", "accept queue")),
    "worker pool": frozenset(("accept queue", "downstream timeout")),
    "accept queue": frozenset(),
}
# A pool that gives just what its size over its time allows explains itself. CPUs that are full as
# well are the next wall.
_AT_OWN_BOUND = 0.96
_POOLS = frozenset(("worker pool", "downstream connections"))
# A load that got all it can have may still be limited by its sender, and by its answerer.
_OF_THE_LOAD = frozenset(("generator", "downstream"))
_CPU = frozenset(("garbage collection", "server CPU", "host CPU", "carrier threads", "event loop"))


def verdict_of(
    measurement: Measurement, judgement: Judgement, observation: Observation | None
) -> Verdict:
    """What limited a trial. Never raises: the verdict is UNKNOWN, and says why, where nobody can
    tell."""
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
    found = kept(*(ask(seen) for ask in _STANDINGS))
    # Of equal scores the first counts, which is the inner resource.
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
        # The rate alone proves that an open load had all it can have. A closed load also needs an
        # R0, which must not be measured on a machine as full as this one.
        full = any(one.score >= HIGH for one in ranked)
        sure = name == NONE and (measurement.record.plan.mode == "open" or not full)
        if (unknown or name == NONE) and not sure:
            confidence = min(confidence, DOUBTED)
    return Verdict(name, round(confidence, 2), sentence, ranked, missing)


def _named(seen: SeenTrial, ranked: tuple[Standing, ...]) -> tuple[str, float, str]:
    plan, at_bound = seen.record.plan, seen.at_load_bound
    enough = ANSWERED if plan.mode == "open" else AT_LOAD_BOUND
    # A spike has connections whose answers are not measured.
    kept_up = at_bound >= enough and seen.error_share < FEW_ERRORS and plan.spike is None
    kept_up = kept_up and not seen.beyond_r0 and not overloaded(seen.record, seen.reading)
    full = [one for one in ranked if one.score >= HIGH]
    if kept_up:
        # The load had all it can have: a full resource takes nothing away from it.
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
    """The resource that explains most of the others; of equal ones that with the higher score."""

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
