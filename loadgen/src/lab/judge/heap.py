"""The heap that a JVM uses after garbage collections, from its exporter's figures of each pool."""

from collections.abc import Sequence

from lab.model import Observation, Series

AFTER = "jvm_memory_pool_collection_used_bytes"
USED = "jvm_memory_pool_used_bytes"
# Pools of old objects: "G1 Old Gen", "PS Old Gen", "Tenured Gen", "ZGC Old Generation".
OLD_WORDS = ("Old", "Tenured")


def heap_after_collections(seen: Observation, **labels: str) -> tuple[tuple[float, float], ...]:
    """The heap in use, without the objects allocated since the last collection: bytes by time, of
    the one JVM with these labels. The same as the recorded
    server:jvm_memory_heap_after_collection_bytes:sum (prometheus/rules).

    A young collection leaves its survivors in the young pools. The old generation's usage after
    collection may be hours old, or never was (G1 then has 0), so its usage now counts: it changes
    only by collections, and by objects too large to be young. Dead old objects count until an old
    collection finds them.
    """
    after = seen.series(AFTER, job="jvm", **labels)
    old = [pool for pool in seen.series(USED, job="jvm", **labels) if is_old(pool)]
    if not old and any(map(is_old, after)):
        return ()
    return summed((*(pool for pool in after if not is_old(pool)), *old))


def summed(parts: Sequence[Series]) -> tuple[tuple[float, float], ...]:
    """The sum of these series at the times that all of them have; nothing of none."""
    if not parts:
        return ()
    values = [dict(part.points) for part in parts]
    times = sorted(set.intersection(*(set(part) for part in values)))
    return tuple((at, sum(part[at] for part in values)) for at in times)


def is_old(series: Series) -> bool:
    name = series.labels.get("pool", "")
    return any(word in name for word in OLD_WORDS)
