"""The JMX exporter beside a JVM under test: what that JVM holds and used so far."""

from prometheus_client.samples import Sample

from lab.errors import LabUnreachable
from lab.model import Exported
from lab.model.routes import EXPORTER_PORT
from lab.system.http import COUNTER_DEADLINE_S, DEADLINE_S, Http, Part

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


class Exporter(Part):
    """The exporter on a server's host. Every method raises LabUnreachable."""

    def __init__(self, http: Http, server: str) -> None:
        super().__init__(http, server, f"http://{server}:{EXPORTER_PORT}")

    def compilation_s(self) -> float:
        """JIT compile time so far: elapsed time, summed over the compiler's threads, each
        compilation when it ends."""
        return self._value(COMPILATION)

    def cpu_s(self) -> float:
        return self._value(CPU)

    def times(self) -> tuple[float, float]:
        """Both of these, read at once."""
        samples = self.samples("/metrics", CPU, COMPILATION, deadline_s=COUNTER_DEADLINE_S)
        return self._first(samples, CPU), self._first(samples, COMPILATION)

    def resident_bytes(self) -> int:
        return round(self._value(RESIDENT, DEADLINE_S))

    def leased(self) -> int:
        """Downstream calls under way; 0 if there is no such metric."""
        samples = self.samples("/metrics", LEASED)
        return round(samples[0].value) if samples else 0

    def started_s(self) -> float:
        """When the JVM started, in seconds since 1970."""
        return self._value(STARTED)

    def exported(self) -> Exported:
        """The JVM as it reads back. Prometheus has this exporter in its list."""
        names = (STARTED, JDK, MAX_HEAP, POOL_SIZE, LOCK_WATCH, CARRIERS)
        samples = self.samples("/metrics", *names)
        heap = [s.value for s in samples if s.name == MAX_HEAP and s.labels == {"area": "heap"}]
        jdks = [s.labels.get("version") for s in samples if s.name == JDK]
        pool, watch, carriers = (_single(samples, n) for n in (POOL_SIZE, LOCK_WATCH, CARRIERS))
        return Exported(
            start_time_ms=round(self._first(samples, STARTED) * 1000),
            jdk=jdks[0] if jdks else None,
            max_heap_bytes=round(heap[0]) if heap and heap[0] > 0 else None,
            pool_size=pool if pool and pool > 0 else None,
            scraped=True,
            lock_watch_ms=watch,
            carriers=carriers,
        )

    def _value(self, name: str, deadline_s: float = COUNTER_DEADLINE_S) -> float:
        return self._first(self.samples("/metrics", name, deadline_s=deadline_s), name)

    def _first(self, samples: list[Sample], name: str) -> float:
        for sample in samples:
            if sample.name == name:
                return float(sample.value)
        raise LabUnreachable(f"{self.url}/metrics has no {name}", self.name)


def _single(samples: list[Sample], name: str) -> int | None:
    """The value if there is exactly one."""
    values = [sample.value for sample in samples if sample.name == name]
    return round(values[0]) if len(values) == 1 else None
