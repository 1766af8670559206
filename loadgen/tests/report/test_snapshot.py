"""Every text of a report, once: what snapshot.txt has is what comes out.

LAB_STORED_ANEW=yes writes what differs over it (support.snapshot).
"""

import io
from collections.abc import Iterator
from copy import replace
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from lab.judge import trial as judging
from lab.judge.capacity import Estimate
from lab.judge.checks import judge
from lab.judge.compare import COMPARE, Limits, compare_all, lanes
from lab.model import (
    ALLOC,
    CPU,
    LOCK,
    NONE,
    RECORDED,
    STRONG,
    TO_CALLED,
    TO_SERVER,
    UNKNOWN,
    WEAK,
    Bound,
    Condition,
    Excess,
    Fairness,
    Line,
    Missing,
    Peak,
    Recording,
    Remark,
    Row,
    Standing,
    Verdict,
    Way,
    finding,
)
from lab.model.own_lever import SettingChange
from lab.report import capacity, console, gate, markdown, remarks, sections, verdicts
from lab.report.page import trials as page_trials
from lab.report.progress import figures
from lab.report.recorded import difference
from lab.report.result import Recorded, Result, Trial
from support.drawn_delay import SPREAD
from support.fakes import judged_row, measurement, plan, record, snapshot
from support.planned import experiment, row
from support.results import EXCESS, POOL, result, verdict
from support.snapshot import assert_as_it_was

FALLS = Remark("falls", {"fall": 0.5, "low": 0.1, "high": 0.9})
WHY = (FALLS, Remark("at-most", {"setting": "x", "value": 2}))
LONE = (Remark("few-threads", {"workers": 5, "carriers": 2}),)


def head(name: str, value: float | None = None, *ends: float) -> tuple[Any, ...]:
    return (name, "a", 0, value, "MiB/h", *(ends or (None, None)))


def recovered(after_s: float | None, **felt: Any) -> finding.Recovered:
    worst_ms = None if felt else 500.0
    recovery = finding.Recovery(after_s, worst_ms, 30.0, *((5, 2) if after_s == 1.25 else ()))
    changes = ("TYPE=latency", "TYPE=down") if felt else ()
    return finding.Recovered(
        *head("recovery", after_s),
        finding.Disturbance("fault", 1, 3, 4.4, changes),
        finding.Calm(200.0, 250.4, 20, 3 if felt else 0),
        recovery,
        replace(finding.Felt(700.6, 0, 1000, 0, 0), **felt),
        3,
    )


def grown(value: float | None, *ends: float, **legs: Any) -> finding.Grown:
    usual = finding.Legs(4000.0, 5, 5, 0, {}, 0, old_collected=True)
    levels = (1.0, 2000.0, 3.0)
    name = "growth of the heap that collections leave"
    return finding.Grown(*head(name, value, *ends), levels, replace(usual, **legs))


def tried(value: float | None = None, *ends: float, **changes: Any) -> finding.Tried:
    step = finding.Tried(
        *head("step 1", value, *ends), ("worker pool",), None, None, suspected=False
    )
    return replace(step, **changes)


SPUN = (SettingChange("spin", 0, 0.1, 0),)
LIFTED = (SettingChange("pool_size", 200, 400, 800), SettingChange("memory", None, "2g", "4g", "b"))
FINDINGS: tuple[finding.Finding, ...] = (
    finding.Finding("growth", "a", 2, None, "", None, None),
    finding.Finding("growth", "", 0, 0.5, "s", 0.25, 1.0),
    finding.NotFound(*head("capacity"), WHY),
    recovered(1.25),
    recovered(0.0, slowest_ms=None, errors=4, timeouts=2),
    recovered(None, lost=3),
    finding.Recoveries(*head("m", 1.5, 1.0, 2.0), "spike", 3, 2, 2, 0),
    finding.Recoveries(*head("m"), "spike", 3, 0, 2, 1),
    grown(3.0),
    grown(3.0, -1.0, 2.0, old_collected=False, interruptions=2),
    grown(None, counted=3, on_other_jvms=1, left_out={"01": LONE}),
    tried(why=WHY, suspected=True, named="", tie=LONE[0]),
    tried(1.7, changes=SPUN, doses=(0.1, 0.25), named="strong", least=True, again={"before": 2}),
    tried(1.7, 1.0, 2.0, changes=LIFTED, at_most=2.0, lifted=True, p95=(0.5, 0.4, 0.6),
          goodput=(100.2, 200.6), pairs=3, planned=6, ended=LONE),
    finding.Limit(*head("bottleneck"), "pool", None, Condition(), WHY, 0),
    finding.Limit(*head("bottleneck"), "pool", "weak", Condition(knobs={"pool_size": 3}), LONE, 1),
)  # fmt: skip


def named(name: str, **changes: Any) -> finding.Named:
    values: dict[str, Any] = dict.fromkeys(("value", "low", "high", "planted", "severity", "mode"))
    values |= {"server": "", "launch": 0, "unit": "share", "trials": 3, "right": 1}
    values |= {"strong": 1, "missed": {"02-missed": "unknown", "05-sure": "host CPU"}}
    return finding.Named(name=name, **(values | {"sure": ("05-sure",)} | changes))


def dosed(dose: float, **answers: int) -> finding.Dosed:
    counts = {name.replace("_", " "): count for name, count in answers.items()}
    return finding.Dosed(
        "dose", "a", 0, None, "share", None, None, "closed", dose, counts, 0.87, None
    )


UNITS = finding.InUnits(
    "units", "netty", 0, 0.567, "control parts", 0.55, 0.6,
    lane="event-loop", server_us=61.2, control_us=107.9, busy=0.9, broke=True, cpus=2,
    line=Line(b=156e-6, a=0.43, rates=7),
)  # fmt: skip
TABLES: tuple[finding.Finding, ...] = (
    named("planted"),
    named("planted clearly", missed={}, sure=(), right=3),
    named("planted dose", planted="worker pool", severity=2.0, mode="closed"),
    named("planted resource", planted="worker pool"),
    named("planted resource", planted="lock", trials=60, right=0),
    dosed(0.0, within=2),
    dosed(0.1, worse=1, cannot_tell=1),
    UNITS,
    replace(UNITS, lane=None, server="b", line=None, low=None, broke=False),
    finding.Drift("drift", "", 0, 0.18, "share", None, None, "ref_net", (1.0, 1.0, 1.1, 1.18)),
)
SLOPES = tuple(
    finding.PerConnection(memory, "a", 0, value, "bytes/connection", *ends, 12, 2000, 8000)
    for memory, value, ends in (
        ("live heap", 1439.4, (1247.2, 1489.0)),
        ("resident", None, (None, None)),
    )
)


def sustained(server: str, **changes: Any) -> finding.Sustained:
    limits = ("p95 ≤ 500 ms", {"p95": 500.0})
    head = ("capacity", server, 0, 600.4, "req/s", 500.2, 700.7)
    usual = finding.Sustained(*head, *limits, (550.3, 500.0, 600.0), 6, 8, 8, False, False, None)
    return replace(usual, **changes)


OVER = verdict("worker pool", STRONG)
SUSTAINED = (
    sustained("a", gave_way=finding.GaveWay("worker pool", 1, 2, True, OVER)),
    sustained(
        "b",
        value=900.4,
        low=800.3,
        high=1000.2,
        often=(1.0, 0.5, 2.0),
        used=5,
        gave_way=finding.GaveWay(None, 0, 2, False, None),
    ),
    sustained("c", open_above=True, often=None),
    sustained("d", open_below=True, often=(0.0, 0.0, 0.0)),
    sustained("e", value=None, low=None, high=None, open_below=True, open_above=True),
    sustained("f", objective="p99 < 1 s", gave_way=finding.GaveWay("lock", 2, 2, False, None)),
)
EQUAL = {"backlog": 4096, "heap_bytes": 2**30, "preview": True, "jvm_flags": ["-Xmx1g", "-Xms1g"]}
UNEQUAL = {"cpu_quota": {"a": None, "b": 1.5}}
OWN = {"threads": {"a": {"pool": 200, "queue": None}}, "loops": {"b": [1, 2]}}
FIGURES = {
    "predicted_rps": 1200.0, "expected_rps": 1000.0, "expected_p95_ms": 204.1,
    "raw_p95_ms": 210.4, "raw_p99_ms": 250.0, "http_errors": 10, "ok": 90_000,
    "cpu_server_us": 100.0, "cpu_proxy_us": 60.0, "cpu_downstream_us": 40.0,
    "cpu_generator_us": 30.0, "cpu_observation_us": 8.25, "time_generator_ms": 0.0,
    "time_connect_ms": 0.0, "time_queue_ms": 3.0, "time_own_ms": 1.0, "time_pending_ms": 0.5,
    "time_path_ms": 2.5, "time_downstream_ms": 201.0, "time_unexplained_ms": 2.0,
}  # fmt: skip


def loads() -> list[Row]:
    """Two servers, closed and open, six launches, of which one is invalid."""
    return [
        row(
            plan(mode, trial=f"{server}-{mode}-{launch}", server=server, launch=launch),
            achieved_rps=900.0 + 10 * launch + ord(server),
            valid=(server, launch) != ("b", 3),
            p95_ms=220.0 + launch if mode == "open" else None,
            binding="host CPU",
            # In each launch another one.
            **{name: value + launch * (at + 1) for at, (name, value) in enumerate(FIGURES.items())},
        )
        for launch, mode, server in product(range(1, 7), ("closed", "open"), "ab")
    ]


def recordings() -> Iterator[Recorded]:
    stacks = {
        "java.lang.Thread.run:9;lab.Routes.<init>:5;lab.Primes.isPrime:31": 240,
        "java.lang.Thread.run:9;lab.Routes.<init>:6;java.util.List.add:3": 60,
        "java.lang.Thread.run:9;lab.Loop.poll:3;sun.nio.ch.Net.poll": 100,
    }
    after = row(
        plan("closed", trial=f"01-a{RECORDED}"),
        achieved_rps=1000.0,
        window_s=10.0,
        cpu_server_us=75.0,
    )
    before = replace(after, trial="01-a", achieved_rps=1010.0, cpu_server_us=73.0)
    whole = Recorded(after, before, Recording(CPU, ("jdk.CPUTimeSample",), 400, True, stacks))
    yield whole
    yield replace(whole, recording=Recording(CPU, ("jdk.ExecutionSample",), 99, False, stacks))
    allocated = {"lab.Bodies.hello:4": 2_000_000_000}
    yield replace(whole, recording=Recording(ALLOC, ("a",), 3000, True, allocated), beside=None)
    waited = {"[lock];lab.Worker.run:1;lab.OneLock.hold:27": 40_000_000_000}
    invalid = replace(before, valid=False, cpu_server_us=None)
    yield replace(whole, recording=Recording(LOCK, ("b",), 9000, True, waited), beside=invalid)
    lost = replace(after, valid=False, invalid_reasons="cold-restarted")
    yield replace(whole, recording=Recording(LOCK, ("b",), 0, True, {}), row=lost)
    yield replace(whole, recording=None, problem="it was lost")
    slower = {**stacks, "java.lang.Thread.run:9;lab.Log.write:3": 160}
    dear = replace(after, cpu_server_us=150.0)
    yield replace(whole, row=dear, recording=Recording(CPU, ("c",), 560, True, slower))


def judged() -> Iterator[str]:
    """A verdict of every basis, with and without an excess, R0, a share and failures."""
    excesses = (None, Excess(200.0, 900.0, 10.0, {}), Excess(None, 900.0, 10.0, {}))
    failed = Standing(resource="timeout", failed=0.25, detail="of the call")
    for basis, excess, ranked in product(
        remarks.CATALOGUE["verdict"], excesses, ((), (POOL,), (failed,))
    ):
        name = NONE if basis == "none" else ranked[0].resource if ranked else UNKNOWN
        strength = "" if name == UNKNOWN else WEAK
        yield f"{basis}: {verdicts.sentence(Verdict(name, strength, basis, excess, ranked))}"
    for code in remarks.CATALOGUE["missing"]:
        yield verdicts.missing_text(Missing(code, "It was late."))


def trials() -> Iterator[str]:
    usual = {"achieved_rps": 981.0, "predicted_rps": 1000.0, "raw_p95_ms": 2142.0}
    for values in (
        {"bottleneck": "worker pool", "strength": STRONG},
        {"bottleneck": NONE, "strength": WEAK},
        {"predicted_rps": None},
        {"achieved_rps": None, "valid": False, "invalid_reasons": "cold-restarted"},
        {"live_heap_bytes": 67_108_864, "resident_bytes": 214_748_365},
    ):
        yield figures(row(plan("closed"), **{**usual, **values}))


def measured() -> Iterator[tuple[Trial, tuple[()]]]:
    """A trial with every fact, and one with few."""
    ways = (Way(TO_SERVER, 0.31, 1450), Way(TO_CALLED, None), Way(TO_CALLED, 0.0))
    bounds = (Bound("host CPU", 490.0, "2 / 4 ms", True), Bound("connections", 500.0, "N / R0"))
    whole = record(
        before=snapshot(spread=SPREAD, ways=ways),
        bounds=bounds,
        peaks=(Peak(11.5, 12.5),),
        live_heap_bytes=1_500_000,
        resident_bytes=100_000_000,
        toxic_changes=("downstream at 12:00:01",),
    )
    for each, gaps in ((whole, (Missing("job", "jvm"),)), (record(), ())):
        trial = measurement(each)
        seen = Verdict("worker pool", STRONG, "excess", EXCESS, (POOL,), gaps)
        yield Trial(trial, judge(judging.Trial(trial)), seen, judged_row("r", trial)), ()


def compared(speed: float = 1.0, **limits: Limits) -> gate.Gate:
    """B is so quick; a trial of it is invalid where it is as quick as A."""
    a, b = ([one for one in loads() if one.server == server] for server in "ab")
    if speed < 1:
        b = [replace(one, achieved_rps=(one.achieved_rps or 0.0) * speed, valid=True) for one in b]
    found = compare_all([(("x:a", a), ("y:b", b))], limits or COMPARE)
    return gate.Gate("x:a", "y:b", found, ["a note"])


def printed(shown: Result) -> str:
    out = io.StringIO()
    console.ended(Console(file=out, width=100), shown)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def written(*shown: str, **changes: Any) -> str:
    """Sections of a report, by their keys."""
    found = sections.sections(result(**changes))
    return markdown.markdown(section for section in found if section.key in shown)


def texts() -> Iterator[tuple[str, str]]:
    rows, whole = loads(), [*recordings()]
    limits = {one.trial: OVER for one in rows[:20]} | {rows[21].trial: verdict(UNKNOWN)}
    kept = {"notes": (("01-a", FALLS), ("02-b", FALLS)), "unfinished": ("03-c",)}
    loaded = result(rows, limits, comparisons=compared().comparisons, **kept)
    yield "loads", markdown.text(loaded)
    yield "loads, printed", printed(loaded)
    once = [one for one in rows if one.launch == 1]
    yield "one launch, printed", printed(result(once, comparisons=lanes(once)))
    yield "findings", written("findings", "planted", "units", findings=(*FINDINGS, *TABLES))
    yield "connections", written("density", findings=SLOPES)
    yield "fairness", written("fairness", fairness=Fairness(EQUAL, OWN | UNEQUAL, UNEQUAL))
    one_server = experiment(servers=("a",))
    yield "connections, printed", printed(result(findings=SLOPES, experiment=one_server))
    yield "capacity", printed(result(findings=(*SUSTAINED, *TABLES[-1:])))
    ratio, units = Estimate(1.2, 1.1, 1.3), (Estimate(1.3, 1.2, 1.4), (3.4, 5.6))
    for given in ((None, "cannot tell"), (ratio, "better"), (ratio, "worse", *units)):
        few = replace(SUSTAINED[1], launches=1)
        lines = capacity.ratio_lines(capacity.CapacityRatio("x", "y", SUSTAINED[0], few, *given))
        yield "capacity, compared", "\n".join(lines)
    yield "recorded", written("recorded", recorded=whole)
    yield "recorded, compared", "\n".join(difference(whole[0], other) for other in whole)
    yield "verdicts", "\n".join(judged())
    yield "trials", "\n".join(trials())
    yield "each trial", markdown.markdown([page_trials.section([*measured()])])
    goodput, cpu = {"goodput": Limits(low=0.9)}, {"cpu": Limits(high=1.1)}
    for speed, limit in ((1.0, goodput), (0.5, goodput), (0.99, goodput | cpu)):
        files = gate.files(compared(speed, **limit))
        yield f"gate of {', '.join(limit)}", files[gate.MARKDOWN] + files[gate.JUNIT]


def test_every_text_is_as_it_was() -> None:
    found = "".join(f"# Of {title}\n\n{text.strip()}\n\n" for title, text in texts())
    assert_as_it_was(Path(__file__).with_name("snapshot.txt"), found)
