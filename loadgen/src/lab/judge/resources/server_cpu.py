"""The CPUs of the server alone: its container's quota (cgroup CFS bandwidth control), its CPU set,
or its own machine of several. A container with none of these uses the machine's."""

from lab.judge.metrics import USED, without_none
from lab.judge.resources.resource import Standing, Trial, Wait, resource
from lab.judge.resources.stages import OF_SERVER, for_cpu, of_place

# A quota binds when this share of it is used: what a period (100 ms) leaves, later ones do not get.
QUOTA_FULL = 0.85
# It also binds when it stopped the server in half of its periods, unless less than 70 % of it was
# in use: then the stops were bursts.
THROTTLED_PERIODS, THROTTLED_USE = 0.5, 0.7
# Where no run queue is known, some requests waited for a CPU from this share on.
NEARLY_FULL = 0.9


@resource("server CPU")
def server_cpu(trial: Trial) -> Standing | None:
    """As host CPU, in the server, where its quota (85 % used, or stopped in half of its periods) or
    its own CPU set binds.

    Measured: with run-queue times"""
    used, limit = _used(trial), limit_of(trial)
    if used is None:
        return None
    waits = [] if limit is None else [_wait(trial, place, limit) for place in OF_SERVER]
    most = limit or quota_of(trial) or _set(trial) or trial.cpus
    return Standing(used, most, "CPUs", waits=without_none(*waits))


def limit_of(trial: Trial) -> float | None:
    """The CPUs of the quota where it binds, or those of the set; None where neither keeps the
    server from the machine's."""
    used, quota, cpus = _used(trial), quota_of(trial), _set(trial)
    if used is None or quota is None:
        return cpus
    use, hit = used / quota, _periods_hit(trial) or 0.0
    binds = use >= QUOTA_FULL or (hit >= THROTTLED_PERIODS and use >= THROTTLED_USE)
    return quota if binds else cpus


def quota_of(trial: Trial) -> float | None:
    """None without a quota, of several containers of one name, and for one of all CPUs it may use,
    as remains after a limit was lifted."""
    container, name = trial.metrics(service=trial.server), "container_spec_cpu_"
    quota = container.peak("quota", "µs", f"{name}quota")
    period = container.peak("period", "µs", f"{name}period")
    several = len(trial.observation.series(f"{name}quota", service=trial.server)) > 1
    if several or not quota or not period or quota < 0:
        return None
    limit, most = quota / period, _set(trial) or trial.cpus
    return limit if most is None or limit < most else None


def _used(trial: Trial) -> float | None:
    return trial.metrics(service=trial.server).rate("used by the server", "CPUs", USED)


def _periods_hit(trial: Trial) -> float | None:
    """The share of the quota's periods in which it stopped the server."""
    container, name = trial.metrics(service=trial.server), "container_cpu_cfs_{}periods_total"
    hit = container.total("throttled", "periods", name.format("throttled_"))
    every = container.total("all", "periods", name.format(""))
    return hit / every if hit is not None and every else None


def _set(trial: Trial) -> float | None:
    cpus, used = trial.before.cpu_set, trial.observation.series(USED, service=trial.server)
    alone = any("machine" in series.labels for series in used)
    return cpus if cpus is not None and (alone or cpus < (trial.cpus or 0)) else None


def _wait(trial: Trial, place: str, limit: float) -> Wait | None:
    stage, use, hit = of_place(trial, place), (_used(trial) or 0.0) / limit, _periods_hit(trial)
    if stage is not None:
        part = for_cpu(trial, place, stage, limit)
        return Wait(place, part=part, measured=trial.split is not None)
    if hit is not None and quota_of(trial) is not None:
        return Wait(place, part=hit, measured=False)
    return Wait(place, part=min(1.0, use) ** limit, measured=False) if use >= NEARLY_FULL else None
