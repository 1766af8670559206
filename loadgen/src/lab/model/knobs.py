"""The settings of a server that the lab can change, with their limits: its live knobs, and the ones
that only the host can give its container. No I/O."""

import re
from collections.abc import Mapping
from typing import Any

from lab.model.record import Record


class Knob(Record):
    """A setting that a server takes while it runs, its unit and limits, both included: those of
    the servers' contract (tests/live/control/test_knobs.py holds the two together)."""

    name: str
    unit: str
    least: int
    most: int
    text: str


class Setting(Record):
    """A setting of .env that a server's container can be given for some trials.

    * `allowed`: a POSIX extended regular expression: the host has it before a driver starts, and
      judges again (system/host_changes.py)
    * `read_back` and `default`: its name and default where a server reads it back; a model without
      such a setting reads None back (tests/model/test_settings.py)
    """

    allowed: str
    read_back: str = ""
    default: int | str | bool = ""


KNOBS: tuple[Knob, ...] = (
    Knob("pool_size", "threads", 1, 20_000, "worker threads of a pool"),
    Knob("queue_bound", "requests", 0, 1_000_000, "requests that may wait for one; 0: no bound"),
    Knob("downstream_connections", "connections", 1, 60_000, "downstream calls at a time"),
    Knob("downstream_timeout_ms", "ms", 1, 600_000, "deadline of a downstream call"),
    Knob("lock_ms", "ms", 0, 60_000, "a fault: a lock that each request holds so long; 0: none"),
    Knob("pin_ms", "ms", 0, 60_000, "a fault: each request keeps its carrier so long; 0: none"),
    Knob("lock_watch_ms", "ms", 0, 60_000, "waits for locks count from this length on; 0: none do"),
    Knob("virtual_thread_parallelism", "carriers", 1, 256, "threads that carry virtual ones"),
)

CPUS = r"[0-9]{1,3}(\.[0-9]{1,3})?"
_JVM_FLAG = (
    r"(-X(ms|mx|mn|ss)[0-9]{1,5}[kmgKMG]|-XX:[+-]Use[A-Za-z0-9]{1,40}|"
    r"-XX:[+-]ExitOnOutOfMemoryError|-XX:[A-Z][A-Za-z0-9]{1,60}=[0-9]{1,9}[kmgKMG]?)"
)
PROXIED, DIRECT = "http://toxiproxy:8666/", "http://downstream:8080/"
SETTINGS: Mapping[str, Setting] = {
    "SERVER_CPUS": Setting(CPUS),
    "SERVER_MEMORY": Setting(r"[1-9][0-9]{0,5}[kmg]"),
    "SERVER_JVM_FLAGS": Setting(rf"{_JVM_FLAG}( {_JVM_FLAG})*"),
    "NOFILE": Setting(r"[1-9][0-9]{1,6}"),
    "SERVER_POOL_SIZE": Setting(r"[1-9][0-9]{0,4}", "pool_size", 200),
    "SERVER_POOL_ORDER": Setting(r"(fifo|lifo)", "pool_order", "fifo"),
    "SERVER_QUEUE_BOUND": Setting(r"[0-9]{1,7}", "queue_bound", 0),
    "SERVER_BACKLOG": Setting(r"[1-9][0-9]{0,4}", "backlog", 4096),
    "SERVER_DOWNSTREAM_CONNECTIONS": Setting(r"[1-9][0-9]{0,4}", "downstream_connections", 20_000),
    "SERVER_DOWNSTREAM_TIMEOUT_MS": Setting(r"[1-9][0-9]{0,5}", "downstream_timeout_ms", 10_000),
    "SERVER_DOWNSTREAM_URL": Setting(rf"({PROXIED}|{DIRECT})", "downstream_url", PROXIED),
    "BLOCK_THE_LOOP": Setting(r"(true|false|spin)", "block_the_loop", False),
    "FRONTS": Setting(r"([1-9]|[1-5][0-9]|6[0-4])", "fronts", 1),
    "CONNECTION_THREADS": Setting(r"(virtual|platform)", "connection_threads", "virtual"),
    "NETTY_TRANSPORT": Setting(r"(nio|epoll)", "netty_transport", "nio"),
    "FRAMEWORK_DEFAULTS": Setting(r"(lab|shipped)", "framework_defaults", "lab"),
    "DOWNSTREAM_CLIENT": Setting(r"(framework|lab)", "downstream_client", "framework"),
    "SERVER_PORTS": Setting(r"[1-9][0-9]{3,4} [1-9][0-9]{3,4}", "local_ports", "10000 65535"),
    # 0: as many as the model has by itself.
    "LOOPS": Setting(r"([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-6])", "loops", 0),
}
HOST: Mapping[str, str] = {name: known.allowed for name, known in SETTINGS.items()}
READ_BACK: Mapping[str, tuple[str, int | str | bool]] = {
    name: (known.read_back, known.default) for name, known in SETTINGS.items() if known.read_back
}
# The knobs that a JVM takes from these settings when it starts.
_KNOBS = frozenset(knob.name for knob in KNOBS)
STARTS_AS: Mapping[str, tuple[str, ...]] = {
    **{name: (knob,) for name, (knob, _) in READ_BACK.items() if knob in _KNOBS},
    **dict.fromkeys(("SERVER_CPUS", "SERVER_JVM_FLAGS"), ("virtual_thread_parallelism",)),
}
# The image of a server's container, where two images of a server are the arms of one run (`gate`).
IMAGE = "SERVER_IMAGE"
IMAGE_NAME = (
    r"[a-z0-9][a-z0-9._/-]{0,200}(:[0-9]{1,5}/[a-z0-9._/-]{1,200})?"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?"
)
# The CPU limit of the driver's own container; asked for with the name below as its server.
GENERATOR, GENERATOR_CPUS = "generator", "GENERATOR_CPUS"
# The one setting of a container that is changed while its JVM goes on.
LIVE = "SERVER_CPUS"


def knobs_of(settings: Mapping[str, Any]) -> dict[str, int]:
    """The knobs among a server's settings: those that its model has."""
    known = {knob.name: settings.get(knob.name) for knob in KNOBS}
    # bool is an int to isinstance, and no number.
    return {name: value for name, value in known.items() if type(value) is int}


def starting(host: Mapping[str, str]) -> dict[str, str]:
    """The settings that take another JVM: all but the CPU limit, which is changed live."""
    return {name: value for name, value in host.items() if name != LIVE}


def check_knob(name: str, value: object) -> None:
    """Raises ValueError if the value is not allowed for the knob. The message begins with it."""
    knob = next((knob for knob in KNOBS if knob.name == name), None)
    if knob is None:
        raise ValueError(f"{name} is not a knob; allowed: {', '.join(k.name for k in KNOBS)}")
    # bool is an int to isinstance, and no number.
    if type(value) is not int or not knob.least <= value <= knob.most:
        raise ValueError(f"{name}={value}: allowed {knob.least}..{knob.most} ({knob.unit})")


def check_host(name: str, value: str) -> None:
    """Raises ValueError if the value is not allowed for a container. The message begins with it."""
    if name not in HOST:
        raise ValueError(f"{name} is not a setting of a container; allowed: {', '.join(HOST)}")
    if not re.fullmatch(HOST[name], value, re.ASCII):
        raise ValueError(f"{name}={value} is not allowed; allowed: {HOST[name]}")
