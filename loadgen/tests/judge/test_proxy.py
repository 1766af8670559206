"""The proxy: its accept queue and the downstream's, and its toxics, in windows as measured."""

import pytest

from lab.model import STRONG, WEAK, Series, Spike, ToxicState, Usage
from support.series import counter, gauge, mean_time
from support.windows import SERVER, Case, case, judged, pool, seen, standing

SET_UP = "connection set-up"
QUEUE = "lab_path_accept_queue_"


def queues(waiting: float, rate: float, *, longest: float = 0.0, busy: float = 0.0) -> list[Series]:
    """Toxiproxy's accept queue as the downstream tells it; its own is always empty. Each call is on
    a new connection."""
    of_proxy, own = ({"job": "downstream", "listener": one} for one in ("toxiproxy", "downstream"))
    return [
        counter(f"{QUEUE}connection_seconds_total", waiting, **of_proxy),
        counter(f"{QUEUE}occupied_seconds_total", busy, **of_proxy),
        gauge(f"{QUEUE}length", longest, **of_proxy),
        counter(f"{QUEUE}connection_seconds_total", 0, **own),
        counter(f"{QUEUE}occupied_seconds_total", 0, **own),
        gauge(f"{QUEUE}length", 0, **own),
        counter("lab_downstream_accepted_connections_total", rate, job="downstream"),
        counter("lab_downstream_calls_total", rate, server=SERVER, outcome="ok"),
    ]


# Of 200 clients 150 wait: 50 / 0.2 s = 250 req/s, each on a new connection.
CROWDED = queues(150, 250, longest=161, busy=1.0)
LATE = counter("lab_downstream_calls_total", 300, server=SERVER, outcome="timeout")


BREAKS = ToxicState(("downstream/l limit_data bytes=110",), 0.0, ("downstream/l limit_data",))
# As measured with 1,000 connections, here with 200: 435 req/s of 1,000, a call takes 0.36 s, of
# which it waits 54 / 435 = 0.12 s. With 20 the queue is less than half of what the load lost.
MEASURED = (
    *mean_time("lab_downstream_call_seconds", 0.36, server=SERVER, phase="call"),
    counter("lab_downstream_calls_total", 435, server=SERVER, outcome="ok"),
)
# The health check's own connection, every 5 s.
KEPT = queues(0, 0.2)
BUSY = Usage(1, 1, 0.99, 0, 5, 9)
PEAK = Spike(1800, None, 5, 2, 1, 0.1, 1)


@pytest.mark.parametrize(
    "line",
    [
        case("calls wait", *queues(54, 435), *MEASURED, rps=435, toxics=BREAKS).gives(SET_UP, WEAK),
        case("few calls wait", *queues(20, 435), *MEASURED, rps=435, toxics=BREAKS).gives(
            "Toxiproxy", WEAK
        ),
        case("kept connections", *KEPT, rps=985).gives("none", STRONG),
        case("kept connections, nothing full", *KEPT, rps=500).gives("unknown"),
        case("kept connections, full pool", *KEPT, *pool(20, 180, 0.2), rps=99).gives(
            "worker pool", STRONG
        ),
        # 15 of 200 waited for 38 ms each, of 300 that are missing: the CPUs are full.
        case("short queue, full CPUs", *queues(15, 400, longest=120), rps=400, usage=BUSY).gives(
            "host CPU", WEAK
        ),
        case("long queue, full CPUs", *CROWDED, rps=250, usage=BUSY).gives(SET_UP, STRONG),
        # Every call that ends at a deadline that no answer can meet takes its connection with it.
        case(
            *("deadline", *CROWDED, LATE),
            rps=50,
            errors=4500,
            settings={"downstream_timeout_ms": 100},
        ).gives("downstream timeout", STRONG),
        # Those of a peak are not measured, and never give confidence.
        case("peak", *queues(900, 300, longest=1700, busy=0.9), rps=500, spike=PEAK).gives(
            SET_UP, WEAK
        ),
        case("small peak", *queues(12, 50, longest=400, busy=0.1), rps=985, spike=PEAK).gives(
            "unknown"
        ),
    ],
)
def test_what_a_queue_of_the_proxy_explains_is_named(line: Case) -> None:
    line.check()


def test_a_steady_load_on_kept_connections_has_none_of_it() -> None:
    # It is one resource of the path to the downstream only.
    elsewhere = judged(seen(*CROWDED), rps=250, route="/compute")
    assert standing(elsewhere, SET_UP) is None
    assert standing(judged(seen(*KEPT), rps=985), SET_UP).share == 0


def test_a_proxy_that_accepts_nothing_any_more_is_named_and_no_wait_is_made_up() -> None:
    found = judged(seen(*queues(200, 1, longest=200, busy=1.0)), rps=1)
    assert found.bottleneck == "connection set-up"


def test_the_queue_that_calls_wait_in_is_named_with_its_length_wait_and_rate() -> None:
    found = judged(seen(*CROWDED), rps=250)
    assert (found.bottleneck, found.strength) == ("connection set-up", STRONG)
    one = standing(found, SET_UP)
    assert (one.use, one.unit) == (150, "connections")
    assert {each.source for each in one.evidence} >= {
        f'sum(rate({QUEUE}connection_seconds_total{{listener="toxiproxy"}}[10s]))',
        f"max(max_over_time({QUEUE}length{{}}[10s]))",
        "sum(rate(lab_downstream_accepted_connections_total{}[10s]))",
    }
