"""Was the machine the lab's own, or did others use its CPUs: other processes, other machines?"""

from __future__ import annotations

from lab.judge.cpu_split import USED, machine_cpus
from lab.judge.gates.generator import HOST_CROWDED, WAITED, waited_share
from lab.model import Observation, Reading, TrialRecord

# Where the CPUs are short, a rate that they limit is lower by the share that others use. On a quiet
# machine 2 to 9 % of two CPUs were nobody's in the lab: the kernel, Docker, its host.
OTHERS = 0.15
# Other machines take CPU time only while this one wants it, so what they take is short at that
# moment, however idle the CPUs are on average. In a search near a pool's capacity, seven seconds of
# that (0.15 of the window) let goodput fall by 2 %.
STOLEN = 0.1


def by_others(record: TrialRecord, observation: Observation | None) -> float | None:
    """The share of the machine's CPUs that work outside the lab used in the window. None where
    nobody knows. The CPU time of a service that is not the lab's cannot be told from theirs: then
    it is what other machines took (steal)."""
    usage = record.usage
    if observation is None or record.before.foreign or usage.host_taken is None:
        return usage.host_steal
    share = _beside(usage.host_taken, observation)
    return usage.host_steal if share is None else share


def untold(record: TrialRecord, observation: Observation | None) -> bool:
    """Whether nobody knows what others used, although the machine's CPUs were seen, and all that
    the lab measures is its own."""
    busy = record.usage.host_taken
    if observation is None or record.before.foreign or busy is None:
        return False
    return _beside(busy, observation) is None


def _beside(busy: float, observation: Observation) -> float | None:
    """What is left of the machine's busy CPUs without the lab's containers, as a share of all."""
    mine, cpus = _by_lab(observation), machine_cpus(observation)
    return None if mine is None or not cpus else max(0.0, busy - mine / cpus)


def _by_lab(observation: Observation) -> float | None:
    """The CPUs that the lab's containers used. One that rests is read more seldom than once in half
    a window: of it the even rise between two samples counts. Of one that began or ended in the
    window, as that of `make toxics`, what was seen of it counts. None without any, and where
    cAdvisor did not see the whole window."""
    if not observation.covers("cadvisor"):
        return None
    opens, closes = observation.window
    used = []
    for service in {one.labels.get("service", "") for one in observation.series(USED)}:
        rate = observation.rate(USED, service=service)
        rise = observation.increase(USED, service=service) if rate is None else None
        if rate is None and rise is None:
            rise = observation.rise_seen(USED, service=service)
        used.append(rise / (closes - opens) if rise is not None else rate)
    known = [one for one in used if one is not None]
    return sum(known) if known and len(known) == len(used) else None


def crowded_out(
    record: TrialRecord, reading: Reading, observation: Observation | None
) -> float | None:
    """The share of the CPUs that others used, where that left the lab too few: its figures are then
    a lower bound of what it can do. None where it did not. While some CPU is always idle, other
    processes take nothing from the lab."""
    busy, share = record.usage.host_taken, by_others(record, observation)
    stolen = record.usage.host_steal or 0.0
    if stolen >= STOLEN:
        return max(stolen, share or 0.0)
    if busy is None or share is None or share < OTHERS:
        return None
    short = busy >= HOST_CROWDED or (waited_share(record, reading) or 0.0) >= WAITED
    return share if short else None
