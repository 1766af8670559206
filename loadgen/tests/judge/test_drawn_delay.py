"""What the lab predicts and judges where the downstream draws each delay."""

import copy

import pytest

from lab.judge.checks import judge
from lab.judge.predict import Prediction, predict, rate_error, uncovered
from lab.judge.quantities import crossing_s, needed_window_s
from lab.judge.resources import verdict_of
from lab.judge.steps import Step, silent_s
from lab.kinds.proving.levers import USUAL_TIMEOUT_MS
from lab.model import STRONG, Demand, Judgement, Latency, Line, Snapshot, TrialRecord, Verdict
from lab.model.routes import parse
from support.drawn_delay import LATENCY_300, SPREAD, drawn
from support.fakes import latency, measurement, observation, plan, reading, record, snapshot
from support.series import counter
from support.windows import SERVER, pool, seen

CALL = parse("/downstream")
# 0.5 ms of the server's CPU, and next to nothing of the host's.
CHEAP = Demand(200, 4000, Line(0.0005), Line(0.0001))


def closed(connections: int, of: Snapshot, demand: Demand | None = None) -> Prediction:
    return predict("/downstream", connections, None, of, demand, 2)


def test_what_is_held_is_held_for_the_mean() -> None:
    assert closed(400, drawn()).bounds[0].formula == "200 / 0.2 s"
    assert closed(100, drawn()).rps == 500
    assert closed(400, drawn()).expected_ms == pytest.approx(400)


def test_the_tail_is_that_of_the_delay_where_nothing_queues() -> None:
    for of in (drawn(), drawn(pool=None)):
        found = closed(200, of)
        tail = found.expected_ms, found.expected_p95_ms, found.expected_p99_ms
        assert tail == pytest.approx((200, SPREAD.p95_ms, SPREAD.p99_ms))
    # The CPU time of a request comes on top, and so does what toxics add to all alike.
    found = closed(200, drawn(toxics=LATENCY_300), CHEAP)
    assert found.rps == 400
    assert found.expected_ms == pytest.approx(500.5)
    assert found.expected_p95_ms == pytest.approx(SPREAD.p95_ms + 300.5)
    assert found.text.endswith("p95 796.4 ms, p99 1100 ms")


def test_no_tail_is_predicted_where_requests_queue() -> None:
    found = closed(400, drawn())
    assert found.expected_p95_ms is None
    assert found.text.endswith("p95 not predicted: requests with drawn delays queue (worker pool)")
    # Delays that are all alike make all wait alike.
    assert closed(400, snapshot()).expected_p95_ms == 400
    # Nor is it under a toxic with jitter.
    jitter = copy.replace(LATENCY_300, jittered=True)
    for of in (drawn(toxics=jitter), snapshot(toxics=jitter)):
        found = closed(200, of)
        assert (found.rps, found.expected_ms, found.expected_p95_ms) == (400, 500, None)
        assert found.no_tail == "a toxic has jitter"
    # It does not touch other routes.
    assert predict("/block", 100, None, drawn(toxics=jitter)).expected_p95_ms == 300


def test_nor_where_an_open_load_has_next_to_nothing_to_spare() -> None:
    def opened(connections: int, rate: int, of: Snapshot) -> Prediction:
        return predict("/downstream", connections, rate, of)

    # 140 busy: 3 × √140 = 35.5 more there now and then.
    assert opened(176, 700, drawn(pool=None)).expected_p95_ms == pytest.approx(SPREAD.p95_ms)
    few = opened(175, 700, drawn(pool=None))
    assert (few.expected_p95_ms, few.expected_ms) == (None, pytest.approx(200))
    busy = "drawn delays keep 140 of 175 busy on average (connections)"
    assert few.no_tail == f"{busy}, and all of them now and then"
    # The pool counts as well.
    assert opened(1000, 700, drawn(pool=150)).expected_p95_ms is None
    assert opened(175, 700, snapshot()).expected_p95_ms == 200
    # Above the bound the queue grows without limit.
    assert opened(1000, 1100, drawn()).expected_ms is None


def test_a_deadline_within_the_delays_leaves_no_bound() -> None:
    def until(ms: int) -> Snapshot:
        return snapshot(settings={"downstream_timeout_ms": ms}, spread=SPREAD)

    found = closed(200, until(700))
    assert (found.rps, found.expected_p95_ms) == (None, None)
    (deadline,) = uncovered(CALL, until(700))
    assert deadline == f"a deadline of 700 ms within the delays {SPREAD.words}"
    # At most 4.8 % off the mean; at 801 ms it may be 5.2 %.
    assert closed(200, until(850)).rps == 1000
    assert closed(200, until(801)).rps is None
    # 0.9 % of a file's calls take 60 s, and most of its mean: without them it is far faster.
    rare = copy.replace(SPREAD, sd_ms=5647.0, longest_ms=60_000.0)
    assert closed(200, copy.replace(until(9000), spread=rare)).rps is None
    assert closed(200, copy.replace(until(60_000), spread=rare)).rps == 1000
    assert uncovered(parse("/block"), until(700)) == ()
    # What the deadline cuts off the few longest may make the others faster than the bound.
    assert "above-bound" in (of_rate(1070, settings={"downstream_timeout_ms": 9000}))
    assert of_rate(1070, settings={"downstream_timeout_ms": 900}) == []


def of_rate(rps: float, connections: int = 200, **changes: object) -> list[str]:
    """The codes of the reasons of a closed trial of 15 s with that bound of 1,000 req/s."""
    of = snapshot(**{"spread": SPREAD, **changes})
    at_bound = plan("closed", concurrency=connections, predicted_rps=connections * 5.0)
    mean_ms = connections / rps * 1000
    said = reading(rps, corrected=None, raw=latency(mean_ms))
    trial = record(at_bound, before=of, after=of)
    return [one.code for one in judge(measurement(trial, said), observation()).reasons]


def test_a_window_may_be_faster_than_its_bound_by_the_luck_of_its_draws() -> None:
    # 20 connections, 100 req/s: 4 × 0.8 / √1650 = 8 % beside the 2 % and 1.3 req/s of the edges.
    assert of_rate(110, 20) == []
    assert "above-bound" in (of_rate(113, 20))
    assert "above-bound" in (of_rate(110, 20, spread=None))


def test_windows_are_as_long_as_the_long_delays_ask_for() -> None:
    # E[R²] / E[R] = 200 + 159.5² / 200 = 327 ms.
    assert crossing_s(0.2, CALL, drawn()) == pytest.approx(0.3272, rel=1e-3)
    assert crossing_s(0.2, CALL, snapshot()) == 0.2
    assert crossing_s(0.2, parse("/block"), drawn()) == 0.2
    assert crossing_s(0.2, None, drawn()) == 0.2
    tail = copy.replace(SPREAD, sd_ms=600.0)
    assert needed_window_s(0.2, CALL, drawn(pool=None)) == 2
    assert needed_window_s(0.2, CALL, snapshot(spread=tail)) == 11
    long = copy.replace(SPREAD, sd_ms=1000.0)
    # (0.2 + 1² / 0.2) × 4.5 = 23.4 s.
    assert of_rate(1000, spread=long) == ["window-short"]
    assert needed_window_s(0.2, CALL, snapshot(spread=long)) == 29


def test_littles_law_allows_for_the_long_requests_at_the_edges() -> None:
    # 5 % and (0.2 + 0.4² / 0.2) / 15 = 6.7 %: 178 of 200 busy are within it, 175 are not.
    def reasons(rps: float, sd_ms: float) -> list[str]:
        of = snapshot(spread=copy.replace(SPREAD, sd_ms=sd_ms))
        load = plan("closed", concurrency=200, predicted_rps=None)
        said = reading(rps, corrected=None, raw=latency(200.0))
        whole = measurement(record(load, before=of, after=of), said)
        return [one.code for one in judge(whole, observation()).reasons]

    assert reasons(890, 400.0) == []
    assert reasons(875, 400.0) == reasons(890, 0.1) == ["littles-law"]


def test_a_rate_of_few_draws_says_how_uncertain_it_is() -> None:
    assert rate_error(CALL, drawn(), 750) == pytest.approx(0.0291, rel=1e-2)
    of = drawn()
    said = reading(50.0, corrected=None, raw=latency(200.0))
    trial = record(plan("closed", concurrency=10, predicted_rps=50.0), before=of, after=of)
    judgement = judge(measurement(trial, said), observation())
    assert judgement.valid, judgement.reasons
    [note] = judgement.notes
    assert (note.code, note.values["draws"]) == ("few-draws", 750)
    assert note.values["share"] == pytest.approx(0.0582, rel=1e-2)
    alike = judge(measurement(copy.replace(trial, before=snapshot()), said), observation())
    assert alike.notes == ()


def test_the_longest_delay_of_few_connections_is_no_silence() -> None:
    of_a_second = [Step(at, at + 1, 0.0 if 5 <= at < 8 else 2.0, 0.0, 200.0) for at in range(15)]
    said = reading(1.6, corrected=None, raw=latency(200.0))
    assert silent_s(record(), said, of_a_second) == 3.0
    few = record(plan("closed", concurrency=1), before=drawn())
    assert silent_s(few, said, of_a_second) is None
    # 200 connections are not all silent for longer than 169 ms by their draws, nor other routes.
    many = copy.replace(said, achieved_rps=1000.0)
    assert silent_s(few, many, of_a_second) == 3.0
    blocked = record(plan("closed", route="/block"), before=drawn())
    assert silent_s(blocked, said, of_a_second) == 3.0


def judged(trial: TrialRecord, rps: float, raw: Latency, *series: object) -> Verdict:
    said = reading(rps, raw=raw, corrected=raw)
    return verdict_of(measurement(trial, said), Judgement((), ()), seen(*series))


def trial(connections: int, offered_rps: int | None = None, **changes: object) -> TrialRecord:
    mode = "closed" if offered_rps is None else "open"
    load = plan(mode, server=SERVER, concurrency=connections, offered_rps=offered_rps)
    return record(load, before=drawn(**changes), after=drawn(**changes))


def test_a_pool_is_named_by_the_mean_of_what_holds_it() -> None:
    found = judged(trial(400), 985, latency(406), *pool(200, 195, 0.2))
    assert (found.bottleneck, found.strength) == ("worker pool", STRONG)


def test_a_tail_is_held_against_the_tail_of_the_delays() -> None:
    # The p95 of the delays is 496 ms; 150 ms more would be allowed at 200 ms.
    as_drawn = Latency(205.0, 160.0, 500.0, 810.0, 3000.0)
    late = Latency(240.0, 160.0, 660.0, 1500.0, 3000.0)
    found = judged(trial(400, 700), 700, as_drawn)
    assert (found.bottleneck, found.strength) == ("none", STRONG)
    found = judged(trial(400, 700), 700, late, *pool(200, 30, 0.2))
    assert (found.bottleneck, found.strength) == ("worker pool", STRONG)
    # A latency toxic moves it, a toxic with jitter leaves nothing to hold it against.
    shifted = Latency(505.0, 460.0, 800.0, 1110.0, 3300.0)
    assert judged(trial(800, 350, toxics=LATENCY_300), 350, shifted).bottleneck == "none"
    jitter = copy.replace(LATENCY_300, jittered=True)
    very_late = copy.replace(shifted, p95_ms=2000.0, p99_ms=2100.0)
    assert judged(trial(800, 350, toxics=LATENCY_300), 350, very_late).bottleneck != "none"
    assert judged(trial(800, 350, toxics=jitter), 350, very_late).bottleneck == "none"


def test_few_draws_resolve_less() -> None:
    found = judged(trial(5), 24.5, latency(204))
    assert (found.bottleneck, found.strength) == ("none", STRONG)
    assert found.excess.resolved_ms > 25
    assert judged(trial(200), 985, latency(203)).excess.resolved_ms < 15


def test_a_deadline_that_cuts_more_than_5_percent_of_the_delays_is_the_limit() -> None:
    late = counter("lab_downstream_calls_total", 90, server=SERVER, outcome="timeout")

    def until(ms: int) -> Verdict:
        of = snapshot(settings={"downstream_timeout_ms": ms}, spread=SPREAD)
        load = plan("closed", server=SERVER, concurrency=200)
        counts = copy.replace(reading(900).counts, http_errors=1350)
        said = reading(900, raw=latency(200), counts=counts)
        whole = measurement(record(load, before=of, after=of), said)
        return verdict_of(whole, Judgement((), ()), seen(late))

    found = until(490)
    assert (found.bottleneck, found.strength) == ("downstream timeout", STRONG)
    # The same at a deadline that cuts less: something else is slow.
    assert until(500).strength != STRONG
    assert SPREAD.longest_ms < USUAL_TIMEOUT_MS


def test_the_steps_of_a_long_window_are_no_silence() -> None:
    """Of more than 20 minutes every fourth second is kept: each step is longer than a scrape, and
    half of them have fewer answers than most."""
    said = copy.replace(reading(1000.0), window_s=1800.0)
    steps = tuple(
        Step(at, at + 4.0, 4000.0 * (1 + 0.01 * (-1) ** number), 0.0, None)
        for number, at in enumerate(range(0, 1800, 4))
    )
    assert silent_s(record(), said, steps) is None
    # Three scrapes of them that are missing are one.
    gone = (*steps[:100], Step(400.0, 416.0, 4000.0, 0.0, None), *steps[104:])
    found = silent_s(record(), said, gone)
    assert 11.5 < found < 12.5
