"""What a connection costs in memory: no trials, but fresh JVMs with idle or slow connections.

`campaign.density` measures it.
"""

from __future__ import annotations

from lab.errors import WordError
from lab.experiments.kind import Kind, ToMeasure, Verb
from lab.experiments.reading import SPARE_DESCRIPTORS, Asked, Here, Key, Word, rules
from lab.model.density import KINDS, Plan

DEFAULT_LAUNCHES = 3
# Ports that other connections to the same server may hold.
SPARE_PORTS = 500
KEYS = {
    "connections": Key(rules.number(1, rules.MAX_CONNECTIONS), 8000),
    "kind": Key(rules.one_of((*KINDS, "both")), "both"),
}


def read(asked: Asked) -> ToMeasure:
    """The density that words or a file describe, as far as this machine has connections. Raises
    WordError."""
    settings = asked.settings
    given = settings.table("density", KEYS)
    possible, why = _possible(given["connections"], asked.here)
    launches = rules.number(1, rules.MAX_LAUNCHES)
    plan = Plan(
        name=asked.name,
        servers=settings.each("load.servers", rules.server(asked.here.servers))
        or tuple(asked.here.servers),
        kinds=tuple(one for one in KINDS if given["kind"] in (one, "both")),
        asked=given["connections"],
        connections=possible,
        why_fewer=why,
        launches=settings.one("repeat.launches", launches, DEFAULT_LAUNCHES),
        words=asked.words,
        question=asked.question,
        hypothesis=asked.hypothesis,
    )
    return plan, ()


def _possible(asked: int, here: Here) -> tuple[int, str | None]:
    """How many of them this machine can have, and what stands in the way of the others."""
    limits = [(here.file_limit - SPARE_DESCRIPTORS, f"{here.file_limit} open files per process")]
    if here.ports is not None:
        limits.append((here.ports - SPARE_PORTS, f"{here.ports} source ports"))
    most, why = min(limits)
    if most < 1:
        raise WordError(f"density: no connection is possible here: {why}")
    return (asked, None) if asked <= most else (most, why)


KIND = Kind(
    name="density",
    uses=("load.servers", "repeat.launches"),
    keys=KEYS,
    words={"CONNECTIONS": Word("density.connections"), "KIND": Word("density.kind")},
    scales=False,
    verb=Verb("density"),
    read=read,
)
