"""The load itself, where its requests come in waves: a constant delay keeps a crowd together, and
each stage serves it in turn, while it is idle in between (docs/path.md)."""

from collections.abc import Iterator

from lab.judge.resources.excess import answered, excess_of
from lab.judge.resources.resource import Standing, Trial, Wait, resource
from lab.judge.resources.server_cpu import limit_of
from lab.judge.resources.stages import OF_SERVER, PLACES, of_place


@resource("waves of the load")
def waves(trial: Trial) -> Standing | None:
    """Of what waits for a stage or for a CPU (I − 1) / (I + 1), with the index of dispersion I of
    the requests sent in 10 ms; no more than could go before the CPUs are full.

    Measured: no: the dispersion is, its effect is estimated"""
    dispersion = trial.reading.dispersion
    if dispersion is None:
        return None
    trial.note("dispersion", dispersion, "per 10 ms", "raw/<trial>/pacer.jsonl.gz, sent_in_10ms")
    waits = tuple(_waits(trial))
    return Standing(dispersion, None, "times the variance at random", waits=waits)


def _waits(trial: Trial) -> Iterator[Wait]:
    part, limited = share_of_waves(trial), limit_of(trial) is not None
    for place in PLACES:
        stage = of_place(trial, place)
        if part and stage and not (limited and place in OF_SERVER):
            yield Wait(place, part=part * stage.at_work, measured=False)


def share_of_waves(trial: Trial) -> float:
    """The part of the waiting for a stage or a CPU that is due to waves. A queue's wait is in
    proportion to c² + 1, with the squared coefficients of variation of arrivals and of service, the
    second of which is taken as 1 (W. Whitt, The Queueing Network Analyzer, Bell Syst. Tech. J. 62
    (1983) 2779); I stands for the first, which it is over long intervals.

    Without its waves a closed load sends more, until the CPUs are full: with X = N / (R0 + e) that
    takes no more than (1 - busy) (R0 + e) / e of the excess e. 0 where the rate of an open load was
    not answered, and where I is not known."""
    dispersion, busy = trial.reading.dispersion, trial.usage.host_taken
    excess = excess_of(trial)
    if dispersion is None or dispersion <= 1 or busy is None or excess is None:
        return 0.0
    share = (dispersion - 1) / (dispersion + 1)
    if trial.is_open:
        return share if answered(trial) else 0.0
    whole_ms = (excess.r0_ms or 0.0) + excess.ms
    room = (1 - busy) * whole_ms / excess.ms if excess.ms > 0 else 1.0
    return share * max(0.0, min(1.0, room))
