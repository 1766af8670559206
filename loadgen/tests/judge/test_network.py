"""What the network lost, in windows made by hand."""

import copy

import pytest

from lab.model import STRONG, WEAK, Latency, Series, Spike, Usage
from support.fakes import latency
from support.series import counter
from support.windows import SERVER, judged, named, pool, seen, standing

# Of answers that take 200 ms, those of which a segment is sent again take twice as long.
LATE = copy.replace(latency(200.0), mean_ms=212.0, p95_ms=400.0, p99_ms=410.0, max_ms=420.0)


def resent(by_server: float, attempts: float = 0.0, overflows: float = 0.0) -> list[Series]:
    """So many segments a second, in a window of 10 s."""
    return [
        counter("lab_kernel_tcp_retransmits_total", by_server + attempts, server=SERVER),
        counter("lab_kernel_tcp_syn_retransmits_total", attempts, server=SERVER),
        counter("lab_kernel_listen_overflows_total", overflows, server=SERVER),
    ]


def usage(by_generator: float | None, busy: float = 0.2) -> Usage:
    return Usage(1, 1, busy, 0, 0.01, 9, window_resent=by_generator)


@pytest.mark.parametrize(
    ("series", "by_generator", "rps", "raw", "expected"),
    [
        # 940 answers a second take 12 ms longer: 47 × 200 ms / 940 = 10 ms.
        (resent(47), 0, 940, LATE, ("network", WEAK)),
        (resent(0), 470, 940, LATE, ("network", WEAK)),
        (resent(10), 0, 940, LATE, ("unknown", "")),
        (resent(0), 0, 940, LATE, ("unknown", "")),
        # A load has all it can have; a few segments are a moment's.
        (resent(100), 0, 985, None, ("none", STRONG)),
        (resent(0.9), 0, 1, None, ("unknown", "")),
    ],
)
def test_a_network_that_loses_what_the_answers_need_is_named(
    series: list[Series], by_generator: int, rps: float, raw: Latency, expected: tuple[str, str]
) -> None:
    assert named(seen(*series), rps=rps, usage=usage(by_generator), raw=raw) == expected


def test_a_pool_at_its_own_bound_is_the_limit_all_the_same() -> None:
    full = seen(*resent(100), *pool(200, 1800, 0.2))
    found = judged(full, rps=980, usage=usage(0), raw=LATE, concurrency=2000)
    assert found.bottleneck == "worker pool"


def test_a_full_accept_queue_drops_too() -> None:
    # Attempts to connect, of the server's own calls; and what the generator sends on connections
    # that the server has not accepted yet.
    full = resent(0, attempts=100, overflows=5)
    found = judged(seen(*full), rps=500, usage=usage(5000))
    assert standing(found, "network").share == 0
    # Nothing is known of the queue.
    unknown = seen(*resent(0), without="lab_kernel_listen_overflows_total")
    found = judged(unknown, rps=500, usage=usage(5000), raw=LATE)
    assert standing(found, "network").share == 0


@pytest.mark.parametrize("spike", [None, Spike(1800, None, 5, 2, 1, 0.1, 1)])
def test_what_a_full_queue_of_the_proxy_drops_is_not_the_networks(spike: Spike | None) -> None:
    full = counter("lab_path_listen_overflows_total", 50, job="downstream")
    found = judged(seen(*resent(100), full), rps=500, usage=usage(0), raw=LATE, spike=spike)
    assert (standing(found, "network").use, standing(found, "network").share) == (0, 0)


def test_nothing_is_said_where_the_server_does_not_tell() -> None:
    # Images of before 2026-11-26 do not part attempts to connect.
    old = counter("lab_kernel_tcp_retransmits_total", 100, server=SERVER)
    for observed, by_generator in ((seen(), 5000), (seen(old), 0)):
        found = judged(observed, rps=500, usage=usage(by_generator))
        assert standing(found, "network") is None
