"""What a connection costs in memory: no trials, but fresh JVMs with connections that are idle, slow
or have a request in flight.

`campaign.density` measures it.
"""

from __future__ import annotations

from lab.errors import WordError
from lab.experiments.kind import Kind, ToMeasure, Verb
from lab.experiments.reading import SPARE_DESCRIPTORS, Asked, Here, Key, Word, rules
from lab.model.density import IN_FLIGHT, KINDS, Plan
from lab.model.routes import parse

DEFAULT_LAUNCHES = 3
# Ports that other connections to the same server may hold.
SPARE_PORTS = 500
# Idle and slow: quiet connections, that need nothing of the lab but the server.
BOTH, QUIET = "both", KINDS[:2]
KEYS = {
    "connections": Key(rules.number(1, rules.MAX_CONNECTIONS), 8000),
    "kind": Key(rules.one_of((*KINDS, BOTH)), BOTH),
}


def read(asked: Asked) -> ToMeasure:
    """The density that words or a file describe, as far as this machine has connections. Raises
    WordError."""
    settings = asked.settings
    given = settings.table("density", KEYS)
    kinds = QUIET if given["kind"] == BOTH else (given["kind"],)
    route = settings.one("load.routes", rules.one_of(tuple(IN_FLIGHT)), "/downstream")
    if "in-flight" not in kinds and settings.get("load.routes") is not None:
        raise WordError(f"{settings.place}: ROUTE is only for KIND=in-flight")
    files = parse(route).route.descriptors if "in-flight" in kinds else 1
    possible, why = _possible(given["connections"], asked.here, files)
    launches = rules.number(1, rules.MAX_LAUNCHES)
    plan = Plan(
        name=asked.name,
        servers=settings.each("load.servers", rules.server(asked.here.servers))
        or tuple(asked.here.servers),
        kinds=kinds,
        route=IN_FLIGHT[route],
        asked=given["connections"],
        connections=possible,
        why_fewer=why,
        launches=settings.one("repeat.launches", launches, DEFAULT_LAUNCHES),
        words=asked.words,
        question=asked.question,
        hypothesis=asked.hypothesis,
    )
    return plan, ()


def _possible(asked: int, here: Here, files: int) -> tuple[int, str | None]:
    """How many of them this machine can have, with so many open files of the server's for each, and
    what stands in the way of the others."""
    each = "" if files == 1 else f", {files} for each request"
    most_files = (here.file_limit - SPARE_DESCRIPTORS) // files
    limits = [(most_files, f"{here.file_limit} open files per process{each}")]
    if here.ports is not None:
        limits.append((here.ports - SPARE_PORTS, f"{here.ports} source ports"))
    most, why = min(limits)
    if most < 1:
        raise WordError(f"density: no connection is possible here: {why}")
    return (asked, None) if asked <= most else (most, why)


KIND = Kind(
    name="density",
    uses=("load.servers", "load.routes", "repeat.launches"),
    keys=KEYS,
    words={"CONNECTIONS": Word("density.connections"), "KIND": Word("density.kind")},
    scales=False,
    verb=Verb("density"),
    read=read,
)
