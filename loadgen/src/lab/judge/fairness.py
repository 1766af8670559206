"""Are compared servers alike in all but their concurrency model?

Fails closed: whatever a server reads back must be equal for all, unless it is listed here as
the model's own. A silent difference of limits would be measured as one of models.
"""

from collections.abc import Iterator, Mapping, Sequence

from lab.judge.checks.state import unequal_limits
from lab.judge.same_lab import MISSING, Difference, between_ways, facts, kind_of
from lab.model import Fairness, Json, Remark, Snapshot

# Settings that not every model has. Those that have one must agree on it …
OWN = (
    "pool_size",
    "pool_order",
    "queue_bound",
    "loops",
    "block_the_loop",
    "fronts",
    "connection_threads",
    "netty_transport",
    "framework_defaults",
    "downstream_client",
    "lock_ms",
    "pin_ms",
    "lock_watch_ms",
    "downstream_keep_idle_s",
    "framework",
)
# … but not on these: a model's number of loops, and what a framework brings, are part of it.
FREE = ("loops", "framework")


def compare(snapshots: Mapping[str, Snapshot]) -> Fairness:
    """What the servers have in common, from what was read back of each."""
    limits = {server: facts(snapshot) for server, snapshot in snapshots.items()}
    equal: dict[str, Json] = {}
    unequal: dict[str, Mapping[str, Json]] = {}
    own: dict[str, Mapping[str, Json]] = {}
    for name in dict.fromkeys(name for known in limits.values() for name in known):
        if name in OWN:
            values = {server: known.get(name) for server, known in limits.items()}
            having = [value for value in values.values() if value is not None]
            if having:
                own[name] = values
            alike = name in FREE or _same(having)
        else:
            values = {server: known.get(name, MISSING) for server, known in limits.items()}
            alike = _same(list(values.values()))
            if alike:
                equal[name] = next(iter(values.values()))
        if not alike:
            unequal[name] = values
    return Fairness(equal, own, unequal)


def between_models(was: Snapshot, now: Snapshot) -> Iterator[Difference]:
    """What differs that must not, between servers of different models and on their ways."""
    for name, values in compare({"was": was, "now": now}).unequal.items():
        yield Difference(kind_of(name), name, values["was"], values["now"])
    yield from between_ways(was, now)


def reasons(fairness: Fairness) -> tuple[Remark, ...]:
    """Why no row of the comparison is valid; empty when it is fair."""
    return tuple(
        unequal_limits.remark(
            limit=name,
            servers=" ".join(f"{server}={_text(its, values)}" for server, its in values.items()),
        )
        for name, values in fairness.unequal.items()
    )


def _same(values: Sequence[Json]) -> bool:
    return all(value == values[0] for value in values)


def _text(value: Json, values: Mapping[str, Json]) -> str:
    """A value; of a list only what the others do not all have too."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, list):
        return str(value)
    others = [set(map(str, one)) for one in values.values() if isinstance(one, list)]
    common = set.intersection(*others)
    return ",".join(str(item) for item in value if str(item) not in common) or "none"
