"""All CPUs of the machine, whoever uses them."""

from collections.abc import Iterator

from lab.judge.metrics import CPUS_OF_EACH, USED, machine_busy
from lab.judge.resources.resource import DRIVER, Standing, Trial, Wait, resource
from lab.judge.resources.server_cpu import NEARLY_FULL, limit_of
from lab.judge.resources.stages import OF_SERVER, PLACES, for_cpu, of_place
from lab.judge.resources.waves import share_of_waves


@resource("host CPU")
def host_cpu(trial: Trial) -> Standing | None:
    """The run queue of the threads at work, where all CPUs are busy at once.

    Measured: with run-queue times; without them estimated from 90 % busy (with steal) on"""
    usage, cpus = trial.usage, trial.cpus
    busy, machine = (usage.host_taken, "") if usage.host_taken is not None else _busiest(trial)
    if busy is None:
        return None
    trial.note("busy or stolen", busy, "of the CPUs' time", DRIVER)
    trial.note("pressure", usage.host_pressure, "of the window", DRIVER)
    trial.metrics().rate("used by the lab", "CPUs", USED)
    used = None if cpus is None else busy * cpus
    return Standing(used, cpus, "CPUs", machine, waits=tuple(_waits(trial, busy, cpus or 1.0)))


def _waits(trial: Trial, busy: float, cpus: float) -> Iterator[Wait]:
    limited, without_waves = limit_of(trial) is not None, 1 - share_of_waves(trial)
    # Who comes independently of others finds all m CPUs busy (M/M/m, shared). Run queues beyond
    # that are those of bursts, on CPUs that are idle in between: more CPUs may be no help.
    at_random = busy**cpus
    for place in PLACES:
        stage, of_server = of_place(trial, place), place in OF_SERVER
        if of_server and limited:
            continue
        if stage is None:
            part = at_random if busy >= NEARLY_FULL else 0.0
            yield Wait(place, part=part, measured=False)
            continue
        part = for_cpu(trial, place, stage, cpus) if of_server else stage.for_cpu
        part *= without_waves
        sure = min(part, at_random)
        # Beyond the parts that are known, the place of a wait is not.
        yield Wait(place, part=sure, measured=trial.split is not None or place == "generator")
        yield Wait(place, part=part - sure, measured=False)


def _busiest(trial: Trial) -> tuple[float | None, str]:
    """The busiest of several machines; None where one of them was not seen."""
    names = trial.metrics().values_of("machine", CPUS_OF_EACH)
    shares = [(machine_busy(trial.observation, name), name) for name in names]
    busy = [(share, name) for share, name in shares if share is not None]
    return max(busy) if busy and len(busy) == len(shares) else (None, "")
