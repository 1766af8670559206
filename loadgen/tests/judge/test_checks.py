"""Every check: the fault is planted, and the trial is invalid for that reason only."""

import copy
import dataclasses
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from lab.judge.checks import CHECKS, by_accident, judge, server_failures
from lab.judge.checks.data import damaged, lab_unreadable, not_begun, wrk2_uncalibrated
from lab.judge.checks.generator import generator_exhausted
from lab.judge.checks.state import cold_unsteady, server_gone
from lab.kinds.objective import gave_way
from lab.load.engines.wrk2 import Wrk2
from lab.model import (
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
    Remark,
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
    cell_of,
    error_share,
    lost_rps,
)
from lab.model.knobs import DIRECT
from support.fakes import (
    IDENTITY,
    SETTINGS,
    START,
    USAGE,
    cells,
    flat,
    judged_row,
    latency,
    measurement,
    observation,
    plan,
    reading,
    record,
    snapshot,
)

CAPTURES = Path(__file__).parents[1] / "load/engines/captures"
OPENS = START.timestamp() + 10.5


@dataclasses.dataclass(frozen=True)
class Trial:
    """A line of a table: a trial, and its only reason or its notes."""

    of: TrialRecord | None = None
    said: Reading | None = None
    seen: Observation | None = None

    @property
    def judgement(self) -> Judgement:
        return judge(measurement(self.of, self.said), self.seen or observation())

    def because(self, reason: str) -> ParameterSet:
        """Invalid for a reason that begins so."""
        return pytest.param(self, [reason], [], id=reason)

    def passes(self, *notes: str) -> ParameterSet:
        """Valid, with notes that begin so, and no others."""
        return pytest.param(self, [], notes, id="; ".join(notes) or "no notes")


def table(*lines: ParameterSet) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("trial", "reasons", "notes"), lines)


def check(trial: Trial, reasons: list[str], notes: Sequence[str]) -> None:
    judgement = trial.judgement
    found = cells(judgement.reasons or judgement.notes)
    assert len(found) == len(reasons or notes), judgement
    assert all(map(str.startswith, found, reasons or notes)), judgement
    assert judgement.valid == (not reasons)


def codes(judgement: Judgement) -> list[str]:
    return [one.code for one in judgement.reasons]


def valid(*of: Any, **more: Any) -> Judgement:
    judgement = Trial(*of, **more).judgement
    assert judgement.valid, judgement.reasons
    return judgement


def invalid(*of: Any, **more: Any) -> str:
    (reason,) = cells(Trial(*of, **more).judgement.reasons)
    return reason


def closed(rps: float, mean_ms: float) -> tuple[TrialRecord, Reading]:
    said = reading(rps, corrected=None, raw=latency(mean_ms))
    return record(plan("closed", predicted_rps=None)), said


def after(**changes: object) -> TrialRecord:
    """A trial after which this was otherwise."""
    return record(after=snapshot(**changes))


def usage(plan: TrialPlan | None = None, **changes: object) -> TrialRecord:
    return record(plan, usage=copy.replace(USAGE, **changes))


def rise(name: str, by: float, **labels: str) -> Series:
    edges = (OPENS, OPENS + 15)
    return Series({"__name__": name, **labels}, edges, (100.0, 100.0 + by))


def fixed(name: str, *values: float, **labels: str) -> Series:
    return copy.replace(rise(name, 0, **labels), values=values)


def late_downstream(answers_below_50_ms: float) -> Observation:
    within = {"0.01": answers_below_50_ms, "0.05": 100, "+Inf": 100}
    name = "lab_downstream_lag_seconds_bucket"
    return observation(*(rise(name, answers, le=le) for le, answers in within.items()))


def spiked(*peaks: Peak) -> TrialRecord:
    spike = Spike(100, None, calm_s=3, peak_s=3, repeats=2, tolerance=0.1, steady_s=1)
    return record(plan(spike=spike), peaks=peaks)


def second_peak(**told: Any) -> TrialRecord:
    return spiked(Peak(13.6, 16.7), Peak(19.6, 22.6, **told))


def unwatched(seconds: float, **changes: object) -> TrialRecord:
    return record(unwatched=(Unwatched(START, START + timedelta(seconds=seconds)),), **changes)


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


# 20 connections.
OF_20 = record(plan("closed", concurrency=20, predicted_rps=None))


def thinking(think_ms: float) -> Reading:
    """Of a closed load of 20 connections, R = 1 ms: X = N / (R + Z), Z before each request."""
    told = {"lag_ms": think_ms, "late": flat(think_ms)}
    return reading(20 * 1000 / (1 + think_ms), corrected=None, raw=latency(1.0), **told)


def late_by(mean_ms: float) -> tuple[TrialRecord, Reading]:
    """5 % and 1 % of the sends were very late: the latency of a closed load begins after that."""
    told = {"lag_ms": mean_ms, "late": Latency(mean_ms, 0.1, 150.0, 250.0, 300.0)}
    of = record(plan("closed", offered_rps=None))
    return of, reading(100 / (200 + mean_ms) * 1000, corrected=None, **told)


UNREAD = "unread readings="
IN_TIME = Latency(0.1, 0.1, 0.2, 0.5, 3.0)
OTHER = snapshot(identity=copy.replace(IDENTITY, model="b"))
RESTARTED = copy.replace(IDENTITY, start_time_ms=2000, pid=2)
GONE = record(after=None, after_problem=server_gone.remark(problem="a: no answer"))
PROXY_GONE = record(after=None, after_problem=lab_unreadable.remark(problem="toxiproxy"))
# It answered for a third of the window, so its connections were free in the rest.
THIRD = reading(150.0)
UNCALIBRATED = wrk2_uncalibrated.remark(calibrated=3, threads=4)
# Of a service that tells nothing of its JVM.
ALIEN = Snapshot(None, {"url": "http://x:8080"}, ToxicState(), 200.0)
UNOBSERVED = copy.replace(usage(window_cpu_s=None), jit_share=None)
WARM_UP = Counts(None, 4500, 6750, 0, 0, None, 25.0)
ERRORS_BEFORE = Counts(None, 6750, 4500, 0, 0, None, 25.0)
MIXED = reading(counts=ERRORS_BEFORE, window_ok=5400, window_http_errors=1350)
OVERLOAD = record(plan(offered_rps=9000, predicted_rps=1000, concurrency=200))
FAST = record(plan("closed", predicted_rps=100.0))
RANDOM = record(plan(arrivals="poisson"))
QUICK = reading(corrected=latency(2.0), raw=latency(2.0))
HALF_GONE = reading(300.0, counts=Counts(None, 7500, 0, 450, 0, None, 25.0))
# 5,000 connections wait for a pool that answers 955 req/s.
POOLED = record(plan(offered_rps=22_500, predicted_rps=1000.0, concurrency=5000))
LONG = {"raw": latency(3900), "corrected": latency(4000)}
SHARES = Share("here", 0.1, IN_TIME), Share("far-9465", 30.0, flat(30.0))
THINKING_SHARES = Share("here", 0.05, IN_TIME), Share("far-9465", 0.3, flat(0.3))
NO_ANSWERS = "without-answer share=0.04"
PROXY_CPUS = fixed("go_sched_gomaxprocs_threads", 2.0, 2.0, job="toxiproxy")
LOOPS = "lab_downstream_loops"
STARTED = "process_start_time_seconds"
USED_S = "process_cpu_seconds_total"
THROTTLED = "container_cpu_cfs_throttled_seconds_total"


@table(
    Trial().passes(),
    Trial(record(before=OTHER, after=OTHER)).because("wrong-server answered=b planned=a"),
    Trial(after(identity=RESTARTED), THIRD).because("jvm-restarted"),
    Trial(after(identity=copy.replace(IDENTITY, jvm_flags=("-Xmx1g",)))).because(
        "changed what=identity"
    ),
    Trial(GONE, THIRD).because("server-gone problem=a: no answer"),
    Trial(PROXY_GONE).because("lab-unreadable problem=toxiproxy"),
    Trial(after(settings={"pool_size": 300, "downstream_connections": 20000})).because(
        "changed what=pool_size was=200 now=300"
    ),
    Trial(after(toxics=ToxicState(("downstream/latency latency=300",), 300.0))).because(
        "changed what=toxics was=none now=downstream/latency latency=300"
    ),
    Trial(record(toxic_changes=("downstream/latency at 12:00:14",))).because(
        "toxics-touched changes=downstream/latency at 12:00:14"
    ),
    # Two looks in a row that fail are a note, and more are not.
    Trial(unwatched(6.9)).passes("toxics-unwatched-briefly began=12:00:00 ended=12:00:06"),
    Trial(unwatched(7.5)).because("toxics-unwatched began=12:00:00 ended=12:00:07"),
    Trial(after(downstream_delay_ms=250.0)).because("changed what=delay was=200 ms now=250 ms"),
    Trial(record(warmth=Warmth(False, (), cold_unsteady.remark(limit_s=60)))).because(
        "cold-unsteady limit_s=60"
    ),
    Trial(record(jit_share=0.099)).passes(),
    Trial(record(jit_share=0.25)).because("compiling elapsed_s=0.25 allowed_s=0.1"),
    Trial(record(jit_share=None)).passes(f"{UNREAD}jit"),
    Trial(UNOBSERVED).because("window-unobserved"),
    Trial(copy.replace(UNOBSERVED, before=ALIEN, after=ALIEN)).passes(f"{UNREAD}generator-cpu"),
    Trial(usage(host_busy=0.98)).passes("host-full busy=0.98"),
    Trial(usage(host_busy=0.9, host_steal=0.08)).passes(
        "host-full busy=0.98", "host-steal share=0.08"
    ),
    Trial(usage(host_steal=0.09)).passes("host-steal share=0.09"),
    Trial(usage(host_steal=0.2)).passes("others-cpu share=0.2", "host-steal share=0.2"),
    # A delay of 200 ms may be 20 ms late at p95.
    Trial(seen=late_downstream(96)).passes(),
    # However busy the host is.
    Trial(seen=late_downstream(50)).passes("downstream-late late_ms=46 allowed_ms=20"),
    Trial(usage(host_busy=0.98), seen=late_downstream(50)).passes("downstream-late", "host-full"),
    Trial(
        seen=observation(
            rise(THROTTLED, 2.0, service="toxiproxy"), rise(THROTTLED, 9.0, service="a")
        )
    ).because("part-throttled part=toxiproxy throttled_s=2"),
    Trial(seen=observation(PROXY_CPUS, rise(USED_S, 28.0, job="toxiproxy"))).passes(),
    Trial(seen=observation(PROXY_CPUS, rise(USED_S, 29.0, job="toxiproxy"))).because(
        "part-full part=toxiproxy cpus=2"
    ),
    # Each of its loops uses one CPU, however many Go may use.
    Trial(
        seen=observation(
            fixed(LOOPS, 4.0, 4.0, job="downstream"), rise(USED_S, 14.5, job="downstream")
        )
    ).passes(),
    Trial(
        seen=observation(
            fixed(LOOPS, 1.0, 1.0, job="downstream"), rise(USED_S, 14.5, job="downstream")
        )
    ).because("part-full part=downstream cpus=1"),
    Trial(seen=Observation((OPENS, OPENS + 20), observation().all)).passes(
        f"{UNREAD}others-cpu",
    ),
)
def test_what_happened_to_the_lab(trial: Trial, reasons: Any, notes: Any) -> None:
    check(trial, reasons, notes)


@table(
    Trial(said=reading(remarks=(UNCALIBRATED,))).because("wrk2-uncalibrated calibrated=3"),
    # 28.8 CPU seconds in 15 s: 1.92 of 2 cores.
    Trial(usage(window_cpu_s=28.8)).because("generator-full used=1.92 cores=2"),
    # 14.4 CPU seconds in 15 s, of 2 cores.
    Trial(usage(window_cpu_s=14.4), reading(threads=1)).because("generator-full used=0.96 cores=1"),
    Trial(usage(window_cpu_s=14.4), reading()).passes(),
    Trial(usage(window_cpu_s=14.4), reading(threads=4)).passes(),
    Trial(
        usage(window_cpu_s=None, window_wait_s=None, window_throttled_s=None, host_busy=None)
    ).passes(f"{UNREAD}generator-cpu,generator-waits,generator-quota,host-cpu"),
    Trial(usage(window_throttled_s=0.14)).passes(),
    Trial(usage(window_throttled_s=6.0)).because("generator-throttled throttled_s=6 window_s=15"),
    # 20 ms at each of 200 turns: a tenth of the median of 200 ms.
    Trial(usage(window_wait_s=4.0, window_slices=200)).passes(),
    Trial(usage(window_wait_s=4.2, window_slices=200)).because(
        "generator-starved wait_ms=21 allowed_ms=20"
    ),
    # A millisecond is always allowed.
    Trial(usage(window_wait_s=4.0, window_slices=4000), QUICK).passes(),
    Trial(usage(window_wait_s=4.4, window_slices=4000), QUICK).because(
        "generator-starved wait_ms=1.1"
    ),
    # 7.5 s of 15 s on 2 cores. 4.5 s: 30 % of one core, 15 % of two.
    Trial(usage(window_wait_s=7.5, window_slices=100_000)).passes("generator-waited share=0.25"),
    Trial(usage(window_wait_s=4.5, window_slices=100_000), reading(threads=1)).passes(
        "generator-waited share=0.3"
    ),
    Trial(usage(window_wait_s=4.5, window_slices=100_000), reading()).passes(),
    # A tenth of the median of 200 ms is allowed.
    Trial(said=reading(lag_ms=19.0)).passes(),
    Trial(said=reading(lag_ms=21.0)).because("generator-late figure=mean late_ms=21"),
    # A tenth of the p95 of 210 ms is allowed for 5 % of the requests.
    Trial(said=reading(lag_ms=5.0, late=Latency(5.0, 0.1, 22.0, 23.0, 40.0))).because(
        "generator-late figure=p95 late_ms=22 allowed_ms=21"
    ),
    # 5 % sent late by 300 ms are no tenth of the corrected p95, but more than the raw p95.
    Trial(
        OVERLOAD,
        reading(
            1000.0,
            corrected=latency(17_800),
            lag_ms=15.0,
            late=Latency(15.0, 0.1, 300.0, 400.0, 500.0),
        ),
    ).because("generator-late figure=p95 late_ms=300 allowed_ms=21"),
    Trial(said=reading(lag_ms=0.5, late=Latency(0.5, 0.1, 2.0, 23.0, 40.0))).passes(
        "partly-late figure=p99 late_ms=23"
    ),
    Trial(said=reading(lag_ms=0.1, late=IN_TIME)).passes(),
    Trial(said=reading(lag_ms=15.0, late=IN_TIME, shares=SHARES)).because(
        "generator-late figure=mean late_ms=30 allowed_ms=20 machine=far-9465"
    ),
    # All of it says so already.
    Trial(said=reading(lag_ms=25.0, late=IN_TIME, shares=SHARES)).because(
        "generator-late figure=mean late_ms=25 allowed_ms=20"
    ),
    Trial(
        said=reading(
            corrected=Latency(0.4, 0.3, 0.7, 0.9, 1.2), late=Latency(0.15, 0.1, 0.3, 0.6, 0.9)
        )
    ).passes("partly-late figure=mean late_ms=0.15"),
    # Lateness takes the rate of a closed load, and not the latency.
    Trial(*late_by(3.0)).passes(),
    Trial(*late_by(25.0)).passes("think-time think_ms=25 share=0.111"),
    # It may have any think time that it tells: 1.9, 2.1, 31 and 75 % of a cycle of 1 ms + Z.
    Trial(OF_20, thinking(0.019)).passes(),
    Trial(OF_20, thinking(0.021)).passes("think-time think_ms=0.021 share=0.02"),
    Trial(OF_20, thinking(0.45)).passes("think-time think_ms=0.45 share=0.31"),
    Trial(OF_20, thinking(3.0)).passes("think-time think_ms=3 share=0.75"),
    # A cycle of R alone lacks that time: it is unknown whether the generator or a server took it.
    Trial(OF_20, copy.replace(thinking(0.45), late=None, lag_ms=None)).because(
        "littles-law answered_rps=13793.1 each_s=0.001 busy=13.7931 planned=20 tolerance=0.0500667 "
        "missing_ms=0.45"
    ),
    # It is unknown which of several machines waited for a CPU.
    Trial(OF_20, copy.replace(thinking(0.1), shares=THINKING_SHARES)).because(
        "generator-thinks share=0.230769 allowed=0.1 machine=far-9465"
    ),
    Trial(spiked(Peak(13.6, 16.7), Peak(19.6, 22.6))).passes(),
    Trial(spiked(Peak(13.6, 16.7))).because("spikes-missing made=1 planned=2"),
    Trial(spiked(Peak(13.6, 16.7), Peak(19.6, 20.0))).because(
        "spike-flawed spike=2 length_s=0.4 planned_s=3"
    ),
    Trial(second_peak(untried=5.0, late_p95_ms=500.0)).passes(),
    Trial(second_peak(untried=5.2)).because("spike-flawed spike=2 untried=5.2 extra=100"),
    Trial(second_peak(late_p95_ms=501.0)).because("spike-flawed spike=2 late_ms=501"),
    Trial(second_peak(problems=(generator_exhausted.remark(what="port", count=2),))).because(
        "spike-flawed spike=2 what=port count=2"
    ),
    Trial(second_peak(problems=(damaged.remark(problem="x"),))).because("spike-flawed spike=2"),
    # What the server did not accept, or kept busy, is its own doing.
    Trial(second_peak(connections=30, untried=0.0, due=900, sent=360, late_p95_ms=1.0)).passes(),
)
def test_what_the_generator_did(trial: Trial, reasons: Any, notes: Any) -> None:
    check(trial, reasons, notes)


@table(
    Trial(said=reading(0.0, corrected=None, raw=None)).because("nothing-answered"),
    Trial(said=reading(counts=Counts(None, 0, 6750, 0, None, None, 15.0))).because("no-success"),
    # In the window, after a good warm-up.
    Trial(said=reading(counts=WARM_UP, window_ok=0, window_http_errors=6750)).because("no-success"),
    Trial(record(plan(offered_rps=10)), reading(10.0, samples=150)).because(
        "few-answers answers=150 needed=200"
    ),
    # 300 of 450 req/s × 0.2 s: 60 of 100 connections busy; 40 were free, so it did not send.
    Trial(said=reading(300.0)).because("generator-short ended_rps="),
    # Without raw latency a lost rate is never blamed on the server.
    Trial(said=reading(300.0, raw=None)).because("generator-short ended_rps=300 of_rps=450"),
    # 40 of 100 connections were free, or could not be opened: nothing was due on a free one.
    Trial(said=reading(300.0, lag_ms=0.1, late=IN_TIME)).passes(
        "overload answered_rps=300 offered_rps=450"
    ),
    # 6,500 of 6,750 planned arrivals came: chance, and no overload.
    Trial(RANDOM, reading(6500 / 15, late=IN_TIME, due=6500)).passes(),
    Trial(RANDOM, reading(6300 / 15, late=IN_TIME, due=6500)).passes(
        "overload answered_rps=420 offered_rps=433.333"
    ),
    # By chance more were in flight as the window began: 88 are, so 3 √176 = 40 beside 1 % of
    # 6,500.
    Trial(RANDOM, reading(6600 / 15, late=IN_TIME, due=6500)).passes(),
    Trial(RANDOM, reading(6610 / 15, late=IN_TIME, due=6500)).because(
        "backlog answered_rps=440.667 offered_rps=433.333"
    ),
    Trial(said=reading(6600 / 15, late=IN_TIME, due=6500)).because("backlog answered_rps=440"),
    Trial(FAST, reading(500, counts=Counts(None, 1500, 6000, 0, None, None, 15.0))).passes(
        "errors share=0.8 latencies=mixed"
    ),
    Trial(FAST, reading(500, counts=Counts(None, 7499, 1, 0, None, None, 15.0))).because(
        "above-bound goodput_rps=499.933 bound_rps=100"
    ),
    # Errors of the warm-up are none of the window.
    Trial(said=reading(counts=ERRORS_BEFORE, window_ok=6750, window_http_errors=0)).passes(),
    Trial(said=MIXED).passes("errors share=0.2"),
    Trial(said=copy.replace(MIXED, unexpected=1300)).passes("errors share=0.2 unexpected=1300"),
    Trial(said=failing(5400, 1350)).passes("errors share=0.2 latencies=apart"),
    Trial(said=failing(5400, 1350, failed=None)).passes("errors share=0.2 latencies=mixed"),
    # 4 % of 450 req/s are reset or time out: 18 a second over the 25 s that the engine
    # accounted. They were offered.
    Trial(said=reading(432.0, counts=Counts(None, 10_800, 0, 450, 0, None, 25.0))).passes(
        NO_ANSWERS
    ),
    Trial(said=reading(432.0, counts=Counts(None, 10_800, 0, 0, 450, None, 25.0))).passes(
        NO_ANSWERS
    ),
    # Those that are neither were not sent.
    Trial(said=HALF_GONE).because("generator-short ended_rps=318 of_rps=450 busy=0.6"),
    # Little's law finds 74 % of the connections in the answers of a window of 20 s, and
    # 3.9 s / 20 s more may be in none. In a window of 60 s a quarter of them was free.
    Trial(POOLED, reading(955.0, window_s=20.0, **LONG)).passes(
        "overload answered_rps=955 offered_rps=22500"
    ),
    Trial(POOLED, reading(955.0, window_s=60.0, **LONG)).because(
        "generator-short ended_rps=955 of_rps=22500 busy=0.7449"
    ),
    # 100 req/s × 1 s: all 100 connections waited for the server.
    Trial(said=reading(100.0, raw=latency(1000))).passes(
        "overload answered_rps=100 offered_rps=450"
    ),
    # 450 req/s for 15 s in bursts 0.3 s apart: 0.3 / 15 = 2 % beside the 1 % allowed.
    Trial(said=reading(437.0, pause_s=0.3)).passes(),
    Trial(said=reading(435.0, pause_s=0.3)).because("generator-short ended_rps="),
    # 100 connections at 200 ms: 500 req/s. 5 % + 0.2/15 = 6.3 % tolerance.
    # 460 × 0.2 = 92 of 100 connections; 540 × 0.2 = 108.
    Trial(*closed(500, 200)).passes(),
    Trial(*closed(470, 200)).passes(),
    Trial(*closed(460, 200)).because("littles-law answered_rps=460"),
    Trial(*closed(540, 200)).because("littles-law answered_rps=540"),
    # 450 req/s offered: 1 % more is the window's edges, 2 % more was due before it.
    Trial(said=reading(454.0)).passes(),
    Trial(said=reading(459.0)).because("backlog answered_rps=459"),
)
def test_what_was_answered(trial: Trial, reasons: Any, notes: Any) -> None:
    check(trial, reasons, notes)


@pytest.mark.parametrize(("late_ms", "holds"), [(0.1, False), (0.45, True), (2.0, False)])
def test_littles_law_counts_waits_for_the_generator(late_ms: float, holds: bool) -> None:
    # 20 connections, 1 ms an answer, 13,800 req/s: 13.8 of them have a request.
    told = {"lag_ms": late_ms, "late": flat(late_ms)}
    said = reading(13_800.0, corrected=None, raw=latency(1), **told)
    assert ("littles-law" in str(judge(measurement(OF_20, said)).reasons)) != holds


@pytest.mark.parametrize(
    ("changes", "starved"),
    [
        # Z is 31 % of a cycle. It waited for 3 of the 10 s in which its threads did not sleep.
        ({"window_wait_s": 3.0, "window_cpu_s": 7.0}, None),
        # For half of them: 16 %.
        ({"window_wait_s": 5.0, "window_cpu_s": 5.0}, 0.155),
        # To be woken takes its time on a machine with idle CPUs, too.
        ({"window_wait_s": 5.0, "window_cpu_s": 5.0, "host_busy": 0.79}, None),
        # Nobody knows how much of it was a wait.
        ({"window_wait_s": None}, 0.31),
        ({"host_busy": None, "window_wait_s": 5.0, "window_cpu_s": 5.0}, 0.155),
    ],
)
def test_a_think_time_without_a_cpu(
    changes: dict[str, float | None], starved: float | None
) -> None:
    # So many turns that each waits for less than 1 ms.
    of = usage(OF_20.plan, **{"host_busy": 0.9, "window_slices": 10_000, **changes})
    reasons = judge(measurement(of, thinking(0.45)), observation()).reasons
    shares = [round(float(one.values["share"]), 3) for one in reasons]
    assert shares == ([starved] if starved else [])
    assert {one.code for one in reasons} <= {"generator-thinks"}


@pytest.mark.parametrize(("rps", "bursts"), [(545.5, 6), (637.0, 7)])
def test_a_bound_leaves_room_for_one_burst_of_all_connections(rps: float, bursts: int) -> None:
    # 1,000 connections that began at once and wait 2 s: 5 or 6 bursts in 11 s, 500 req/s in all.
    of = record(plan("closed", concurrency=1000, predicted_rps=500.0))
    said = reading(rps, window_s=11.0, corrected=None, raw=latency(1_000_000 / rps))
    assert ("above-bound" in str(judge(measurement(of, said)).reasons)) == (bursts > 6)


@pytest.mark.parametrize(("mode", "rps"), [("closed", 1000), ("open", 1000)])
def test_a_window_is_at_least_five_latencies_long(mode: Mode, rps: float) -> None:
    # 200 threads: 5,000 connections wait 5 s. A tenth more than planned is no reason.
    of = record(plan(mode, concurrency=5000, predicted_rps=None,
                     offered_rps=22_500 if mode == "open" else None))  # fmt: skip
    corrected = latency(9000) if mode == "open" else None
    valid(of, reading(rps, window_s=25.0, raw=latency(5400), corrected=corrected))
    assert invalid(of, reading(rps, window_s=15.0, raw=latency(5050), corrected=corrected)) == (
        "window-short window_s=15 latency_s=5.05 times=4.5 needed_s=28"
    )


def test_littles_law_is_not_asked_of_a_window_that_is_too_short() -> None:
    # A third of the connections was missing; in 5 s with R = 5 s a tolerance of 105 % hid that.
    of = record(plan("closed", concurrency=5000, predicted_rps=None))
    said = reading(667, window_s=5.0, corrected=None, raw=latency(5000))
    assert invalid(of, said).startswith("window-short")
    said = reading(667, window_s=25.0, corrected=None, raw=latency(5000))
    assert "busy=3335 planned=5000 tolerance=0.25" in invalid(of, said)


@pytest.mark.parametrize(
    ("cpus", "quota", "time", "cpu_time"),
    # A quota below one CPU stretches the time that a compilation takes, and no CPU time. A fresh
    # JVM is cold on any machine.
    [(2, None, 0.10, 0.10), (4, None, 0.20, 0.20), (32, None, 0.20, 0.20), (2, 1.5, 0.075, 0.075),
     (1, 0.4, 0.05, 0.02)],
)  # fmt: skip
def test_the_compiler_may_use_little(
    cpus: int, quota: float | None, time: float, cpu_time: float
) -> None:
    identity = copy.replace(IDENTITY, cpus=cpus)
    of = snapshot(identity=identity, settings={**SETTINGS, "cpu_quota": quota})

    def told(used: float, busy: float, elapsed: float | None = 0.49) -> TrialRecord:
        threads = JitCpu(used, busy - used)
        return record(before=of, after=of, jit_share=elapsed, jit_cpu=threads)

    # The CPU time is unknown.
    valid(record(before=of, after=of, jit_share=time - 0.001))
    more = record(before=of, after=of, jit_share=time + 0.001)
    assert invalid(more).startswith("compiling elapsed_s=")
    less = cpu_time - 0.001
    valid(told(less, 0.49))
    assert invalid(told(cpu_time + 0.001, 0.49)).startswith("compiling cpu_s=")
    # Where it is busy that long, what it has not compiled yet runs slowly.
    waits = "compiling busy_s=0.51 allowed_s=0.5"
    assert invalid(told(less, 0.51)) == waits
    # Neither is unknown where the exporter did not answer in time.
    assert valid(told(less, 0.49, None)).notes == ()
    assert invalid(told(less, 0.51, None)) == waits
    # Threads that ended are not in their sum.
    valid(told(less, 0.25))
    assert invalid(told(less, 0.24)).startswith("compiling elapsed_s=0.49")
    # A service that is not the lab's has the CPUs of the generator.
    exported = Exported(1, "21", None, None, scraped=True)
    alien = snapshot(identity=None, settings={}, exported=exported)
    of_alien = record(before=alien, after=alien, jit_share=0.11)
    assert invalid(of_alien) == "compiling elapsed_s=0.11 allowed_s=0.1"


@pytest.mark.parametrize("lag_ms", [19.0, 21.0])
def test_an_overload_allows_the_generator_no_more(lag_ms: float) -> None:
    # Corrected p50 17.8 s, raw p50 200 ms: the generator may be 20 ms late, not 1.8 s.
    of = plan(offered_rps=9000, predicted_rps=1000, concurrency=200)
    said = reading(1000.0, corrected=latency(17_800), raw=latency(200), lag_ms=lag_ms)
    starved = usage(window_wait_s=lag_ms / 10, window_slices=100, plan=of)
    if lag_ms < 20:
        valid(starved, said)
        return
    assert cells(judge(measurement(starved, said)).reasons) == [
        "generator-starved wait_ms=21 allowed_ms=20",
        "generator-late figure=mean late_ms=21 allowed_ms=20",
    ]


# 90 are in flight: 3 √180 = 40 by chance, and 9 for a latency that rises.
COUNTED = {"late": IN_TIME, "due": 6750, "window_http_errors": 0, "window_lost": 0}


def ended(count: int, **changes: object) -> Reading:
    return reading(count / 15, window_ok=count, **COUNTED, **changes)


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        # A queue at the window's end, in which nobody waits for long.
        (ended(6685), 0),
        (ended(6685, hangs=True), 65),
        (ended(6710, hangs=True), 0),
        # What waits in an overload is no loss.
        (ended(6300, hangs=True), 0),
    ],
)
def test_requests_that_are_never_answered_count_as_lost(said: Reading, lost: int) -> None:
    """A run that is shorter than the engine's patience has no timeout, and no latency of them."""
    row = judged_row("run", measurement(said=said))
    assert row.window_lost == lost
    if lost:
        assert error_share(row, row.offered_rps) == pytest.approx(65 / 6750)
        assert cells(valid(said=said).notes) == ["never-answered requests=65"]
    assert valid(said=ended(6710, hangs=True)).notes == ()


@pytest.mark.parametrize(
    ("count", "means_ms", "lost"),
    [
        (6615, [200] * 15, 135),  # 2 % of the requests hang
        # 2 % wait in a queue: who came last waits 300 ms longer, in which 135 come.
        (6615, range(200, 500, 20), 0),
        (6550, range(200, 320, 8), 146),  # both: 54 of the 200 that are missing are in a queue
        (3375, range(250, 7750, 500), 0),  # half of the requests wait, and one hangs
    ],
)
def test_hanging_requests_are_no_queue(count: int, means_ms: Sequence[float], lost: int) -> None:
    seconds = tuple(Second(440, 440, mean_ms) for mean_ms in means_ms)
    said = ended(count, hangs=True, ranks=((210.0, count),), seconds=seconds)
    row = judged_row("run", measurement(record(), said))
    assert row.window_lost == lost
    # Where more than 1 % may never be answered, p99 is one of these.
    assert row.slo_p99_ms == (210.0 if 0.99 * (count + lost) <= count else None)
    assert row.overloaded == (count + lost < 0.99 * 6750)
    # Several kinds of requests may have several queues.
    two = record(plan(requests=(Request("/"), Request("/slow"))))
    assert judged_row("run", measurement(two, said)).window_lost == 0


def of_machines(*failed: int, answering: str = "") -> Observation:
    """A window of a lab on several machines. Scrapes of what is on the server's machine failed
    (by their numbers: one every 2 s, from 3 s before the window on), but of that job."""
    times = tuple(OPENS - 3 + 2 * at for at in range(10))
    seen = tuple(float(at not in failed) for at in range(10))
    ups: list[dict[str, str]] = [
        {"__name__": "up", "job": "cadvisor", "machine": "tested"},
        {"__name__": "up", "job": "server", "server": "a"},
    ]
    used = {"__name__": "container_cpu_usage_seconds_total", "machine": "tested"}
    return observation(
        *(Series(up, times, (1.0,) * 10 if up["job"] == answering else seen) for up in ups),
        Series({"__name__": "up", "job": "cadvisor", "machine": "load"}, times, (1.0,) * 10),
        *(Series({**used, "service": one}, times[:2], (1.0, 2.0)) for one in ("a", "cadvisor")),
    )


def test_what_shows_that_a_server_gave_way_counts_in_a_search() -> None:
    for of in (GONE, after(identity=RESTARTED)):
        assert server_failures(Trial(of).judgement.reasons)
    assert not server_failures(Trial(PROXY_GONE).judgement.reasons)


def test_a_machine_that_was_away_is_no_finding_of_the_server() -> None:
    # As when its link was cut for 5 s: the names of what is on it were not known for a minute.
    gone = measurement(GONE)
    reasons = judge(gone, of_machines(4, 5, 6, 7, 8, 9)).reasons
    away = "machine-away machine=tested gap_s="
    assert cells(reasons) == ["server-gone problem=a: no answer", f"{away}12"]
    assert by_accident(reasons)
    lost = copy.replace(judged_row("r", gone), invalid_reasons=cell_of(reasons))
    assert gave_way(lost) is None
    assert invalid(seen=of_machines(3, 4, 5)) == f"{away}8"


@pytest.mark.parametrize(
    ("failed", "answering"),
    # Something on it answered, or it was back before the window.
    [((), ""), ((4,), ""), ((0,), ""), (range(4, 10), "cadvisor"), (range(4, 10), "server")],
)
def test_a_machine_that_was_not_away(failed: Sequence[int], answering: str) -> None:
    valid(seen=of_machines(*failed, answering=answering))


def test_no_toxic_reaches_a_server_that_calls_past_toxiproxy() -> None:
    straight = snapshot(settings={**SETTINGS, "downstream_url": DIRECT})
    past = {"before": straight, "after": straight}
    for of in (record(**past), record(toxic_changes=("a toxic",), **past), unwatched(60, **past)):
        assert cells(valid(of).notes) == ["without-toxiproxy"]
    toxic = {"TYPE": "latency", "LATENCY": "300"}
    meant = plan(condition=Condition(toxics=(toxic,)))
    assert invalid(record(meant, **past)).startswith("toxics-passed-by")
    scripted = plan(script=(ToxicStep(1, toxic),))
    made = (ScriptedToxic(11.5, 11.6, "TYPE=latency", clear=False),)
    assert invalid(record(scripted, script=made, **past)).startswith("toxics-passed-by")


def test_what_a_foreign_service_may_not_depend_on_is_a_note() -> None:
    alien = snapshot(identity=None, settings={"url": "http://x:80"}, downstream_delay_ms=100.0)
    judgement = judge(
        measurement(unwatched(60, before=alien, after=alien)),
        observation(),
        snapshot(settings=alien.settings, toxics=ToxicState(("downstream/latency",), 300.0)),
    )
    assert judgement.valid, judgement.reasons
    for said in (
        "toxics-unwatched-briefly began=12:00:00 ended=12:01:00",
        "differs what=toxics was=downstream/latency now=none",
        "differs what=delay was=200 ms now=100 ms",
    ):
        assert said in cells(judgement.notes)


def test_no_answers_to_a_generator_that_did_not_do_its_part() -> None:
    silence = reading(0.0, corrected=None, raw=None)
    said = copy.replace(silence, remarks=(UNCALIBRATED,))
    assert codes(judge(measurement(said=said))) == ["wrk2-uncalibrated", "few-answers"]
    stopped = measurement(usage(window_throttled_s=3.0), silence)
    assert codes(judge(stopped)) == ["few-answers", "generator-throttled"]


def test_where_nearly_all_answers_are_errors_that_is_the_servers_finding() -> None:
    # 0.2 % of 30,000: a rate limiter that answers 429 at once.
    said = failing(60, 29_940, corrected=None, all_ms=1.5)
    of = record(plan("closed", predicted_rps=None, concurrency=3))
    judgement = judge(measurement(of, said), observation())
    assert cells(judgement.reasons) == ["mostly-errors answers=60 of=30000 needed=200"]
    assert not by_accident(judgement.reasons)
    row = judged_row("run", measurement(of, said))
    assert gave_way(row)
    assert invalid(of, failing(199, 200, all_ms=112.8)).startswith("mostly-errors")
    # It is enough where they are many all the same.
    assert valid(record(plan(offered_rps=2000)), failing(200, 29_800)).valid
    # Not enough, with errors or without.
    reason = invalid(record(plan(offered_rps=14)), failing(195, 15))
    assert reason == "few-answers answers=195 errors=15 needed=200"


def test_no_more_requests_are_lost_than_were_offered_and_not_answered() -> None:
    # A server that resets at once: the engine sends the same requests again, 1,000 times a second.
    again = Counts(None, 10_800, 0, 25_000, 0, None, 25.0)
    assert cells(valid(said=reading(432.0, counts=again)).notes) == [NO_ANSWERS]
    # Of 11,250 in the whole run 10,800 were answered: 4 % as well.
    assert error_share(reading(432.0, counts=again), 450) == pytest.approx(0.04)
    # All that was offered in the window was answered: they were lost before it.
    early = reading(450.0, counts=again, window_ok=6750, window_http_errors=0)
    assert valid(said=early).notes == ()
    assert error_share(early, 450) == 0
    # A closed load has no rate: all of them were sent.
    assert error_share(reading(432.0, counts=again), None) == pytest.approx(25 / 35.8)
    # What was lost in the window is that of the window: 200 requests timed out
    # in the 15 s of it, after 10 s of warm-up.
    counts = Counts(None, 11_050, 0, 0, 200, None, 25.0)
    said = reading(436.7, counts=counts, window_ok=6550, window_http_errors=0, window_lost=200)
    assert lost_rps(said, 450) == pytest.approx(200 / 15)
    assert error_share(said, 450) == pytest.approx(200 / 6750)
    # More were lost than were offered meanwhile: they were due before it.
    late = copy.replace(said, window_lost=1000)
    assert error_share(late, 450) == pytest.approx(1000 / 7550)
    early = copy.replace(said, window_lost=0)
    assert (lost_rps(early, 450), error_share(early, 450)) == (0, 0)


def test_a_restart_that_stopped_the_engine_is_told_by_its_real_output(tmp_path: Path) -> None:
    shutil.copy(CAPTURES / "wrk2-11-server-restart-midrun.txt", tmp_path / "wrk2.txt")
    of = plan(engine="wrk2", concurrency=50, offered_rps=1000, duration_s=3, predicted_rps=None)
    said = Wrk2().read(of, tmp_path)
    judgement = judge(measurement(record(of), said), observation())
    # 920 of 1,000 req/s answered, and 47 requests in 14 s lost; 421,225 writes were attempts.
    [reason] = [one for one in judgement.reasons if one.code == "generator-short"]
    assert round(float(reason.values["ended_rps"])) == 924
    [lost] = [one for one in judgement.notes if one.code == "without-answer"]
    assert lost.values["share"] == pytest.approx(0.0036, rel=0.1)


USED = "container_cpu_usage_seconds_total"


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
        (1.1, {"host_busy": 0.9}, 0.35),
        # The lab filled them itself, or nearly so.
        (1.6, {"host_busy": 0.9}, None),
        # Some CPU was always idle, but for bursts.
        (0.6, {"host_busy": 0.6}, None),
        (0.6, {"host_busy": 0.6, "window_wait_s": 7.0, "window_slices": 50_000}, 0.30),
        # Other machines take what was wanted, however idle the CPUs are on average.
        (0.8, {"host_busy": 0.41, "host_steal": 0.09}, None),
        (0.8, {"host_busy": 0.39, "host_steal": 0.11}, 0.11),
        # They are others too, and may be all that is known. What they took was not left idle.
        (1.1, {"host_busy": 0.73, "host_steal": 0.09}, 0.27),
        (1.4, {"host_busy": 0.7, "host_steal": 0.2}, 0.2),
        (None, {"host_busy": 0.7, "host_steal": 0.2}, 0.2),
        (None, {"host_busy": 0.9}, None),
    ],
)
def test_cpus_used_by_others(
    cpus: float | None, changes: dict[str, float], share: float | None
) -> None:
    seen = ours(cpus or 0.0)
    if cpus is None:
        others = (one for one in seen.all if one.labels["__name__"] != USED)
        seen = copy.replace(seen, all=tuple(others))
    judgement = judge(measurement(usage(**changes)), seen)
    used = judgement.others_cpu
    assert judgement.valid
    assert share == (None if used is None else pytest.approx(used))
    assert ("others-cpu" in [one.code for one in judgement.notes]) == bool(share)
    assert (f"{UNREAD}others-cpu" in cells(judgement.notes)) == (cpus is None)


def test_a_container_that_ends_in_the_window_does_not_hide_what_others_used() -> None:
    """As that of `make toxics`, a second one of the driver."""
    both = ours(1.0)
    times = (OPENS - 1, OPENS + 4, OPENS + 8)
    ended = Series({"__name__": USED, "service": "driver", "name": "toxics"}, times, (0, 0.5, 1.5))
    seen = copy.replace(both, all=(*both.all, ended))
    judgement = judge(measurement(usage(host_busy=0.9)), seen)
    # 90 %, less 1 CPU and 1.4 s in 15 s, of 2 CPUs.
    assert judgement.others_cpu == pytest.approx(0.9 - (1 + 1.4 / 15) / 2, abs=1e-3)
    # The CPUs of a foreign service are not those of others.
    foreign = Snapshot(None, {"url": "x"}, ToxicState(), 0.0)
    of = copy.replace(usage(host_busy=0.9), before=foreign)
    assert judge(measurement(of), ours(0.6)).others_cpu is None


@pytest.mark.parametrize("part", ["toxiproxy", "downstream"])
def test_a_part_that_was_restarted(part: str) -> None:
    # As seen when one was killed: errors in a millisecond, so twice the rate was "possible".
    valid(seen=observation(fixed(STARTED, 5000.0, 5001.0, job=part)))
    reason = invalid(seen=observation(fixed(STARTED, 5000.0, OPENS + 3.0, job=part)))
    assert reason == f"part-restarted part={part}"


def test_a_part_that_was_restarted_beside_the_window_or_out_of_the_way_is_none() -> None:
    again = fixed(STARTED, 9.0, 50.0, job="toxiproxy")
    times = (OPENS - 2, OPENS - 1, OPENS + 5, OPENS + 16)
    early = copy.replace(again, times=times, values=(9.0, 50.0, 50.0, 50.0))
    valid(seen=observation(early))
    of = record(before=snapshot(settings={**SETTINGS, "downstream_url": DIRECT}))
    assert "part-restarted" not in codes(judge(measurement(of), observation(again)))
    # Without any series that is a note.
    nothing = judge(measurement())
    assert nothing.valid
    assert nothing.notes[0].code == "series-missing"


@pytest.mark.parametrize(
    ("asked", "has", "said"),
    [
        ({"SERVER_CPUS": "0.4"}, {"cpu_quota": 0.4}, None),
        ({"SERVER_CPUS": "0.4"}, {}, "SERVER_CPUS asked=0.4 has=no limit"),
        ({"SERVER_CPUS": "0.4"}, {"cpu_quota": 1.5}, "asked=0.4 has=1.5"),
        # All of the machine's CPUs.
        ({"SERVER_CPUS": str(IDENTITY.cpus)}, {}, None),
        ({"LOOPS": "2"}, {"loops": 2}, None),
        ({"LOOPS": "2"}, {"loops": 1}, "LOOPS asked=2 has=1"),
        ({"LOOPS": "2"}, {}, "LOOPS asked=2 has=none"),
        ({"SERVER_POOL_SIZE": "20"}, {"pool_size": 30}, "asked=20 has=30"),
        ({"SERVER_PORTS": "10000 10400"}, {}, None),
        ({"SERVER_PORTS": "10000 10400"}, {"local_ports": None}, None),
        ({"SERVER_PORTS": "10000 10400"}, {"local_ports": "1 2"}, "has=1 2"),
        ({"FRONTS": "2"}, {"fronts": 1}, "FRONTS asked=2 has=1"),
        ({"SERVER_POOL_ORDER": "lifo"}, {"pool_order": "fifo"}, "asked=lifo has=fifo"),
        ({"CONNECTION_THREADS": "platform"}, {"connection_threads": "virtual"}, "has=virtual"),
        ({"NETTY_TRANSPORT": "epoll"}, {"netty_transport": "nio"}, "has=nio"),
        ({"FRAMEWORK_DEFAULTS": "shipped"}, {"framework_defaults": None}, "has=none"),
        ({"DOWNSTREAM_CLIENT": "lab"}, {"downstream_client": "framework"}, "has=framework"),
        ({"SERVER_BACKLOG": "16"}, {"backlog": 4096}, "has=4096"),
        ({"BLOCK_THE_LOOP": "true"}, {"block_the_loop": True}, None),
        ({"BLOCK_THE_LOOP": "false"}, {"block_the_loop": "spin"}, "has=spin"),
        ({"SERVER_JVM_FLAGS": IDENTITY.jvm_flags[0]}, {}, None),
        (
            {"SERVER_JVM_FLAGS": f"{IDENTITY.jvm_flags[0]} -Xmx40m"},
            {},
            f"asked={IDENTITY.jvm_flags[0]} -Xmx40m has=others",
        ),
        ({"SERVER_JVM_FLAGS": f"{IDENTITY.jvm_flags[0]} -XX:+OfAnotherJdk"}, {}, None),
        ({"NOFILE": "300"}, {}, None),
    ],
)
def test_a_condition_in_force(asked: dict[str, str], has: dict[str, Any], said: str | None) -> None:
    before = snapshot()
    before = copy.replace(before, settings={**before.settings, "loops": None, **has})
    of = record(plan(condition=Condition(host=asked)), before=before, after=before)
    reasons = judge(measurement(of), observation()).reasons
    if said is None:
        assert reasons == ()
    else:
        (reason,) = cells(reasons)
        assert reason.startswith("not-in-force setting=")
        assert reason.endswith(said)


@pytest.mark.parametrize(("late_s", "is_late"), [(0.0, False), (0.4, False), (0.7, True)])
def test_an_engine_that_begins_late_has_another_window(late_s: float, is_late: bool) -> None:
    began_s = record().run_started_at.timestamp() + late_s
    reasons = judge(measurement(said=reading(began_s=began_s)), observation()).reasons
    assert bool(reasons) == is_late
    if is_late:
        assert cells(reasons) == ["generator-began-late late_s=0.7"]
    # Several machines wait for each other.
    shared = reading(began_s=began_s, shares=(Share("one", None, None),))
    assert judge(measurement(said=shared), observation()).reasons == ()


# A terminal acts on the first, a reason ends at the last.
FOREIGN = ("\x1b]52;c;YQ==\x07", "\x9b2J", "\r", "\u202e", "\n", ";", " ", "; ", ";; ", "a", ", ")


def test_a_row_has_the_reasons_of_its_judgement_whatever_is_in_them() -> None:
    random = Random(49)
    for _ in range(100):
        told = ["".join(random.choices(FOREIGN, k=random.randrange(6))) for _ in range(4)]
        remarks = tuple(damaged.remark(problem=text, at=1.5) for text in told)
        said = copy.replace(reading(), remarks=remarks)
        judgement = judge(measurement(said=said), observation())
        row = judged_row("run", measurement(said=said))
        assert row.reasons == judgement.reasons
        assert len(row.reasons) == len(set(told))
        assert row.invalid_reasons.isprintable()


def test_a_trial_without_raw_data_is_invalid() -> None:
    problem = damaged.remark(problem="wrk2.txt:3: ends before")
    assert judge(Measurement(record(), None, problem)).reasons == (problem,)
    # It could not begin: it is repeated whatever Docker says.
    refused = not_begun.remark(problem="the host refused a: no space left; try again\nor not")
    row = judged_row("run", Measurement(record(lost=True, problem=refused), None, refused))
    assert row.reasons == (refused,)
    assert by_accident(row.reasons)


def test_what_may_be_measured_again() -> None:
    """A finding of the server, a lab that is not as planned, and what would come again are not."""
    again = {one.code for one in CHECKS.values() if one.repeatable}
    failed = {one.code for one in CHECKS.values() if one.server_failed}
    assert not again & failed
    assert not by_accident([])
    for code in again - {"machine-away"}:
        assert by_accident([Remark(code)])
        assert not by_accident([Remark(code), Remark("wrong-server")])
    assert by_accident([Remark("machine-away"), Remark("wrong-server")])
