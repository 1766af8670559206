"""Every gate: the fault is planted, and the trial is invalid for that reason only."""

import dataclasses
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lab.experiments.objective import gave_way
from lab.judge.gates import FAILED_ITSELF, by_accident, judge
from lab.load.engines.wrk2 import Wrk2
from lab.model import (
    NOT_BEGUN,
    Condition,
    Counts,
    Exported,
    JitCpu,
    Judgement,
    Latency,
    Measurement,
    Mode,
    Observation,
    Peak,
    Reading,
    Request,
    ScriptedToxic,
    Second,
    Series,
    Share,
    Snapshot,
    Spike,
    ToxicState,
    ToxicStep,
    TrialPlan,
    TrialRecord,
    Unwatched,
    Warmth,
    error_share,
    lost_rps,
)
from lab.model.knobs import DIRECT
from support.fakes import (
    IDENTITY,
    SETTINGS,
    START,
    USAGE,
    judged_row,
    latency,
    measurement,
    observation,
    plan,
    reading,
    record,
    snapshot,
)

RESTARTED_UNDER_WRK2 = (
    Path(__file__).parents[1] / "load/engines/captures/wrk2-11-server-restart-midrun.txt"
)


def invalid(
    of: TrialRecord | None = None,
    said: Reading | None = None,
    seen: Observation | None = None,
) -> str:
    judgement = judge(measurement(of, said), seen or observation())
    assert not judgement.valid
    assert len(judgement.reasons) == 1, judgement.reasons
    return judgement.reasons[0]


def valid(
    of: TrialRecord | None = None,
    said: Reading | None = None,
    seen: Observation | None = None,
) -> Judgement:
    judgement = judge(measurement(of, said), seen or observation())
    assert judgement.valid, judgement.reasons
    return judgement


def closed(rps: float, mean_ms: float) -> tuple[TrialRecord, Reading]:
    said = reading(rps, corrected=None, raw=latency(mean_ms))
    return record(plan("closed", predicted_rps=None)), said


def after(**changes: object) -> TrialRecord:
    """A trial after which this was otherwise."""
    return record(after=snapshot(**changes))


def usage(plan: TrialPlan | None = None, **changes: object) -> TrialRecord:
    return record(plan, usage=dataclasses.replace(USAGE, **changes))


def test_a_healthy_trial_is_valid_without_notes() -> None:
    assert valid().notes == ()


OTHER = snapshot(identity=dataclasses.replace(IDENTITY, model="b"))
WARM_UP = Counts(None, 4500, 6750, 0, 0, None, 25.0)


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (record(before=OTHER, after=OTHER), "b answered under the name a"),
        (after(identity=dataclasses.replace(IDENTITY, start_time_ms=2000, pid=2)), "restarted"),
        (
            after(identity=dataclasses.replace(IDENTITY, jvm_flags=("-Xmx1g",))),
            "identity changed",
        ),
        (record(after=None, after_problem="a: does not answer"), "a: does not answer"),
        (after(settings={"pool_size": 300, "downstream_connections": 20000}), "pool_size"),
        (
            after(toxics=ToxicState(("downstream/latency latency=300",), 300.0)),
            "none became downstream/latency latency=300",
        ),
        (
            record(toxic_changes=("downstream/latency at 12:00:14",)),
            "downstream/latency at 12:00:14",
        ),
        (after(downstream_delay_ms=250.0), "200 became 250"),
        (
            record(warmth=Warmth(False, (), "not steady within 60 s: JIT 30%")),
            "cold JVM: not steady within 60 s: JIT 30%",
        ),
        (record(jit_share=0.25), "cold JVM: the JIT compiler ran for 0.25 s per second"),
        # 28.8 CPU seconds in 15 s: 1.92 of 2 cores.
        (usage(window_cpu_s=28.8), "generator was the limit"),
    ],
)
def test_what_was_planted_in_a_trial(of: TrialRecord, reason: str) -> None:
    assert reason in invalid(of)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (reading(0.0, corrected=None, raw=None), "nothing was answered"),
        (reading(counts=Counts(None, 0, 6750, 0, None, None, 15.0)), "no answer was a success"),
        # In the window, after a good warm-up.
        (
            reading(counts=WARM_UP, window_ok=0, window_http_errors=6750),
            "no answer was a success",
        ),
        # A tenth of the median of 200 ms is allowed.
        (reading(lag_ms=21.0), "sent late, by 21 ms on average"),
        # A tenth of the p95 of 210 ms is allowed for 5 % of the requests.
        (
            reading(lag_ms=5.0, late=Latency(5.0, 0.1, 22.0, 23.0, 40.0)),
            "sent late, by 22.0 ms or more for 5 % (allowed 21.0 ms)",
        ),
        # 300 of 450 req/s × 0.2 s: 60 of 100 connections busy; 40 were free, so it did not send.
        (reading(300.0), "did not offer its rate"),
        # Without raw latency a lost rate is never blamed on the server.
        (reading(300.0, raw=None), "unknown of its connections"),
        (reading(problems=("not calibrated",)), "not calibrated"),
    ],
)
def test_what_an_engine_read(said: Reading, reason: str) -> None:
    assert reason in invalid(said=said)


def test_what_is_just_allowed() -> None:
    assert valid(record(jit_share=0.099)).notes == ()
    valid(said=reading(lag_ms=19.0))


def test_too_few_samples() -> None:
    said = reading(10.0, samples=150)
    assert "150, and p95 needs 200" in invalid(record(plan(offered_rps=10)), said)


@pytest.mark.parametrize(("rps", "holds"), [(500, True), (470, True), (460, False), (540, False)])
def test_littles_law_holds_within_its_tolerance(rps: float, holds: bool) -> None:
    # 100 connections at 200 ms: 500 req/s. 5 % + 0.2/15 = 6.3 % tolerance.
    # 460 × 0.2 = 92 of 100 connections; 540 × 0.2 = 108.
    if holds:
        valid(*closed(rps, 200))
    else:
        assert "Little's law does not hold" in invalid(*closed(rps, 200))


@pytest.mark.parametrize(("late_ms", "holds"), [(0.1, False), (0.45, True), (2.0, False)])
def test_littles_law_counts_what_a_connection_waits_for_the_generator(
    late_ms: float, holds: bool
) -> None:
    # 20 connections, 1 ms an answer, 13,800 req/s: 13.8 of them have a request.
    late = Latency(late_ms, late_ms, late_ms, late_ms, late_ms)
    of = record(plan("closed", concurrency=20, predicted_rps=None))
    said = reading(13_800.0, corrected=None, raw=latency(1), lag_ms=late_ms, late=late)
    reasons = [one for one in judge(measurement(of, said)).reasons if one.startswith("Little")]
    assert (reasons == []) == holds


def thinking(think_ms: float) -> Reading:
    """Of a closed load of 20 connections, R = 1 ms: X = N / (R + Z), Z before each request."""
    late = Latency(think_ms, think_ms, think_ms, think_ms, think_ms)
    rps = 20 * 1000 / (1 + think_ms)
    return reading(rps, corrected=None, raw=latency(1.0), lag_ms=think_ms, late=late)


@pytest.mark.parametrize(
    ("think_ms", "note"),
    [
        # 1.9, 2.1, 31 and 75 % of a cycle of 1 ms + Z.
        (0.019, ""),
        (0.021, "took 0.021 ms between an answer and the connection's next request, 2% of each"),
        (0.45, "took 0.45 ms between an answer and the connection's next request, 31% of each"),
        (3.0, "took 3 ms between an answer and the connection's next request, 75% of each cycle"),
    ],
)
def test_a_closed_load_is_valid_with_whatever_think_time_its_generator_tells(
    think_ms: float, note: str
) -> None:
    of = record(plan("closed", concurrency=20, predicted_rps=None))
    notes = valid(of, thinking(think_ms)).notes
    assert len(notes) == bool(note)
    assert note in "".join(notes)
    # A cycle of R alone lacks that time: nobody knows whether the generator or a server took it.
    untold = dataclasses.replace(thinking(0.45), late=None, lag_ms=None)
    assert invalid(of, untold) == (
        "Little's law does not hold: 13793 req/s × 0.001 s = 13.8 busy connections, and 20 were "
        "planned (tolerance 5%): connections were lost, or the generator took 0.45 ms between an "
        "answer and the next request, which only pacer tells"
    )


@pytest.mark.parametrize(
    ("changes", "starved"),
    [
        # Z is 31 % of a cycle. It waited for 3 of the 10 s in which its threads did not sleep.
        ({"window_wait_s": 3.0, "window_cpu_s": 7.0}, None),
        # For half of them: 16 %.
        ({"window_wait_s": 5.0, "window_cpu_s": 5.0}, "15.5%"),
        # To be woken takes its time on a machine with idle CPUs, too.
        ({"window_wait_s": 5.0, "window_cpu_s": 5.0, "host_busy": 0.79}, None),
        # Nobody knows how much of it was a wait.
        ({"window_wait_s": None}, "31.0%"),
        ({"host_busy": None, "window_wait_s": 5.0, "window_cpu_s": 5.0}, "15.5%"),
    ],
)
def test_a_think_time_for_want_of_a_cpu_is_the_generators_limit(
    changes: dict[str, float | None], starved: str | None
) -> None:
    # So many turns that each waits for less than 1 ms.
    planned = plan("closed", concurrency=20, predicted_rps=None)
    of = usage(planned, **{"host_busy": 0.9, "window_slices": 10_000, **changes})
    if starved is None:
        valid(of, thinking(0.45))
    else:
        assert invalid(of, thinking(0.45)) == (
            f"the generator was starved: its threads waited for a CPU for {starved} of each cycle "
            "of a connection, before they sent its next request (allowed 10%)"
        )
        assert by_accident(judge(measurement(of, thinking(0.45)), observation()).reasons)


def test_of_several_machines_nobody_knows_which_waited_for_a_cpu() -> None:
    shares = Share("here", 0.05, IN_TIME), Share("far-9465", 0.3, Latency(0.3, 0.3, 0.3, 0.3, 0.3))
    of = record(plan("closed", concurrency=20, predicted_rps=None))
    assert invalid(of, dataclasses.replace(thinking(0.1), shares=shares)) == (
        "the generator was starved: its threads waited for a CPU for 23.1% of each cycle of a "
        "connection, before they sent its next request (allowed 10%): machine far-9465"
    )


@pytest.mark.parametrize(("rps", "bursts"), [(545.5, 6), (637.0, 7)])
def test_a_bound_leaves_room_for_one_burst_of_all_connections(rps: float, bursts: int) -> None:
    # 1,000 connections that began at once and wait 2 s: 5 or 6 bursts in 11 s, 500 req/s in all.
    of = record(plan("closed", concurrency=1000, predicted_rps=500.0))
    said = reading(rps, window_s=11.0, corrected=None, raw=latency(1_000_000 / rps))
    found = [one for one in judge(measurement(of, said)).reasons if one.startswith("faster than")]
    assert bool(found) == (bursts > 6)


@pytest.mark.parametrize(("mode", "rps"), [("closed", 1000), ("open", 1000)])
def test_a_window_is_at_least_five_latencies_long(mode: Mode, rps: float) -> None:
    # 200 threads: 5,000 connections wait 5 s. A tenth more than planned is no reason.
    of = record(plan(mode, concurrency=5000, predicted_rps=None,
                     offered_rps=22_500 if mode == "open" else None))  # fmt: skip
    corrected = latency(9000) if mode == "open" else None
    valid(of, reading(rps, window_s=25.0, raw=latency(5400), corrected=corrected))
    assert invalid(of, reading(rps, window_s=15.0, raw=latency(5050), corrected=corrected)) == (
        "the window is too short: 15 s for a mean latency of 5.05 s, and it must be 4.5 times as "
        "long (DURATION=28s would do)"
    )


def test_littles_law_is_not_asked_of_a_window_that_is_too_short() -> None:
    # A third of the connections was missing; in 5 s with R = 5 s a tolerance of 105 % hid that.
    of = record(plan("closed", concurrency=5000, predicted_rps=None))
    assert invalid(of, reading(667, window_s=5.0, corrected=None, raw=latency(5000))).startswith(
        "the window is too short"
    )
    assert "3,335 busy connections, and 5000 were planned (tolerance 25%)" in invalid(
        of, reading(667, window_s=25.0, corrected=None, raw=latency(5000))
    )


def with_cpus(cpus: int, quota: float | None) -> Snapshot:
    return snapshot(
        identity=dataclasses.replace(IDENTITY, cpus=cpus),
        settings={**SETTINGS, "cpu_quota": quota},
    )


@pytest.mark.parametrize(
    ("cpus", "quota", "allowed"),
    # A quota below one CPU stretches the time that a compilation takes. A fresh JVM is cold on any
    # machine.
    [(2, None, 0.10), (4, None, 0.20), (32, None, 0.20), (2, 1.5, 0.075), (1, 0.4, 0.05)],
)
def test_the_compiler_may_use_as_little_as_the_margin_of_a_comparison(
    cpus: int, quota: float | None, allowed: float
) -> None:
    of = with_cpus(cpus, quota)
    valid(record(before=of, after=of, jit_share=allowed - 0.001))
    assert "the JIT compiler ran for" in invalid(
        record(before=of, after=of, jit_share=allowed + 0.001)
    )


@pytest.mark.parametrize(
    ("cpus", "quota", "allowed"),
    # No quota stretches CPU time.
    [(2, None, 0.10), (4, None, 0.20), (32, None, 0.20), (2, 1.5, 0.075), (1, 0.4, 0.02)],
)
def test_the_compiler_is_held_to_its_cpu_time_where_that_is_told(
    cpus: int, quota: float | None, allowed: float
) -> None:
    of = with_cpus(cpus, quota)

    def told(used: float, busy: float, elapsed: float | None = 0.49) -> TrialRecord:
        threads = JitCpu(used, busy - used)
        return record(before=of, after=of, jit_share=elapsed, jit_cpu=threads)

    less = allowed - 0.001
    valid(told(less, 0.49))
    assert "s of CPU time per second of the window" in invalid(told(allowed + 0.001, 0.49))
    # Where it is busy that long, what it has not compiled yet runs slowly.
    waits = "ran for 0.51 s per second of the window (allowed 0.50 s): methods wait for it"
    assert waits in invalid(told(less, 0.51))
    # Neither is unknown where the exporter did not answer in time.
    assert valid(told(less, 0.49, None)).notes == ()
    assert waits in invalid(told(less, 0.51, None))
    # Threads that ended are not in their sum.
    valid(told(less, 0.25))
    assert "ran for 0.49 s per second of the window (allowed" in invalid(told(less, 0.24))


def test_a_service_that_is_not_the_labs_is_held_to_the_cpus_of_the_generator() -> None:
    alien = snapshot(
        identity=None, settings={}, exported=Exported(1, "21", None, None, scraped=True)
    )
    reason = "cold JVM: the JIT compiler ran for 0.11 s per second of the window (allowed 0.10 s)"
    of = record(before=alien, after=alien, jit_share=0.11)
    assert judge(measurement(of), observation()).reasons == (reason,)


@pytest.mark.parametrize("lag_ms", [19.0, 21.0])
def test_an_overload_allows_the_generator_no_more(lag_ms: float) -> None:
    # Corrected p50 17.8 s, raw p50 200 ms: the generator may be 20 ms late, not 1.8 s.
    of = plan(offered_rps=9000, predicted_rps=1000, concurrency=200)
    said = reading(1000.0, corrected=latency(17_800), raw=latency(200), lag_ms=lag_ms)
    starved = usage(window_wait_s=lag_ms / 10, window_slices=100, plan=of)
    if lag_ms < 20:
        valid(starved, said)
        return
    assert [one.partition(":")[0] for one in judge(measurement(starved, said)).reasons] == [
        "the generator was starved",
        "the generator sent late, by 21 ms on average (allowed 20 ms)",
    ]


def test_a_generator_of_one_thread_is_the_limit_when_that_is_busy() -> None:
    # 14.4 CPU seconds in 15 s, of 2 cores.
    busy = usage(window_cpu_s=14.4)
    assert "generator was the limit: it used 1.0 of its 1 cores" in invalid(
        busy, reading(threads=1)
    )
    valid(busy, reading())
    valid(busy, reading(threads=4))


def test_an_overload_allows_the_tail_of_its_lateness_no_more() -> None:
    # 5 % sent late by 300 ms are no tenth of the corrected p95, but more than the raw p95.
    of = record(plan(offered_rps=9000, predicted_rps=1000, concurrency=200))
    late = Latency(15.0, 0.1, 300.0, 400.0, 500.0)
    said = reading(1000.0, corrected=latency(17_800), raw=latency(200), lag_ms=15.0, late=late)
    assert "by 300.0 ms or more for 5 % (allowed 21.0 ms)" in invalid(of, said)


def test_a_generator_of_one_thread_waited_for_one_cpu() -> None:
    # 4.5 s in 15 s: 30 % of one core, 15 % of two.
    waiting = usage(window_wait_s=4.5, window_slices=100_000)
    (note,) = valid(waiting, reading(threads=1)).notes
    assert note == "the generator waited for a CPU for 30% of its cores' time"
    assert valid(waiting, reading()).notes == ()


IN_TIME = Latency(0.1, 0.1, 0.2, 0.5, 3.0)


def test_a_p99_that_is_in_part_the_generators_own_is_said_and_no_more() -> None:
    said = reading(lag_ms=0.5, late=Latency(0.5, 0.1, 2.0, 23.0, 40.0))
    assert valid(said=said).notes == (
        "p99 is in part the generator's own: it sent 1 % late by 23.0 ms or more",
    )
    assert valid(said=reading(lag_ms=0.1, late=IN_TIME)).notes == ()


@pytest.mark.parametrize(
    ("mean_ms", "said"),
    [
        (3.0, ""),
        (
            25.0,
            "the generator took 25 ms between an answer and the connection's next request, 11% of "
            "each cycle: its think time Z, X = N / (R + Z)",
        ),
    ],
)
def test_of_a_closed_load_lateness_takes_the_rate_and_not_the_latency(
    mean_ms: float, said: str
) -> None:
    # 5 % and 1 % of the sends were very late: the latency of a closed load begins after that.
    late = Latency(mean_ms, 0.1, 150.0, 250.0, 300.0)
    of, each_ms = record(plan(mode="closed", offered_rps=None)), 200 + mean_ms
    rps = 100 / each_ms * 1000
    told = reading(rps, corrected=None, raw=latency(200), lag_ms=mean_ms, late=late)
    assert " ".join(valid(of, told).notes) == said


def test_one_machine_of_several_that_sends_late_is_named() -> None:
    shares = Share("here", 0.1, IN_TIME), Share("far-9465", 30.0, Latency(30.0, 30, 30, 30, 30))
    said = reading(lag_ms=15.0, late=IN_TIME, shares=shares)
    assert invalid(said=said) == (
        "the generator sent late, by 30 ms on average (allowed 20 ms): machine far-9465"
    )
    # All of it says so already.
    said = reading(lag_ms=25.0, late=IN_TIME, shares=shares)
    assert invalid(said=said) == "the generator sent late, by 25 ms on average (allowed 20 ms)"


def test_a_generator_that_tells_that_it_was_in_time_is_not_blamed() -> None:
    # 40 of 100 connections were free, or could not be opened: nothing was due on a free one.
    assert valid(said=reading(300.0, lag_ms=0.1, late=IN_TIME)).notes[0].startswith("overloaded")


def test_what_was_due_in_the_window_is_what_was_offered() -> None:
    at_random = plan(arrivals="poisson")
    of = record(at_random)
    # 6,500 of 6,750 planned arrivals came: chance, and no overload.
    assert valid(of, reading(6500 / 15, late=IN_TIME, due=6500)).notes == ()
    (note,) = valid(of, reading(6300 / 15, late=IN_TIME, due=6500)).notes
    assert note.startswith("overloaded: 420 of 433 req/s offered were answered")
    # By chance more were in flight as the window began: 88 are, so 3 √176 = 40 beside 1 % of 6,500.
    valid(of, reading(6600 / 15, late=IN_TIME, due=6500))
    more = reading(6610 / 15, late=IN_TIME, due=6500)
    assert "the window began with a backlog: 441 req/s were answered and 433" in invalid(of, more)
    even = reading(6600 / 15, late=IN_TIME, due=6500)
    assert "the window began with a backlog" in invalid(said=even)


def test_requests_that_are_never_answered_count_as_lost() -> None:
    """A run that is shorter than the engine's patience has no timeout, and no latency of them."""
    # 90 are in flight: 3 √180 = 40 by chance, and 9 for a latency that rises.
    counted = {"late": IN_TIME, "due": 6750, "window_http_errors": 0, "window_lost": 0}
    # A queue at the window's end, in which nobody waits for long.
    queue = reading(6685 / 15, window_ok=6685, **counted)
    assert judged_row("run", measurement(record(), queue)).window_lost == 0
    counted["hangs"] = True
    of, hanging = record(), reading(6685 / 15, window_ok=6685, **counted)
    (note,) = valid(of, hanging).notes
    assert note.startswith("65 requests more were due in the window than ended in it")
    row = judged_row("run", measurement(of, hanging))
    assert row.window_lost == 65
    assert error_share(row, row.offered_rps) == pytest.approx(65 / 6750)
    few = reading(6710 / 15, window_ok=6710, **counted)
    assert valid(of, few).notes == ()
    assert judged_row("run", measurement(of, few)).window_lost == 0
    # What waits in an overload is no loss.
    behind = reading(6300 / 15, window_ok=6300, **counted)
    assert judged_row("run", measurement(of, behind)).window_lost == 0


@pytest.mark.parametrize(
    ("ended", "means_ms", "lost"),
    [
        (6615, [200] * 15, 135),  # 2 % of the requests hang
        # 2 % wait in a queue: who came last waits 300 ms longer, in which 135 come.
        (6615, range(200, 500, 20), 0),
        (6550, range(200, 320, 8), 146),  # both: 54 of the 200 that are missing are in a queue
        (3375, range(250, 7750, 500), 0),  # half of the requests wait, and one hangs
    ],
)
def test_requests_that_hang_are_no_overload_and_a_queue_is_no_loss(
    ended: int, means_ms: Sequence[float], lost: int
) -> None:
    said = reading(
        ended / 15,
        late=IN_TIME,
        due=6750,
        window_ok=ended,
        window_http_errors=0,
        window_lost=0,
        hangs=True,
        ranks=((210.0, ended),),
        seconds=tuple(Second(440, 440, mean_ms) for mean_ms in means_ms),
    )
    row = judged_row("run", measurement(record(), said))
    assert row.window_lost == lost
    # Where more than 1 % may never be answered, p99 is one of these.
    assert row.slo_p99_ms == (210.0 if 0.99 * (ended + lost) <= ended else None)
    assert row.overloaded == (ended + lost < 0.99 * 6750)
    # Several kinds of requests may have several queues.
    two = record(plan(requests=(Request("/"), Request("/slow"))))
    of_two = judged_row("run", measurement(two, said))
    assert of_two.window_lost == 0


def test_a_short_latency_that_is_the_generators_own_is_said() -> None:
    late = Latency(0.15, 0.1, 0.3, 0.6, 0.9)
    short = Latency(0.4, 0.3, 0.7, 0.9, 1.2)
    (note,) = [
        one for one in valid(record(), reading(corrected=short, late=late)).notes if "own" in one
    ]
    assert note.startswith("the latencies are in part the generator's own: it sent 0.15 ms late on")


def test_a_server_that_is_not_there_any_more_is_the_only_reason() -> None:
    # It answered for a third of the window, so its connections were free in the rest.
    half = reading(150.0)
    crashed = after(identity=dataclasses.replace(IDENTITY, start_time_ms=2000, pid=2))
    assert invalid(crashed, half) == "the JVM restarted during the trial"
    gone = record(after=None, after_problem="a: http://a:8081/identity does not answer")
    assert invalid(gone, half).startswith("the server did not answer after the load: a: http")
    other = record(after=None, after_problem="toxiproxy does not answer at http://toxiproxy:8474")
    assert invalid(other).startswith("the lab could not be read after the load: toxiproxy")


def test_what_shows_that_a_server_gave_way_counts_in_a_search() -> None:
    for of in (
        record(after=None, after_problem="a: does not answer"),
        after(identity=dataclasses.replace(IDENTITY, start_time_ms=2000, pid=2)),
    ):
        assert invalid(of).startswith(FAILED_ITSELF)
    other = record(after=None, after_problem="toxiproxy does not answer")
    assert not invalid(other).startswith(FAILED_ITSELF)


def of_machines(*failed: int, answering: str = "") -> Observation:
    """A window of a lab on several machines. Scrapes of what is on the server's machine failed
    (by their numbers: one every 2 s, from 3 s before the window on), but of that job."""
    times = tuple(OPENS - 3 + 2 * at for at in range(10))
    seen = tuple(float(at not in failed) for at in range(10))
    ups = ({"job": "cadvisor", "machine": "tested"}, {"job": "server", "server": "a"})
    used = {"__name__": "container_cpu_usage_seconds_total", "machine": "tested"}
    return observation(
        *(
            Series(
                {"__name__": "up", **one}, times, (1.0,) * 10 if one["job"] == answering else seen
            )
            for one in ups
        ),
        Series({"__name__": "up", "job": "cadvisor", "machine": "load"}, times, (1.0,) * 10),
        *(Series({**used, "service": one}, times[:2], (1.0, 2.0)) for one in ("a", "cadvisor")),
    )


def test_a_machine_that_was_away_is_no_finding_of_the_server() -> None:
    said = "a machine of the lab was away: tested gave Prometheus no answer for"
    # As when its link was cut for 5 s: the names of what is on it were not known for a minute.
    gone = measurement(record(after=None, after_problem="a: http://a:8081/identity: no answer"))
    reasons = judge(gone, of_machines(4, 5, 6, 7, 8, 9)).reasons
    assert reasons[0] == f"{said} 12 s"
    assert reasons[1].startswith("the server did not answer after the load")
    assert by_accident(reasons)
    lost = dataclasses.replace(judged_row("r", gone), invalid_reasons="; ".join(reasons))
    assert gave_way(lost, after_miss=True) is None
    assert invalid(seen=of_machines(3, 4, 5)) == f"{said} 8 s"


def test_a_machine_of_which_something_answered_was_not_away() -> None:
    valid(seen=of_machines())
    valid(seen=of_machines(4))
    for part in ("cadvisor", "server"):
        valid(seen=of_machines(4, 5, 6, 7, 8, 9, answering=part))


def test_a_machine_that_was_back_before_the_window_was_not_away() -> None:
    valid(seen=of_machines(0))


def unwatched(seconds: float, **changes: object) -> TrialRecord:
    return record(unwatched=(Unwatched(START, START + timedelta(seconds=seconds)),), **changes)


def test_two_looks_in_a_row_that_fail_are_a_note_and_more_are_not() -> None:
    said = "the toxics were not watched from 12:00:00 to 12:00:0"
    assert valid(unwatched(6.9)).notes == (f"{said}6",)
    assert invalid(unwatched(7.5)) == f"{said}7"


def test_no_toxic_reaches_a_server_that_calls_past_toxiproxy() -> None:
    straight = snapshot(settings={**SETTINGS, "downstream_url": DIRECT})
    past = {"before": straight, "after": straight}
    said = "no toxic was in force: its calls go to the downstream without Toxiproxy"
    for of in (record(**past), record(toxic_changes=("a toxic",), **past), unwatched(60, **past)):
        assert [note for note in valid(of).notes if "toxic" in note] == [
            f"{said} (SERVER_DOWNSTREAM_URL)"
        ]
    toxic = {"TYPE": "latency", "LATENCY": "300"}
    meant = plan(condition=Condition(toxics=(toxic,)))
    assert invalid(record(meant, **past)).startswith("its toxics did not reach it: ")
    scripted = plan(script=(ToxicStep(1, toxic),))
    made = (ScriptedToxic(11.5, 11.6, "TYPE=latency", clear=False),)
    assert invalid(record(scripted, script=made, **past)).startswith("its toxics did not")


def test_what_a_foreign_service_may_not_depend_on_is_a_note() -> None:
    alien = snapshot(identity=None, settings={"url": "http://x:80"}, downstream_delay_ms=100.0)
    judgement = judge(
        measurement(unwatched(60, before=alien, after=alien)),
        observation(),
        snapshot(settings=alien.settings, toxics=ToxicState(("downstream/latency",), 300.0)),
    )
    assert judgement.valid, judgement.reasons
    for said in (
        "the toxics were not watched from 12:00:00 to 12:01:00",
        "toxics differ from the start of the run: downstream/latency became none",
        "the downstream's delay differs from the start of the run: 200 became 100 ms",
    ):
        assert said in judgement.notes


def test_no_answers_to_a_generator_that_did_not_do_its_part() -> None:
    silence = reading(0.0, corrected=None, raw=None)
    said = dataclasses.replace(silence, problems=("wrk2 calibrated 3 of its 4 threads",))
    few = "too few answers: 0, and p95 needs 200"
    assert judge(measurement(said=said)).reasons == ("wrk2 calibrated 3 of its 4 threads", few)
    assert judge(measurement(usage(window_throttled_s=3.0), silence)).reasons == (
        "the generator was starved: its CPU quota stopped it for 3.0 s of the 15 s window",
        few,
    )


def test_errors_may_be_faster_than_the_bound_and_answers_may_not() -> None:
    fast = record(plan("closed", predicted_rps=100.0))
    said = reading(500, raw=latency(200), counts=Counts(None, 1500, 6000, 0, None, None, 15.0))
    assert "80.0% of the answers were HTTP errors" in valid(fast, said).notes[0]
    one = reading(500, raw=latency(200), counts=Counts(None, 7499, 1, 0, None, None, 15.0))
    assert "faster than the bound: 500 req/s, and at most 100 are possible" in invalid(fast, one)


def test_errors_of_the_warm_up_are_none_of_the_window() -> None:
    counts = Counts(None, 6750, 4500, 0, 0, None, 25.0)
    assert valid(said=reading(counts=counts, window_ok=6750, window_http_errors=0)).notes == ()
    mixed = reading(counts=counts, window_ok=5400, window_http_errors=1350)
    assert "20.0% of the answers were HTTP errors" in valid(said=mixed).notes[0]
    missed = dataclasses.replace(mixed, unexpected=1300)
    assert "20.0% of the answers were errors, 1,300 of them not as" in valid(said=missed).notes[0]


def failing(good: int, errors: int, **changes: object) -> Reading:
    """Of an engine that tells the latencies of errors apart: these came at once."""
    counts = Counts(None, good, errors, 0, 0, None, 15.0)
    told: dict[str, object] = {
        "window_ok": good,
        "window_http_errors": errors,
        "failed": latency(1),
        # 200 ms each, and 1 ms each.
        "all_ms": (200 * good + errors) / (good + errors),
        "counts": counts,
    }
    return reading((good + errors) / 15, **{**told, **changes})


def test_it_is_said_whose_latencies_they_are() -> None:
    of = record(plan(offered_rps=450))
    share = "20.0% of the answers were HTTP errors"
    assert valid(of, failing(5400, 1350)).notes == (f"{share}; the latencies are of the others",)
    assert valid(of, failing(5400, 1350, failed=None)).notes == (
        f"{share}; their latencies count too",
    )


def test_where_nearly_all_answers_are_errors_that_is_the_servers_finding() -> None:
    # 0.2 % of 30,000: a rate limiter that answers 429 at once.
    said = failing(60, 29_940, corrected=None, all_ms=1.5)
    of = record(plan("closed", predicted_rps=None, concurrency=3))
    judgement = judge(measurement(of, said), observation())
    assert judgement.reasons == (
        "most answers were errors, and too few were a success: 60 of 30,000, and p95 needs 200",
    )
    assert not by_accident(judgement.reasons)
    row = judged_row("run", measurement(of, said))
    assert gave_way(row, after_miss=False)
    assert "most answers were errors" in invalid(of, failing(199, 200, all_ms=112.8))
    # It is enough where they are many all the same.
    assert valid(record(plan(offered_rps=2000)), failing(200, 29_800)).valid
    # Not enough, with errors or without.
    assert "too few answers: 195 without an error, beside 15 with one, and" in invalid(
        record(plan(offered_rps=14)), failing(195, 15)
    )


def test_requests_that_got_no_answer_were_offered_all_the_same() -> None:
    # 4 % of 450 req/s are reset: 18 a second over the 25 s that the engine accounted.
    lost = Counts(None, 10_800, 0, 450, 0, None, 25.0)
    judgement = valid(said=reading(432.0, counts=lost))
    assert judgement.notes == (
        "4.0% of the requests got no answer (socket errors, timeouts), and are in no latency",
    )
    late = Counts(None, 10_800, 0, 0, 450, None, 25.0)
    assert valid(said=reading(432.0, counts=late)).notes == judgement.notes
    # Those that are neither were not sent.
    few = Counts(None, 7500, 0, 450, 0, None, 25.0)
    assert "did not offer its rate: 318 of 450 req/s, with 60% of" in invalid(
        said=reading(300.0, counts=few)
    )


def test_no_more_requests_are_lost_than_were_offered_and_not_answered() -> None:
    # A server that resets at once: the engine sends the same requests again, 1,000 times a second.
    again = Counts(None, 10_800, 0, 25_000, 0, None, 25.0)
    assert valid(said=reading(432.0, counts=again)).notes == (
        "4.0% of the requests got no answer (socket errors, timeouts), and are in no latency",
    )
    # Of 11,250 in the whole run 10,800 were answered: 4 % as well.
    assert error_share(reading(432.0, counts=again), 450) == pytest.approx(0.04)
    # All that was offered in the window was answered: they were lost before it.
    early = reading(450.0, counts=again, window_ok=6750, window_http_errors=0)
    assert valid(said=early).notes == ()
    assert error_share(early, 450) == 0
    # A closed load has no rate: all of them were sent.
    assert error_share(reading(432.0, counts=again), None) == pytest.approx(25 / 35.8)


def test_what_was_lost_in_the_window_is_that_of_the_window() -> None:
    # 200 requests timed out, all in the window of 15 s, after 10 s of warm-up.
    counts = Counts(None, 11_050, 0, 0, 200, None, 25.0)
    said = reading(436.7, counts=counts, window_ok=6550, window_http_errors=0, window_lost=200)
    assert lost_rps(said, 450) == pytest.approx(200 / 15)
    assert error_share(said, 450) == pytest.approx(200 / 6750)
    # More were lost than were offered meanwhile: they were due before it.
    late = dataclasses.replace(said, window_lost=1000)
    assert error_share(late, 450) == pytest.approx(1000 / 7550)
    early = dataclasses.replace(said, window_lost=0)
    assert (lost_rps(early, 450), error_share(early, 450)) == (0, 0)


def test_a_restart_that_stopped_the_engine_is_told_by_its_real_output(tmp_path: Path) -> None:
    shutil.copy(RESTARTED_UNDER_WRK2, tmp_path / "wrk2.txt")
    of = plan(engine="wrk2", concurrency=50, offered_rps=1000, duration_s=3, predicted_rps=None)
    said = Wrk2().read(of, tmp_path)
    judgement = judge(measurement(record(of), said), observation())
    # 920 of 1,000 req/s answered, and 47 requests in 14 s lost; 421,225 writes were attempts.
    assert [one for one in judgement.reasons if "did not offer" in one] == [
        "the generator did not offer its rate: 924 of 1000 req/s, with unknown of its connections "
        "busy"
    ]
    assert "0.4% of the requests got no answer" in str(judgement.notes)


def test_what_the_windows_edge_cuts_off_was_busy_too() -> None:
    # 5,000 connections wait for a pool that answers 955 req/s: Little's law finds 74 % of them
    # in the answers of a window of 20 s, and 3.9 s / 20 s more may be in none.
    of = record(plan(offered_rps=22_500, predicted_rps=1000.0, concurrency=5000))
    said = reading(955.0, window_s=20.0, raw=latency(3900), corrected=latency(4000))
    assert "overloaded: 955 of 22500 req/s offered" in valid(of, said).notes[0]
    # In a window of 60 s it is no edge: a quarter of the connections was free.
    long = reading(955.0, window_s=60.0, raw=latency(3900), corrected=latency(4000))
    assert "955 of 22500 req/s, with 74% of its connections busy" in invalid(of, long)


def test_overload_of_the_server_is_a_finding() -> None:
    # 100 req/s × 1 s: all 100 connections waited for the server.
    overloaded = valid(said=reading(100.0, raw=latency(1000)))
    assert "100 of 450 req/s offered" in overloaded.notes[0]


def test_a_burst_at_the_edge_of_the_window_is_no_overload() -> None:
    # 450 req/s for 15 s in bursts 0.3 s apart: 0.3 / 15 = 2 % beside the 1 % allowed.
    assert valid(said=reading(437.0, pause_s=0.3)).notes == ()
    assert "did not offer its rate" in invalid(said=reading(435.0, pause_s=0.3))


def test_a_backlog_of_the_warm_up_is_not_this_load() -> None:
    # 450 req/s offered: 1 % more is the window's edges, 2 % more was due before it.
    assert valid(said=reading(454.0)).notes == ()
    assert "began with a backlog" in invalid(said=reading(459.0))


def test_gates_without_anything_to_go_by_are_named_in_one_note() -> None:
    assert valid(record(jit_share=None)).notes == (
        "not checked, as it could not be read in the window: JIT compile time",
    )
    nothing = usage(window_cpu_s=None, window_wait_s=None, window_throttled_s=None, host_busy=None)
    assert valid(nothing).notes == (
        "not checked, as it could not be read in the window: the generator's CPU, its waits for "
        "a CPU, its CPU quota, the host's CPU",
    )


def test_a_window_that_nobody_watched_is_no_window() -> None:
    unwatched = dataclasses.replace(usage(window_cpu_s=None), jit_share=None)
    assert "the window was not observed" in invalid(unwatched)
    # Of a service that tells nothing of its JVM that is nothing new.
    alien = Snapshot(None, {"url": "http://x:8080"}, ToxicState(), 200.0)
    foreign = dataclasses.replace(unwatched, before=alien, after=alien)
    notes = valid(foreign).notes
    assert "not checked, as it could not be read in the window: the generator's CPU" in notes


def test_a_busy_host_is_a_note() -> None:
    notes = valid(usage(host_busy=0.98)).notes
    assert "98% busy: these numbers are this machine's limit" in notes[0]


def test_stolen_cpu_is_a_note() -> None:
    assert "steal" in valid(usage(host_steal=0.09)).notes[0]
    assert "steal" in valid(usage(host_steal=0.2)).notes[1]


def test_unreadable_raw_data_make_it_invalid() -> None:
    judgement = judge(Measurement(record(), None, "wrk2.txt:3: ends before"))
    assert judgement.reasons == ("wrk2.txt:3: ends before",)


def test_a_generator_stopped_by_its_quota() -> None:
    valid(usage(window_throttled_s=0.14))
    reason = invalid(usage(window_throttled_s=6.0))
    assert reason == (
        "the generator was starved: its CPU quota stopped it for 6.0 s of the 15 s window"
    )


def test_a_generator_that_waits_for_a_cpu_at_every_turn() -> None:
    # 20 ms at each of 200 turns: a tenth of the median of 200 ms.
    valid(usage(window_wait_s=4.0, window_slices=200))
    starved = usage(window_wait_s=4.2, window_slices=200)
    assert "waited 21.0 ms for each turn on a CPU (allowed 20.0 ms)" in invalid(starved)
    # A millisecond is always allowed.
    quick = reading(corrected=latency(2.0), raw=latency(2.0))
    valid(usage(window_wait_s=4.0, window_slices=4000), quick)
    assert "waited 1.1 ms" in invalid(usage(window_wait_s=4.4, window_slices=4000), quick)


def test_a_generator_that_often_waits_shortly_is_a_note() -> None:
    # 7.5 s of 15 s on 2 cores.
    notes = valid(usage(window_wait_s=7.5, window_slices=100_000)).notes
    assert notes == ("the generator waited for a CPU for 25% of its cores' time",)


def spiked(*peaks: Peak) -> TrialRecord:
    spike = Spike(100, None, calm_s=3, peak_s=3, repeats=2, tolerance=0.1, steady_s=1)
    return record(plan(spike=spike), peaks=peaks)


def test_peaks_as_planned() -> None:
    valid(spiked(Peak(13.6, 16.7), Peak(19.6, 22.6)))
    assert "only 1 of 2 spikes were produced" in invalid(spiked(Peak(13.6, 16.7)))
    assert "spike 2 lasted 0.4 s instead of 3 s" in invalid(
        spiked(Peak(13.6, 16.7), Peak(19.6, 20.0))
    )


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"untried": 5.0, "late_p95_ms": 500.0}, None),
        (
            {"untried": 5.2},
            "spike 2 was no crowd: on average the generator had not tried to open 5 of its 100 "
            "connections yet",
        ),
        ({"late_p95_ms": 501.0}, "spike 2 was sent late, by 501 ms or more for 5 %"),
        ({"problems": ("no ports",)}, "spike 2 was not as planned: no ports"),
        # What the server did not accept, or kept busy, is its own doing.
        ({"connections": 30, "untried": 0.0, "due": 900, "sent": 360, "late_p95_ms": 1.0}, None),
    ],
)
def test_a_peak_that_the_generator_did_not_put_on(told: dict[str, Any], reason: str | None) -> None:
    of = spiked(Peak(13.6, 16.7), Peak(19.6, 22.6, **told))
    if reason is None:
        valid(of)
    else:
        assert invalid(of) == reason
        assert by_accident([reason])


OPENS = START.timestamp() + 10.5


def rise(name: str, by: float, **labels: str) -> Series:
    edges = (OPENS, OPENS + 15)
    return Series({"__name__": name, **labels}, edges, (100.0, 100.0 + by))


def late_downstream(answers_below_50_ms: float) -> Observation:
    name = "lab_downstream_lag_seconds_bucket"
    return observation(
        rise(name, answers_below_50_ms, le="0.01"),
        rise(name, 100, le="0.05"),
        rise(name, 100, le="+Inf"),
    )


def test_a_downstream_that_is_late() -> None:
    # A delay of 200 ms may be 20 ms late at p95.
    assert valid(seen=late_downstream(96)).notes == ()
    reason = invalid(seen=late_downstream(50))
    assert reason == "the downstream was late by 46 ms at p95 (allowed 20 ms)"


def late_around_a_spike(below_calm: float, below_spike: float) -> tuple[TrialRecord, Observation]:
    """A spike from the 5th second on; so many of 100 answers were in time before it, and in it."""
    edges = (OPENS, OPENS + 5, OPENS + 15)
    name, of = "lab_downstream_lag_seconds_bucket", record()
    begun = of.window_offset_s + 5
    within = {"0.01": (below_calm, below_spike), "0.05": (100.0, 100.0), "+Inf": (100.0, 100.0)}
    seen = observation(
        *(
            Series({"__name__": name, "le": le}, edges, (0.0, calm, calm + spike))
            for le, (calm, spike) in within.items()
        )
    )
    return dataclasses.replace(of, peaks=(Peak(begun, begun + 5),)), seen


def test_what_is_late_in_a_spike_is_a_note_and_what_is_late_before_it_a_reason() -> None:
    of, seen = late_around_a_spike(100, 0)
    judgement = judge(measurement(of), seen)
    assert judgement.valid
    [note] = [one for one in judgement.notes if "downstream" in one]
    assert note.startswith("with its spikes, the downstream was late by 4")
    of, seen = late_around_a_spike(0, 100)
    [reason] = judge(measurement(of), seen).reasons
    assert reason.startswith("the downstream was late by 4")


def test_where_the_cpus_are_fought_over_a_late_downstream_is_a_note() -> None:
    # 11 s of waiting in a window of 15 s on 2 cores, though the host was not full on average.
    contended = usage(host_busy=0.89, window_wait_s=11.0, window_slices=69_000)
    notes = valid(contended, seen=late_downstream(50)).notes
    assert "the downstream was late by 46 ms" in notes[0]
    assert "waited for a CPU for 37% of its cores' time" in notes[1]


def test_on_a_full_host_a_late_downstream_is_a_note() -> None:
    notes = valid(usage(host_busy=0.98), seen=late_downstream(50)).notes
    assert "the downstream was late by 46 ms" in notes[0]
    assert "98% busy" in notes[1]


USED = "container_cpu_usage_seconds_total"
UNREAD = "not checked, as it could not be read in the window: "


def ours(cpus: float) -> Observation:
    """The containers of the lab used so many of the machine's two CPUs."""
    times = tuple(OPENS - 1 + at * 17 / 15 for at in range(16))
    rising = tuple(cpus / 2 * (at - times[0]) for at in times)
    return observation(
        *(Series({"__name__": USED, "service": one}, times, rising) for one in ("a", "toxiproxy")),
        Series({"__name__": "machine:machine_cpu_cores:max"}, times, tuple(2.0 for _ in times)),
    )


@pytest.mark.parametrize(
    ("cpus", "changes", "share"),
    [
        (1.1, {"host_busy": 0.9}, "35%"),
        # The lab filled them itself, or nearly so.
        (1.6, {"host_busy": 0.9}, None),
        # Some CPU was always idle, but for bursts.
        (0.6, {"host_busy": 0.6}, None),
        (0.6, {"host_busy": 0.6, "window_wait_s": 7.0, "window_slices": 50_000}, "30%"),
        # Other machines take what was wanted, however idle the CPUs are on average.
        (0.8, {"host_busy": 0.5, "host_steal": 0.09}, None),
        (0.8, {"host_busy": 0.5, "host_steal": 0.11}, "11%"),
        # They are others too, and may be all that is known.
        (1.4, {"host_busy": 0.9, "host_steal": 0.2}, "20%"),
        (None, {"host_busy": 0.9, "host_steal": 0.2}, "20%"),
        (None, {"host_busy": 0.9}, None),
    ],
)
def test_others_that_leave_the_lab_too_few_cpus_are_told(
    cpus: float | None, changes: dict[str, float], share: str | None
) -> None:
    seen = ours(cpus or 0.0)
    if cpus is None:
        others = (one for one in seen.all if one.labels["__name__"] != USED)
        seen = dataclasses.replace(seen, all=tuple(others))
    judgement = judge(measurement(usage(**changes)), seen)
    used = judgement.others_cpu
    assert judgement.valid
    assert share == (None if used is None else f"{used:.0%}")
    said = [f"work outside the lab used {share} of CPUs that were short"] if share else []
    if cpus is None:
        said.insert(0, f"{UNREAD}what work outside the lab took of the CPUs")
    assert [one for one in judgement.notes if "outside the lab" in one] == said


def test_a_container_that_ends_in_the_window_does_not_hide_what_others_used() -> None:
    """As that of `make toxics`, a second one of the driver."""
    both = ours(1.0)
    times = (OPENS - 1, OPENS + 4, OPENS + 8)
    ended = Series({"__name__": USED, "service": "driver", "name": "toxics"}, times, (0, 0.5, 1.5))
    judgement = judge(
        measurement(usage(host_busy=0.9)), dataclasses.replace(both, all=(*both.all, ended))
    )
    # 90 %, less 1 CPU and 1.4 s in 15 s, of 2 CPUs.
    assert judgement.others_cpu == pytest.approx(0.9 - (1 + 1.4 / 15) / 2, abs=1e-3)


def test_the_cpus_of_a_foreign_service_are_not_those_of_others() -> None:
    foreign = Snapshot(None, {"url": "x"}, ToxicState(), 0.0)
    of = dataclasses.replace(usage(host_busy=0.9), before=foreign)
    assert judge(measurement(of), ours(0.6)).others_cpu is None


def test_a_proxy_stopped_by_its_quota() -> None:
    name = "container_cpu_cfs_throttled_seconds_total"
    stopped = observation(rise(name, 2.0, service="toxiproxy"), rise(name, 9.0, service="a"))
    assert invalid(seen=stopped) == "the proxy was stopped by its CPU quota for 2.0 s of the window"


def test_a_proxy_that_used_all_of_its_cpus() -> None:
    cpus = rise("go_sched_gomaxprocs_threads", 0, job="toxiproxy")
    cpus = dataclasses.replace(cpus, values=(2.0, 2.0))
    name = "process_cpu_seconds_total"
    valid(seen=observation(cpus, rise(name, 28.0, job="toxiproxy")))
    full = observation(cpus, rise(name, 29.0, job="toxiproxy"))
    assert invalid(seen=full) == "the proxy used all of its 2 CPUs"


@pytest.mark.parametrize(("part", "name"), [("toxiproxy", "proxy"), ("downstream", "downstream")])
def test_a_part_that_was_restarted(part: str, name: str) -> None:
    # As seen when one was killed: errors in a millisecond, so twice the rate was "possible".
    started = rise("process_start_time_seconds", 0, job=part)
    moved = dataclasses.replace(started, values=(5000.0, 5001.0))
    valid(seen=observation(moved))
    again = dataclasses.replace(started, values=(5000.0, OPENS + 3.0))
    reason = invalid(seen=observation(again))
    assert reason == f"a part of the lab was restarted during the trial: the {name}"
    assert by_accident((reason,))


def test_a_part_that_was_restarted_beside_the_window_or_out_of_the_way_is_none() -> None:
    started = rise("process_start_time_seconds", 0, job="toxiproxy")
    times = (OPENS - 2, OPENS - 1, OPENS + 5, OPENS + 16)
    early = dataclasses.replace(started, times=times, values=(9.0, 50.0, 50.0, 50.0))
    valid(seen=observation(early))
    past = dataclasses.replace(
        after().before, settings={**after().before.settings, "downstream_url": DIRECT}
    )
    again = dataclasses.replace(started, values=(9.0, 50.0))
    of = dataclasses.replace(after(), before=past)
    assert not any("restarted" in one for one in judge(measurement(of), observation(again)).reasons)


def test_a_downstream_whose_loops_used_their_cpus() -> None:
    # Each of its loops uses one CPU, however many Go may use.
    loops = rise("lab_downstream_loops", 0, job="downstream")
    loops = dataclasses.replace(loops, values=(1.0, 1.0))
    used = rise("process_cpu_seconds_total", 14.5, job="downstream")
    four = dataclasses.replace(loops, values=(4.0, 4.0))
    valid(seen=observation(four, used))
    full = observation(loops, used)
    assert invalid(seen=full) == "the downstream used all of its 1 CPUs"


def test_series_that_are_missing_are_a_note() -> None:
    nothing = judge(measurement())
    assert nothing.valid
    assert "series are missing" in nothing.notes[0]
    short = Observation((OPENS, OPENS + 20), observation().all)
    assert "did not see the whole window of server, jvm" in valid(seen=short).notes[0]


@pytest.mark.parametrize(
    ("asked", "has", "said"),
    [
        ({"SERVER_CPUS": "0.4"}, {"cpu_quota": 0.4}, None),
        ({"SERVER_CPUS": "0.4"}, {}, "SERVER_CPUS was to be 0.4, and the server has no limit"),
        ({"SERVER_CPUS": "0.4"}, {"cpu_quota": 1.5}, "0.4, and the server has 1.5"),
        # All of the machine's CPUs.
        ({"SERVER_CPUS": str(IDENTITY.cpus)}, {}, None),
        ({"LOOPS": "2"}, {"loops": 2}, None),
        ({"LOOPS": "2"}, {"loops": 1}, "LOOPS was to be 2, and the server has 1"),
        ({"LOOPS": "2"}, {}, None),
        ({"SERVER_BACKLOG": "16"}, {"backlog": 4096}, "16, and the server has 4096"),
        ({"BLOCK_THE_LOOP": "true"}, {"block_the_loop": True}, None),
        ({"BLOCK_THE_LOOP": "false"}, {"block_the_loop": "spin"}, "false, and the server has spin"),
        ({"SERVER_JVM_FLAGS": IDENTITY.jvm_flags[0]}, {}, None),
        (
            {"SERVER_JVM_FLAGS": f"{IDENTITY.jvm_flags[0]} -Xmx40m"},
            {},
            f"was to be {IDENTITY.jvm_flags[0]} -Xmx40m, and the server has others",
        ),
        ({"SERVER_JVM_FLAGS": f"{IDENTITY.jvm_flags[0]} -XX:+OfAnotherJdk"}, {}, None),
        ({"NOFILE": "300"}, {}, None),
    ],
)
def test_what_the_condition_asked_of_the_container_has_to_be_there(
    asked: dict[str, str], has: dict[str, Any], said: str | None
) -> None:
    before = snapshot()
    before = dataclasses.replace(before, settings={**before.settings, "loops": None, **has})
    of = record(plan(condition=Condition(host=asked)), before=before, after=before)
    reasons = judge(measurement(of), observation()).reasons
    if said is None:
        assert reasons == ()
    else:
        (reason,) = reasons
        assert reason.startswith("the trial's condition was not in force: ")
        assert reason.endswith(said)
        assert not by_accident(reasons)


@pytest.mark.parametrize(("late_s", "is_late"), [(0.0, False), (0.4, False), (0.7, True)])
def test_an_engine_that_begins_late_has_another_window(late_s: float, is_late: bool) -> None:
    began_s = record().run_started_at.timestamp() + late_s
    reasons = judge(measurement(said=reading(began_s=began_s)), observation()).reasons
    assert bool(reasons) == is_late
    if is_late:
        said = "the generator began its load late: 0.7 s after its process, by which the window is "
        assert reasons == (f"{said}placed",)
        assert by_accident(reasons)
    # Several machines wait for each other.
    shared = reading(began_s=began_s, shares=(Share("one", None, None),))
    assert judge(measurement(said=shared), observation()).reasons == ()


# A terminal acts on the first, a reason ends at the last.
FOREIGN = ("\x1b]52;c;YQ==\x07", "\x9b2J", "\r", "\u202e", "\n", ";", " ", "; ", ";; ", "a", ", ")


def test_a_row_has_the_reasons_of_its_judgement_whatever_is_in_them() -> None:
    random = Random(49)
    for _ in range(100):
        told = ["".join(random.choices(FOREIGN, k=random.randrange(6))) for _ in range(4)]
        said = dataclasses.replace(reading(), problems=tuple(told))
        judgement = judge(measurement(said=said), observation())
        row = judged_row("run", measurement(said=said))
        assert row.reasons == judgement.reasons
        assert len(row.reasons) == sum(map(bool, told))
        assert row.invalid_reasons.isprintable()


def test_a_trial_that_could_not_begin_is_repeated_whatever_docker_says() -> None:
    refused = "the host refused a: no space left; try again\nor not"
    trial = record(lost=True, problem=f"{NOT_BEGUN}: {refused}")
    row = judged_row("run", Measurement(trial, None, trial.problem))
    assert row.reasons == (f"{NOT_BEGUN}: the host refused a: no space left, try again\\nor not",)
    assert by_accident(row.reasons)
