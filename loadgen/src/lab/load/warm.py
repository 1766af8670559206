"""Prove that a server's JVM is warm on a route: load it until its figures stand still.

A JVM interprets code first, and compiles hot code twice. Meanwhile the compiler takes CPU from the
load, and requests get quicker. How long that lasts depends on the model, the route, the load and
the machine, so no fixed time is right. A closed load runs here in cycles of CYCLE_S, and the
server's own figures are read after each. They stand still when, over the last STEADY_CYCLES,

* the JIT compiler takes at most JIT_STEADY of a CPU in each cycle, and no methods wait for it;
* the medians of the cycles are within SPREAD, or LEAST_MS, of each other; where the downstream
  draws each delay, or within what the draw alone explains (`_by_draw_ms`);
* some requests succeed;
* requests per second do not rise by more than SPREAD. They rise while code gets quicker, or while
  an engine still opens connections. One burst of all connections is allowed for: a route that waits
  answers them all at once, and a burst falls into one cycle or the next.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from lab.errors import LabUnreachable
from lab.judge.checks import data, state
from lab.load.counters import Counters, jit_between, read_counters
from lab.load.engine_run import EngineRun, closed_load, scratch
from lab.load.engines.base import Engine, last_line
from lab.load.short_load import Short, short_load
from lab.model import (
    JIT_BUSY,
    JitCpu,
    Remark,
    TrialPlan,
    Value,
    WarmCycle,
    Warmth,
    all_of,
    bucket_quantile,
    goodput,
)
from lab.model.routes import EXPORTER_PORT, parse
from lab.system.host import System
from lab.system.jvm import settled
from lab.system.stack import Stack

CYCLE_S = 2.0
# The engine opens its connections before the first cycle: what rises meanwhile is its load.
OPENING_S = 1.0
MAX_WARM_S = 60.0
STEADY_CYCLES = 3
# Of these, so many measure what a request costs: the others were steady, too, but JIT compile time
# falls from cycle to cycle.
LIGHT_CYCLES = 2
# Used where nothing tells whether a JVM is warm: most JVMs are by then (docs/method.md).
FIXED_WARM_S = 10.0
# A server that answered nothing in so many cycles will not answer.
HOPELESS_CYCLES = 6
# Of one CPU; of elapsed time, where nothing tells CPU time. Fresh JVMs of five models showed 0.2 to
# 1.4 for their first 8 to 12 s, and 0.00 to 0.09 after that, elapsed; on full CPUs 0.2 to 0.5 and
# 0.00 to 0.06 of CPU time (docs/method.md): the compiler's tail goes on for minutes.
JIT_STEADY = 0.10
SPREAD = 0.10
# A median below the first bucket of the servers' histograms is a guess.
LEAST_MS = 1.0


def prove_warm(
    plan: TrialPlan,
    connections: int,
    engine: Engine,
    stack: Stack,
    system: System,
    raw: Path,
    progress: Callable[[float], None],
    watch: Callable[[Counters], None] = lambda _: None,
) -> Warmth:
    """Load the plan's route with so many connections until it is steady, at most MAX_WARM_S.

    `raw` is a folder for the engine's files; it is gone afterwards. `progress` is called every
    STEP_S with the seconds since the load began, `watch` with the counters at the edges of every
    cycle. Returns when the server has answered every request. Raises EngineError where the engine
    cannot be started, and Interrupted. The engine is ended in any case.
    """
    load = closed_load(plan, "warm-up", connections, round(2 * MAX_WARM_S))
    cycles: list[WarmCycle] = []
    schedule = engine.schedule(load, raw)
    with scratch(raw), EngineRun(system, schedule, raw) as run:
        problem = _until_steady(load, run, stack, system, cycles, progress, watch)
        if run.ended:
            words = last_line(raw / schedule.output, "without a word")
            problem = state.cold_engine.remark(words=words)
    settled(plan.server, stack, system)
    return Warmth(problem is None, tuple(cycles), problem)


def last_cycles(edges: Sequence[Counters]) -> tuple[Counters, Counters] | None:
    """Both edges of the LIGHT_CYCLES that a warm-up ended with; None where it was shorter."""
    return (edges[-1 - LIGHT_CYCLES], edges[-1]) if len(edges) > LIGHT_CYCLES else None


def warm_foreign(
    plan: TrialPlan,
    connections: int,
    engine: Engine,
    stack: Stack,
    system: System,
    raw: Path,
    progress: Callable[[float], None],
) -> Warmth:
    """As prove_warm, for a service that is not the lab's. Each cycle is a load of its own, and its
    rate and median come from the engine. Without a JMX exporter nobody tells the JIT compile time,
    and nothing can be proven: the service is loaded for FIXED_WARM_S, and the warmth says so."""
    server, began_s = plan.server, system.monotonic()

    def load(seconds: float) -> Short[tuple[float, float | None]] | str:
        return short_load(
            plan,
            engine,
            system,
            raw,
            connections,
            round(seconds),
            lambda: (system.monotonic(), _compiled_s(server, stack)),
            lambda: progress(system.monotonic() - began_s),
        )

    if _compiled_s(server, stack) is None:
        done = load(FIXED_WARM_S)
        problem = {"problem": done} if isinstance(done, str) else {}
        settled(server, stack, system)
        why = data.warmth_unproven.remark(server=server, port=EXPORTER_PORT, **problem)
        return Warmth(False, (), why, provable=False)
    cycles: list[WarmCycle] = []
    never_steady = _until_steady_in_cycles(load, cycles, began_s, connections)
    settled(server, stack, system)
    return Warmth(never_steady is None, tuple(cycles), never_steady)


def _until_steady_in_cycles(
    load: Callable[[float], Short[tuple[float, float | None]] | str],
    cycles: list[WarmCycle],
    began_s: float,
    connections: int,
) -> Remark | None:
    """Load in cycles, adding to `cycles`. None once they are steady, else why they never were."""
    while True:
        done = load(CYCLE_S)
        if isinstance(done, str):
            return state.cold_load.remark(problem=done)
        (from_s, before), (at_s, after) = done.opened, done.closed
        if before is None or after is None:
            return state.cold_exporter.remark()
        if after < before:
            return state.cold_restarted.remark()
        p50_ms = done.reading.raw.p50_ms if done.reading.raw else None
        rps = done.reading.achieved_rps
        if not goodput(done.reading):
            p50_ms, rps = None, 0.0
        cycles.append(_cycle(began_s, (from_s, at_s), rps, p50_ms, after - before))
        if steady(cycles, connections):
            return None
        if at_s - began_s >= MAX_WARM_S:
            return _not_steady(cycles)


def _compiled_s(server: str, stack: Stack) -> float | None:
    try:
        return stack.exporter.compilation_s(server)
    except LabUnreachable:
        return None


def steady(cycles: Sequence[WarmCycle], concurrency: int, drawn_sd_ms: float = 0.0) -> bool:
    """Whether the last cycles show a warm JVM. At least one cycle must have a median. `drawn_sd_ms`
    is the standard deviation of the delays that the downstream draws; 0 where all are alike."""
    last = cycles[-STEADY_CYCLES:]
    if len(last) < STEADY_CYCLES or any(
        cycle.jit_share > JIT_STEADY or (cycle.jit_busy or 0.0) > JIT_BUSY for cycle in last
    ):
        return False
    medians = [cycle.p50_ms for cycle in last if cycle.p50_ms is not None]
    if not medians:
        return False
    allowed_ms = max(LEAST_MS, SPREAD * min(medians), _by_draw_ms(last, drawn_sd_ms))
    if max(medians) - min(medians) > allowed_ms:
        return False
    burst_rps = concurrency / min(cycle.length_s for cycle in last)
    return last[-1].rps <= (1 + SPREAD) * last[0].rps + burst_rps


def _by_draw_ms(cycles: Sequence[WarmCycle], drawn_sd_ms: float) -> float:
    """How far apart the medians of these cycles may be by the draw of their delays alone: 4
    standard errors, which three normal values exceed in 1 % of cases. A median's is 1.25 sd / √n
    where times are about normal (H. Cramér, Mathematical Methods of Statistics, 1946, 28.5), and
    less where they are lognormal."""
    fewest = min(cycle.rps * cycle.length_s for cycle in cycles)
    return 4 * 1.25 * drawn_sd_ms / math.sqrt(max(1.0, fewest))


def _drawn_sd_ms(plan: TrialPlan, stack: Stack) -> float:
    """The standard deviation of the delays that the plan's route waits for; 0 if unknown."""
    with suppress(LabUnreachable):
        spread = stack.downstream_delay()[1]
        if spread is not None and parse(plan.route).route.calls_downstream:
            return spread.sd_ms
    return 0.0


def _until_steady(
    plan: TrialPlan,
    run: EngineRun,
    stack: Stack,
    system: System,
    cycles: list[WarmCycle],
    progress: Callable[[float], None],
    watch: Callable[[Counters], None],
) -> Remark | None:
    """Watch the load, adding to `cycles`. None once it is steady, else why it never was."""
    drawn_sd_ms = _drawn_sd_ms(plan, stack)
    began_s = system.monotonic()
    last: Counters | None = None
    due_s = OPENING_S
    for elapsed_s in run.steps():
        progress(elapsed_s)
        if elapsed_s < due_s:
            continue
        due_s = elapsed_s + CYCLE_S
        reading = None
        with suppress(LabUnreachable):  # If it comes back, that cycle is longer.
            reading = read_counters(plan, stack, system)
            watch(reading)
        if last is not None and reading is not None:
            cycle = _between(last, reading, began_s)
            if cycle is None:
                return state.cold_restarted.remark()
            cycles.append(cycle)
            if steady(cycles, plan.concurrency, drawn_sd_ms):
                return None
            if len(cycles) >= HOPELESS_CYCLES and not any(one.rps for one in cycles):
                return state.cold_silent.remark(elapsed_s=elapsed_s)
        last = reading or last
        if elapsed_s >= MAX_WARM_S:
            return _not_steady(cycles)
    return None


def _between(before: Counters, after: Counters, began_s: float) -> WarmCycle | None:
    """The cycle between two readings; None where a counter started again from 0."""
    compiled_s = after.compilation_s - before.compilation_s
    answered = after.work.requests - before.work.requests
    failed = after.work.failed - before.work.failed
    if compiled_s < 0 or answered < 0:
        return None
    # A route has no buckets until its first request.
    earlier = dict(before.work.buckets)
    buckets = [(le, count - earlier.get(le, 0.0)) for le, count in after.work.buckets]
    if failed >= answered:
        # Errors alone show no work, however steady they are.
        answered, buckets = 0.0, []
    p50_s = bucket_quantile(buckets, 0.5)
    p50_ms = None if p50_s is None else p50_s * 1000
    rps = answered / (after.at_s - before.at_s)
    threads = jit_between(before.jit, after.jit)
    return _cycle(began_s, (before.at_s, after.at_s), rps, p50_ms, compiled_s, threads)


def _cycle(
    began_s: float,
    edges: tuple[float, float],
    rps: float,
    p50_ms: float | None,
    compiled_s: float,
    threads: JitCpu | None = None,
) -> WarmCycle:
    length_s = edges[1] - edges[0]
    elapsed = compiled_s / length_s
    threads = all_of(threads, elapsed)
    return WarmCycle(
        at_s=round(edges[1] - began_s, 3),
        length_s=round(length_s, 3),
        rps=round(rps, 3),
        p50_ms=None if p50_ms is None else round(p50_ms, 3),
        jit_share=round(elapsed if threads is None else threads.used, 4),
        jit_busy=None if threads is None else round(threads.busy, 4),
    )


def _not_steady(cycles: Sequence[WarmCycle]) -> Remark:
    """Why the cycles are not steady: the last of them."""
    values: dict[str, Value] = {"limit_s": MAX_WARM_S}
    for number, cycle in enumerate(cycles[-STEADY_CYCLES:], 1):
        p50_ms = {} if cycle.p50_ms is None else {f"p50_ms_{number}": cycle.p50_ms}
        values |= {f"rps_{number}": cycle.rps, **p50_ms, f"jit_{number}": cycle.jit_share}
    return state.cold_unsteady.remark(**values)
