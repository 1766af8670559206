"""The JMX exporter of a JVM under test: its size and the CPU time that it has used."""

from lab.model import Exported
from lab.model.routes import EXPORTER_PORT
from lab.system.http import COUNTER_DEADLINE_S, Http, Part

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

    def times(self) -> tuple[float | None, float | None]:
        """CPU time and JIT compile time so far, read at once; None if it does not have it."""
        page = self.metrics(CPU, COMPILATION, deadline_s=COUNTER_DEADLINE_S)
        cpu_s, compilation_s = (next(iter(page.values(name)), None) for name in (CPU, COMPILATION))
        return cpu_s, compilation_s

    def resident_bytes(self) -> int:
        return round(self.metrics(RESIDENT).value(RESIDENT))

    def leased(self) -> int:
        """Downstream calls under way; 0 if there is no such metric."""
        return round(sum(self.metrics(LEASED).values(LEASED)[:1]))

    def started_s(self) -> float:
        """When the JVM started, in seconds since 1970."""
        return self._value(STARTED)

    def exported(self) -> Exported:
        """The JVM as it reads back. Prometheus has this exporter in its list."""
        page = self.metrics(STARTED, JDK, MAX_HEAP, POOL_SIZE, LOCK_WATCH, CARRIERS)
        heap = page.values(MAX_HEAP, area="heap")
        jdks = [sample.labels.get("version") for sample in page.samples if sample.name == JDK]
        # Several pools have no size together.
        singles = [page.values(name) for name in (POOL_SIZE, LOCK_WATCH, CARRIERS)]
        pool, watch, carriers = (round(v[0]) if len(v) == 1 else None for v in singles)
        return Exported(
            start_time_ms=round(page.value(STARTED) * 1000),
            jdk=jdks[0] if jdks else None,
            max_heap_bytes=round(heap[0]) if heap and heap[0] > 0 else None,
            pool_size=pool if pool and pool > 0 else None,
            scraped=True,
            lock_watch_ms=watch,
            carriers=carriers,
        )

    def _value(self, name: str) -> float:
        return self.metrics(name, deadline_s=COUNTER_DEADLINE_S).value(name)
