"""Which trials there are, in which order, and under which names."""

import copy
from collections.abc import Sequence

import pytest

from lab.errors import WordError
from lab.kinds import loads as fixed
from lab.kinds import order
from lab.kinds.order import LONGEST_S
from lab.load.engines import ENGINES, Engine
from lab.model import Experiment, Row, Spike, TrialPlan
from support.altered import invalid
from support.fakes import FakeEngine, snapshot
from support.planned import all_of, experiment, planner, row

SNAPSHOTS = {"a": snapshot(), "b": snapshot(downstream_delay_ms=400.0)}
COLD = "compiling"
CLOSED = experiment(modes=("closed",), launches=1, concurrencies=(100, 5000))
ENGINE_PAIR = (FakeEngine("wrk2"), FakeEngine("pacer"))
FIRST = "03-a-closed-c5000"


def loads(of: Experiment, engines: Sequence[Engine] = ()) -> order.Design:
    return fixed.design(planner(of, *engines, snapshots=SNAPSHOTS))


def test_a_plan_has_all_that_an_engine_needs() -> None:
    plan = all_of(loads(experiment(modes=("open",), warmup_s=12)))[0]
    assert (plan.server, plan.url, plan.route) == (
        "a", "http://a:8080/downstream", "/downstream",
    )  # fmt: skip
    assert (plan.engine, plan.mode, plan.concurrency, plan.cores) == ("wrk2", "open", 100, 2)
    assert (plan.duration_s, plan.warmup_s, plan.predicted_rps) == (15, 12, None)
    assert (plan.launch, plan.arm, plan.spike) == (0, None, None)


def test_auto_is_one_rate_for_all_from_the_first_servers_delay() -> None:
    # 90 % of 100 / 0.2 s, also for b, whatever it says.
    assert {plan.offered_rps for plan in all_of(loads(experiment(modes=("open",))))} == {148}
    given = all_of(loads(experiment(modes=("closed", "open"), rate_rps=70)))
    assert [plan.offered_rps for plan in given] == [None, None, 70, 70]


# What is asked for with which engines, and the trials in their order.
NAMES: dict[str, tuple[Experiment, tuple[Engine, ...], str]] = {
    "servers are innermost: compared trials are neighbours": (
        experiment(concurrencies=(100, 200)), (),
        "01-a-closed-c100 02-b-closed-c100 03-a-open-c100 04-b-open-c100 "
        "05-a-closed-c200 06-b-closed-c200 07-a-open-c200 08-b-open-c200",
    ),
    "fresh JVMs in turns, every other launch in reverse": (
        experiment(modes=("closed",), launches=3), (),
        "01-a-closed-c100-l1 02-b-closed-c100-l1 03-b-closed-c100-l2 04-a-closed-c100-l2 "
        "05-a-closed-c100-l3 06-b-closed-c100-l3",
    ),
    "one launch is not named": (
        experiment(modes=("closed",), launches=1), (), "01-a-closed-c100 02-b-closed-c100",
    ),
    "each launch has all loads, every other one in reverse": (
        experiment(servers=("a",), concurrencies=(100, 200), launches=2), (),
        "01-a-closed-c100-l1 02-a-open-c100-l1 03-a-closed-c200-l1 04-a-open-c200-l1 "
        "05-a-open-c200-l2 06-a-closed-c200-l2 07-a-open-c100-l2 08-a-closed-c100-l2",
    ),
    "arms are whole JVMs: A B B A": (
        experiment(servers=("a",), launches=2, arms=("x", "y")), (),
        "01-a-x-closed-c100-l1 02-a-x-open-c100-l1 03-a-y-closed-c100-l1 04-a-y-open-c100-l1 "
        "05-a-y-open-c100-l2 06-a-y-closed-c100-l2 07-a-x-open-c100-l2 08-a-x-closed-c100-l2",
    ),
    "routes are named where there are several": (
        experiment(servers=("a",), routes=("/", "/block?wait_ms=5"), modes=("closed",)), (),
        "01-a-root-closed-c100 02-a-block-wait-ms-5-closed-c100",
    ),
    "so are engines": (
        experiment(servers=("a",)), ENGINE_PAIR,
        "01-a-closed-c100-wrk2 02-a-closed-c100-pacer 03-a-open-c100-wrk2 04-a-open-c100-pacer",
    ),
    "numbers have as many digits as it takes": (
        experiment(servers=("a",), modes=("closed",), concurrencies=tuple(range(1, 101))), (),
        " ".join(f"{number:03}-a-closed-c{number}" for number in range(1, 101)),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("of", "engines", "expected"), NAMES.values(), ids=NAMES)
def test_the_order_and_the_names_of_trials(
    of: Experiment, engines: tuple[Engine, ...], expected: str
) -> None:
    order = loads(of, engines)
    assert " ".join(plan.trial for plan in all_of(order)) == expected
    assert order.most == len(expected.split())
    assert order.notes == () or of.launches
    for plan in all_of(order):
        launch = plan.trial.rpartition("-l")[2] if of.launches > 1 else of.launches
        assert plan.launch == int(launch)
        assert plan.arm == (plan.trial.split("-")[2] if of.arms else None)


@pytest.mark.parametrize(("count", "launches"), [(1, 2), (4, 2), (10, 6), (5, 10), (3, 12)])
def test_every_load_is_measured_as_often_early_as_late(count: int, launches: int) -> None:
    loads = tuple(range(count))
    orders = [order.balanced(loads, launch, launches) for launch in range(1, launches + 1)]
    assert all(sorted(one) == list(loads) for one in orders)
    places = [sum(one.index(load) for one in orders) for load in loads]
    assert places == [launches * (count - 1) / 2] * count
    # The first pairs begin elsewhere, so that not the same load is always on the youngest JVM.
    assert len({one[0] for one in orders[::2]}) == min(count, launches // 2)
    # Without launches the loads come as given.
    assert order.balanced(loads, 0, 0) == order.balanced(loads, 1, 1) == loads


def test_a_route_without_a_wait_has_no_open_load_and_a_note() -> None:
    order = loads(experiment(servers=("a",), routes=("/compute", "/block", "/file")))
    assert [(p.route, p.mode) for p in all_of(order)] == [
        ("/compute", "closed"), ("/block", "closed"), ("/block", "open"), ("/file", "closed"),
    ]  # fmt: skip
    (note,) = order.notes
    assert note.startswith("no open load of /compute, /file: ")
    with pytest.raises(WordError, match="/compute does not wait now"):
        loads(experiment(routes=("/compute",), modes=("open",)))
    assert len(all_of(loads(experiment(routes=("/compute",), rate_rps=5)))) == 4


def test_what_an_engine_cannot_do_is_refused_before_anything_runs() -> None:
    with pytest.raises(WordError, match="WARMUP=1s is not allowed with wrk2"):
        loads(experiment(warmup_s=1), ENGINES[:1])


def made(of: Experiment, reasons: dict[str, str]) -> list[TrialPlan]:
    """Every trial of a run in which these trials are invalid."""
    design, done, plans = loads(of), list[Row](), list[TrialPlan]()
    while (plan := design.next(done)) is not None:
        plans.append(plan)
        why = reasons.get(plan.trial, "")
        done.append(row(plan, **(invalid(why) if why else {})))
        assert (design.left(done) == 0) == (design.next(done) is None)
    return plans


def test_what_is_invalid_by_accident_is_measured_again_at_once_and_only_once() -> None:
    plans = made(CLOSED, {FIRST: f"{COLD}; generator-starved", f"{FIRST}-again": COLD})
    assert [plan.trial for plan in plans] == [
        "01-a-closed-c100", "02-b-closed-c100", FIRST, f"{FIRST}-again", "04-b-closed-c5000",
    ]  # fmt: skip
    assert [plan.repeats for plan in plans] == [None, None, None, FIRST, None]
    # The server that is next, also after a repeat.
    assert [loads(CLOSED).then(plan) for plan in plans] == ["b", "a", "b", "b", "b"]


@pytest.mark.parametrize(
    "reason",
    [
        *("jvm-restarted", "server-silent", "wrong-server", "generator-throttled"),
        *("cold-silent", "damaged"),
        # One reason that is no accident is enough.
        f"{COLD}; unequal-limits",
    ],
)
def test_a_finding_and_what_would_come_again_are_not_repeated(reason: str) -> None:
    assert [plan.repeats for plan in made(CLOSED, {FIRST: reason})] == [None] * 4


def test_what_is_no_accident_is_not_repeated_for_ever() -> None:
    of = experiment(servers=("a",), modes=("closed",), concurrencies=(1, 2, 3, 4, 5))
    every = {f"0{at}-a-closed-c{at}{again}": COLD for at in range(1, 6) for again in ("", "-again")}
    repeated = [plan.repeats for plan in made(of, every) if plan.repeats]
    assert repeated == ["01-a-closed-c1", "02-a-closed-c2"]
    # A repeat that helped shows that there is sense in them.
    del every["02-a-closed-c2-again"]
    assert len([plan for plan in made(of, every) if plan.repeats]) == 4


def short(wanted_s: int) -> str:
    return f"window-short needed_s={wanted_s}"


@pytest.mark.parametrize(
    ("servers", "loads", "trial", "expected"),
    [
        # Its own side, and the one that it is compared with.
        (("a", "b"), (100, 5000), "04-b-closed-c5000-l1",
         "01-a-closed-c100-l1 15, 02-b-closed-c100-l1 15, 03-a-closed-c5000-l1 15, "
         "04-b-closed-c5000-l1 15, 03-a-closed-c5000-l1-again 34, 04-b-closed-c5000-l1-again 34, "
         "05-b-closed-c5000-l2 34, 06-a-closed-c5000-l2 34, 07-b-closed-c100-l2 15, "
         "08-a-closed-c100-l2 15"),
        # A launch that is over keeps its windows.
        (("a",), (100,), "02-a-closed-c100-l2",
         "01-a-closed-c100-l1 15, 02-a-closed-c100-l2 15, 02-a-closed-c100-l2-again 34"),
    ],
)  # fmt: skip
def test_a_window_that_proved_too_short_is_longer_for_both_sides_from_then_on(
    servers: tuple[str, ...], loads: tuple[int, ...], trial: str, expected: str
) -> None:
    of = experiment(modes=("closed",), launches=2, servers=servers, concurrencies=loads)
    plans = made(of, {trial: short(34)})
    assert ", ".join(f"{plan.trial} {plan.duration_s}" for plan in plans) == expected


@pytest.mark.parametrize(
    ("reasons", "again"),
    [
        (short(LONGEST_S), True),
        # Nobody waits so long.
        (short(LONGEST_S + 1), False),
        (f"{COLD}; {short(34)}", True),
        (f"wrong-server; {short(34)}", False),
    ],
)
def test_a_longer_window_is_tried_once_and_within_bounds(reasons: str, again: bool) -> None:
    of = experiment(servers=("a",), modes=("closed",))
    every = {f"01-a-closed-c100{suffix}": reasons for suffix in ("", "-again")}
    assert len(made(of, every)) == 1 + again


def test_the_lengths_of_spikes_and_scripts_are_their_own() -> None:
    spike = Spike(100, None, calm_s=5, peak_s=5, repeats=1, tolerance=0.1, steady_s=1)
    of = planner(experiment(servers=("a",)))
    plan = copy.replace(of.single("a", spike=spike), trial="01-a")
    assert order.Listed((plan,), repeats=True).next([row(plan, **invalid(short(34)))]) is None


def test_a_load_has_a_window_for_the_latency_of_its_slowest_server() -> None:
    # 200 threads: 5,000 connections / 1,000 req/s = 5 s on a, and 10 s on b, which waits 400 ms.
    # 5.5 latencies: 55 s.
    design = loads(experiment(concurrencies=(100, 5000), longer=True))
    assert {(p.concurrency, p.mode, p.duration_s) for p in all_of(design)} == {
        (100, "closed", 15), (100, "open", 15), (5000, "closed", 55), (5000, "open", 55),
    }  # fmt: skip
    # A window that was asked for is kept.
    design = loads(experiment(modes=("closed",), concurrencies=(100, 5000)))
    assert {plan.duration_s for plan in all_of(design)} == {15}


def test_without_a_comparison_a_window_is_for_its_own_server() -> None:
    of = planner(
        experiment(modes=("closed",), concurrencies=(5000,), longer=True),
        snapshots={"a": snapshot(), "b": snapshot(settings={})},
    )
    assert [of.single(server).duration_s for server in ("a", "b")] == [28, 15]
    # Nothing takes longer than the engines wait for it: 40 s would be a window of 220 s.
    assert of.single("a", 40_000).duration_s == 165
