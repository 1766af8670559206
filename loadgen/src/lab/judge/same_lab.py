"""Is this the same lab? Two descriptions of a lab, and all that they differ in.

Every question of this kind is asked here: may these runs be compared, may this run go on, did the
lab change during a trial. Each caller says which kinds of difference it allows.

Fails closed: what one of the two did not record differs from everything.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from lab.model import Json, Snapshot
from lab.model.host_facts import OF_HOST

Kind = Literal[
    "host",  # the machine
    "limits",  # what the lab's own processes may use of it
    "images",
    "commit",
    "uncommitted",  # no commit tells which code ran, on neither side: only the images do
    "engine",
    "build",  # the server's version and JDK
    "jvm",  # what else makes the server's JVM
    "settings",
    "toxics",
    "delay",
]
# The machine, and how Docker sets up its containers: an upgrade makes another lab of the same host
# (`lab.model.host_facts.host_id`). `cpu_id` and the facts of `machines` are in the id, too; the
# machines are compared one by one below, and old runs have no `cpu_id`.
HOST = (*OF_HOST, "docker_version")
# Parts of the lab with CPUs of their own, and images that are in every request's way.
PARTS = ("loadgen", "toxiproxy", "downstream")
MISSING = "missing"
# Where a service of the user's own sees the folder with the JMX exporter, which is the lab's.
JMX = "/jmx"
# What limits its containers.
LIMITS = ("containers", "nano_cpus", "cpu_quota", "cpu_period", "cpuset", "memory_bytes")
_BUILD = ("version", "jdk")
_JVM = ("cpus", "max_heap_bytes", "gc", "jvm_flags")


class Lab(Protocol):
    """What a run records of the lab it was made on (lab.store.manifest.Manifest)."""

    @property
    def host(self) -> Mapping[str, Json]:
        """What make read off the machine."""

    @property
    def limits(self) -> Mapping[str, Json]:
        """What the driver's process may use."""

    @property
    def versions(self) -> Mapping[str, Json]: ...


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that is not the same in both labs. None: it was not recorded."""

    kind: Kind
    name: str
    was: object
    now: object


def between_labs(
    was: Lab, now: Lab, limits: Iterable[str], images: Iterable[str]
) -> Iterator[Difference]:
    """What differs outside the servers. `limits` and `images` must be recorded; of the limits all
    others that were recorded must agree too."""
    for name in HOST:
        yield from _differs("host", name, was.host.get(name), now.host.get(name))
    machines = _machines(was), _machines(now)
    for name in dict.fromkeys((*machines[0], *machines[1])):
        facts = (of.get(name, MISSING) for of in machines)
        yield from _differs("host", f"machine {name}", *facts)
    recorded = (name for lab in (was, now) for name in lab.limits if lab.limits[name] is not None)
    for name in sorted({*limits, *recorded}):
        yield from _differs("limits", name, was.limits.get(name), now.limits.get(name))
    for name in (*PARTS, "observation"):
        yield from _differs("limits", f"CPU set of {name}", _cpus(was, name), _cpus(now, name))
    runtimes = (_or_all(lab.host.get("toxiproxy_gomaxprocs")) for lab in (was, now))
    yield from _differs("limits", "TOXIPROXY_GOMAXPROCS", *runtimes)
    before, after = image_ids(was), image_ids(now)
    for name in dict.fromkeys(images):
        yield from _differs("images", name, before.get(name), after.get(name))
        yield from _between_services(name, services(was).get(name), services(now).get(name))
    yield from _commits(was.versions, now.versions)
    engines = was.versions.get("engine"), now.versions.get("engine")
    if engines != (None, None):  # as of a run that puts no load on anything
        yield from _differs("engine", "engine", *engines)


def between_snapshots(was: Snapshot, now: Snapshot) -> Iterator[Difference]:
    """What differs of one server and of its way to the downstream. Another JVM alone, with another
    start time, is no difference."""
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
        texts = ("; ".join(one.toxics.in_force) or "none" for one in (was, now))
        yield Difference("toxics", "toxics", *texts)
    delays = was.downstream_delay_ms, now.downstream_delay_ms
    if was.spread != now.spread:
        yield Difference("delay", "the downstream's delay", was.delay_text, now.delay_text)
    else:
        yield from _differs("delay", "the downstream's delay in ms", *delays)


def facts(snapshot: Snapshot) -> dict[str, Json]:
    """What was read back of a server, by name: its settings, and what its JVM is. A setting that is
    None was read back: the model has no such thing."""
    identity, exported = snapshot.identity, snapshot.exported
    if identity is None:
        names = ("jdk", "max_heap_bytes", "lock_watch_ms")
        known = {name: getattr(exported, name) for name in names} if exported else {}
        # A recorder that does not watch is as none.
        known["lock_watch_ms"] = known.get("lock_watch_ms") or None
        return {**snapshot.settings, **{k: v for k, v in known.items() if v is not None}}
    read = {name: getattr(identity, name) for name in (*_BUILD, *_JVM)}
    lists = {name: list(value) for name, value in read.items() if isinstance(value, tuple)}
    return {**snapshot.settings, **read, **lists}


def kind_of(name: str) -> Kind:
    if name in _BUILD:
        return "build"
    return "jvm" if name in _JVM else "settings"


def image_ids(lab: Lab) -> dict[str, Json]:
    """The id of each image by its name without registry, project and tag, and by the service's name
    that of the container of each service of the user's own: None where the code may be in a folder
    of the host, which no image tells."""
    images = lab.host.get("images")
    found: dict[str, Json] = {}
    for tag, of in images.items() if isinstance(images, Mapping) else ():
        if isinstance(of, Mapping):
            found.setdefault(tag.rpartition("/")[2].partition(":")[0], of.get("id"))
    return found | {
        name: None if may_be_elsewhere(of) else of.get("image")
        for name, of in services(lab).items()
    }


def may_be_elsewhere(service: Mapping[str, Json]) -> bool:
    """True if a service's code may be in a folder of the host, or that was not recorded."""
    binds = service.get("binds")
    return not isinstance(binds, list) or any(one not in (None, JMX) for one in binds)


def services(lab: Lab) -> dict[str, Mapping[str, Json]]:
    told = lab.host.get("services")
    named = told if isinstance(told, Mapping) else {}
    return {name: of for name, of in named.items() if isinstance(of, Mapping)}


def _between_services(
    name: str, was: Mapping[str, Json] | None, now: Mapping[str, Json] | None
) -> Iterator[Difference]:
    """Other limits of its containers, another environment or command. Where one run did not record
    them, its image is unknown, too."""
    if was is None or now is None:
        return
    for limit in LIMITS:
        yield from _differs("limits", f"{limit} of {name}", was.get(limit), now.get(limit))
    # An image has some of both in it.
    if was.get("image") == now.get("image"):
        what = f"environment or command of {name}"
        yield from _differs("limits", what, was.get("config"), now.get("config"))


def _differs(kind: Kind, name: str, was: object, now: object) -> Iterator[Difference]:
    if was is None or now is None or was != now:
        yield Difference(kind, name, was, now)


def _machines(lab: Lab) -> dict[str, str]:
    """The facts of each machine, by its name; empty for a lab on one machine."""
    machines = lab.host.get("machines")
    named = machines if isinstance(machines, Mapping) else {}
    return {name: json.dumps(of, sort_keys=True) for name, of in named.items()}


def _cpus(lab: Lab, part: str) -> str | None:
    """The CPUs a part may use; None where they were not recorded."""
    sets = lab.host.get("cpusets")
    return _or_all(sets.get(part) if isinstance(sets, Mapping) else None)


def _or_all(cpus: Json) -> str | None:
    """The CPUs as they were given; nothing given is all of them."""
    return None if cpus is None else str(cpus) or "all"


def _commits(was: Mapping[str, Json], now: Mapping[str, Json]) -> Iterator[Difference]:
    """`unknown` is a lab without git. Of code that was not committed the commit tells nothing."""
    commits = [None if one.get("commit") == "unknown" else one.get("commit") for one in (was, now)]
    nowhere = [one.get("commit") for one in (was, now)] == ["unknown"] * 2
    yield from _differs("uncommitted" if nowhere else "commit", "commit", *commits)
    dirty = [one.get("commit_dirty") for one in (was, now)]
    if dirty != [False, False]:
        kind: Kind = "uncommitted" if dirty == [True, True] else "commit"
        yield Difference(kind, "commit_dirty", *dirty)
