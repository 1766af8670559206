"""Verdicts in words: what a request waited for, and what is not known. All made from codes."""

from __future__ import annotations

from lab.model import NONE, UNEXPLAINED, UNKNOWN, Missing, Standing, Verdict, three, use_text

PAGE = "docs/your-own-service.md"
# What each resource is, as a sentence about a trial has it.
WORDS = {
    "worker pool": "the worker pool",
    "carrier threads": "the carrier threads",
    "pinned carriers": "pinned carriers",
    "event loop": "the event loop",
    "front": "the front",
    "lock": "the lock",
    "server CPU": "the server's CPUs",
    "garbage collection": "garbage collection",
    "accept queue": "the server's accept queue",
    "file descriptors": "file descriptors",
    "ports": "local ports",
    "downstream connections": "connections to the downstream",
    "downstream timeout": "the deadline for a downstream call",
    "network": "lost segments",
    "connection set-up": "the set-up of connections to the downstream",
    "Toxiproxy": "Toxiproxy",
    "downstream": "the downstream",
    "host CPU": "the host's CPUs",
    "work outside the lab": "CPUs that work outside the lab took",
    "connections of the load": "a free connection of the load",
    "generator": "the generator",
}
# Further resources of a share of the excess below this are left out of a sentence.
NAMED = 0.05
_UNJUDGED = {
    "spike": "the answers of the peak's own connections are not measured",
    "no figures": "the trial gave no figures",
    "held": "its connections were held, and sent nothing more",
    "no series": "no series of its window were stored",
    "no such route": "the lab no longer has its route",
    "bad series": "its series are not what the lab writes",
}
_MISSING = {
    "job": "Prometheus did not see the whole window of {}",
    "script": "the toxics changed in the window by script: it is judged as one",
    "R0": "R0, so shares are of the whole time. {}",
    "R0 on free CPUs": "R0 on CPUs that are free: those of this trial were not",
    "run queue": "how long the threads of the {} waited for a CPU",
    "locks": "waits for a lock: watching is {}",
    "locks of virtual threads": "waits of virtual threads for a lock: {}",
    "exporter": f"heap, collections, descriptors and pool: no JMX exporter of {{}}, see {PAGE}",
    "exporter unread": f"heap, collections, descriptors and pool: Prometheus does not read the JMX "
    f"exporter of {{}}, see {PAGE}",
    "pool": "the pool that serves this route: the exporter tells of {}",
    "descriptors": "the open files of {}",
    "container": f"the CPU quota and the memory of {{}}: it is no container of the lab, see {PAGE}",
    "quota": "the CPU quota of {}: it is several containers",
}


def sentence(verdict: Verdict) -> str:
    """What limited a trial."""
    if verdict.basis in _UNJUDGED:
        return f"{UNKNOWN}: {_UNJUDGED[verdict.basis]}"
    excess, named = verdict.excess, verdict.named
    if verdict.basis == "errors":
        if named is None:
            return f"{UNKNOWN}: no resource explains the errors"
        if named.failed:
            return f"{_subject(named)}: {named.failed:.0%} of the requests failed for want of it"
    if verdict.bottleneck == NONE and (excess is None or excess.r0_ms is None):
        return f"{NONE}: the load is answered; R0 is not known"
    if excess is None or verdict.basis == "unanswered":
        text = "" if excess is None else f", and those that are take {three(excess.ms)} ms above R0"
        return f"{UNKNOWN}: too few requests are answered{text}"
    if verdict.bottleneck == NONE:
        r0 = three(excess.r0_ms or 0.0)
        return (
            f"{NONE}: answers take {three(excess.ms)} ms above R0 ({r0} ms), and "
            f"this trial resolves {three(excess.resolved_ms)} ms"
        )
    subject = UNKNOWN if named is None else _subject(named)
    tail = "; the mean is as expected, the slowest 1 % are not" if verdict.basis == "tail" else ""
    what = f"{three(excess.ms)} ms above R0" if excess.r0_ms is not None else "the whole time"
    return f"{subject}: {what} are {shares_text(verdict)}{tail}"


def shares_text(verdict: Verdict) -> str:
    """The shares of the excess that are worth naming, and what is unexplained."""
    shares = verdict.shares
    found = [
        f"{name} {share:.0%}"
        for name, share in shares.items()
        if share >= NAMED or name in (verdict.bottleneck, UNEXPLAINED)
    ]
    return ", ".join(found)


def missing_text(gap: Missing) -> str:
    return f"not known: {_MISSING[gap.code].format(gap.detail).strip()}"


def _subject(standing: Standing) -> str:
    which = f" ({standing.detail})" if standing.detail else ""
    in_use = use_text(standing)
    return f"{WORDS[standing.resource]}{which}{f', {in_use}' if in_use else ''}"
