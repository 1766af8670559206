"""The state of a server as it was read back, before or after a trial."""

from collections.abc import Mapping

from lab.model.host_facts import cpus_of
from lab.model.knobs import DIRECT
from lab.model.record import Json, Record, Whole


class Identity(Record, forbid_unknown_fields=False):
    """The JVM that answers on a server's management port. Each has its own `start_time_ms`."""

    model: str
    version: str
    jdk: str
    pid: Whole
    start_time_ms: Whole
    cpus: Whole
    max_heap_bytes: Whole
    gc: tuple[str, ...]
    jvm_flags: tuple[str, ...]


class ToxicState(Record):
    """The toxics in force at one moment, each with its values; what they add to the mean round
    trip, and to each one unless it is `jittered`; and those whose effect no bound covers (a proxy
    that is down, lost or cut answers, bandwidth)."""

    in_force: tuple[str, ...] = ()
    added_latency_ms: float = 0.0
    unpredicted: tuple[str, ...] = ()
    jittered: bool = False


class Spread(Record, forbid_unknown_fields=False):
    """How the downstream's delay spreads, which it draws for each call anew: as it tells itself
    (go/downstream/service/delay.go). The mean is `Snapshot.downstream_delay_ms`.

    `words` set it, as DOWNSTREAM_DELAY_MS takes them; `sd_ms` is the standard deviation."""

    words: str
    sd_ms: float
    median_ms: float
    p95_ms: float
    p99_ms: float
    longest_ms: float


class Exported(Record):
    """The JVM of a service that is not the lab's, by its JMX exporter. `pool_size`: worker threads
    of its only pool. `scraped`: Prometheus has the exporter in its list. `lock_watch_ms` is the
    setting of the lab's recorder in that JVM, None without one; `carriers` are its carrier
    threads."""

    start_time_ms: int
    jdk: str | None
    max_heap_bytes: int | None
    pool_size: int | None
    scraped: bool
    lock_watch_ms: int | None = None
    carriers: int | None = None


# Between which parts of a lab on several machines a way is.
TO_SERVER = "generator and server"
TO_CALLED = "server and downstream"


class Way(Record):
    """The network `between` two parts of the lab (TO_SERVER, TO_CALLED): one round trip in ms, and
    the largest packet it takes, in bytes."""

    between: str
    ms: float | None = None
    mtu: int | None = None


class Snapshot(Record):
    """The state of one server as it was read back, before or after its trial. One that is `direct`
    has no toxics: none reaches it. `identity` None: a service that is not the lab's (foreign),
    which has no management port, and `url` as its only setting. `downstream_delay_ms` is the delay
    of every call, or its mean with a `spread`. `ways` are those between the machines of a lab on
    several; they differ a little each time."""

    identity: Identity | None
    settings: Mapping[str, Json]
    toxics: ToxicState
    downstream_delay_ms: float
    exported: Exported | None = None
    spread: Spread | None = None
    ways: tuple[Way, ...] = ()

    def way_ms(self, between: str) -> float:
        """One round trip between two parts of the lab; 0.0 on one machine or if unknown."""
        return sum(way.ms or 0.0 for way in self.ways if way.between == between)

    @property
    def foreign(self) -> bool:
        """True of a service that is not the lab's."""
        return self.identity is None

    @property
    def own_identity(self) -> Identity:
        """The identity of a server of the lab. Raises ValueError for a foreign service."""
        if self.identity is None:
            raise ValueError("a service that is not the lab's has no identity")
        return self.identity

    @property
    def jvm_started_ms(self) -> int | None:
        jvm = self.identity or self.exported
        return jvm.start_time_ms if jvm else None

    @property
    def scraped(self) -> bool:
        """True if Prometheus reads the JVM of a foreign service."""
        return self.exported is not None and self.exported.scraped

    @property
    def cpus(self) -> int | None:
        """The CPUs that its JVM sees; None for a foreign service."""
        return self.identity.cpus if self.identity else None

    @property
    def jdk(self) -> str | None:
        jvm = self.identity or self.exported
        return jvm.jdk if jvm else None

    @property
    def pool_size(self) -> int | None:
        return self.exported.pool_size if self.exported else self.setting("pool_size")

    @property
    def carriers(self) -> int | None:
        if self.exported:
            return self.exported.carriers
        return self.setting("virtual_thread_parallelism")

    @property
    def lock_watch_ms(self) -> int | None:
        """How long a wait for a lock must last to be counted, 0: none is; None: nothing counts."""
        return self.exported.lock_watch_ms if self.exported else self.setting("lock_watch_ms")

    @property
    def cpu_set(self) -> int | None:
        """How many CPUs are in the CPU set of the server's container."""
        value = self.settings.get("cpuset")
        return len(cpus_of(value)) or None if isinstance(value, str) else None

    @property
    def cpu_quota(self) -> float | None:
        """The CPU limit of the server's container, in CPUs, which a JVM rounds up; None without."""
        value = self.settings.get("cpu_quota")
        return float(value) if isinstance(value, int | float) and value > 0 else None

    @property
    def local_ports(self) -> int | None:
        """How many local ports its container has for its own connections."""
        first, _, last = str(self.settings.get("local_ports", "")).partition(" ")
        return int(last) - int(first) + 1 if first.isdecimal() and last.isdecimal() else None

    @property
    def direct(self) -> bool:
        """True if the server says that it calls the downstream without Toxiproxy."""
        return self.settings.get("downstream_url") == DIRECT

    @property
    def delay_text(self) -> str:
        if self.spread is None:
            return f"{self.downstream_delay_ms:g} ms"
        return (
            f"{self.spread.words} (mean {self.downstream_delay_ms:.4g} ms, "
            f"p95 {self.spread.p95_ms:.4g}, p99 {self.spread.p99_ms:.4g})"
        )

    def setting(self, name: str) -> int | None:
        """A numeric setting; None if the model has none of it."""
        value = self.settings.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


class Fairness(Record):
    """The settings and identities of the servers of one comparison, by name: those that are
    `equal`; those in which models differ by nature (`own`, None: the model has no such setting);
    and limits that must be the same and are not (`unequal`). The last two by name, then server."""

    equal: Mapping[str, Json]
    own: Mapping[str, Mapping[str, Json]]
    unequal: Mapping[str, Mapping[str, Json]]
