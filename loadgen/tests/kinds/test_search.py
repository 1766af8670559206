"""`capacity` and `stress`: the search over an axis, on servers whose capacity is planted."""

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kinds.conftest import refusal
from lab.kinds.kind import Outcome, settings_of
from lab.kinds.objective import Objective
from lab.kinds.plans import of_verb
from lab.kinds.reading import Here
from lab.kinds.search import BELOW, IN_VAIN, MOST_LATER, MOST_TRIALS, Search, design, findings
from lab.model import Experiment, Row, Sustained, TrialPlan
from lab.report.capacity import answers
from support.altered import invalid
from support.fakes import snapshot
from support.planned import experiment, planner, row

HERE = Here(("fixed-pool", "event-loop"), 200_000)
P99 = Objective(p99_ms=500.0)
SEARCH = Search((P99,), "rate", 2000, 100_000, 0.08, 100_000)
UNBOUND = snapshot(settings={})
Server = Callable[[TrialPlan], Mapping[str, Any]]


def searched(**changes: Any) -> Experiment:
    known = {"kind": "capacity", "modes": ("open",), "own": SEARCH, "servers": ("a",)}
    return experiment(**{**known, **changes})


def server(
    capacity: float, scatter: float = 0.02, seed: int = 0, name: str = "host CPU", power: float = 25
) -> Server:
    """Its p99 is 205 ms, and grows by this power near its capacity, where trials scatter."""
    drawn = random.Random(seed)

    def answer(plan: TrialPlan) -> dict[str, Any]:
        ratio = (plan.offered_rps or 0) / capacity * math.exp(drawn.gauss(0, scatter))
        p99_ms = min(205 + 295 * ratio**power, 9000.0)
        met = p99_ms <= 500
        return {
            "achieved_rps": float(plan.offered_rps or 0),
            "p50_ms": 200.0,
            "p99_ms": p99_ms,
            "p99_error": 0.02,
            "max_ms": p99_ms + 50,
            "bottleneck": "none" if met else name,
            "strength": "strong",
        }

    return answer


def run(of: Experiment, servers: Mapping[str, Server], rows: Sequence[Row] = ()) -> list[Row]:
    order = design(planner(of, snapshots=dict.fromkeys(of.servers, UNBOUND)))
    done = list(rows)
    while (plan := order.next(done)) is not None:
        assert len(done) < order.most
        done.append(row(plan, **servers[plan.server](plan)))
    return done


def found(of: Experiment, rows: Sequence[Row]) -> list[Sustained]:
    each = findings(Outcome(of, rows, Path()))
    return [finding for finding in each if isinstance(finding, Sustained)]


def test_a_capacity_is_found_in_few_trials() -> None:
    of = searched()
    rows = run(of, {"a": server(8700)})
    assert len(rows) <= 12
    (finding,) = found(of, rows)
    assert finding.low is not None
    assert finding.high is not None
    assert finding.low < 8700 < finding.high
    assert math.sqrt(finding.high / finding.low) - 1 <= 0.08
    assert finding.gave_way is not None
    assert finding.gave_way.resource == "host CPU"
    # The last trial is where nearly all meet it.
    assert finding.often is not None
    assert BELOW * finding.often[0] <= (rows[-1].offered_rps or 0) <= finding.often[0] / BELOW
    # The limits that a window may end by.
    plan = design(planner(of, snapshots={"a": UNBOUND})).next([])
    assert plan is not None
    assert plan.limits == {"p99": (500.0,)}


CAPACITIES = st.floats(math.log(30), math.log(160_000)).map(math.exp)


def goes_on(of: Experiment, servers: Mapping[str, Server], rows: list[Row], stop: int) -> None:
    """A search that is stopped after so many trials plans the same one next."""
    stop = min(stop, len(rows))
    plan = design(planner(of, snapshots={"a": UNBOUND})).next(rows[:stop])
    assert [plan and row(plan, **servers["a"](plan))] == [*rows[stop : stop + 1], None][:1]


@example(150_000, 25, 0, 1)
@settings(max_examples=9)
@given(CAPACITIES, st.floats(10, 50), st.integers(0, 2), st.integers(0, 9))
def test_a_search_ends_around_the_border(
    capacity: float, power: float, launches: int, stop: int
) -> None:
    of, servers = searched(launches=launches), {"a": server(capacity, scatter=0.0, power=power)}
    rows = run(of, servers)
    (finding,) = found(of, rows)
    assert finding.low is not None
    assert finding.low <= capacity <= (finding.high or math.inf)
    assert finding.high is not None or capacity > 0.9 * SEARCH.most
    assert all(1 <= (row.offered_rps or 0) <= SEARCH.most for row in rows)
    goes_on(of, servers, rows, stop)


REASONS = ("generator-full", "backlog", "compiling", "damaged", "window-short needed_s=34")
ANSWERS = st.fixed_dictionaries(
    {"p50_ms": st.floats(1, 9000), "overloaded": st.booleans()},
    optional={"p99_ms": st.floats(1, 9000), "p99_error": st.floats(0, 1)},
) | st.sampled_from(REASONS).map(invalid)


@settings(max_examples=8)
@given(st.lists(ANSWERS, min_size=1, max_size=9), st.integers(1, 100_000), st.integers(0, 22))
def test_whatever_trials_measure_a_search_keeps_its_limits(
    answers: list[dict[str, Any]], most: int, stop: int
) -> None:
    own = Search((P99,), "rate", max(1, most // 50), most, 0.08, 100_000)
    of = searched(own=own, launches=2)
    servers = {"a": lambda plan: answers[int(plan.trial[:3]) % len(answers)]}
    rows = run(of, servers)
    trials = Counter(row.launch for row in rows)
    assert trials[1] <= MOST_TRIALS
    assert trials[2] <= MOST_LATER
    assert all(1 <= (row.offered_rps or 0) <= most for row in rows)
    goes_on(of, servers, rows, stop)


def test_launches_share_what_is_known_and_differ() -> None:
    of = searched(servers=("a", "b"), launches=3)
    rows = run(of, {"a": server(8700, 0.03, 1), "b": server(5000, 0.03, 2, "worker pool")})
    a, b = found(of, rows)
    assert 0.94 * 8700 < (a.value or 0) < 1.06 * 8700
    assert 0.94 * 5000 < (b.value or 0) < 1.06 * 5000
    # Later launches begin where the others ended.
    later = [row for row in rows if row.launch == 3 and row.server == "a"]
    assert len(later) <= MOST_LATER
    assert all(0.8 * 8700 < (row.offered_rps or 0) < 1.25 * 8700 for row in later)
    lines = answers(of, [a, b])
    assert [cells[0] for cells in lines if len(cells) > 1] == ["a", "b"]
    assert "then: worker pool (strong, by" in lines[1][2]


@pytest.mark.parametrize(
    ("server", "most"),
    [
        # It answers nothing, or is away.
        (lambda _: invalid("generator-full"), IN_VAIN),
        # It is faster than what may be tried.
        (server(1e9), 8),
        # It is slower than anything.
        (server(0.5), MOST_TRIALS),
    ],
)
def test_a_search_ends_that_finds_nothing(server: Server, most: int) -> None:
    of = searched()
    rows = run(of, {"a": server})
    assert len(rows) <= most
    (finding,) = found(of, rows)
    assert finding.often is None
    assert finding.open_above or finding.open_below


def test_several_objectives_share_the_trials() -> None:
    strict = Objective(p50_ms=250.0)
    own = Search((P99, strict), "rate", 2000, 100_000, 0.08, 100_000)
    of = searched(own=own)

    def both(plan: TrialPlan) -> dict[str, Any]:
        known = server(8700, 0.01)(plan)
        ratio = (plan.offered_rps or 0) / 4000
        return {**known, "p50_ms": 200 + 50 * ratio**20, "p50_error": 0.02}

    rows = run(of, {"a": both})
    loose, tight = found(of, rows)
    assert (loose.objective, tight.objective) == ("p99 ≤ 500 ms", "p50 ≤ 250 ms")
    assert loose.value == pytest.approx(8700, rel=0.06)
    assert tight.value == pytest.approx(4000, rel=0.06)
    assert len(rows) < MOST_TRIALS + 1


def test_a_capacity_beyond_what_was_tried_is_no_number() -> None:
    of = searched()
    met = server(1e9)
    rows = run(of, {"a": met})
    stalled = replace(rows[0], p99_ms=1500.0, max_ms=1600.0, trial="stalled")
    (finding,) = found(of, [*rows, stalled])
    assert finding.open_above
    assert (finding.low, finding.high) == (100_000, None)


def test_a_server_that_sheds_load_is_searched_by_its_errors() -> None:
    of = searched()

    def sheds(plan: TrialPlan) -> dict[str, Any]:
        share = max(0.0, 1 - 5000 / (plan.offered_rps or 1))
        answers = round((plan.offered_rps or 0) * 15)
        failed = round(share * answers)
        counts = {"window_ok": answers - failed, "window_http_errors": failed, "window_s": 15.0}
        return {**server(1e9)(plan), **counts}

    (finding,) = found(of, run(of, {"a": sheds}))
    assert finding.value == pytest.approx(5050, rel=0.08)


def test_a_window_is_judged_by_the_limits_of_all_objectives() -> None:
    objectives = (P99, Objective(p99_ms=200.0), Objective(p95_ms=100.0, p99_ms=900.0))
    search = Search(objectives, "rate", 2000, 100_000, 0.08, 100_000)
    assert search.limits() == {"p99": (500.0, 200.0, 900.0), "p95": (100.0,)}
    assert search.least_limits() == {"p99": 200.0, "p95": 100.0}


def test_stress_is_the_same_search_over_connections() -> None:
    own = Search((Objective(p95_ms=500.0),), "connections", 100, 50_000, 0.08, 50_000)
    of = searched(kind="stress", own=own)

    def answer(plan: TrialPlan) -> dict[str, Any]:
        p95_ms = 205 + 295 * (plan.concurrency / 2200) ** 20
        late = {"p95_ms": p95_ms, "p95_error": 0.02, "max_ms": p95_ms + 9}
        return {"achieved_rps": float(plan.offered_rps or 0), **late}

    rows = run(of, {"a": answer})
    (finding,) = found(of, rows)
    assert finding.value == pytest.approx(2200, rel=0.05)
    assert finding.unit == "connections"
    # A load of so many connections is what they carry at the objective.
    assert rows[0].offered_rps == Objective(p95_ms=500.0).rate(rows[0].concurrency)


def test_the_verb_takes_several_objectives_and_the_exact_engine() -> None:
    of, notes = of_verb("capacity", {"OBJECTIVE": "p99<500ms,errors<1%;p95<1s"}, HERE)
    assert (of.kind, of.modes, of.engines, of.launches) == ("capacity", ("open",), ("pacer",), 0)
    assert of.question.startswith(
        "How many requests per second does each of fixed-pool, event-loop"
    )
    own = settings_of(Search, of)
    assert own.objectives == (P99, Objective(p95_ms=1000))
    assert own.connections == 99_500
    assert notes == ()
    for word in ("ENGINE", "RATE", "CONC", "MODE", "PROVE", "CURVE"):
        assert f"unknown word {word}" in refusal(of_verb, "capacity", {word: "1"}, HERE)


@pytest.mark.parametrize(
    "text", ["", "p99", "p98<500ms", "p99<500", "p99<0ms", "p99<1s,p99<2s", "p99<1s;p99<1s"]
)
def test_a_wrong_objective_gets_one_line(text: str) -> None:
    said = refusal(of_verb, "capacity", {"OBJECTIVE": text}, HERE)
    assert said.startswith(f"capacity: OBJECTIVE={text}")
    assert "allowed: " in said


def test_an_objective_that_a_request_alone_misses_is_refused() -> None:
    own = Search((Objective(p99_ms=150.0),), "rate", 2000, 100_000, 0.08, 100_000)
    said = refusal(design, planner(searched(own=own)))
    assert said.startswith("OBJECTIVE=p99<150ms is not allowed: a request of /downstream takes 200")
