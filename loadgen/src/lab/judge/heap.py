"""The heap that a JVM uses after garbage collections, from its exporter's figures of each pool."""

from collections.abc import Sequence

from lab.model import Observation, Series

AFTER = "jvm_memory_pool_collection_used_bytes"
USED = "jvm_memory_pool_used_bytes"
# Pools of old objects: "G1 Old Gen", "PS Old Gen", "Tenured Gen", "ZGC Old Generation".
OLD_WORDS = ("Old", "Tenured")


def heap_after_collections(seen: Observation, **labels: str) -> tuple[tuple[float, float], ...]:
    """The heap in use, without the objects allocated since the last collection: bytes by time, of
    the one JVM with these labels.

    A young collection leaves its survivors, told by the young pools' usage after collection, and
    does not touch the old generation. The old generation's usage after collection is that of its
    last old collection, which may be hours ago, or never (G1 then says 0). So its usage now counts:
    it changes only by collections, and by objects too large to be young. Dead old objects count
    until an old collection finds them.

    The same as the recorded server:jvm_memory_heap_after_collection_bytes:sum (prometheus/rules).
    """
    after = seen.series(AFTER, job="jvm", **labels)
    old = [one for one in seen.series(USED, job="jvm", **labels) if is_old(one)]
    if not old and any(is_old(one) for one in after):
        return ()
    return summed((*(one for one in after if not is_old(one)), *old))


def summed(parts: Sequence[Series]) -> tuple[tuple[float, float], ...]:
    """The sum of these series at the times that all of them have; nothing of none."""
    if not parts:
        return ()
    values = [dict(part.points) for part in parts]
    times = sorted(set.intersection(*(set(part) for part in values)))
    return tuple((at, sum(part[at] for part in values)) for at in times)


def is_old(series: Series) -> bool:
    pool = series.labels.get("pool", "")
    return any(word in pool for word in OLD_WORDS)
