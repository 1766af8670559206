"""The settings of a run's servers that differed from the defaults, as read back before the run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lab.model import Json, Snapshot
from lab.model.host_facts import AUTO, cpus_of
from lab.model.knobs import READ_BACK
from lab.store.manifest import Manifest

JVM_FLAGS = "-Xms1g -Xmx1g -XX:+UseG1GC -XX:+UseCompactObjectHeaders -XX:+ExitOnOutOfMemoryError"
SERVER_MEMORY = "2g"
DOWNSTREAM_DELAY_MS = 200
# It has one loop by itself, the others one per CPU.
ONE_LOOP = "event-loop"
# Flags that start.sh gives every JVM besides its SERVER_JVM_FLAGS.
OWN_FLAGS = (
    "--enable-preview",
    "--enable-native-access=",
    "--sun-misc-unsafe-memory-access=",
    "-Dsun.net.httpserver.",
    "-javaagent:/lab/",
)


@dataclass(frozen=True, slots=True)
class Changed:
    """`words` are settings of .env that bring it back, as make takes them; `others`, for people,
    is what no word brings back."""

    words: tuple[str, ...]
    others: tuple[str, ...]


def changed(of: Manifest) -> Changed:
    """What differed from the lab's defaults when the run began: settings given to make that cannot
    be read back, and settings read back. A service that is not the lab's has none."""
    seen: dict[str, dict[str, tuple[str, str]]] = {}
    toxics: dict[str, None] = {}
    for server, snapshot in of.servers.items():
        if snapshot.foreign:
            continue
        for name, value, default in _settings(snapshot, of.host):
            seen.setdefault(name, {})[server] = (value, default)
        toxics |= dict.fromkeys(snapshot.toxics.in_force)
    words, others = list(of.settings), []
    for name, values in seen.items():
        other = [server for server, (value, default) in values.items() if value != default]
        if other and name.isupper() and len({value for value, _ in values.values()}) == 1:
            words.append(f"{name}={values[other[0]][0]}")
        else:
            others += [f"{name}={values[server][0]} ({server})" for server in other]
    others += [f"the toxic {toxic}" for toxic in toxics]
    return Changed(tuple(words), tuple(others))


def _settings(of: Snapshot, host: Mapping[str, Json]) -> Iterator[tuple[str, str, str]]:
    """(name, value, default) of each; those of .env have the names that they have there."""
    identity = of.own_identity
    loops = 1 if identity.model == ONE_LOOP else identity.cpus
    for word, (name, default) in READ_BACK.items():
        value = of.settings.get(name)
        if value is not None:
            yield word, text(value), text(loops if word == "LOOPS" else default)
    carriers = of.setting("virtual_thread_parallelism")
    flags = [flag for flag in identity.jvm_flags if not flag.startswith(OWN_FLAGS)]
    yield "SERVER_JVM_FLAGS", " ".join(flags), JVM_FLAGS
    delay = of.spread.words if of.spread else f"{of.downstream_delay_ms:g}"
    yield "DOWNSTREAM_DELAY_MS", delay, str(DOWNSTREAM_DELAY_MS)
    if carriers is not None:
        yield "virtual_thread_parallelism", str(carriers), str(identity.cpus)
    if "cpu_quota" in of.settings:
        yield from _of_container(of, host)


def _of_container(of: Snapshot, host: Mapping[str, Json]) -> Iterator[tuple[str, str, str]]:
    yield "SERVER_CPUS", f"{of.cpu_quota or 0:g}", "0"
    yield "SERVER_MEMORY", _size(of.setting("memory_limit_bytes") or 0), SERVER_MEMORY
    cpuset, cores = of.settings.get("cpuset"), host.get("cores")
    if isinstance(cpuset, str) and isinstance(cores, int):
        own = "" if len(cpus_of(cpuset)) == cores else cpuset
        # What the lab chose by itself it chooses again.
        yield "SERVER_CPUSET", own, own if host.get("cpu_sets") == AUTO else ""


def _size(count: int) -> str:
    """Bytes as Docker takes them; 0 is no limit."""
    for unit, factor in (("g", 2**30), ("m", 2**20), ("k", 2**10)):
        if count and count % factor == 0:
            return f"{count // factor}{unit}"
    return str(count)


def text(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
