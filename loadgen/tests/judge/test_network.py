"""What the network lost, in windows made by hand."""

import dataclasses

import pytest

from lab.model import STRONG, WEAK, Series, Spike, Standing, Usage, Verdict
from support.fakes import latency
from support.series import counter
from support.windows import SERVER, judged, pool, seen

# Of answers that take 200 ms, those of which a segment is sent again take twice as long.
LATE = dataclasses.replace(latency(200.0), mean_ms=250.0, p95_ms=400.0, p99_ms=410.0, max_ms=420.0)


def resent(by_server: float, attempts: float = 0.0, overflows: float = 0.0) -> list[Series]:
    """So many segments a second, in a window of 10 s."""
    return [
        counter("lab_kernel_tcp_retransmits_total", by_server + attempts, server=SERVER),
        counter("lab_kernel_tcp_syn_retransmits_total", attempts, server=SERVER),
        counter("lab_kernel_listen_overflows_total", overflows, server=SERVER),
    ]


def usage(by_generator: float | None, busy: float = 0.2) -> Usage:
    return Usage(1, 1, busy, 0, 0.01, 9, window_resent=by_generator)


def standing(verdict: Verdict) -> Standing | None:
    return next((one for one in verdict.ranked if one.resource == "network"), None)


@pytest.mark.parametrize(
    ("by_server", "by_generator", "named"),
    [
        # Of 8,000 answers in 10 s: 5 % and more, 1 % and more, less.
        (30, 100, ("network", STRONG)),
        (0, 400, ("network", STRONG)),
        (8, 0, ("network", WEAK)),
        (7, 0, ("unknown", "")),
        (0, 0, ("unknown", "")),
    ],
)
def test_a_network_that_loses_what_the_answers_need_is_named(
    by_server: float, by_generator: float, named: tuple[str, str]
) -> None:
    found = judged(seen(*resent(by_server)), rps=800, usage=usage(by_generator), raw=LATE)
    assert (found.bottleneck, found.strength) == named


def test_its_sentence_says_how_much_and_by_whom() -> None:
    found = judged(seen(*resent(30)), rps=800, usage=usage(100), raw=LATE)
    assert found.sentence == (
        "the network: 400 segments were sent again, 300 of them by the server; 0.05 for each answer"
    )
    one = standing(found)
    assert (one.saturation, one.waiting) == (0.05, "segments sent again for each answer")
    assert [each.value for each in one.evidence] == [300, 100]


def test_a_load_that_got_all_it_can_have_is_not_limited_by_it() -> None:
    assert judged(seen(*resent(100)), rps=985, usage=usage(0)).bottleneck == "none"


def test_a_few_segments_are_a_moments() -> None:
    assert judged(seen(*resent(0.9)), rps=1, usage=usage(0)).bottleneck == "unknown"


def test_a_full_accept_queue_drops_too() -> None:
    # Attempts to connect, of the server's own calls; and what the generator sends on connections
    # that the server has not accepted yet.
    full = resent(0, attempts=100, overflows=5)
    found = judged(seen(*full), rps=500, usage=usage(5000))
    assert found.bottleneck == "accept queue"
    one = standing(found)
    assert one.score == 0


def test_what_holds_a_worker_while_it_waits_for_a_segment_is_explained() -> None:
    found = judged(seen(*resent(100), *pool(200, 60, 0.1)), rps=700, usage=usage(0), raw=LATE)
    assert (found.bottleneck, found.strength) == ("network", STRONG)


def test_a_pool_at_its_own_bound_is_the_limit_all_the_same() -> None:
    full = seen(*resent(100), *pool(200, 1800, 1.8))
    found = judged(full, rps=980, usage=usage(0), raw=LATE, concurrency=2000)
    assert found.bottleneck == "worker pool"


@pytest.mark.parametrize(("busy", "named"), [(0.85, "network"), (0.99, "host CPU")])
def test_on_busy_cpus_it_is_only_a_suspect(busy: float, named: str) -> None:
    found = judged(seen(*resent(100)), rps=500, usage=usage(0, busy=busy), raw=LATE)
    assert found.bottleneck == named
    one = standing(found)
    assert one.strength == WEAK


def test_what_nobody_felt_is_only_a_suspect() -> None:
    found = judged(seen(*resent(100)), rps=800, usage=usage(0))
    assert (found.bottleneck, found.strength) == ("network", WEAK)


def test_where_nothing_was_answered_it_is_only_a_suspect() -> None:
    one = standing(judged(seen(*resent(100)), rps=0, usage=usage(0), raw=LATE))
    assert one.strength == WEAK


@pytest.mark.parametrize("spike", [None, Spike(1800, None, 5, 2, 1, 0.1, 1)])
def test_what_a_full_queue_of_the_proxy_drops_is_not_the_networks(spike: Spike | None) -> None:
    full = counter("lab_path_listen_overflows_total", 50, job="downstream")
    found = judged(seen(*resent(100), full), rps=500, usage=usage(0), raw=LATE, spike=spike)
    one = standing(found)
    assert (one.saturation, one.score) == (0, 0)


def test_of_a_queue_of_which_nothing_is_known_the_generators_do_not_count() -> None:
    unknown = seen(*resent(0), without="lab_kernel_listen_overflows_total")
    one = standing(judged(unknown, rps=500, usage=usage(5000), raw=LATE))
    assert one.score == 0


def test_nothing_is_said_where_the_server_does_not_tell() -> None:
    assert standing(judged(seen(), rps=500, usage=usage(5000))) is None
    # Images of before 2026-11-26 do not part attempts to connect.
    old = counter("lab_kernel_tcp_retransmits_total", 100, server=SERVER)
    assert standing(judged(seen(old), rps=500, usage=usage(0))) is None
