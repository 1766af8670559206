"""How the lab changes each resource that a verdict names: by a step, to see whether the resource is
the limit, and lifted, so that it is the limit no more. Pure.

Nobody can add CPUs to the host, so of these some are taken away: goodput must fall as they do. And
more connections must not raise it.

docs/next-bottleneck.md has the table of levers: what is changed, how far a step goes, and to what
it is lifted.

Nothing is ever set beyond what the contract, Toxiproxy or Docker take, and nothing is lifted to
less than its step.

Of a service that is not the lab's, only the last two apply, and what its subject's [levers] name
(lab.model.own_lever): each is × 2, and lifted to × 4, CPUs to all, a pool to the connections.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lab.judge.predict import (
    UNPINNED,
    pinned_carriers,
    predict,
    release_of,
    response_spread,
    response_time_ms,
)
from lab.model import OFFERED, Bound, Condition, OwnLever, Snapshot, ToxicState
from lab.model.knobs import DIRECT, KNOBS, PROXIED, READ_BACK
from lab.model.own_lever import change_of
from lab.model.routes import parse
from lab.model.toxics import DEFAULT_PROXY

# The limits of the servers' contract; tests/experiments/test_levers.py compares the two.
MOST = {knob.name: knob.most for knob in KNOBS} | {"loops": 256, "fronts": 64, "backlog": 65_535}
USUAL_TIMEOUT_MS = 10_000
MOST_FILES = 1_048_576
MOST_CONNECTIONS = 1_000_000
# What a server has open besides its requests, generously.
SPARE_FILES = 1000
MOST_HEAP_MIB = 4096
# What a JVM needs besides its heap: the lab's defaults are 1 GiB of 2. Only a heap that does not
# fit gets a larger container, so that a smaller heap changes nothing else.
BESIDE_HEAP_MIB, USUAL_MEMORY_MIB = 1024, 2048
# KB/s: more than loopback carries, and nothing Toxiproxy calculates overflows.
NO_RATE = 1_000_000
# What as many as there are connections of the load are enough of.
POOLS = ("worker pool", "downstream connections")
# What the lab changes beside a service, whoever's it is.
OF_ANY_SERVICE = ("connections of the load", "host CPU")
# Resources of the machine: only another machine has more of them.
HOST_CPU, GENERATOR = "host CPU", "generator"
MACHINE = (HOST_CPU, GENERATOR)
# The shares of the machine's CPUs that the spinner is asked to take. They are small: from a share
# of 1 - U on, U the busy time of the CPUs, goodput falls with any limit.
DOSES = (0.06, 0.1)
# The widest range of local ports: above every port the lab listens on (compose.yaml).
FIRST_PORT, LAST_PORT = 10_000, 65_535
MIB = 2**20
# Why pinned carriers have no lever.
FIXED = "this JDK does not let the number of its carrier threads be changed"
_IN_FORCE = re.compile(r"(?P<proxy>[^/ ]+)/(?P<name>\S+) (?P<type>\w+) (?P<values>.*)")


@dataclass(frozen=True, slots=True)
class Lever:
    """`step` and `lift` are whole conditions, with everything that is in force now. `step_text` is
    the change for people, `lift_text` the value after lifting. `at_most` is the factor by which
    goodput can rise with the step, None where the step does not bound it. `takes`: the step takes
    away, so that goodput falls where the resource is the limit, and `less` takes less of it away.
    `unseen` is what the server may not take, and the lab cannot see that: then a step without an
    effect says nothing. `saves_ms` is the time that the step takes off each request, waits aside:
    goodput of a load whose connections are all busy rises by that alone. `frees` is the part of the
    lab whose CPU time is gone with the step. `keeps` are the
    threads of the server that the step leaves as they are, and that may be too few for it."""

    step: Condition
    lift: Condition
    step_text: str
    lift_text: str
    at_most: float | None = None
    takes: bool = False
    less: Condition | None = None
    unseen: str = ""
    saves_ms: int = 0
    frees: str = ""
    keeps: str = ""


@dataclass(frozen=True, slots=True)
class Present:
    """What a lever needs to know: the server as it was before the run, the condition in force now,
    the load, the driver's CPUs (`cores`), how many connections this machine holds, and the `levers`
    of a service that is not the lab's."""

    snapshot: Snapshot
    condition: Condition
    route: str
    concurrency: int
    cores: int
    offered_rps: int | None = None
    most_connections: int = MOST_CONNECTIONS
    levers: Mapping[str, OwnLever] = field(default_factory=dict)

    def lifted_by(self, resource: str) -> str:
        """The resource whose lever lifts this one. What behaves like a pool of a service that is
        not the lab's may be its connections to what it calls."""
        pool, connections = POOLS
        if resource == pool and pool not in self.levers and connections in self.levers:
            return connections
        return resource

    @property
    def cpus(self) -> int:
        """The most CPUs that the server can have: those of its set, which may be all of the
        machine, or as many as the driver where nothing tells its set."""
        return self.snapshot.cpu_set or self.cores

    @property
    def shared_cpus(self) -> int | None:
        """The CPUs that server and driver share, and so all parts of the lab; None where each has a
        CPU set of its own."""
        return self.cores if self.snapshot.cpu_set in (None, self.cores) else None

    @property
    def connections(self) -> int:
        """How many connections the load has now."""
        return self.condition.connections or self.concurrency

    def bounds(self, condition: Condition) -> tuple[Bound, ...]:
        """The hard bounds of the load under a condition, the tightest first; only what is offered
        of a service that is not the lab's, and where the condition changes toxics, whose effect
        nothing tells before they are in force."""
        known = {word.lower(): value for word, value in condition.host.items()}
        changed = {name: int(known[name]) for name in ("loops",) if name in known}
        blocked = known.get("block_the_loop")
        settings = {
            **self.snapshot.settings,
            **changed,
            **({} if blocked is None else {"block_the_loop": blocked != "false" and blocked}),
            **condition.knobs,
        }
        snapshot = dataclasses.replace(self.snapshot, settings=settings)
        if condition.host.get("SERVER_DOWNSTREAM_URL") == DIRECT:
            snapshot = dataclasses.replace(snapshot, toxics=ToxicState())
        connections = condition.connections or self.concurrency
        found = predict(self.route, connections, self.offered_rps, snapshot)
        holding = () if condition.toxics else found.holding
        # Whatever holds beside it, no more is answered than is offered.
        return holding or tuple(bound for bound in found.bounds if bound.resource == OFFERED)

    def knob(self, name: str) -> int | None:
        """A knob's value now; None where the model has none of that name."""
        return self.condition.knobs.get(name, self.snapshot.setting(name))

    def toxics(self, kind: str) -> Iterator[tuple[str, str, dict[str, int]]]:
        """(proxy, name, values) of each toxic of a type in force, as changed by the condition."""
        for text in self.snapshot.toxics.in_force:
            found = _IN_FORCE.fullmatch(text)
            if found is None or found["type"] != kind:
                continue
            values = {
                key: int(value) for key, value in re.findall(r"(\w+)=(\d+)(?= |$)", found["values"])
            }
            for words in self.condition.toxics:
                if (words.get("PROXY", DEFAULT_PROXY), words.get("NAME")) == (
                    found["proxy"],
                    found["name"],
                ):
                    values |= {k.lower(): int(v) for k, v in words.items() if v.isdecimal()}
            yield found["proxy"], found["name"], values


def lever(resource: str, now: Present) -> Lever | str:
    """The change of a resource, or why there is none."""
    if now.snapshot.foreign and resource not in OF_ANY_SERVICE:
        return _own(resource, now)
    found = _LEVERS[resource](now) if resource in _LEVERS else None
    if found is not None:
        return found
    return _WITHOUT.get(resource, "the lab has no way to change it")


def together(resources: Sequence[str], now: Present) -> Lever | str:
    """One change of several resources, or why there is none: the steps of all, the lifts of all."""
    first, *others = resources
    whole = lever(first, now)
    for resource in others:
        if isinstance(whole, str):
            break
        step = lever(resource, dataclasses.replace(now, condition=whole.step))
        lift = lever(resource, dataclasses.replace(now, condition=whole.lift))
        if isinstance(step, str) or isinstance(lift, str):
            return step if isinstance(step, str) else str(lift)
        bounds = whole.at_most and step.at_most and min(whole.at_most, step.at_most)
        whole = Lever(
            step.step,
            lift.lift,
            f"{whole.step_text} and {step.step_text}",
            f"{whole.lift_text} and {lift.lift_text}",
            bounds,
            unseen=" or ".join(filter(None, (whole.unseen, step.unseen))),
            saves_ms=whole.saves_ms + step.saves_ms,
            frees=whole.frees or step.frees,
            keeps=_few_threads(step.step, now),
        )
    return whole


def _own(resource: str, now: Present) -> Lever | str:
    given = now.levers.get(resource)
    if given is None:
        return _WITHOUT.get(resource, f"the service's subject has no [levers] for the {resource}")
    enough = now.connections if resource in POOLS else None
    change = change_of(given, now.condition.host, enough, now.cpus)
    if isinstance(change, str):
        return change
    return Lever(
        _host(now, **change.step),
        _host(now, **change.lift),
        change.step_text,
        change.lift_text,
        change.factor if resource in (*POOLS, "server CPU") else None,
        unseen=given.variable or "",
    )


def _downstream_timeout(now: Present) -> Lever | str:
    call = parse(now.route)
    spread = response_spread(call, now.snapshot)
    # The longest of the delays, where they are drawn.
    r0_ms = math.ceil(spread.longest_ms if spread else response_time_ms(call, now.snapshot))
    least = 2 * r0_ms
    return _raised(now, "downstream_timeout_ms", USUAL_TIMEOUT_MS, least=least, bounds=False)


def _carriers(now: Present) -> Lever | str:
    if pinned_carriers(parse(now.route), now.snapshot):
        return FIXED
    return _raised(now, "virtual_thread_parallelism", now.cpus)


def _pinned(now: Present) -> Lever | str:
    planted = _planted(now, "pin_ms")
    if planted is not None:
        return planted
    release = release_of(now.snapshot.own_identity.jdk)
    if release is not None and release < UNPINNED:
        return FIXED
    return _raised(now, "virtual_thread_parallelism", now.connections)


def _lock(now: Present) -> Lever | str:
    return _planted(now, "lock_ms") or "it is in the code: only another version of it can tell"


def _planted(now: Present, name: str) -> Lever | None:
    """Half of a planted time, and none of it; throughput is its inverse where it is the limit. None
    where nothing is planted."""
    value = now.knob(name)
    if not value:
        return None
    step = value // 2
    return Lever(
        _set(now, name, step),
        _set(now, name, 0),
        f"{name} {value} → {step}",
        f"{name}=0",
        value / step if step else None,
        saves_ms=value - step,
    )


def _raised(
    now: Present, name: str, enough: int, *, times: int = 2, least: int = 0, bounds: bool = True
) -> Lever | str:
    """So many times the value of a knob, or of a setting of .env (in capitals) that the server
    reads back; lifted to `enough`. Neither exceeds its limit. `bounds`: throughput is proportional
    to it where it is the limit."""
    setting = READ_BACK[name][0] if name in READ_BACK else name
    value = int(now.condition.host.get(name, 0)) or now.knob(setting)
    if not value:
        return f"this server has no setting {setting}"
    step = min(MOST[setting], max(times * value, least))
    if step <= value:
        return f"{name} is {value} already, the most there is"
    lift = max(step, min(MOST[setting], enough))
    return Lever(
        _set(now, name, step),
        _set(now, name, lift),
        f"{name} {value} → {step}",
        f"{name}={lift}",
        step / value if bounds else None,
    )


def _event_loop(now: Present) -> Lever | str:
    read_back = str(now.snapshot.settings.get("block_the_loop")).lower()
    blocked = now.condition.host.get("BLOCK_THE_LOOP", read_back)
    if blocked in ("true", "spin"):
        free = _host(now, BLOCK_THE_LOOP="false")
        return Lever(free, free, f"BLOCK_THE_LOOP {blocked} → false", "BLOCK_THE_LOOP=false")
    return _raised(now, "LOOPS", now.cpus)


def _server_cpu(now: Present) -> Lever | str:
    given = now.condition.host.get("SERVER_CPUS")
    quota = float(given) if given is not None else now.snapshot.cpu_quota
    # A JVM sees whole CPUs: a quota that is not told may be up to one less.
    cpus = quota if quota is not None else float(now.snapshot.own_identity.cpus)
    if not 0 < cpus < now.cpus:
        return f"the server may use all {now.cpus} CPUs: those of the machine or of its set"
    step = min(float(now.cpus), 2 * cpus)
    raised = _host(now, SERVER_CPUS=f"{step:g}")
    return Lever(
        raised,
        _host(now, SERVER_CPUS=f"{now.cpus:g}"),
        f"SERVER_CPUS {cpus:g} → {step:g}",
        f"SERVER_CPUS={now.cpus:g}",
        None if quota is None else step / cpus,
        keeps=_few_threads(raised, now),
    )


def _few_threads(step: Condition, now: Present) -> str:
    """The threads of a server that stay fewer than the CPUs that a step gives to it; empty where it
    gives none. A JVM makes them when it starts, by the CPUs that it has then or by a setting."""
    cpus = step.host.get("SERVER_CPUS")
    if cpus is None or cpus == now.condition.host.get("SERVER_CPUS"):
        return ""
    carriers = "virtual_thread_parallelism"
    counts = {
        "event loop": int(step.host.get("LOOPS") or now.snapshot.setting("loops") or 0),
        "front": int(step.host.get("FRONTS") or now.snapshot.setting("fronts") or 0),
        "carrier": step.knobs.get(carriers) or now.snapshot.setting(carriers) or 0,
    }
    few = [f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items() if 0 < n < float(cpus)]
    return " and ".join(few)


def _garbage_collection(now: Present) -> Lever | str:
    given = now.condition.host.get("SERVER_JVM_FLAGS")
    # Those with -X come from that setting; the others from the image.
    flags = given.split() if given is not None else list(now.snapshot.own_identity.jvm_flags)
    kept = [flag for flag in flags if flag.startswith("-X")]
    sized = [flag for flag in kept if flag.startswith("-Xmx")]
    heap = _mib(sized[-1][4:]) if sized else now.snapshot.own_identity.max_heap_bytes // MIB
    if not heap:
        return "this server does not tell the size of its heap"
    step = min(MOST_HEAP_MIB, 2 * heap)
    if step <= heap:
        return f"the heap is {heap} MiB already, the most the lab gives"
    lift = min(MOST_HEAP_MIB, 4 * heap)
    others = [flag for flag in kept if not flag.startswith(("-Xms", "-Xmx"))]

    def condition(to: int) -> Condition:
        words = " ".join((f"-Xms{to}m", f"-Xmx{to}m", *others))
        needs = to + BESIDE_HEAP_MIB
        memory = {"SERVER_MEMORY": f"{needs}m"} if needs > USUAL_MEMORY_MIB else {}
        return _host(now, SERVER_JVM_FLAGS=words, **memory)

    text = f"heap {heap} → {step} MiB"
    return Lever(condition(step), condition(lift), text, f"a heap of {lift} MiB")


def _mib(text: str) -> int:
    """A size as the JVM takes it, in MiB; 0 where it is not one."""
    found = re.fullmatch(r"(\d+)([kKmMgG]?)", text)
    if found is None:
        return 0
    return int(found[1]) * {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}[found[2].lower()] // MIB


def _file_descriptors(now: Present) -> Lever | str:
    given = now.condition.host.get("NOFILE")
    asked = now.connections * parse(now.route).route.descriptors + SPARE_FILES
    files = int(given) if given is not None else None
    step = min(MOST_FILES, 2 * (asked if files is None else files))
    if files is not None and step <= files:
        return f"NOFILE is {files} already, the most there is"
    lift = max(step, min(MOST_FILES, 2 * asked))
    text = f"NOFILE {files} → {step}" if files else f"NOFILE → {step}, twice what the load asks for"
    return Lever(_host(now, NOFILE=str(step)), _host(now, NOFILE=str(lift)), text, f"NOFILE={lift}")


def _toxiproxy(now: Present) -> Lever | str:
    slowest = min(now.toxics("bandwidth"), key=lambda one: one[2].get("rate", 0), default=None)
    if slowest is None:
        return direct(now)
    proxy, name, values = slowest
    rate = values.get("rate", 0)
    step = min(NO_RATE, 2 * rate)
    if step <= rate:
        return f"the rate of {name} is {rate} KB/s already"
    return Lever(
        _toxic(now, proxy, name, RATE=str(step)),
        _toxic(now, proxy, name, RATE=str(NO_RATE)),
        f"{name} RATE {rate} → {step} KB/s",
        f"{name} RATE={NO_RATE}",
        step / rate,
    )


def direct(now: Present) -> Lever | str:
    """Calls past Toxiproxy. What it costs is gone with it, and how it sets connections up."""
    given = now.condition.host.get("SERVER_DOWNSTREAM_URL")
    url = given if given is not None else now.snapshot.settings.get("downstream_url")
    if url == DIRECT:
        return "calls go to the downstream without Toxiproxy already"
    if url != PROXIED:
        return "this server does not call the lab's downstream through Toxiproxy"
    if any(now.toxics("latency")) or any(now.toxics("bandwidth")):
        return "without Toxiproxy its toxics would be gone too: remove them first"
    straight = _host(now, SERVER_DOWNSTREAM_URL=DIRECT)
    return Lever(
        straight,
        straight,
        "direct, without Toxiproxy, its time and its CPU time",
        f"SERVER_DOWNSTREAM_URL={DIRECT}",
        frees="Toxiproxy",
    )


def _downstream(now: Present) -> Lever | str:
    slowest = max(now.toxics("latency"), key=lambda one: one[2].get("latency", 0), default=None)
    if slowest is None or not slowest[2].get("latency"):
        return "no latency toxic is in force, and its own delay is what is being waited for"
    proxy, name, values = slowest
    latency = values["latency"]
    quiet = {"JITTER": "0"} if values.get("jitter") else {}
    return Lever(
        _toxic(now, proxy, name, LATENCY=str(latency // 2)),
        _toxic(now, proxy, name, LATENCY="0", **quiet),
        f"{name} LATENCY {latency} → {latency // 2} ms",
        f"{name} LATENCY=0",
        saves_ms=latency - latency // 2,
    )


def _ports(now: Present) -> Lever | str:
    given = now.condition.host.get("SERVER_PORTS")
    settings = now.snapshot.settings if given is None else {"local_ports": given}
    count = dataclasses.replace(now.snapshot, settings=settings).local_ports
    if count is None:
        return "this server does not tell its range of local ports"
    step = min(LAST_PORT - FIRST_PORT + 1, 2 * count)
    if step <= count:
        return f"the server has {count} local ports already, the most there are"
    return Lever(
        _host(now, SERVER_PORTS=f"{FIRST_PORT} {FIRST_PORT + step - 1}"),
        _host(now, SERVER_PORTS=f"{FIRST_PORT} {LAST_PORT}"),
        f"local ports {count} → {step}",
        f"SERVER_PORTS={FIRST_PORT} {LAST_PORT}",
        step / count,
    )


def _connections(now: Present) -> Lever | str:
    connections = now.connections
    step = min(now.most_connections, 2 * connections)
    if step <= connections:
        return f"this machine holds no more than {connections} connections"
    lift = max(step, min(now.most_connections, 4 * connections))
    return Lever(
        dataclasses.replace(now.condition, connections=step),
        dataclasses.replace(now.condition, connections=lift),
        f"connections {connections} → {step}",
        f"{lift} connections",
        step / connections,
    )


def _host_cpu(now: Present) -> Lever | str:
    less, most = (dataclasses.replace(now.condition, spin=dose) for dose in DOSES)
    text = " and ".join(f"{dose:.0%}" for dose in DOSES)
    taken = f"{text} of the CPUs taken away"
    return Lever(most, now.condition, taken, "nothing", takes=True, less=less)


def _set(now: Present, name: str, to: int) -> Condition:
    """The condition with another value of a knob, or of a setting of .env."""
    if name in READ_BACK:
        return _host(now, **{name: str(to)})
    return dataclasses.replace(now.condition, knobs={**now.condition.knobs, name: to})


def _host(now: Present, **settings: str) -> Condition:
    return dataclasses.replace(now.condition, host={**now.condition.host, **settings})


def _toxic(now: Present, proxy: str, name: str, **values: str) -> Condition:
    """The condition with the toxic `name` changed, on top of earlier changes of it."""
    target = {"NAME": name} | ({} if proxy == DEFAULT_PROXY else {"PROXY": proxy})
    others, before = [], {}
    for words in now.condition.toxics:
        if target.items() <= words.items() and words.get("PROXY") == target.get("PROXY"):
            before = dict(words)
        else:
            others.append(words)
    changed = {**target, **before, **values}
    return dataclasses.replace(now.condition, toxics=(*others, changed))


_LEVERS: Mapping[str, Callable[[Present], Lever | str]] = {
    "worker pool": lambda now: _raised(now, "pool_size", now.connections),
    "carrier threads": _carriers,
    "pinned carriers": _pinned,
    "lock": _lock,
    "event loop": _event_loop,
    "front": lambda now: _raised(now, "FRONTS", now.cpus),
    "server CPU": _server_cpu,
    "garbage collection": _garbage_collection,
    "accept queue": lambda now: _raised(
        now, "SERVER_BACKLOG", MOST["backlog"], times=16, bounds=False
    ),
    "file descriptors": _file_descriptors,
    "downstream connections": lambda now: _raised(now, "downstream_connections", now.connections),
    "downstream timeout": _downstream_timeout,
    "Toxiproxy": _toxiproxy,
    "connection set-up": direct,
    "downstream": _downstream,
    "ports": _ports,
    "connections of the load": _connections,
    "host CPU": _host_cpu,
}
_WITHOUT: Mapping[str, str] = {
    "generator": "only another machine has more of it",
    "network": "nobody can change the network from here",
    "work outside the lab": "it is not the lab's to change",
    "waves of the load": "a delay that varies scatters them (DOWNSTREAM_DELAY_MS), in another run",
}
