"""Asks the JMX exporter beside a JVM under test what that JVM holds and used so far."""

from dataclasses import dataclass

from prometheus_client.samples import Sample

from lab.errors import LabUnreachable
from lab.model import Exported
from lab.model.routes import EXPORTER_PORT
from lab.system.http import COUNTER_DEADLINE_S, DEADLINE_S, Http
from lab.system.traffic import ForeignServices

STARTED = "process_start_time_seconds"
JDK = "jvm_runtime_info"
MAX_HEAP = "jvm_memory_max_bytes"
POOL_SIZE = "lab_worker_pool_size"
LOCK_WATCH = "lab_lock_watch_ms"
CARRIERS = "lab_virtual_thread_scheduler_parallelism"
RESIDENT = "process_resident_memory_bytes"
LEASED = "lab_downstream_connections_leased"
CPU = "process_cpu_seconds_total"
COMPILATION = "jvm_compilation_time_seconds_total"


@dataclass(frozen=True, slots=True)
class Times:
    """What the server's process used so far: CPU seconds, and JIT compile time in seconds (see
    Exporter.compilation_s)."""

    cpu_s: float
    compilation_s: float


class Exporter:
    """The JMX exporters of all services. Every method raises LabUnreachable."""

    def __init__(self, http: Http, foreign: ForeignServices) -> None:
        self._http = http
        self._foreign = foreign

    def compilation_s(self, server: str) -> float:
        """JIT compile time of the server's JVM so far: elapsed time, summed over the compiler's
        threads, each compilation when it ends."""
        return self._counter(server, COMPILATION)

    def cpu_s(self, server: str) -> float:
        """CPU seconds the server's process used so far."""
        return self._counter(server, CPU)

    def times(self, server: str) -> Times:
        known = self._by_name(server, CPU, COMPILATION, deadline_s=COUNTER_DEADLINE_S)
        return Times(known[CPU], known[COMPILATION])

    def resident_bytes(self, server: str) -> int:
        """The memory of the server's process in RAM."""
        return round(self._by_name(server, RESIDENT)[RESIDENT])

    def leased(self, server: str) -> int:
        """Downstream calls under way; 0 where the exporter does not tell."""
        found = self._http.samples(server, _url(server), LEASED)
        return round(found[0].value) if found else 0

    def started_s(self, server: str) -> float:
        """When the JVM started, in seconds since 1970."""
        return self._by_name(server, STARTED, deadline_s=COUNTER_DEADLINE_S)[STARTED]

    def exported(self, server: str) -> Exported:
        asked = (STARTED, JDK, MAX_HEAP, POOL_SIZE, LOCK_WATCH, CARRIERS)
        found = self._http.samples(server, _url(server), *asked)
        heap = [of.value for of in found if of.name == MAX_HEAP and of.labels == {"area": "heap"}]
        jdks = [of.labels.get("version") for of in found if of.name == JDK]
        pool, watch, carriers = (_one(found, name) for name in (POOL_SIZE, LOCK_WATCH, CARRIERS))
        return Exported(
            start_time_ms=round(self._only(server, found, STARTED) * 1000),
            jdk=jdks[0] if jdks else None,
            max_heap_bytes=round(heap[0]) if heap and heap[0] > 0 else None,
            pool_size=pool if pool and pool > 0 else None,
            scraped=self._foreign[server].scraped,
            lock_watch_ms=watch,
            carriers=carriers,
        )

    def _counter(self, server: str, name: str) -> float:
        """Spares a foreign service without an exporter the wait for a deadline."""
        foreign = self._foreign.get(server)
        if foreign is not None and not foreign.exporter:
            raise LabUnreachable(
                f"no JMX exporter on port {EXPORTER_PORT} that prometheus/own.json lists", server
            )
        return self._by_name(server, name, deadline_s=COUNTER_DEADLINE_S)[name]

    def _by_name(
        self, server: str, *names: str, deadline_s: float = DEADLINE_S
    ) -> dict[str, float]:
        found = self._http.samples(server, _url(server), *names, deadline_s=deadline_s)
        return {name: self._only(server, found, name) for name in names}

    def _only(self, server: str, found: list[Sample], name: str) -> float:
        for sample in found:
            if sample.name == name:
                return float(sample.value)
        raise LabUnreachable(f"{_url(server)} has no {name}", server)


def _one(found: list[Sample], name: str) -> int | None:
    """The value that there is once; None of several, and of none."""
    values = [sample.value for sample in found if sample.name == name]
    return round(values[0]) if len(values) == 1 else None


def _url(server: str) -> str:
    return f"http://{server}:{EXPORTER_PORT}/metrics"
