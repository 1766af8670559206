"""The resources outside the server and its downstream: the machine, and the generator on it."""

from __future__ import annotations

from lab.judge.cpu_split import CPUS_OF_EACH, HOST_CPU, USED, machine_busy
from lab.judge.gates.generator import (
    HOST_CROWDED,
    LAG_SHARE,
    NOT_OFFERED,
    THROTTLED,
    WAITED,
    cores_of,
    think_share,
    waited_share,
)
from lab.judge.gates.others import OTHERS, by_others
from lab.judge.gates.trial import HOST_FULL
from lab.judge.verdict import load
from lab.judge.verdict.evidence import SeenTrial
from lab.model import Evidence, Standing

# From here on the CPUs leave the load at most a ninth more than it has.
NEARLY_FULL = 0.9
# From this share of a closed load's cycle on its rate says more of the generator than a server's
# capacity may: it is what the lab allows a generator elsewhere (LAG_SHARE).
THINKS = LAG_SHARE
# With this share the generator has a request for longer than the server.
MOST_OF_CYCLE = 0.5
# The driver reads it at the edges of the window: /proc/stat, and the schedstat of the engine.
_DRIVER = "raw/<trial>/trial.json, usage"
GENERATOR = "the generator "


def host_cpu(seen: SeenTrial) -> Standing | None:
    """All CPUs of the machine, whoever uses them.

    Full CPUs have no time left for anybody, so the evidence is strong. Below that a busier load
    gets more: threads wait for a CPU in bursts, while at other moments one is idle. So waiting
    alone is weak evidence."""
    usage = seen.record.usage
    if usage.host_taken is None:
        return _busiest_machine(seen)
    waited = waited_share(seen.record, seen.reading)
    busy, score = usage.host_taken, 0.4 * usage.host_taken
    if busy >= HOST_FULL:
        score = 0.92
    elif busy >= NEARLY_FULL:
        score = 0.7
    elif busy >= HOST_CROWDED and waited is not None and waited >= WAITED:
        score = 0.65
    sentence = f"the host's CPUs: {busy:.0%} busy"
    evidence = [Evidence("CPUs of the host", busy, "of their time", _DRIVER)]
    mine = seen.rate("CPU of the lab's containers", "CPUs", "container_cpu_usage_seconds_total")
    if mine is not None:
        evidence.append(mine)
    others = by_others(seen.record, seen.observation)
    if others is not None and others >= OTHERS:
        sentence += f", {others:.0%} by work outside the lab"
    if waited is not None:
        sentence += f", the generator's threads waited for one {waited:.0%} of the time"
        evidence.append(
            Evidence("the generator waited for a CPU", waited, "of its cores' time", _DRIVER)
        )
    return Standing(
        "host CPU",
        utilisation=busy,
        saturation=waited,
        waiting="of the generator's time",
        score=score,
        sentence=sentence,
        evidence=tuple(evidence),
    )


def _busiest_machine(seen: SeenTrial) -> Standing | None:
    """The CPUs of the busiest of several machines, with its parts of the lab. Nothing tells who
    waits for them, so the evidence is weak. None where one of the machines was not seen."""
    found = []
    for name in seen.each("machine", CPUS_OF_EACH):
        of_one = machine_busy(seen.observation, name)
        if of_one is None:
            return None
        found.append((of_one, name))
    if not found:
        return None
    busy, name = max(found)
    used = seen.observation.rate(HOST_CPU, machine=name) or 0.0
    query = f'sum(rate({HOST_CPU}{{machine="{name}"}}[{seen.window_s:.0f}s]))'
    services = {
        "driver": "the generator",
        seen.server: "the server",
        "toxiproxy": "Toxiproxy",
        "downstream": "the downstream",
        "prometheus": "Prometheus",
    }
    there = [
        part
        for service, part in services.items()
        if seen.observation.series(USED, service=service, machine=name)
    ]
    return Standing(
        "host CPU",
        utilisation=busy,
        score=0.7 if busy >= NEARLY_FULL else 0.4 * busy,
        sentence=f"the CPUs of machine {name}, which has {_listed(there)}: {busy:.0%} busy",
        evidence=(Evidence(f"CPU of machine {name}", used, "CPUs", query),),
    )


def _listed(parts: list[str]) -> str:
    if len(parts) < 2:
        return "".join(parts) or "no part of the load's way"
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def generator(seen: SeenTrial) -> Standing | None:
    """The load engine. Where it is the limit, the trial says nothing about the server. And where a
    closed load spends much of its cycle with it: the rate is then that of so few connections with
    so long a think time, X = N / (R + Z), and more of both would get more."""
    usage = seen.record.usage
    if usage.window_cpu_s is None:
        return None
    cores = cores_of(seen.record, seen.reading)
    used = min(1.0, usage.window_cpu_s / (seen.reading.window_s * cores))
    why = [reason for reason in seen.judgement.reasons if reason.startswith(GENERATOR)]
    evidence = [Evidence("CPU of the generator", used, "of its cores", _DRIVER)]
    if usage.window_throttled_s is not None:
        evidence.append(
            Evidence("stopped by its CPU quota", usage.window_throttled_s, "s", _DRIVER)
        )
    score = 0.4 * used
    if why:
        # A generator that no quota stops waits for CPUs that others use: the CPUs are short.
        stopped = (usage.window_throttled_s or 0.0) > THROTTLED * seen.reading.window_s
        crowded = seen.crowded and not stopped
        inferred = all(reason.startswith(NOT_OFFERED) for reason in why)
        score = 0.6 if inferred or crowded else 0.99
    sentence = why[0] if why else f"the generator: {used:.0%} of its cores"
    share = think_share(seen.reading) if seen.record.plan.mode == "closed" else 0.0
    if share >= THINKS and not why:
        sentence, score = _thinking(seen, share)
        law = "Little's law: Z / (R + Z), think_ms and answer_ms"
        evidence.append(Evidence("think time of the generator", share, "of each cycle", law))
    return Standing(
        "generator",
        utilisation=used,
        saturation=usage.window_wait_s,
        waiting="s without a CPU",
        score=score,
        sentence=sentence,
        evidence=tuple(evidence),
    )


def _thinking(seen: SeenTrial, share: float) -> tuple[str, float]:
    """The sentence and the score where a closed load spends this share of its cycle with the
    generator. The evidence is strong where the rest is hardly longer than R0, so that nothing else
    is lost, and where it is the larger part."""
    sentence = (
        f"the generator: {share:.0%} of each cycle of a connection, {seen.think_s * 1000:.2g} ms "
        "between an answer and the next request"
    )
    had_all = load.answered(seen)
    if had_all:
        sentence += f"; {seen.load_bound_text}, measured {seen.rps:,.0f}"
    return sentence, 0.85 if had_all or share >= MOST_OF_CYCLE else 0.6
