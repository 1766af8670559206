"""All CPUs of the machine, whoever uses them."""

from collections.abc import Iterator

from lab.judge.cpu_split import CPUS_OF_EACH, USED, machine_busy
from lab.judge.resources.resource import DRIVER, SeenTrial, Standing, Wait, resource
from lab.judge.resources.server_cpu import limit_of
from lab.judge.resources.waves import share_of_waves
from lab.judge.stages import OF_SERVER, PLACES, for_cpu, of_place

# Where no run queue is known, some requests waited for a CPU from this share on; below, who knows.
NEARLY_FULL = 0.9


@resource("host CPU")
def host_cpu(seen: SeenTrial) -> Standing | None:
    """The run queue of the threads at work, where all CPUs are busy at once.

    Measured: with run-queue times; without them estimated from 90 % busy (with steal) on"""
    usage = seen.record.usage
    busy, machine = (usage.host_taken, "") if usage.host_taken is not None else _busiest(seen)
    if busy is None:
        return None
    seen.noted("busy or stolen", busy, "of the CPUs' time", DRIVER)
    seen.noted("pressure", usage.host_pressure, "of the window", DRIVER)
    seen.rate("used by the lab", "CPUs", USED)
    cpus, waits = seen.cpus, tuple(_waits(seen, busy, seen.cpus or 1.0))
    use = None if cpus is None else busy * cpus
    return Standing(use, cpus, "CPUs", machine, waits=waits)


def _waits(seen: SeenTrial, busy: float, cpus: float) -> Iterator[Wait]:
    limited, without_waves = limit_of(seen) is not None, 1 - share_of_waves(seen)
    # Who comes independently of others finds all m CPUs busy (M/M/m, shared). Run queues beyond
    # that are those of bursts, on CPUs that are idle in between: more CPUs may be no help.
    at_random = busy**cpus
    for place in PLACES:
        stage, of_server = of_place(seen, place), place in OF_SERVER
        if of_server and limited:
            continue
        if stage is None:
            part = at_random if busy >= NEARLY_FULL else 0.0
            yield Wait(place, part=part, measured=False)
            continue
        part = for_cpu(seen, place, stage, cpus) if of_server else stage.for_cpu
        part *= without_waves
        sure = min(part, at_random)
        # Beyond the parts that are known, the place of a wait is not.
        yield Wait(place, part=sure, measured=seen.split is not None or place == "generator")
        yield Wait(place, part=part - sure, measured=False)


def _busiest(seen: SeenTrial) -> tuple[float | None, str]:
    """The busiest of several machines; None where one of them was not seen."""
    names = seen.each("machine", CPUS_OF_EACH)
    shares = [(machine_busy(seen.observation, name), name) for name in names]
    busy = [(share, name) for share, name in shares if share is not None]
    return max(busy) if busy and len(busy) == len(shares) else (None, "")
