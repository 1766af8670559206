"""Every check: the fault is planted, and the trial is invalid for that reason only."""

import copy
from datetime import timedelta
from typing import Any

from lab.judge.checks.data import damaged, lab_unreadable, wrk2_uncalibrated
from lab.judge.checks.generator import generator_exhausted
from lab.judge.checks.state import cold_unsteady, server_gone
from lab.model import (
    Condition,
    Exported,
    JitCpu,
    Latency,
    Observation,
    Peak,
    Reading,
    ScriptedToxic,
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
)
from lab.model.knobs import DIRECT
from support.fakes import (
    IDENTITY,
    SETTINGS,
    START,
    USAGE,
    flat,
    latency,
    observation,
    plan,
    reading,
    record,
    snapshot,
)
from support.judged import bad, check, ok, table

OPENS = START.timestamp() + 10.5


def after(**changes: Any) -> TrialRecord:
    """A trial after which this was otherwise."""
    return record(after=snapshot(**changes))


def both(before: Snapshot, of: TrialPlan | None = None, **changes: Any) -> TrialRecord:
    return record(of, before=before, after=before, **changes)


def usage(of: TrialPlan | None = None, **changes: Any) -> TrialRecord:
    return record(of, usage=copy.replace(USAGE, **changes))


def rise(name: str, by: float, **labels: str) -> Series:
    return fixed(name, 100.0, 100.0 + by, **labels)


def fixed(name: str, *values: float, **labels: str) -> Series:
    return Series({"__name__": name, **labels}, (OPENS, OPENS + 15), values)


def late_downstream(answers_below_50_ms: float) -> Observation:
    within = {"0.01": answers_below_50_ms, "0.05": 100, "+Inf": 100}
    name = "lab_downstream_lag_seconds_bucket"
    return observation(*(rise(name, answers, le=le) for le, answers in within.items()))


def unwatched(seconds: float, **changes: Any) -> TrialRecord:
    gap = Unwatched(START, START + timedelta(seconds=seconds))
    return record(unwatched=(gap,), **changes)


OTHER = snapshot(identity=copy.replace(IDENTITY, model="b"))
RESTARTED = copy.replace(IDENTITY, start_time_ms=2000, pid=2)
FLAGS = copy.replace(IDENTITY, jvm_flags=("-Xmx1g",))
GONE = record(after=None, after_problem=server_gone.remark(problem="a: no answer"))
PROXY_GONE = record(after=None, after_problem=lab_unreadable.remark(problem="toxiproxy"))
# It answered for a third of the window, so its connections were free in the rest.
THIRD = reading(150.0)
LATENCY_300 = ToxicState(("downstream/latency latency=300",), 300.0)
# Of a service that reports nothing of its JVM.
ALIEN = Snapshot(None, {"url": "http://x:8080"}, ToxicState(), 200.0)
UNOBSERVED = copy.replace(usage(window_cpu_s=None), jit_share=None)
UNREAD = "unread readings="
PAST = snapshot(settings={**SETTINGS, "downstream_url": DIRECT})
TOXIC = {"TYPE": "latency", "LATENCY": "300"}
SCRIPTED = plan(script=(ToxicStep(1, TOXIC),))
MADE = (ScriptedToxic(11.5, 11.6, "TYPE=latency", clear=False),)
PROXY_CPUS = fixed("go_sched_gomaxprocs_threads", 2.0, 2.0, job="toxiproxy")
LOOPS, BUSY_S = "lab_downstream_loops", "process_cpu_seconds_total"
STARTED = "process_start_time_seconds"
STOPPED_S = "container_cpu_cfs_throttled_seconds_total"
AGAIN = fixed(STARTED, 9.0, 50.0, job="toxiproxy")
EARLY = Series(AGAIN.labels, tuple(OPENS + at for at in (-2, -1, 5, 16)), (9.0, 50.0, 50.0, 50.0))
# Of two scrapes that are missing.
SHIFTED = Observation((OPENS, OPENS + 20), observation().all)


def seen(*series: Series) -> Observation:
    return observation(*series)


@table(
    ok(),
    bad("wrong-server answered=b planned=a", both(OTHER)),
    bad("jvm-restarted", after(identity=RESTARTED), THIRD),
    bad("changed what=identity", after(identity=FLAGS)),
    bad("server-gone problem=a: no answer", GONE, THIRD),
    bad("lab-unreadable problem=toxiproxy", PROXY_GONE),
    bad("changed what=pool_size was=200 now=300",
        after(settings={"pool_size": 300, "downstream_connections": 20000})),
    bad("changed what=toxics was=none now=downstream/latency latency=300",
        after(toxics=LATENCY_300)),
    bad("toxics-touched changes=downstream/latency at 12:00:14",
        record(toxic_changes=("downstream/latency at 12:00:14",))),
    # Two looks in a row that fail are a note, and more are not.
    ok("toxics-unwatched-briefly began=12:00:00 ended=12:00:06", record=unwatched(6.9)),
    bad("toxics-unwatched began=12:00:00 ended=12:00:07", unwatched(7.5)),
    bad("changed what=delay was=200 ms now=250 ms", after(downstream_delay_ms=250.0)),
    bad("cold-unsteady limit_s=60",
        record(warmth=Warmth(False, (), cold_unsteady.remark(limit_s=60)))),
    bad("window-unobserved", UNOBSERVED),
    ok(f"{UNREAD}jit", record=record(jit_share=None)),
    ok(f"{UNREAD}generator-cpu", record=copy.replace(UNOBSERVED, before=ALIEN, after=ALIEN)),
    ok("host-full busy=0.98", record=usage(host_busy=0.98)),
    ok("host-full busy=0.98", "host-steal share=0.08",
       record=usage(host_busy=0.9, host_steal=0.08)),
    ok("host-steal share=0.09", record=usage(host_steal=0.09)),
    ok("others-cpu share=0.2", "host-steal share=0.2", record=usage(host_steal=0.2)),
    # A delay of 200 ms may be 20 ms late at p95, however busy the host is.
    ok(seen=late_downstream(96)),
    ok("downstream-late late_ms=46 allowed_ms=20", seen=late_downstream(50)),
    ok("downstream-late", "host-full", record=usage(host_busy=0.98), seen=late_downstream(50)),
    bad("part-throttled part=toxiproxy throttled_s=2", seen=seen(
        rise(STOPPED_S, 2.0, service="toxiproxy"), rise(STOPPED_S, 9.0, service="a"))),
    ok(seen=seen(PROXY_CPUS, rise(BUSY_S, 28.0, job="toxiproxy"))),
    bad("part-full part=toxiproxy cpus=2",
        seen=seen(PROXY_CPUS, rise(BUSY_S, 29.0, job="toxiproxy"))),
    # Each of its loops uses one CPU, however many Go may use.
    ok(seen=seen(fixed(LOOPS, 4.0, 4.0, job="downstream"), rise(BUSY_S, 14.5, job="downstream"))),
    bad("part-full part=downstream cpus=1",
        seen=seen(fixed(LOOPS, 1.0, 1.0, job="downstream"), rise(BUSY_S, 14.5, job="downstream"))),
    ok(f"{UNREAD}others-cpu", seen=SHIFTED),
    # As seen when a part was killed: errors in a millisecond, so twice the rate was "possible".
    *(bad(f"part-restarted part={part}", seen=seen(fixed(STARTED, 5000.0, OPENS + 3.0, job=part)))
      for part in ("toxiproxy", "downstream")),
    ok(seen=seen(fixed(STARTED, 5000.0, 5001.0, job="toxiproxy"))),
    ok(seen=seen(EARLY)),
    ok("without-toxiproxy", record=both(PAST), seen=seen(AGAIN)),
    # No toxic reaches a server that calls past Toxiproxy.
    ok("without-toxiproxy", record=both(PAST, toxic_changes=("a toxic",))),
    ok("without-toxiproxy", record=unwatched(60, before=PAST, after=PAST)),
    bad("toxics-passed-by", both(PAST, plan(condition=Condition(toxics=(TOXIC,))))),
    bad("toxics-passed-by", both(PAST, SCRIPTED, script=MADE)),
    bad("script-failed step=1 change=TYPE=latency problem=x",
        record(SCRIPTED, script=(copy.replace(MADE[0], problem="x"),))),
    ok(record=record(SCRIPTED, script=MADE)),
    bad("script-late step=1 change=TYPE=latency late_s=0.6",
        record(SCRIPTED, script=(copy.replace(MADE[0], started_s=12.1),))),
    bad("script-short made=0 planned=1", record(SCRIPTED)),
)  # fmt: skip
def test_what_happened_to_the_lab(line: Any) -> None:
    check(line)


def cpus(count: int, quota: float | None) -> Snapshot:
    identity = copy.replace(IDENTITY, cpus=count)
    return snapshot(identity=identity, settings={**SETTINGS, "cpu_quota": quota})


def jit(
    of: Snapshot, elapsed: float | None, used: float | None = None, busy: float = 0.49
) -> TrialRecord:
    threads = None if used is None else JitCpu(used, busy - used)
    return both(of, jit_share=elapsed, jit_cpu=threads)


EXPORTS = snapshot(identity=None, settings={}, exported=Exported(1, "21", None, None, scraped=True))
# A quota below one CPU stretches the time that a compilation takes, and no CPU time. A fresh JVM
# is cold on any machine.
ALLOWED = [(2, None, 0.10, 0.10), (4, None, 0.20, 0.20), (32, None, 0.20, 0.20),
           (2, 1.5, 0.075, 0.075), (1, 0.4, 0.05, 0.02)]  # fmt: skip


@table(
    *(line for count, quota, time, cpu_time in ALLOWED for of in (cpus(count, quota),) for line in (
        # The CPU time is unknown.
        ok(record=jit(of, time - 0.001)),
        bad("compiling elapsed_s=", jit(of, time + 0.001)),
        ok(record=jit(of, 0.49, cpu_time - 0.001)),
        bad("compiling cpu_s=", jit(of, 0.49, cpu_time + 0.001)),
    )),
    # Where it is busy that long, what it has not compiled yet runs slowly.
    bad("compiling busy_s=0.51 allowed_s=0.5", jit(cpus(2, None), 0.49, 0.01, 0.51)),
    # Neither is unknown where the exporter did not answer in time.
    ok(record=jit(cpus(2, None), None, 0.01)),
    bad("compiling busy_s=0.51 allowed_s=0.5", jit(cpus(2, None), None, 0.01, 0.51)),
    # Threads that ended are not in their sum.
    ok(record=jit(cpus(2, None), 0.49, 0.01, 0.25)),
    bad("compiling elapsed_s=0.49", jit(cpus(2, None), 0.49, 0.01, 0.24)),
    # A service that does not report its CPUs has those of the generator.
    bad("compiling elapsed_s=0.11 allowed_s=0.1", jit(EXPORTS, 0.11)),
)  # fmt: skip
def test_the_compiler_may_use_little(line: Any) -> None:
    check(line)


# --- The generator. -------------------------------------------------------------------------------

IN_TIME = Latency(0.1, 0.1, 0.2, 0.5, 3.0)
QUICK = reading(corrected=latency(2.0), raw=latency(2.0))
OVERLOAD = record(plan(offered_rps=9000, predicted_rps=1000, concurrency=200))
SHARES = Share("here", 0.1, IN_TIME), Share("far-9465", 30.0, flat(30.0))
THINKING_SHARES = Share("here", 0.05, IN_TIME), Share("far-9465", 0.3, flat(0.3))
# 20 connections.
OF_20 = record(plan("closed", concurrency=20, predicted_rps=None))
CLOSED = record(plan("closed", predicted_rps=None))
NO_USAGE = {"window_cpu_s": None, "window_wait_s": None, "window_throttled_s": None,
            "host_busy": None}  # fmt: skip


def late(mean_ms: float, *percentiles: float, **more: Any) -> Reading:
    return reading(lag_ms=mean_ms, late=Latency(mean_ms, 0.1, *percentiles), **more)


def thinking(think_ms: float, rps: float | None = None) -> Reading:
    """Of a closed load of 20 connections, R = 1 ms: X = N / (R + Z), Z before each request."""
    cycle = {"lag_ms": think_ms, "late": flat(think_ms), "raw": latency(1.0)}
    return reading(rps or 20 * 1000 / (1 + think_ms), corrected=None, **cycle)


def waits(**changes: float | None) -> TrialRecord:
    """Z is 31 % of a cycle; so many turns that each waits for less than 1 ms."""
    return usage(OF_20.plan, **{"host_busy": 0.9, "window_slices": 10_000, **changes})


def closed_late(mean_ms: float) -> Reading:
    """5 % and 1 % of the sends were very late: the latency of a closed load begins after that."""
    rps = 100 / (200 + mean_ms) * 1000
    return reading(rps, corrected=None, lag_ms=mean_ms,
                   late=Latency(mean_ms, 0.1, 150.0, 250.0, 300.0))  # fmt: skip


def spiked(*peaks: Peak) -> TrialRecord:
    spike = Spike(100, None, calm_s=3, peak_s=3, repeats=2, tolerance=0.1, steady_s=1)
    return record(plan(spike=spike), peaks=peaks)


def second_peak(**changes: Any) -> TrialRecord:
    return spiked(Peak(13.6, 16.7), Peak(19.6, 22.6, **changes))


def begins(late_s: float, **changes: Any) -> Reading:
    return reading(began_s=record().run_started_at.timestamp() + late_s, **changes)


SAID = wrk2_uncalibrated.remark(calibrated=3, threads=4)
MISSING = ("littles-law answered_rps=13793.1 each_s=0.001 busy=13.7931 planned=20 "
           "tolerance=0.0500667 missing_ms=0.45")  # fmt: skip
NO_LATE = copy.replace(thinking(0.45), late=None, lag_ms=None)
TAILED = reading(1000.0, corrected=latency(17_800), lag_ms=15.0,
                 late=Latency(15.0, 0.1, 300.0, 400.0, 500.0))  # fmt: skip
BRIEF = reading(corrected=Latency(0.4, 0.3, 0.7, 0.9, 1.2), late=Latency(0.15, 0.1, 0.3, 0.6, 0.9))
FAR = copy.replace(thinking(0.1), shares=THINKING_SHARES)


@table(
    bad("wrk2-uncalibrated calibrated=3", reading=reading(remarks=(SAID,))),
    # 28.8 CPU seconds in 15 s: 1.92 of 2 cores. 14.4: 0.96 of one.
    bad("generator-full used=1.92 cores=2", usage(window_cpu_s=28.8)),
    bad("generator-full used=0.96 cores=1", usage(window_cpu_s=14.4), reading(threads=1)),
    ok(record=usage(window_cpu_s=14.4)),
    ok(record=usage(window_cpu_s=14.4), reading=reading(threads=4)),
    ok(f"{UNREAD}generator-cpu,generator-waits,generator-quota,host-cpu", record=usage(**NO_USAGE)),
    ok(record=usage(window_throttled_s=0.14)),
    bad("generator-throttled throttled_s=6 window_s=15", usage(window_throttled_s=6.0)),
    # 20 ms at each of 200 turns: a tenth of the median of 200 ms. A millisecond is always allowed.
    ok(record=usage(window_wait_s=4.0, window_slices=200)),
    bad("generator-starved wait_ms=21 allowed_ms=20", usage(window_wait_s=4.2, window_slices=200)),
    ok(record=usage(window_wait_s=4.0, window_slices=4000), reading=QUICK),
    bad("generator-starved wait_ms=1.1", usage(window_wait_s=4.4, window_slices=4000), QUICK),
    # 7.5 s of 15 s on 2 cores. 4.5 s: 30 % of one core, 15 % of two.
    ok("generator-waited share=0.25", record=usage(window_wait_s=7.5, window_slices=100_000)),
    ok("generator-waited share=0.3", record=usage(window_wait_s=4.5, window_slices=100_000),
       reading=reading(threads=1)),
    ok(record=usage(window_wait_s=4.5, window_slices=100_000)),
    # A tenth of the median of 200 ms is allowed, and of the p95 of 210 ms for 5 % of the requests.
    ok(reading=reading(lag_ms=19.0)),
    bad("generator-late figure=mean late_ms=21", reading=reading(lag_ms=21.0)),
    bad("generator-late figure=p95 late_ms=22 allowed_ms=21", reading=late(5.0, 22.0, 23.0, 40.0)),
    # 5 % sent late by 300 ms are no tenth of the corrected p95, but more than the raw p95.
    bad("generator-late figure=p95 late_ms=300 allowed_ms=21", OVERLOAD, TAILED),
    # Corrected p50 17.8 s, raw p50 200 ms: the generator may be 20 ms late, not 1.8 s.
    ok("overload", record=OVERLOAD,
       reading=reading(1000.0, corrected=latency(17_800), lag_ms=19.0)),
    bad("generator-late", OVERLOAD, reading(1000.0, corrected=latency(17_800), lag_ms=21.0)),
    ok("partly-late figure=p99 late_ms=23", reading=late(0.5, 2.0, 23.0, 40.0)),
    ok(reading=reading(lag_ms=0.1, late=IN_TIME)),
    bad("generator-late figure=mean late_ms=30 allowed_ms=20 machine=far-9465",
        reading=reading(lag_ms=15.0, late=IN_TIME, shares=SHARES)),
    # All of it is late already.
    bad("generator-late figure=mean late_ms=25 allowed_ms=20",
        reading=reading(lag_ms=25.0, late=IN_TIME, shares=SHARES)),
    ok("partly-late figure=mean late_ms=0.15", reading=BRIEF),
    # Lateness takes the rate of a closed load, and not the latency.
    ok(record=CLOSED, reading=closed_late(3.0)),
    ok("think-time think_ms=25 share=0.111", record=CLOSED, reading=closed_late(25.0)),
    # Any think time is fine that is reported: 1.9, 2.1, 31 and 75 % of a cycle of 1 ms + Z.
    ok(record=OF_20, reading=thinking(0.019)),
    ok("think-time think_ms=0.021 share=0.02", record=OF_20, reading=thinking(0.021)),
    ok("think-time think_ms=0.45 share=0.31", record=OF_20, reading=thinking(0.45)),
    ok("think-time think_ms=3 share=0.75", record=OF_20, reading=thinking(3.0)),
    # 20 connections, 1 ms an answer, 13,800 req/s: 13.8 of them have a request.
    bad("littles-law", OF_20, thinking(0.1, 13_800.0)),
    bad("littles-law", OF_20, thinking(2.0, 13_800.0)),
    # A cycle of R alone lacks that time: it is unknown whether the generator or a server took it.
    bad(MISSING, OF_20, NO_LATE),
    # It is unknown which of several machines waited for a CPU.
    bad("generator-thinks share=0.230769 allowed=0.1 machine=far-9465", OF_20, FAR),
    # It waited for 3 of the 10 s in which its threads did not sleep; for half of them: 16 %.
    ok("think-time", record=waits(window_wait_s=3.0, window_cpu_s=7.0), reading=thinking(0.45)),
    bad("generator-thinks share=0.155", waits(window_wait_s=5.0, window_cpu_s=5.0), thinking(0.45)),
    # To be woken takes its time on a machine with idle CPUs, too.
    ok("think-time", record=waits(window_wait_s=5.0, window_cpu_s=5.0, host_busy=0.79),
       reading=thinking(0.45)),
    # How much of it was a wait is unknown.
    bad("generator-thinks share=0.31", waits(window_wait_s=None), thinking(0.45)),
    bad("generator-thinks share=0.155", waits(host_busy=None, window_wait_s=5.0, window_cpu_s=5.0),
        thinking(0.45)),
    ok(record=spiked(Peak(13.6, 16.7), Peak(19.6, 22.6))),
    bad("spikes-missing made=1 planned=2", spiked(Peak(13.6, 16.7))),
    bad("spike-flawed spike=2 length_s=0.4 planned_s=3",
        spiked(Peak(13.6, 16.7), Peak(19.6, 20.0))),
    ok(record=second_peak(untried=5.0, late_p95_ms=500.0)),
    bad("spike-flawed spike=2 untried=5.2 extra=100", second_peak(untried=5.2)),
    bad("spike-flawed spike=2 late_ms=501", second_peak(late_p95_ms=501.0)),
    bad("spike-flawed spike=2 what=port count=2",
        second_peak(problems=(generator_exhausted.remark(what="port", count=2),))),
    bad("spike-flawed spike=2", second_peak(problems=(damaged.remark(problem="x"),))),
    # What the server did not accept, or kept busy, is its own doing.
    ok(record=second_peak(connections=30, untried=0.0, due=900, sent=360, late_p95_ms=1.0)),
    # An engine that begins late has another window; several machines wait for each other.
    ok(reading=begins(0.4)),
    bad("generator-began-late late_s=0.7", reading=begins(0.7)),
    ok(reading=begins(0.7, shares=(Share("one", None, None),))),
)  # fmt: skip
def test_what_the_generator_did(line: Any) -> None:
    check(line)
