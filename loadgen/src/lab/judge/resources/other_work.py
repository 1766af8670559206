"""Work outside the lab on its CPUs: other machines of the same host (steal), and processes of this
one, as far as the checks found that they left the lab too few CPUs."""

from lab.judge.resources.excess import excess_of
from lab.judge.resources.resource import Standing, Trial, Wait, resource


@resource("work outside the lab")
def other_work(trial: Trial) -> Standing | None:
    """Its part of the wait for the host's CPUs.

    Measured: as host CPU"""
    steal, others = trial.usage.host_steal, trial.judgement.others_cpu
    if (steal is None and others is None) or not trial.cpus:
        return None
    taken = max(steal or 0.0, others or 0.0)
    trial.note("taken", taken, "of the CPUs' time", "trial.json, usage; the checks")
    takes = (Wait("host CPU", part=_share(trial, taken), measured=False),)
    return Standing(taken * trial.cpus, trial.cpus, "CPUs", takes=takes)


def _share(trial: Trial, taken: float) -> float:
    """The share of the waiting for a CPU that is due to them. In M/M/1 the wait is u / (1 - u) of
    the CPUs that are left, so without them (1 - u) / (1 - u - taken) times shorter. By Little's law
    a request takes N / X, which falls by no more than what they took. The smaller counts."""
    whole, excess = trial.usage.host_taken, excess_of(trial)
    if not taken or whole is None or excess is None or excess.ms <= 0:
        return 0.0
    by_lab = whole - taken
    of_wait = taken / (1 - by_lab) if by_lab < 1 else 1.0
    of_time = taken * ((excess.r0_ms or 0.0) + excess.ms) / excess.ms
    return min(1.0, of_wait, of_time)
