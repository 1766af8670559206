"""Are compared servers alike in all but their concurrency model?

Fails closed: whatever a server reads back must be equal for all, unless it is listed here as
the model's own. A silent difference of limits would be measured as one of models.
"""

from collections.abc import Iterator, Mapping

from lab.judge.checks.state import unequal_limits
from lab.judge.same_lab import MISSING, Difference, between_ways, facts, kind_of
from lab.model import Fairness, Json, Remark, Snapshot

# Settings that not every model has. Those that have one must agree on it …
OWN = (
    *("pool_size", "pool_order", "queue_bound", "loops", "block_the_loop", "fronts"),
    *("connection_threads", "netty_transport", "framework_defaults", "downstream_client"),
    *("lock_ms", "pin_ms", "lock_watch_ms", "downstream_keep_idle_s", "framework"),
)
# … but not on these: a model's number of loops, and what a framework brings, are part of it.
FREE = ("loops", "framework")


def compare(snapshots: Mapping[str, Snapshot]) -> Fairness:
    """What the servers have in common, from what was read back of each."""
    settings = {server: facts(snapshot) for server, snapshot in snapshots.items()}
    equal: dict[str, Json] = {}
    unequal: dict[str, Mapping[str, Json]] = {}
    own: dict[str, Mapping[str, Json]] = {}
    for name in dict.fromkeys(name for values in settings.values() for name in values):
        unread = None if name in OWN else MISSING
        values = {server: every.get(name, unread) for server, every in settings.items()}
        compared = [value for value in values.values() if name not in OWN or value is not None]
        alike = name in FREE or all(value == compared[0] for value in compared)
        if name in OWN and compared:
            own[name] = values
        elif name not in OWN and alike:
            equal[name] = compared[0]
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
    remarks = []
    for name, values in fairness.unequal.items():
        lists = [set(map(str, value)) for value in values.values() if isinstance(value, list)]
        common = set.intersection(*lists) if lists else set()
        servers = (f"{server}={_text(value, common)}" for server, value in values.items())
        remarks.append(unequal_limits.remark(limit=name, servers=" ".join(servers)))
    return tuple(remarks)


def _text(value: Json, common: set[str]) -> str:
    """A value; of a list only what the others do not all have too."""
    if isinstance(value, list):
        return ",".join(str(item) for item in value if str(item) not in common) or "none"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
