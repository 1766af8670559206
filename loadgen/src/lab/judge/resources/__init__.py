"""What limited a trial: where the time above R0 went (docs/verdict.md).

A resource is one object in one file. To add one, add its file.
"""

from importlib import import_module
from pkgutil import iter_modules

from lab.judge.resources import rule
from lab.judge.resources.resource import Resource
from lab.judge.trial import UNOBSERVED, Trial
from lab.model import UNKNOWN, Basis, SeriesError, Verdict

BY_NAME = {
    value.name: value
    for module in iter_modules(__path__)
    for value in vars(import_module(f"{__name__}.{module.name}")).values()
    if isinstance(value, Resource)
}
# Every resource that a verdict can name, in the words of rows, reports and SUSPECT=.
RESOURCES = tuple(BY_NAME)


def verdict_of(trial: Trial) -> Verdict:
    """What limited a trial that was judged. It is UNKNOWN where stored series are not what the lab
    writes, and for a route that the lab no longer has."""
    if trial.measurement.reading is None:
        return _unknown("no figures")
    if trial.plan.hold:
        return _unknown("held")
    if trial.observation is UNOBSERVED:
        return _unknown("no series")
    try:
        _ = trial.call
    except ValueError:
        return _unknown("no such route")
    try:
        return rule.verdict(trial, BY_NAME.values())
    except SeriesError:
        return _unknown("bad series")


def _unknown(basis: Basis) -> Verdict:
    return Verdict(UNKNOWN, "", basis, None)
