"""Was the lab's state constant: its parts, its machines, and what others did on them?"""

from itertools import pairwise

from lab.judge.checks.check import Found, check
from lab.judge.metrics import MOST_CPUS, USED, machine_cpus, without_none
from lab.judge.trial import HOST_CROWDED, WAITED, Trial
from lab.model import Observation, Series

# The host's CPUs are full from this share on.
HOST_FULL = 0.95
# A CPU quota may stop a part of the lab for at most this share of the window.
THROTTLED = 0.01
# A part that used this share of the CPUs it may use was at its limit.
PART_CPU = 0.95
# A reader should know of this share of CPU time that other machines took (steal).
STEAL_FELT = 0.05
# A downstream that is later than this share of its delay at p95 is in what the trial measures.
LATE_SHARE = 0.1
LEAST_LATE_MS = 5.0
# What runs on a machine is scraped every second or two, and no scrape lasts longer than that. One
# of each may fail by chance where it is busy.
AWAY_S = 3.0
AWAY_SCRAPES = 3
# A process dates its start by the machine's time of boot, which some kernels move by a second.
BOOT_MOVES_S = 2.0
# Where the CPUs are short, a rate that they limit is lower by the share that others use. On a quiet
# machine 2 to 9 % of two CPUs were nobody's in the lab: the kernel, Docker, its host.
OTHERS = 0.15
# Other machines take CPU time only while this one wants it, however idle it is on average. In a
# search near a pool's capacity, seven seconds of that (0.15 of the window) took 2 % of goodput.
STOLEN = 0.1
PARTS = ("downstream", "toxiproxy")


@check("machine-away", "invalidates", repeatable=True, lab_differed=True)
def machine_away(trial: Trial) -> Found:
    """[Several machines](several-machines.md): neither its cAdvisor nor a part on it answered a
    scrape for at least {AWAY_S:g} s and {AWAY_SCRAPES} scrapes, in the window or after it. So what
    its server did is no finding, whatever else is found

    One machine has no name, and is none.
    """
    seen = trial.observation
    for machine in seen.series("up", job="cadvisor"):
        name = machine.labels.get("machine")
        if name is None:
            continue
        # Each machine has a cAdvisor. The servers' targets name the server; those of other parts
        # are called as these are.
        there = {series.labels.get("service") for series in seen.series(USED, machine=name)}
        ups = [
            series
            for series in seen.series("up")
            if series.labels.get("server", series.labels.get("job")) in there - {"cadvisor"}
        ]
        gap_s = _silence_s((machine, *ups), seen.window[0])
        if gap_s >= AWAY_S:
            yield {"machine": name, "gap_s": gap_s}


@check("part-restarted", "invalidates", repeatable=True, lab_differed=True)
def part_restarted(trial: Trial) -> Found:
    """The downstream or the proxy ended in the window and came back: its start time differs by more
    than {BOOT_MOVES_S:g} s between the scrapes around the window

    Meanwhile its calls were errors, which may be quick. Of a server that calls past the proxy only
    the downstream counts.
    """
    opens, closes = trial.observation.window
    for part in PARTS[:1] if trial.before.direct else PARTS:
        for series in trial.observation.series("process_start_time_seconds", job=part):
            before = [began for at, began in series.points if at <= opens][-1:]
            later = [began for at, began in series.points if opens < at <= closes]
            after = [began for at, began in series.points if at > closes][:1]
            starts = (*before, *later, *after)
            if starts and max(starts) - min(starts) > BOOT_MOVES_S:
                yield {"part": part}


@check("downstream-late", "warns", "answers")
def downstream_late(trial: Trial) -> Found:
    """More than {LEAST_LATE_MS:g} ms and more than {LATE_SHARE:.0%} of its delay. That time is in
    the latencies, and the verdict counts it as the downstream's"""
    if not trial.has_contract:
        return
    late_s = trial.observation.quantile(0.95, "lab_downstream_lag_seconds")
    allowed_ms = max(LEAST_LATE_MS, LATE_SHARE * trial.before.downstream_delay_ms)
    if late_s is not None and late_s * 1000 > allowed_ms:
        yield {"late_ms": late_s * 1000, "allowed_ms": allowed_ms}


@check("part-throttled", "invalidates", "answers")
def part_throttled(trial: Trial) -> Found:
    """The CPU quota of the downstream or the proxy stopped it for more than {THROTTLED:.0%} of the
    window"""
    name, most_s = "container_cpu_cfs_throttled_seconds_total", trial.observation.window_s
    for part in PARTS if trial.has_contract else ():
        throttled_s = trial.observation.increase(name, service=part)
        if throttled_s is not None and throttled_s > THROTTLED * most_s:
            yield {"part": part, "throttled_s": throttled_s}


@check("part-full", "invalidates", "answers")
def part_full(trial: Trial) -> Found:
    """The downstream or the proxy used at least {PART_CPU:.0%} of the CPUs that it can use"""
    seen = trial.observation
    for part in PARTS if trial.has_contract else ():
        used_s = seen.increase("process_cpu_seconds_total", job=part)
        cpus = max((value for _, value in seen.points(MOST_CPUS[part], job=part)), default=None)
        if used_s is None or cpus is None:
            continue
        if used_s >= PART_CPU * cpus * seen.window_s:
            yield {"part": part, "cpus": cpus}


@check("others-cpu", "warns", "load")
def others_cpu(trial: Trial) -> Found:
    """{OTHERS:.0%} of the machine's CPU time or more went to processes outside the lab's containers
    and to other machines (steal), and the CPUs were at least {HOST_CROWDED:.0%} busy, or the
    generator waited for one for {WAITED:.0%} of its cores' time. Or other machines took
    {STOLEN:.0%} or more, which they take only where this one wants it. The lab can do more than
    these figures say. A search for a capacity takes such a trial for no evidence that the load was
    too high. With `TARGET=` only steal counts. A kernel with `CONFIG_IRQ_TIME_ACCOUNTING` counts
    interrupts as nobody's: there they are part of it"""
    if (share := crowded_out(trial)) is not None:
        yield {"share": share}


@check("host-full", "warns", "load")
def host_full(trial: Trial) -> Found:
    """The host's CPUs were at least {HOST_FULL:.0%} busy"""
    busy = trial.usage.host_taken
    if busy is not None and busy >= HOST_FULL:
        yield {"busy": busy}


@check("host-steal", "warns", "load")
def host_steal(trial: Trial) -> Found:
    """At least {STEAL_FELT:.0%}"""
    steal = trial.usage.host_steal
    if steal is not None and steal >= STEAL_FELT:
        yield {"share": steal}


def _silence_s(ups: tuple[Series, ...], opens: float) -> float:
    """The longest time that ends after `opens` in which scrapes of each of these targets failed,
    AWAY_SCRAPES in all, and none was answered; 0.0 without one."""
    answered = sorted(at for series in ups for at in series.times_of(1.0))
    ends = min(series.times[0] for series in ups), max(series.times[-1] for series in ups)
    longest = 0.0
    for since, until in pairwise((ends[0], *answered, ends[1])):
        failed = [sum(since <= at <= until for at in series.times_of(0.0)) for series in ups]
        if until > opens and all(failed) and sum(failed) >= AWAY_SCRAPES:
            longest = max(longest, until - since)
    return longest


def crowded_out(trial: Trial) -> float | None:
    """The share of the CPUs that others used, where that left the lab too few: its figures are then
    a lower bound of what it can do. While some CPU is always idle, other processes take nothing
    from the lab."""
    busy, stolen = trial.usage.host_taken or 0.0, trial.usage.host_steal or 0.0
    share = max(stolen, by_others(trial) or 0.0)
    short = busy >= HOST_CROWDED or (trial.waited_share or 0.0) >= WAITED
    return share if stolen >= STOLEN or (short and share >= OTHERS) else None


def by_others(trial: Trial) -> float | None:
    """The share of the machine's CPUs that work outside the lab's containers took in the window.
    None where the server may be outside of these, and where cAdvisor did not see the whole
    window."""
    seen, taken, cpus = trial.observation, trial.usage.host_taken, machine_cpus(trial.observation)
    if not trial.has_contract or taken is None or not cpus or not seen.covers("cadvisor"):
        return None
    services = {series.labels.get("service", "") for series in seen.series(USED)}
    used = [_cpus_used(seen, service) for service in sorted(services)]
    if not used or None in used:
        return None
    return max(0.0, taken - sum(without_none(*used)) / cpus)


def _cpus_used(seen: Observation, service: str) -> float | None:
    """A container that rests is read seldom: the even rise between two samples counts. One that
    began or ended in the window counts as far as it was seen."""
    rate = seen.rate(USED, service=service)
    if rate is not None:
        return rate
    rise = seen.increase(USED, service=service)
    rise = seen.rise_seen(USED, service=service) if rise is None else rise
    return None if rise is None else rise / seen.window_s
