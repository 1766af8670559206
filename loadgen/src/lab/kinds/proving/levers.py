"""How the lab changes each resource that a verdict names: by a step, to see whether the resource is
the limit, and lifted, so that it is the limit no more. Pure.

CPUs cannot be added to the host, so of these some are taken away: goodput must fall as they do. And
more connections must not raise it.

docs/next-bottleneck.md has the table of levers: what is changed, how far a step goes, and to what
it is lifted. Nothing is ever set beyond what the contract or Docker take, and nothing is
lifted to less than its step.

Of a service that is not the lab's, only the load's connections and the host's CPUs apply, and what
its subject's [levers] name (lab.model.own_lever): each is × 2, and lifted to × 4, CPUs to all, a
pool to the connections.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from copy import replace
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lab.judge.predict import (
    UNPINNED,
    pinned_carriers,
    release_of,
    response_spread,
    response_time_ms,
)
from lab.kinds.proving.present import POOLS, Present
from lab.model import Condition, Remark, SettingChange
from lab.model.knobs import DIRECT, KNOBS, PROXIED, READ_BACK
from lab.model.own_lever import change_of
from lab.model.routes import parse

# The limits of the servers' contract; tests/kinds/test_levers.py compares the two.
MOST = {knob.name: knob.most for knob in KNOBS} | {"loops": 256, "fronts": 64, "backlog": 65_535}
USUAL_TIMEOUT_MS = 10_000
MOST_FILES = 1_048_576
# What a server has open besides its requests, generously.
SPARE_FILES = 1000
MOST_HEAP_MIB = 4096
# What a JVM needs besides its heap: the lab's defaults are 1 GiB of 2. Only a heap that does not
# fit gets a larger container, so that a smaller heap changes nothing else.
BESIDE_HEAP_MIB, USUAL_MEMORY_MIB = 1024, 2048
# Resources of the machine: only another machine has more of them.
HOST_CPU, GENERATOR = "host CPU", "generator"
CONNECTIONS = "connections of the load"
# The shares of the machine's CPUs that the spinner is asked to take. They are small: from a share
# of 1 - U on, U the busy time of the CPUs, goodput falls with any limit.
DOSES = (0.06, 0.1)
# The widest range of local ports: above every port the lab listens on (compose.yaml).
FIRST_PORT, LAST_PORT = 10_000, 65_535
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a resource: whole conditions, with everything that is in force now, and the
    settings that differ.

    * `at_most`: the factor by which goodput can rise with the step; None: unknown
    * `takes`: the step takes away, so that goodput falls where the resource is the limit, and
      `less` takes less of it away
    * `unseen`: variables that the server may not take, which the lab cannot see
    * `saves_ms`: the time that the step takes off each request, waits aside: goodput of a load
      whose connections are all busy rises by that alone
    * `frees`: the part of the lab whose CPU time is gone with the step
    * `keeps`: threads of the server that stay fewer than its CPUs then
    """

    step: Condition
    lift: Condition
    settings: tuple[SettingChange, ...]
    at_most: float | None = None
    takes: bool = False
    less: Condition | None = None
    unseen: tuple[str, ...] = ()
    saves_ms: int = 0
    frees: str = ""
    keeps: Mapping[str, int] = field(default_factory=dict)


# A change, or why there is none.
Lever = Callable[[Present], Change | Remark]


def lever(resource: str, now: Present) -> Change | Remark:
    """The change of a resource, or why there is none."""
    if now.snapshot.foreign and resource not in (CONNECTIONS, HOST_CPU):
        return _of_service(resource, now)
    known = LEVERS.get(resource)
    return known(now) if known else Remark("no-lever", {"resource": resource})


def together(resources: Sequence[str], now: Present) -> Change | Remark:
    """One change of several resources, or why there is none: the steps of all, the lifts of all."""
    whole = lever(resources[0], now)
    for resource in resources[1:]:
        if isinstance(whole, Remark):
            return whole
        step = lever(resource, replace(now, condition=whole.step))
        lift = lever(resource, replace(now, condition=whole.lift))
        if isinstance(step, Remark) or isinstance(lift, Remark):
            return step if isinstance(step, Remark) else lift
        pairs = zip(step.settings, lift.settings, strict=True)
        whole = Change(
            step.step,
            lift.lift,
            (*whole.settings, *(replace(now, lift=lifted.lift) for now, lifted in pairs)),
            whole.at_most and step.at_most and min(whole.at_most, step.at_most),
            unseen=(*whole.unseen, *step.unseen),
            saves_ms=whole.saves_ms + step.saves_ms,
            frees=whole.frees or step.frees,
            keeps=_few_threads(step.step, now),
        )
    return whole


def _of_service(resource: str, now: Present) -> Change | Remark:
    own = now.levers.get(resource)
    if own is None:
        code = "no-lever-of-subject" if resource in LEVERS else "no-lever"
        return Remark(code, {"resource": resource})
    enough = now.connections if resource in POOLS else None
    change = change_of(own, now.condition.host, enough, now.cpus)
    if isinstance(change, Remark):
        return change
    return Change(
        now.with_host(**change.step),
        now.with_host(**change.lift),
        change.settings,
        change.factor if resource in (*POOLS, "server CPU") else None,
        unseen=(own.variable,) if own.variable else (),
    )


def _more(
    name: str,
    value: float | None,
    write: Callable[[float], Condition],
    most: float,
    enough: float,
    *,
    times: float = 2,
    least: float = 0,
    bounds: bool = True,
    unit: str = "",
) -> Change | Remark:
    """So many times a number, and at `least` so much; lifted to what is `enough`. Neither exceeds
    the `most`. `bounds`: throughput is proportional to it where it is the limit."""
    if not value:
        return Remark("no-setting", {"setting": name})
    step = min(most, max(times * value, least))
    if step <= value:
        return Remark("at-most", {"setting": name, "value": value})
    lift = max(step, min(most, enough))
    changed = SettingChange(name, value, step, lift, unit)
    return Change(write(step), write(lift), (changed,), step / value if bounds else None)


def _knob(name: str, now: Present, enough: float, **changes: Any) -> Change | Remark:
    """More of a knob, or of a setting of .env (in capitals) that the server reads back; `changes`
    as of `_more`."""
    most = MOST[READ_BACK[name][0] if name in READ_BACK else name]
    return _more(name, now.value(name), partial(now.with_value, name), most, enough, **changes)


def _planted(name: str, now: Present) -> Change | None:
    """Half of a planted time, which each request takes, and none of it: throughput is its inverse
    where it is the limit. None where none is planted."""
    value = now.value(name)
    if not value:
        return None
    step = value // 2
    return Change(
        now.with_value(name, step),
        now.with_value(name, 0),
        (SettingChange(name, value, step, 0),),
        value / step if step else None,
        saves_ms=value - step,
    )


def _downstream_timeout(now: Present) -> Change | Remark:
    call = parse(now.route)
    spread = response_spread(call, now.snapshot)
    # The longest of the delays, where they are drawn.
    r0_ms = math.ceil(spread.longest_ms if spread else response_time_ms(call, now.snapshot))
    return _knob("downstream_timeout_ms", now, USUAL_TIMEOUT_MS, least=2 * r0_ms, bounds=False)


def _carriers(now: Present) -> Change | Remark:
    if pinned_carriers(parse(now.route), now.snapshot):
        return Remark("fixed-carriers")
    return _knob("virtual_thread_parallelism", now, now.cpus)


def _pinned(now: Present) -> Change | Remark:
    release = release_of(now.snapshot.own_identity.jdk)
    if planted := _planted("pin_ms", now):
        return planted
    if release is not None and release < UNPINNED:
        return Remark("fixed-carriers")
    return _knob("virtual_thread_parallelism", now, now.connections)


def _event_loop(now: Present) -> Change | Remark:
    blocked = str(now.host("BLOCK_THE_LOOP", "block_the_loop")).lower()
    if blocked not in ("true", "spin"):
        return _knob("LOOPS", now, now.cpus)
    free = now.with_host(BLOCK_THE_LOOP="false")
    return Change(free, free, (SettingChange("BLOCK_THE_LOOP", blocked, "false", "false"),))


def _server_cpu(now: Present) -> Change | Remark:
    quota = now.condition.host.get("SERVER_CPUS") or now.snapshot.cpu_quota
    # A JVM sees whole CPUs: a quota that is unknown may be up to one less.
    cpus = now.snapshot.own_identity.cpus if quota is None else quota
    change = _more(
        "SERVER_CPUS",
        min(float(cpus), now.cpus),
        lambda to: now.with_host(SERVER_CPUS=f"{to:g}"),
        now.cpus,
        now.cpus,
        bounds=quota is not None,
    )
    if isinstance(change, Remark):
        return change
    return replace(change, keeps=_few_threads(change.step, now))


def _few_threads(step: Condition, now: Present) -> dict[str, int]:
    """The threads of a server that stay fewer than the CPUs that a step gives to it; none where it
    gives none. A JVM makes them when it starts, by the CPUs that it has then or by a setting."""
    cpus = step.host.get("SERVER_CPUS")
    if cpus is None or cpus == now.condition.host.get("SERVER_CPUS"):
        return {}
    stepped = replace(now, condition=step)
    settings = {"loops": "LOOPS", "fronts": "FRONTS", "carriers": "virtual_thread_parallelism"}
    counts = {threads: stepped.value(name) or 0 for threads, name in settings.items()}
    return {threads: count for threads, count in counts.items() if 0 < count < float(cpus)}


def _garbage_collection(now: Present) -> Change | Remark:
    given = now.condition.host.get("SERVER_JVM_FLAGS")
    # Those with -X come from that setting; the others from the image.
    flags = given.split() if given is not None else now.snapshot.own_identity.jvm_flags
    kept = [flag for flag in flags if flag.startswith("-X")]
    sized = [flag for flag in kept if flag.startswith("-Xmx")]
    heap = _mib(sized[-1][4:]) if sized else now.snapshot.own_identity.max_heap_bytes // MIB
    others = [flag for flag in kept if not flag.startswith(("-Xms", "-Xmx"))]

    def write(to: float) -> Condition:
        words = " ".join((f"-Xms{to:.0f}m", f"-Xmx{to:.0f}m", *others))
        needs = to + BESIDE_HEAP_MIB
        memory = {"SERVER_MEMORY": f"{needs:.0f}m"} if needs > USUAL_MEMORY_MIB else {}
        return now.with_host(SERVER_JVM_FLAGS=words, **memory)

    return _more("heap", heap, write, MOST_HEAP_MIB, 4 * heap, bounds=False, unit="MiB")


def _mib(text: str) -> int:
    """A size as the JVM takes it, in MiB; 0 where it is not one."""
    match = re.fullmatch(r"(\d+)([kKmMgG]?)", text)
    if match is None:
        return 0
    return int(match[1]) * {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}[match[2].lower()] // MIB


def _file_descriptors(now: Present) -> Change | Remark:
    """Twice as many as there are, or as the load asks for where that is unknown."""
    asked = now.connections * parse(now.route).route.descriptors + SPARE_FILES
    files = int(now.condition.host.get("NOFILE", asked))
    return _more(
        "NOFILE",
        files,
        lambda to: now.with_host(NOFILE=f"{to:.0f}"),
        MOST_FILES,
        2 * asked,
        bounds=False,
    )


def _ports(now: Present) -> Change | Remark:
    settings = {"local_ports": now.host("SERVER_PORTS", "local_ports")}
    every = LAST_PORT - FIRST_PORT + 1
    return _more(
        "local ports",
        replace(now.snapshot, settings=settings).local_ports,
        lambda to: now.with_host(SERVER_PORTS=f"{FIRST_PORT} {FIRST_PORT + to - 1:.0f}"),
        every,
        every,
    )


def _connections(now: Present) -> Change | Remark:
    return _more(
        "connections",
        now.connections,
        lambda to: replace(now.condition, connections=int(to)),
        now.most_connections,
        4 * now.connections,
    )


def _direct(now: Present) -> Change | Remark:
    """Calls past Toxiproxy. What it costs is gone with it, and how it sets connections up."""
    url = now.host("SERVER_DOWNSTREAM_URL", "downstream_url")
    if url != PROXIED:
        return Remark("already-direct" if url == DIRECT else "not-through-proxy")
    # A toxic of which a bound is known would be gone, too.
    kinds = {text.split(" ")[1] for text in now.snapshot.toxics.in_force}
    if kinds & {"latency", "bandwidth"}:
        return Remark("toxics-in-force")
    straight = now.with_host(SERVER_DOWNSTREAM_URL=DIRECT)
    changed = SettingChange("SERVER_DOWNSTREAM_URL", PROXIED, DIRECT, DIRECT)
    return Change(straight, straight, (changed,), frees="Toxiproxy")


def _host_cpu(now: Present) -> Change:
    less, most = (replace(now.condition, spin=dose) for dose in DOSES)
    taken = SettingChange("spin", 0.0, DOSES[-1], 0.0)
    return Change(most, now.condition, (taken,), takes=True, less=less)


LEVERS: Mapping[str, Lever] = {
    "worker pool": lambda now: _knob("pool_size", now, now.connections),
    "downstream connections": lambda now: _knob("downstream_connections", now, now.connections),
    "downstream timeout": _downstream_timeout,
    "carrier threads": _carriers,
    "pinned carriers": _pinned,
    "lock": lambda now: _planted("lock_ms", now) or Remark("lock-in-code"),
    "event loop": _event_loop,
    "front": lambda now: _knob("FRONTS", now, now.cpus),
    "server CPU": _server_cpu,
    "garbage collection": _garbage_collection,
    "accept queue": lambda now: _knob(
        "SERVER_BACKLOG", now, MOST["backlog"], times=16, bounds=False
    ),
    "file descriptors": _file_descriptors,
    "ports": _ports,
    "Toxiproxy": _direct,
    "connection set-up": _direct,
    CONNECTIONS: _connections,
    HOST_CPU: _host_cpu,
}
