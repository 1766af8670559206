"""The resources behind the server, but the proxy: its connections, its deadline, the downstream."""

from __future__ import annotations

from lab.judge.gates.generator import overloaded
from lab.judge.gates.parts import CPUS, LEAST_LATE_MS, PART_CPU
from lab.judge.verdict.evidence import (
    EXPLAINED,
    FULL,
    WAITING_SHARE,
    SeenTrial,
    kept,
    value,
)
from lab.model import Evidence, Standing

# An error in this share of the calls is felt: p95 is then the time of an error.
FELT = 0.05
# A toxic that adds at least this share of R0 at least doubles the time of an answer.
TOXIC_SHARE = 0.5
# A downstream that is later than this share of its delay at p95 is suspect, as EXCESS is for means.
LATE_SHARE = 0.25
_BEFORE = "read back from Toxiproxy before the trial"


def connections(seen: SeenTrial) -> Standing | None:
    """The server's own limit of connections to the downstream."""
    mine, name = {"server": seen.server}, "lab_downstream_connections_"
    cap = seen.mean("allowed", "connections", f"{name}cap", **mine)
    leased = seen.mean("in use", "connections", f"{name}leased", **mine)
    pending = seen.mean("calls waiting for one", "calls", f"{name}pending", **mine)
    if cap is None or leased is None or cap.value <= 0 or not seen.call.route.calls_downstream:
        return None
    wait = seen.mean_time("mean wait", "lab_downstream_call_seconds", phase="pending", **mine)
    used = max(0.0, min(1.0, leased.value / cap.value))
    waiting = value(pending) or 0.0
    score = 0.5 * used
    sentence = (
        f"the downstream connections: {leased.value:.0f} of {cap.value:.0f} in use, "
        f"{waiting:.0f} calls waiting"
    )
    if used >= FULL and waiting >= max(1.0, WAITING_SHARE * seen.record.plan.concurrency):
        bound = cap.value / seen.hold_s if seen.hold_s else 0.0
        score = 0.96 if bound and seen.rps >= EXPLAINED * bound else 0.7
        if wait is not None:
            sentence += f" {wait.value:.2f} s each"
        sentence += (
            f"; {cap.value:.0f} / {seen.hold_s:g} s = {bound:,.0f} req/s, measured {seen.rps:,.0f}"
        )
    return Standing(
        "downstream connections",
        utilisation=used,
        saturation=waiting,
        waiting="calls",
        score=score,
        sentence=sentence,
        evidence=kept(cap, leased, pending, wait),
    )


def past_deadline(seen: SeenTrial) -> Evidence | None:
    """The downstream calls of the window that ended at the server's deadline."""
    name, mine = "lab_downstream_calls_total", {"server": seen.server, "outcome": "timeout"}
    return seen.total("calls past the deadline", "calls", name, **mine)


def timeout(seen: SeenTrial) -> Standing | None:
    """The server's deadline for a downstream call."""
    every = seen.total("calls", "calls", "lab_downstream_calls_total", server=seen.server)
    late = past_deadline(seen)
    limit = seen.record.before.setting("downstream_timeout_ms")
    if every is None or late is None or not seen.call.route.calls_downstream or not limit:
        return None
    share = late.value / every.value if every.value > 0 else 0.0
    score = 0.0
    sentence = f"the downstream timeout: {share:.0%} of the calls ended at {limit} ms"
    if share >= FELT:
        # A deadline below the time of an answer is itself the limit. Else something else is slow.
        # Of drawn delays more than FELT are above their p95.
        below = limit <= seen.p95_hold_s * 1000
        score = 0.98 if below else 0.6
        sentence += f", and an answer takes {seen.hold_s * 1000:.0f} ms"
        if seen.spread is not None:
            sentence += f" on average, {seen.p95_hold_s * 1000:.0f} ms at p95"
    return Standing(
        "downstream timeout",
        utilisation=min(1.0, seen.hold_s * 1000 / limit),
        errors=share,
        score=score,
        sentence=sentence,
        evidence=kept(every, late),
    )


def downstream(seen: SeenTrial) -> Standing | None:
    """The service behind the server: how slow toxics make it, how late it is, and how it fails."""
    if not seen.call.route.calls_downstream:
        return None
    before = seen.record.before
    added_s, own_s = before.toxics.added_latency_ms / 1000, before.downstream_delay_ms / 1000
    late_s = seen.observation.quantile(0.95, "lab_downstream_lag_seconds")
    late = None
    if late_s is not None:
        span = f"lab_downstream_lag_seconds_bucket[{seen.window_s:.0f}s]"
        query = f"histogram_quantile(0.95, sum by (le) (increase({span})))"
        late = Evidence("late at p95", late_s, "s", query)
    toxic = Evidence("latency added by toxics", added_s, "s", _BEFORE) if added_s else None
    used, failed = cpu_of(seen, "downstream"), failed_calls(seen)
    cpu, score = value(used), 0.0
    sentence = f"the downstream: answers after {own_s:g} s"
    sentence += "" if before.spread is None else " on average"
    if added_s >= TOXIC_SHARE * seen.r0_s and added_s > 0:
        sentence += f", toxics add {added_s:g} s"
        # An open load that was answered had more connections than it needs.
        short = seen.record.plan.mode == "closed" or overloaded(seen.record, seen.reading)
        if seen.of_connections >= EXPLAINED and short:
            score = 0.93
            bound = seen.record.plan.concurrency / seen.r0_s
            sentence += f"; {seen.record.plan.concurrency} / {seen.r0_s:g} s = {bound:,.0f} req/s"
            sentence += f", measured {seen.rps:,.0f}"
    elif (value(failed) or 0.0) >= FELT and not before.toxics.unpredicted:
        score, sentence = (
            0.8,
            f"the downstream: {value(failed) or 0:.0%} of the calls were refused or broken off",
        )
    elif cpu is not None and cpu >= PART_CPU:
        score, sentence = 0.85, f"the downstream: {cpu:.0%} of its CPUs"
    elif late_s is not None and late_s >= max(LATE_SHARE * own_s, LEAST_LATE_MS / 1000):
        score, sentence = 0.6, f"the downstream: late by {late_s * 1000:.0f} ms at p95"
    return Standing(
        "downstream",
        utilisation=cpu,
        saturation=late_s,
        waiting="s late",
        errors=value(failed),
        score=score,
        sentence=sentence,
        evidence=kept(toxic, late, used, failed),
    )


def failed_calls(seen: SeenTrial) -> Evidence | None:
    """The share of the downstream calls that were refused or broken off."""
    name, mine = "lab_downstream_calls_total", {"server": seen.server}
    every = seen.observation.increase(name, **mine)
    bad = [seen.observation.increase(name, outcome=one, **mine) for one in ("refused", "error")]
    if not every:
        return None
    span = f"[{seen.window_s:.0f}s]"
    query = (
        f'sum(increase({name}{{server="{seen.server}", outcome=~"refused|error"}}{span})) '
        f'/ sum(increase({name}{{server="{seen.server}"}}{span}))'
    )
    return Evidence(
        "calls refused or broken off", sum(one or 0.0 for one in bad) / every, "of all", query
    )


def cpu_of(seen: SeenTrial, job: str) -> Evidence | None:
    """The share of its CPUs that a Go process used."""
    used = seen.observation.increase("process_cpu_seconds_total", job=job)
    metric = CPUS[job]
    cpus = seen.peak("CPUs", "CPUs", metric, job=job)
    if used is None or cpus is None or cpus.value <= 0:
        return None
    mine = f'{{job="{job}"}}'
    query = f"rate(process_cpu_seconds_total{mine}[{seen.window_s:.0f}s])"
    query += f" / {metric}{mine}"
    return Evidence(
        f"CPU of {job}", min(1.0, used / seen.window_s / cpus.value), "of its CPUs", query
    )
