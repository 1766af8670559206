"""Resources that are full alike: a change of one alone is no help, because another one binds. Pure.

By the prediction under the changed condition, where that knows bounds; else by the verdicts of the
trials with the change.
"""

import statistics
from collections import Counter
from collections.abc import Sequence

from lab.experiments.proving.levers import Lever, Present, lever, together
from lab.judge.compare import MARGIN
from lab.model import UNKNOWN, Bound, Row

# What changes in one step, and why it is more than one resource (empty: it is one).
Tied = tuple[tuple[str, ...], str]


def tied_with(resource: str, now: Present, measured: float | None) -> Tied:
    """The resource, with those that by the prediction bind right behind it at the goodput
    `measured`. One with a bound of its own above that is no limit, and has none behind it."""
    resources: tuple[str, ...] = (resource,)
    why = ""
    while measured and not _slack(resource, now, measured):
        change = together(resources, now)
        if isinstance(change, str) or change.takes:
            break
        bound = _next_bound(change, now)
        if bound is None or bound.rps > (1 + MARGIN) * measured or bound.resource in resources:
            break
        if not _can_rise(bound.resource, now):
            break
        room = bound.rps / measured
        why = f"together, for {' and '.join(resources)} alone leaves room for ×{room:.2f} only"
        resources = (*resources, bound.resource)
    return resources, why


def behind(resources: tuple[str, ...], after: Sequence[Row], now: Present) -> Tied | None:
    """What to change together after a change of `resources` that was no help: these, and the
    resource that most of its trials `after` name. None where that is none that can be raised."""
    name, count = Counter(row.bottleneck or UNKNOWN for row in after).most_common(1)[0]
    if name in resources or 2 * count <= len(after) or not _can_rise(name, now):
        return None
    why = f"together, for {name} was named with {' and '.join(resources)} changed"
    return (*resources, name), why


def no_room(
    resources: tuple[str, ...], change: Lever, now: Present, before: Sequence[tuple[float, float]]
) -> str:
    """Why a change that was no help says nothing, with the goodputs `before` it (answers.goodputs):
    the prediction leaves no room with it. Empty where there was room, and where each of the
    resources has a bound of its own above the goodput: then it was no limit anyway."""
    measured = statistics.median(value for value, _ in before)
    bound = _next_bound(change, now)
    if bound is None or not measured or bound.rps > (1 + MARGIN) * measured:
        return ""
    if all(_slack(resource, now, measured) for resource in resources):
        return ""
    room = f"there is room for ×{bound.rps / measured:.2f} only ({bound.resource}: {bound.formula})"
    return f"{room}: ask with more connections" if bound.resource == "connections" else room


def _can_rise(resource: str, now: Present) -> bool:
    change = lever(resource, now)
    return not isinstance(change, str) and not change.takes


def _slack(resource: str, now: Present, measured: float) -> bool:
    """Whether a resource has a bound of its own that is above what was measured."""
    own = [bound.rps for bound in now.bounds(now.condition) if bound.resource == resource]
    return bool(own) and own[0] > (1 + MARGIN) * measured


def _next_bound(change: Lever, now: Present) -> Bound | None:
    """What binds with the change, by the prediction; None where nothing is predicted."""
    return next(iter(now.bounds(change.step)), None)
