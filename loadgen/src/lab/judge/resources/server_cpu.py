"""The CPUs of the server alone: its container's quota (cgroup CFS bandwidth control), its CPU set,
or its own machine of several. A container with none of these uses the machine's."""

from lab.judge.cpu_split import USED
from lab.judge.resources.resource import SeenTrial, Standing, Wait, known, resource
from lab.judge.stages import OF_SERVER, for_cpu, of_place

# A quota binds when this share of it is used: what a period (100 ms) leaves, later ones do not get.
QUOTA_FULL = 0.85
# It also binds when it stopped the server in half of its periods, unless less than 70 % of it was
# in use: then the stops were bursts.
THROTTLED_PERIODS, THROTTLED_USE = 0.5, 0.7
# What waits for a set that is not full is not known without its run queue.
SET_FULL = 0.9


@resource("server CPU")
def server_cpu(seen: SeenTrial) -> Standing | None:
    """As host CPU, in the server, where its quota (85 % used, or stopped in half of its periods) or
    its own CPU set binds.

    Measured: with run-queue times"""
    used, limit = _used(seen), limit_of(seen)
    if used is None:
        return None
    waits = [] if limit is None else [_wait(seen, place, limit) for place in OF_SERVER]
    most = limit or quota_of(seen) or _set(seen) or seen.cpus
    return Standing(used, most, "CPUs", waits=known(*waits))


def limit_of(seen: SeenTrial) -> float | None:
    """The CPUs of the quota where it binds, or those of the set; None where neither keeps the
    server from the machine's."""
    used, quota, cpus = _used(seen), quota_of(seen), _set(seen)
    if used is None or quota is None:
        return cpus
    use, hit = used / quota, _periods_hit(seen) or 0.0
    binds = use >= QUOTA_FULL or (hit >= THROTTLED_PERIODS and use >= THROTTLED_USE)
    return quota if binds else cpus


def quota_of(seen: SeenTrial) -> float | None:
    """None without a quota, of several containers of one name, and for one of all CPUs it may use,
    as remains after a limit was lifted."""
    mine, name = {"service": seen.server}, "container_spec_cpu_"
    quota = seen.peak("quota", "µs", f"{name}quota", **mine)
    period = seen.peak("period", "µs", f"{name}period", **mine)
    several = len(seen.observation.series(f"{name}quota", **mine)) > 1
    if several or not quota or not period or quota < 0:
        return None
    limit, most = quota / period, _set(seen) or seen.cpus
    return limit if most is None or limit < most else None


def _used(seen: SeenTrial) -> float | None:
    return seen.rate("used by the server", "CPUs", USED, service=seen.server)


def _periods_hit(seen: SeenTrial) -> float | None:
    name, mine = "container_cpu_cfs_{}periods_total", {"service": seen.server}
    hit = seen.total("throttled", "periods", name.format("throttled_"), **mine)
    every = seen.total("all", "periods", name.format(""), **mine)
    return hit / every if hit is not None and every else None


def _set(seen: SeenTrial) -> float | None:
    cpus, used = seen.before.cpu_set, seen.observation.series(USED, service=seen.server)
    alone = any("machine" in series.labels for series in used)
    return cpus if cpus is not None and (alone or cpus < (seen.cpus or 0)) else None


def _wait(seen: SeenTrial, place: str, limit: float) -> Wait | None:
    stage, use, hit = of_place(seen, place), (_used(seen) or 0.0) / limit, _periods_hit(seen)
    if stage is not None:
        part = for_cpu(seen, place, stage, limit)
        return Wait(place, part=part, measured=seen.split is not None)
    if hit is not None and quota_of(seen) is not None:
        return Wait(place, part=hit, measured=False)
    return Wait(place, part=min(1.0, use) ** limit, measured=False) if use >= SET_FULL else None
