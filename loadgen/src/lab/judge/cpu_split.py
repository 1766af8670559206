"""Who spends the CPU: µs of CPU time per answered request, for each part of the lab.

cAdvisor tells of containers, the driver of its load engine, whose process it reads at the edges of
the window. The driver's container holds the engine and the driver itself: what is left of it
without the engine, and without a spinner, is observation.
"""

from lab.model import CpuSplit, Measurement, Observation, Usage

PROXY, DOWNSTREAM, DRIVER = "toxiproxy", "downstream", "driver"
WATCHERS = ("prometheus", "cadvisor", "loadgen")
# Not every machine can have its image.
OPTIONAL_WATCHER = "grafana"
# cgroup v1 may count each CPU, version 2 the total: the sum over the series is right for both.
USED = "container_cpu_usage_seconds_total"
CPUS = "machine:machine_cpu_cores:max"
# Of a lab on several machines: what each has, and what all of its work uses.
CPUS_OF_EACH = "machine:machine_cpu_cores:each"
HOST_CPU = "host_cpu_usage_seconds_total"


def cpu_split(measurement: Measurement, observation: Observation | None) -> CpuSplit:
    """The CPU time of each part per answered request. Nothing is known of a trial without answers,
    and of one with spikes: no count has the requests of its second engine. Of a generator on
    several machines only this one's CPU time is known, which is not that of an answer."""
    record, reading = measurement.record, measurement.reading
    if reading is None or not reading.achieved_rps or record.plan.spike:
        return CpuSplit()
    usage, rps = record.usage, reading.achieved_rps
    engine = None if usage.window_cpu_s is None else usage.window_cpu_s / reading.window_s
    if observation is None:
        return CpuSplit(cpu_generator_us=_each_us(None if reading.shares else engine, rps))
    cpus = machine_cpus(observation)
    spun = _spun(usage, cpus)
    return CpuSplit(
        cpu_server_us=_each_us(_used(observation, record.plan.server), rps),
        cpu_proxy_us=_each_us(_used(observation, PROXY), rps),
        cpu_downstream_us=_each_us(_used(observation, DOWNSTREAM), rps),
        cpu_generator_us=_each_us(None if reading.shares else engine, rps),
        cpu_observation_us=_each_us(_watching(observation, engine, spun), rps),
    )


def machine_cpus(observation: Observation) -> float | None:
    """How many CPUs the machine has; None where nothing tells."""
    return max((max(one.values) for one in observation.series(CPUS)), default=None)


def machine_busy(observation: Observation, machine: str) -> float | None:
    """The share of its time that the CPUs of one of several machines were busy, whoever used them;
    None where nothing tells."""
    cpus = [max(one.values) for one in observation.series(CPUS_OF_EACH, machine=machine)]
    used = observation.rate(HOST_CPU, machine=machine)
    return None if used is None or not cpus else min(1.0, used / max(cpus))


def _used(observation: Observation, service: str) -> float | None:
    return observation.rate(USED, service=service)


def _watching(observation: Observation, engine: float | None, spun: float | None) -> float | None:
    driver = _used(observation, DRIVER)
    used = [_used(observation, service) for service in WATCHERS]
    if observation.series(USED, service=OPTIONAL_WATCHER):
        used.append(_used(observation, OPTIONAL_WATCHER))
    known = [one for one in used if one is not None]
    if driver is None or engine is None or spun is None or len(known) < len(used):
        return None
    # They are read at slightly different times, so a driver that rests may seem to use less than 0.
    return sum(known) + max(0.0, driver - engine - spun)


def _each_us(used: float | None, rps: float) -> float | None:
    """CPU seconds per second as µs per request."""
    return None if used is None else used * 1e6 / rps


def _spun(usage: Usage, cpus: float | None) -> float | None:
    if usage.spun is None:
        return 0.0
    return None if cpus is None else usage.spun * cpus
