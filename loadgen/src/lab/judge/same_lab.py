"""Is this the same lab? Two descriptions of a lab, and all that they differ in: may these runs be
compared, may this run go on, did the lab change during a trial, are the compared servers alike in
all but their concurrency model?

Fails closed: what one of the two did not record differs from everything, and whatever a server
reads back must be equal for all, unless it is listed here as the model's own.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from lab.model import Fairness, Json, Snapshot
from lab.model.host_facts import OF_HOST

Kind = Literal[
    "host",  # the machine
    "limits",  # what the lab's own processes may use of it
    "images",
    "commit",
    "uncommitted",  # no commit shows which code ran, on neither side: only the images do
    "engine",
    "build",  # the server's version and JDK
    "jvm",  # what else makes the server's JVM
    "settings",
    "toxics",
    "delay",
]
# The machine, and how Docker sets up its containers: an upgrade makes another lab of the same host.
HOST = (*OF_HOST, "docker_version")
# Parts of the lab with CPUs of their own, and images that are in every request's way.
PARTS = ("loadgen", "toxiproxy", "downstream")
MISSING = "missing"
# Where a service of the user's own sees the folder with the JMX exporter, which is the lab's.
JMX = "/jmx"
# What limits its containers.
LIMITS = ("containers", "nano_cpus", "cpu_quota", "cpu_period", "cpuset", "memory_bytes")
# Settings that not every model has. Those that have one must agree on it …
OWN = (
    *("pool_size", "pool_order", "queue_bound", "loops", "block_the_loop", "fronts"),
    *("connection_threads", "netty_transport", "framework_defaults", "downstream_client"),
    *("lock_ms", "pin_ms", "lock_watch_ms", "downstream_keep_idle_s", "framework"),
)
# … but not on these: a model's number of loops, and what a framework brings, are part of it.
FREE = ("loops", "framework")
_BUILD = ("version", "jdk")
_JVM = ("cpus", "max_heap_bytes", "gc", "jvm_flags")


class Lab(Protocol):
    """What a run records of the lab it was made on (lab.store.manifest.Manifest): of the machine,
    of what the driver's process may use, and of the code."""

    @property
    def host(self) -> Mapping[str, Json]: ...

    @property
    def limits(self) -> Mapping[str, Json]: ...

    @property
    def versions(self) -> Mapping[str, Json]: ...


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that is not the same in both labs. None: it was not recorded."""

    kind: Kind
    name: str
    was: object
    now: object


# The facts of each kind, by name; None: it was not recorded.
Facts = Mapping[str, object]


def between_labs(
    was: Lab, now: Lab, limits: Iterable[str], images: Iterable[str]
) -> Iterator[Difference]:
    """What differs outside the servers. `limits` and `images` must be recorded; of the limits all
    others that were recorded must agree too."""
    recorded = (name for lab in (was, now) for name in lab.limits if lab.limits[name] is not None)
    limits, images = sorted({*limits, *recorded}), tuple(dict.fromkeys(images))
    yield from _apart("host", _machines(was), _machines(now))
    yield from _apart("limits", _limits(was, limits), _limits(now, limits))
    ids = image_ids(was), image_ids(now)
    yield from _apart("images", *({name: of_lab.get(name) for name in images} for of_lab in ids))
    before, after = services(was), services(now)
    # Where one run did not record a service, its image is unknown, too.
    for name in (name for name in images if name in before and name in after):
        texts = {limit: limit for limit in LIMITS}
        # An image has some of both in it.
        if before[name].get("image") == after[name].get("image"):
            texts["config"] = "environment or command"
        sides = (
            {f"{text} of {name}": container.get(key) for key, text in texts.items()}
            for container in (before[name], after[name])
        )
        yield from _apart("limits", *sides)
    yield from _commits(was.versions, now.versions)
    engines = was.versions.get("engine"), now.versions.get("engine")
    if engines != (None, None):  # as of a run that puts no load on anything
        yield from _apart("engine", *({"engine": engine} for engine in engines))


def _machines(lab: Lab) -> Facts:
    machines = lab.host.get("machines")
    others = machines.items() if isinstance(machines, Mapping) else ()
    facts: dict[str, object] = {name: lab.host.get(name) for name in HOST}
    return facts | {f"machine {name}": json.dumps(host, sort_keys=True) for name, host in others}


def _limits(lab: Lab, names: Iterable[str]) -> Facts:
    """Of CPUs nothing given is all of them."""
    sets = lab.host.get("cpusets")
    cpus = sets if isinstance(sets, Mapping) else {}
    given = {f"CPU set of {part}": cpus.get(part) for part in (*PARTS, "observation")}
    given["TOXIPROXY_GOMAXPROCS"] = lab.host.get("toxiproxy_gomaxprocs")
    facts: dict[str, object] = {name: lab.limits.get(name) for name in names}
    return facts | {
        name: None if value is None else str(value) or "all" for name, value in given.items()
    }


def _apart(kind: Kind, was: Facts, now: Facts) -> Iterator[Difference]:
    for name in dict.fromkeys((*was, *now)):
        before, after = was.get(name, MISSING), now.get(name, MISSING)
        if before is None or after is None or before != after:
            yield Difference(kind, name, before, after)


def _commits(was: Mapping[str, Json], now: Mapping[str, Json]) -> Iterator[Difference]:
    """`unknown` is a lab without git."""
    recorded = [versions.get("commit") for versions in (was, now)]
    commits = [None if commit == "unknown" else commit for commit in recorded]
    kind: Kind = "uncommitted" if recorded == ["unknown", "unknown"] else "commit"
    yield from _apart(kind, *({"commit": commit} for commit in commits))
    dirty = [versions.get("commit_dirty") for versions in (was, now)]
    if dirty != [False, False]:
        kind = "uncommitted" if dirty == [True, True] else "commit"
        yield Difference(kind, "commit_dirty", *dirty)


def between_snapshots(was: Snapshot, now: Snapshot) -> Iterator[Difference]:
    """What differs of one server and of its way to the downstream. Another start time is none."""
    before, after = facts(was), facts(now)
    for name in dict.fromkeys((*before, *after)):
        values = before.get(name, MISSING), after.get(name, MISSING)
        if values[0] != values[1]:
            yield Difference(kind_of(name), name, *values)
    exporters = was.exported is not None, now.exported is not None
    if exporters[0] != exporters[1]:
        yield Difference("jvm", "whether a JMX exporter answers", *exporters)
    yield from between_ways(was, now)


def between_ways(was: Snapshot, now: Snapshot) -> Iterator[Difference]:
    if was.toxics != now.toxics:
        texts = ("; ".join(snapshot.toxics.in_force) or "none" for snapshot in (was, now))
        yield Difference("toxics", "toxics", *texts)
    if (was.spread, was.downstream_delay_ms) != (now.spread, now.downstream_delay_ms):
        yield Difference("delay", "the downstream's delay", was.delay_text, now.delay_text)


def facts(snapshot: Snapshot) -> dict[str, Json]:
    """What was read back of a server, by name: its settings, and what its JVM is. A setting that is
    None was read back: the model has no such thing."""
    identity = snapshot.identity
    if identity is None:
        names = ("jdk", "max_heap_bytes", "lock_watch_ms")
        read = {name: getattr(snapshot.exported, name, None) for name in names}
        # A recorder that does not watch is as none.
        read["lock_watch_ms"] = read["lock_watch_ms"] or None
        return {**snapshot.settings, **{k: v for k, v in read.items() if v is not None}}
    read = {name: getattr(identity, name) for name in (*_BUILD, *_JVM)}
    lists = {name: list(value) for name, value in read.items() if isinstance(value, tuple)}
    return {**snapshot.settings, **read, **lists}


def kind_of(name: str) -> Kind:
    if name in _BUILD:
        return "build"
    return "jvm" if name in _JVM else "settings"


def fairness(snapshots: Mapping[str, Snapshot]) -> Fairness:
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
    for name, values in fairness({"was": was, "now": now}).unequal.items():
        yield Difference(kind_of(name), name, values["was"], values["now"])
    yield from between_ways(was, now)


def image_ids(lab: Lab) -> dict[str, Json]:
    """The id of each image by its name without registry, project and tag, and that of each service
    of the user's own by its name: None where its code may be in a folder of the host."""
    images = lab.host.get("images")
    ids: dict[str, Json] = {}
    for tag, image in images.items() if isinstance(images, Mapping) else ():
        if isinstance(image, Mapping):
            ids.setdefault(tag.rpartition("/")[2].partition(":")[0], image.get("id"))
    for name, service in services(lab).items():
        ids[name] = None if may_be_elsewhere(service) else service.get("image")
    return ids


def may_be_elsewhere(service: Mapping[str, Json]) -> bool:
    """True if a service's code may be in a folder of the host, or that was not recorded."""
    binds = service.get("binds")
    return not isinstance(binds, list) or any(folder not in (None, JMX) for folder in binds)


def services(lab: Lab) -> dict[str, Mapping[str, Json]]:
    named = lab.host.get("services")
    every = named if isinstance(named, Mapping) else {}
    return {name: service for name, service in every.items() if isinstance(service, Mapping)}
