"""Ports are those of the server's own container, and calls without one fill the CPUs."""

import pytest

from lab.model import Snapshot, Usage
from support.fakes import snapshot
from support.series import counter, gauge
from support.windows import SERVER, judged, named, seen, standing

ALL_IN_USE = (
    gauge("lab_kernel_tcp_time_wait", 0, server=SERVER),
    gauge("lab_downstream_connections_leased", 300, server=SERVER),
    counter("lab_downstream_calls_total", 14_000, server=SERVER, outcome="error"),
)
FULL_CPUS = Usage(1, 1, 0.99, 0, 5, 9)


@pytest.mark.parametrize(
    ("settings", "is_named"),
    # As many are a small part of the range by default.
    [({"local_ports": "10000 10299"}, True), ({"local_ports": "10000 65535"}, False), ({}, False)],
)
def test_the_range_that_the_server_tells_is_full(settings: dict[str, str], is_named: bool) -> None:
    load = {"rps": 20_000, "errors": 280_000, "concurrency": 400, "usage": FULL_CPUS}
    assert (named(seen(*ALL_IN_USE), settings=settings, **load)[0] == "ports") == is_named


def test_a_port_in_time_wait_is_free_for_the_next_call() -> None:
    gone = gauge("lab_kernel_tcp_time_wait", 55_000, server=SERVER)
    assert named(seen(gone), rps=500)[0] == "unknown"


def test_ports_that_are_all_closed_or_taken_are_named_where_calls_fail() -> None:
    # A port in TIME_WAIT is not free for the first second.
    full = (
        gauge("lab_kernel_tcp_time_wait", 250, server=SERVER),
        gauge("lab_downstream_connections_leased", 40, server=SERVER),
    )
    failed = counter("lab_downstream_calls_total", 300, server=SERVER, outcome="error")
    few = {"local_ports": "10000 10299"}
    found, none = (judged(seen(*full, *more), rps=500, settings=few) for more in ((failed,), ()))
    assert standing(found, "ports").failed > 0
    assert standing(none, "ports").failed == 0


@pytest.mark.parametrize(
    ("told", "count"), [("10000 10299", 300), ("10000 65535", 55_536), (None, None), ("x", None)]
)
def test_the_count_of_ports(told: str | None, count: int | None) -> None:
    of: Snapshot = snapshot(settings={"local_ports": told})
    assert of.local_ports == count
