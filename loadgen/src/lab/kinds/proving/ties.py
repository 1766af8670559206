"""Resources that are full alike: a change of one alone is no help, because another one binds. Pure.

By the prediction under the changed condition, where that knows bounds; else by the verdicts of the
trials with the change.
"""

import statistics
from collections import Counter
from collections.abc import Sequence

from lab.judge.compare import MARGIN
from lab.kinds.proving.levers import Change, lever, together
from lab.kinds.proving.present import Present
from lab.model import UNKNOWN, Bound, Remark, Row

# What changes in one step, and why it is more than one resource (None: it is one).
Tied = tuple[tuple[str, ...], Remark | None]


def tied_with(resource: str, now: Present, measured: float | None) -> Tied:
    """The resource, with those that by the prediction bind right behind it at the goodput
    `measured`. One with a bound of its own above that is no limit, and has none behind it."""
    resources: tuple[str, ...] = (resource,)
    why = None
    while measured and not _slack(resource, now, measured):
        change = together(resources, now)
        if isinstance(change, Remark) or change.takes:
            break
        bound = _next_bound(change, now)
        if bound is None or bound.rps > (1 + MARGIN) * measured or bound.resource in resources:
            break
        if not _can_rise(bound.resource, now):
            break
        why = Remark("little-room", {"alone": _names(resources), "times": bound.rps / measured})
        resources = (*resources, bound.resource)
    return resources, why


def behind(resources: tuple[str, ...], after: Sequence[Row], now: Present) -> Tied | None:
    """What to change together after a change of `resources` that was no help: these, and the
    resource that most of its trials `after` name. None where that is none that can be raised."""
    name, count = Counter(row.bottleneck or UNKNOWN for row in after).most_common(1)[0]
    if name in resources or 2 * count <= len(after) or not _can_rise(name, now):
        return None
    why = Remark("named-with-change", {"named": name, "changed": _names(resources)})
    return (*resources, name), why


def no_room(
    resources: tuple[str, ...], change: Change, now: Present, goodput_rps: Sequence[float]
) -> Remark | None:
    """Why a change that was no help says nothing, with the goodputs before it: the prediction
    leaves no room with it. None where there was room, and where each of the resources has a bound
    of its own above the goodput: then it was no limit anyway."""
    measured = statistics.median(goodput_rps)
    bound = _next_bound(change, now)
    if bound is None or not measured or bound.rps > (1 + MARGIN) * measured:
        return None
    if all(_slack(resource, now, measured) for resource in resources):
        return None
    times = bound.rps / measured
    return Remark("no-room", {"times": times, "bound": bound.resource, "formula": bound.formula})


def _names(resources: Sequence[str]) -> str:
    return ", ".join(resources)


def _can_rise(resource: str, now: Present) -> bool:
    change = lever(resource, now)
    return isinstance(change, Change) and not change.takes


def _slack(resource: str, now: Present, measured: float) -> bool:
    """True if a resource has a bound of its own that is above what was measured."""
    bounds = [bound.rps for bound in now.bounds(now.condition) if bound.resource == resource]
    return bool(bounds) and bounds[0] > (1 + MARGIN) * measured


def _next_bound(change: Change, now: Present) -> Bound | None:
    """What binds with the change, by the prediction; None where nothing is predicted."""
    return next(iter(now.bounds(change.step)), None)
