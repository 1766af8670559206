"""Faults planted on a fake lab while a trial runs, through the whole path: load, series of the
window, measurement, judgement. Each makes the trial invalid, for that reason only."""

import dataclasses
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import httpx
import pytest

from lab.errors import CannotWrite, Interrupted, RawDataError, WordError
from lab.judge.checks import data, judge
from lab.judge.checks.load import wrk2_bursts
from lab.judge.predict import Prediction
from lab.judge.trial import UNOBSERVED, Trial
from lab.load.engines.base import StartCheck
from lab.load.engines.pacer import OUTPUT, Pacer
from lab.load.measure import RECORD, measure
from lab.load.runner import MOST_STARTS, Known, Runner, Watcher
from lab.model import (
    ClockOffset,
    Condition,
    JitCpu,
    Judgement,
    Peak,
    Reading,
    Remark,
    Spike,
    ToxicStep,
    TrialPlan,
    TrialRecord,
    Warmth,
)
from lab.store.records import read_json
from lab.store.series import load_or_none
from lab.subject.changes import Journal
from lab.system.observe import observe
from lab.system.stack import Stack
from support import pacer
from support.fakes import START, FakeEngine, FakeLab, cells, measurement, plan, record, toxic
from support.system import FakeSystem

# The fake engine's window opens 10 s after its start and lasts 15 s.
MID_WINDOW_S = 17.0
SPIKE = Spike(70, None, calm_s=4, peak_s=3, repeats=2, tolerance=0.1, steady_s=1)
SPIKED = plan("closed", spike=SPIKE, duration_s=SPIKE.total_s)
# The window opens at 10 s: latency from 12 to 15, the downstream away from 18 to 20.
SCRIPT = (
    ToxicStep(2, {"TYPE": "latency", "LATENCY": "300"}),
    ToxicStep(5, {"NAME": "latency", "REMOVE": "yes"}),
    ToxicStep(8, {"TYPE": "down"}),
    ToxicStep(10, {"TYPE": "up"}),
)
SCRIPTED = plan(script=SCRIPT)


@dataclasses.dataclass
class Lab:
    """Runs one trial of the fake lab and judges it from its folder alone."""

    fake: FakeLab
    raw: Path

    def run(self, of: TrialPlan | None = None) -> TrialRecord:
        of, fake = of or plan(), self.fake
        subject, engines = fake.subject(of.server), {of.engine: fake.engine}
        start = (subject.snapshot(), Warmth(True, ()), Prediction(()))
        known = Known(*start, engine_version="fake 1.0")
        quiet, journal = create_autospec(Watcher, instance=True), Journal(None)
        runner = Runner(
            "run", fake.stack, fake.system, {of.server: subject}, engines, quiet, journal
        )
        runner.trial(of, known, self.raw)
        observe(self.record, self.record.plan.duration_s, self.raw, fake.stack, fake.system)
        return self.record

    @property
    def record(self) -> TrialRecord:
        return read_json(self.raw / RECORD, TrialRecord)

    def judged(self, of: TrialPlan | None = None) -> Judgement:
        self.run(of)
        return judge(
            Trial(measure(self.raw, [self.fake.engine]), load_or_none(self.raw) or UNOBSERVED)
        )

    @property
    def system(self) -> FakeSystem:
        return self.fake.system

    def reason(self, of: TrialPlan | None = None) -> str:
        (reason,) = cells(self.judged(of).reasons)
        return reason


@pytest.fixture
def lab(lab: FakeLab, tmp_path: Path) -> Lab:
    return Lab(lab, tmp_path / "raw" / "01-a")


Plant = Callable[[Lab], object]


def at(at_s: float, **changes: object) -> Plant:
    """What is changed of the fake lab, at this time."""

    def plant(lab: Lab) -> None:
        lab.fake.ahead_s = 0.0
        lab.system.at(at_s, lambda: vars(lab.fake).update(changes))
        lab.system.sleep(0.0)

    return plant


def system(**changes: object) -> Plant:
    return lambda lab: vars(lab.system).update(changes)


def ends(at_s: float, process: int = 0) -> Plant:
    """A process ends by itself at this time."""
    return lambda lab: lab.system.at(
        at_s, lambda: setattr(lab.system.processes[process], "_length_s", 0.0)
    )


def another_jvm(lab: Lab) -> None:
    lab.system.at(MID_WINDOW_S, lambda: lab.fake.new_jvm("a"))
    lab.fake.compiled_s = lambda at: 5.0 if at < MID_WINDOW_S else 0.1


def damaged(lab: Lab) -> None:
    def refuse(plan: TrialPlan, raw: Path) -> Reading:
        raise RawDataError(raw / "fake.sqlite", None, "cannot be read: malformed")

    lab.fake.engine.read = refuse


APART = "clocks-apart part=Prometheus offset_s={} uncertainty_s=0"
UNWATCHED = "toxics-unwatched began=12:00:{} ended=12:00:{}"
# What is planted, the plan, and the one reason.
FAULTS: list[tuple[Plant, TrialPlan, str]] = [
    # It stopped the container for 40 % of the time.
    (system(throttled=0.4), plan(), "generator-throttled throttled_s=6 window_s=15"),
    (another_jvm, plan(), "jvm-restarted"),
    (system(hangs=lambda argv: True), plan(), "engine-overtime engine=wrk2 overtime_s=120"),
    (damaged, plan(), "damaged problem=fake.sqlite: cannot be read: malformed"),
    (ends(15.0, 1), SPIKED, "spike-flawed spike=1 length_s=1 planned_s=3"),
    (ends(15.0), SPIKED, "spikes-missing made=0 planned=2"),
    (ends(13.0), SCRIPTED, "script-short made=1 planned=4"),
    (at(0.0, ahead_s=2.1), plan(), APART.format("2.1")),
    (at(0.0, ahead_s=-60.0), plan(), APART.format("-60")),
    (at(MID_WINDOW_S, ahead_s=2.1), plan(), APART.format("2.1")),
    (at(0.0, agent_up=False), plan(), UNWATCHED.format("00", "25")),
    # A toxic came and went, then the agent restarted: its history is empty.
    (at(0.0, first_look_s=MID_WINDOW_S), plan(), UNWATCHED.format("00", "17")),
    # Toxiproxy never answered.
    (at(0.0, first_look_s=None), plan(), UNWATCHED.format("00", "25")),
    # Looks failed in the middle, and until the end.
    (at(0.0, blind_s=[(12.0, 23.0)]), plan(), UNWATCHED.format("12", "23")),
    (at(0.0, blind_s=[(12.0, 99.0)]), plan(), UNWATCHED.format("12", "25")),
]


@pytest.mark.parametrize(("plant", "of", "reason"), FAULTS)
def test_a_fault_makes_the_trial_invalid_and_nothing_goes_on_after_it(
    lab: Lab, plant: Plant, of: TrialPlan, reason: str
) -> None:
    plant(lab)
    lab.fake.toxics = [toxic(latency=20)]
    assert lab.reason(of) == reason
    assert all(process.poll() is not None for process in lab.system.processes)
    assert lab.fake.toxics == [toxic(latency=20)]
    if lab.record.problem is not None:
        assert lab.record.run_s == pytest.approx(25 + 120, abs=1)


def late_downstream(lab: Lab) -> None:
    for le, rps in (("0.01", 100), ("0.05", 500), ("+Inf", 500)):
        labels = {"__name__": "lab_downstream_lag_seconds_bucket", "job": "downstream", "le": le}
        lab.fake.scraped.append((labels, lambda at, rps=rps: rps * (at + 600)))


def agent_back(lab: Lab) -> None:
    at(0.0, agent_up=False)(lab)
    at(MID_WINDOW_S, agent_up=True)(lab)


@pytest.mark.parametrize(
    ("plant", "notes"),
    [
        (system(), []),
        # An agent that only lost the marks has watched all the same.
        (agent_back, []),
        (late_downstream, ["downstream-late late_ms=47.5 allowed_ms=20"]),
        (
            at(0.0, blind_s=[(-60.0, 1.5), (12.0, 14.5), (16.0, 17.9)]),
            ["toxics-unwatched-briefly began=12:00:12 ended=12:00:14"],
        ),
    ],
)
def test_what_is_no_fault_is_at_most_a_note(lab: Lab, plant: Plant, notes: list[str]) -> None:
    plant(lab)
    judged = lab.judged()
    assert (judged.reasons, cells(judged.notes)) == ((), notes)


@pytest.mark.parametrize(("asks", "looks", "live_bytes"), [(True, 6, 30), (False, 0, None)])
def test_what_lives_after_the_load_is_recorded_where_the_plan_asks(
    lab: Lab, asks: bool, looks: int, live_bytes: int | None
) -> None:
    """A collection changes what is measured next."""
    heap = [90, 80, 40, 30, 70, 60]
    lab.fake.heap_bytes = lambda _: heap.pop(0)
    # The second of two collections frees what the first released, and of three looks the least
    # counts: until then the server may have closed the connections.
    assert lab.run(plan(asks_live=asks)).live_heap_bytes == live_bytes
    assert len(heap) == 6 - looks


def test_the_memory_is_read_while_the_connections_are_held(lab: Lab) -> None:
    heap, read_at = iter([90, 80]), list[float]()

    def heap_bytes(server: str) -> int:
        read_at.append(lab.system.monotonic())
        return next(heap)

    lab.fake.heap_bytes, lab.fake.in_flight, lab.fake.proxy_files = heap_bytes, 70, 212
    told = lab.run(plan("closed", hold="in-flight"))
    # Once, after a second of the window, and after a collection that frees what the first released.
    assert (told.live_heap_bytes, told.resident_bytes, told.in_flight) == (80, 100_000_000, 70)
    assert len(read_at) == 2
    assert 11 <= min(read_at) <= max(read_at) <= 15


@pytest.mark.parametrize(
    ("changes", "files", "note"),
    [
        # Toxiproxy may not have accepted all. An idle connection takes no file of it.
        ({"hold": "in-flight"}, 199, "proxy-files used=199 most=20000 needed=200"),
        ({"hold": "in-flight"}, 19_984, "proxy-files used=19984 most=20000 needed=200"),
        ({"hold": "idle"}, 0, "memory-unread problem=a: http://a:8081/gc has a wrong heap_used"),
        ({"asks_live": True}, 0, "live-heap-unread problem=a: http://a:8081/gc has a wrong heap"),
    ],
)
def test_a_memory_that_is_not_known_is_a_note(
    lab: Lab, changes: dict[str, object], files: int, note: str
) -> None:
    lab.fake.proxy_files = files
    if not files:
        lab.fake.heap_bytes = lambda _: "not a number"
    told = lab.run(plan("closed", **changes))
    assert (told.live_heap_bytes, told.problem) == (None, None)
    [found] = cells(told.notes)
    assert found.startswith(note)


def test_a_spinner_runs_with_the_load_and_its_dose_is_recorded(lab: Lab) -> None:
    assert lab.run(plan(condition=Condition(spin=0.2))).usage.spun == pytest.approx(0.2)
    assert [one.stopped_early for one in lab.system.spinners] == [True, True]


def test_clocks_that_agree_are_recorded(lab: Lab) -> None:
    lab.fake.ahead_s = 0.03
    assert lab.judged() == Judgement((), ())
    assert [one.offset_s for one in lab.record.clocks] == pytest.approx([0.03, 0.03])


@pytest.mark.parametrize(
    ("clocks", "apart"),
    [
        ((ClockOffset(0.2, 0.001), ClockOffset(-3.0, 0.001, "the downstream")), ["-3"]),
        # An answer that took long may be of the same clock.
        ((ClockOffset(0.9, 0.5), ClockOffset(-0.9, 0.5)), []),
        ((ClockOffset(1.1, 0.5),), ["1.1"]),
    ],
)
def test_clocks_are_apart_by_more_than_an_answer_took(
    clocks: tuple[ClockOffset, ...], apart: list[str]
) -> None:
    found = cells(data.clocks_apart(Trial(measurement(record(clocks=clocks)))))
    assert [re.findall(r"offset_s=(\S+)", cell)[0] for cell in found] == apart


def test_the_agent_is_asked_after_the_toxics_were_read_back(lab: Lab) -> None:
    # Otherwise what is taken away between the two is seen by neither.
    lab.run()
    asked = [host for host, _ in lab.fake.asked if host in ("loadgen", "toxiproxy")]
    assert asked[-1] == "loadgen"


def test_a_compiler_at_work_in_the_window(lab: Lab) -> None:
    lab.fake.compiled_s = lambda at: 5.0 + 0.5 * max(0.0, at - 12)
    assert lab.reason().startswith("compiling elapsed_s=0.4")
    assert (lab.record.jit_share, lab.record.jit_cpu) == (pytest.approx(0.433, abs=0.01), None)


def test_what_a_compiler_took_of_the_cpus_is_asked_where_it_is_told(lab: Lab) -> None:
    lab.fake.compiled_s = lambda at: 5.0 + 0.4 * max(0.0, at - 12)
    lab.fake.jit_s = lambda at: (4.0 + max(0.0, at - 12) * 0.06, 1.0 + max(0.0, at - 12) * 0.3)
    assert lab.judged() == Judgement((), ())
    kept = lab.record.jit_cpu
    assert kept == JitCpu(pytest.approx(0.052, abs=0.002), pytest.approx(0.26, abs=0.01))


def test_usage_and_series_are_those_of_the_window(lab: Lab) -> None:
    lab.system.resent_rps = 4.0
    lab.system.pressure = 0.25
    usage = lab.run().usage
    assert usage.window_resent == pytest.approx(4 * 15, rel=0.05)
    assert usage.window_cpu_s == pytest.approx(0.5 * 15)
    assert usage.window_wait_s == pytest.approx(0.05 * 15)
    assert usage.window_slices == pytest.approx(15_000, abs=10)
    assert usage.window_throttled_s == 0
    assert usage.host_pressure == pytest.approx(0.25)
    # Without a spinner no dose is known.
    assert (usage.spun, lab.system.spinners) == (None, [])
    assert load_or_none(lab.raw).window == (START.timestamp() + 10, START.timestamp() + 25)


@pytest.mark.parametrize(
    ("limits", "enough_s", "length_s"),
    [({"p99": (500.0,)}, 6, 6), ({"p99": (500.0,)}, None, 15), ({}, 6, 15)],
)
def test_a_window_ends_as_soon_as_its_limits_are_settled(
    lab: Lab, limits: dict[str, Any], enough_s: int | None, length_s: int
) -> None:
    lab.fake.engine = FakeEngine(streams=True, enough_s=enough_s)
    # A second of the window is told 6.5 s after it began.
    lab.system.at(16.5, lambda: (lab.raw / "fake.txt").write_text("a line\n"))
    found = lab.run(plan(limits=limits))
    assert (found.plan.duration_s, found.status, found.problem) == (length_s, 0, None)
    assert found.usage.window_cpu_s == pytest.approx(0.5 * length_s, rel=0.1)
    began = START.timestamp() + 10
    assert load_or_none(lab.raw).window == (began, began + length_s)
    assert measure(lab.raw, [lab.fake.engine]).reading.window_s == length_s
    assert lab.system.processes[0].stopped_early == (length_s < 15)


def test_a_folder_that_is_there_is_never_overwritten(lab: Lab) -> None:
    lab.raw.mkdir(parents=True)
    (lab.raw / "fake.txt").write_text("measured")
    with pytest.raises(CannotWrite, match="File exists"):
        lab.run()
    assert (lab.raw / "fake.txt").read_text() == "measured"


def test_peaks_come_and_go_at_their_instants_of_the_window(lab: Lab) -> None:
    plans: list[TrialPlan] = []
    engine, schedule = lab.fake.engine, lab.fake.engine.schedule
    engine.schedule = lambda plan, raw: (plans.append(plan), schedule(plan, raw))[1]
    # The window opens at 10 s: calm to 14, peak to 17, calm to 21, peak to 24, calm to 28.
    record = lab.run(SPIKED)
    assert record.peaks == (Peak(14.0, 17.0), Peak(21.0, 24.0))
    stopped = [process.stopped_early for process in lab.system.processes]
    assert stopped == [False, True, True]
    assert (lab.raw / "peak-2" / "fake.txt").exists()
    # Each is a crowd that comes at once. Random arrivals differ by the draw.
    _, *peaks = plans
    assert [(one.mode, one.concurrency, one.warmup_s) for one in peaks] == [("closed", 70, 0)] * 2
    assert len({one.draw for one in plans}) == 3


def test_a_peak_tells_what_its_own_engine_did(lab: Lab) -> None:
    def tell() -> None:
        pacer.write(lab.raw, [])
        pacer.write(lab.raw / "peak-2", [pacer.second(0, [100.0] * 40, connections=12, untried=58)])
        told = (lab.raw / "peak-2" / OUTPUT).read_text()
        # It began half a second and more after it was started.
        late = told.replace('"unix_s":1.5', f'"unix_s":{1.5 + 21.7}')
        (lab.raw / "peak-2" / OUTPUT).write_text(late)

    lab.fake.engine.peak = Pacer().peak
    lab.system.at(22.0, tell)
    record = lab.run(SPIKED)
    told = Peak(21.7, 24.0, connections=12, untried=58.0, sent=40, late_p95_ms=0.0)
    assert record.peaks == (Peak(14.0, 17.0), told)
    reasons = judge(
        Trial(measure(lab.raw, [lab.fake.engine]), load_or_none(lab.raw) or UNOBSERVED)
    ).reasons
    assert cells(reasons)[-2:] == [
        "spike-flawed spike=2 length_s=2.3 planned_s=3",
        "spike-flawed spike=2 untried=58 extra=70",
    ]


STARTS: dict[str, tuple[list[int | None], int, tuple[Remark, ...]]] = {
    "the third is good": ([100, 149, 150], 3, ()),
    "none is good": ([100] * MOST_STARTS, MOST_STARTS, (wrk2_bursts.remark(),)),
    "unknown": ([None], 1, ()),
}


@pytest.mark.parametrize("case", STARTS)
def test_an_engine_whose_start_went_wrong_is_started_again(lab: Lab, case: str) -> None:
    lab.fake.engine.start_check = StartCheck(0.5, 150, wrk2_bursts.remark())
    lab.system.sockets, starts, notes = STARTS[case]
    told = lab.run()
    assert (told.starts, told.notes) == (starts, notes)
    stopped = [process.stopped_early for process in lab.system.processes]
    assert stopped == [True] * (starts - 1) + [False]
    # The run, and so its window, counts from the last start.
    started_s = (told.run_started_at - START).total_seconds()
    assert started_s == pytest.approx(0.5 * (starts - 1), abs=0.1)
    assert told.run_s == pytest.approx(25, abs=0.5)


def seen(at_s: int, toxic: str = "latency") -> dict[str, str]:
    return {"since": f"2026-01-31T12:00:{at_s}+00:00", "proxy": "downstream", "toxic": toxic}


def test_a_script_is_played_and_leaves_the_trial_valid(lab: Lab) -> None:
    lab.fake.toxic_changes += [seen(12), seen(16), seen(18, ""), seen(21, "")]
    assert lab.judged(SCRIPTED).reasons == ()
    steps = lab.record.script
    assert [step.started_s for step in steps] == [12.0, 15.0, 18.0, 20.0]
    assert [step.clear for step in steps] == [False, True, False, True]
    assert steps[0].change == "TYPE=latency LATENCY=300"
    assert lab.record.toxic_changes == ()
    assert [at for at, _ in lab.fake.toxic_calls] == [12.0, 15.0, 18.0, 20.0]


# Others change "slow", once right after a step of the script.
@pytest.mark.parametrize(("others_s", "last_s"), [([24], 21), ([13, 14], 14)])
def test_the_agent_sees_what_others_change(lab: Lab, others_s: list[int], last_s: int) -> None:
    lab.fake.toxic_changes += [seen(12), *(seen(at_s, "slow") for at_s in others_s)]
    lab.fake.toxic_changes += [seen(21, "")] if last_s == 21 else []
    changed = ", ".join(f"downstream/slow at 12:00:{at_s}" for at_s in others_s)
    assert lab.reason(SCRIPTED) == f"toxics-touched changes={changed}"


def test_a_step_that_keeps_toxiproxy_busy_blinds_nobody_else(lab: Lab) -> None:
    # The removal of a reset_peer waits for it, and every look waits for the removal.
    of = SCRIPTED
    answer = lab.fake.answer

    def slowly(request: httpx.Request) -> httpx.Response:
        if request.method == "DELETE" and request.url.host == "toxiproxy":
            lab.system.elapsed_s += 6.0
        return answer(request)

    lab.fake.stack = Stack("", httpx.MockTransport(slowly))
    lab.fake.blind_s = [(14.2, 22.4)]
    assert "toxics-unwatched" not in str(lab.judged(of).reasons)


@pytest.mark.parametrize(
    ("of", "at_s", "started"),
    [(plan(condition=Condition(spin=0.2)), 17.0, 3), (SPIKED, 15.0, 2), (SCRIPTED, 19.0, 1)],
    ids=["spinners", "peak", "script"],
)
def test_an_interrupt_ends_all(lab: Lab, of: TrialPlan, at_s: float, started: int) -> None:
    lab.system.interrupt_at = at_s
    with pytest.raises(Interrupted):
        lab.run(of)
    processes = lab.system.processes + lab.system.spinners
    assert [process.stopped_early for process in processes] == [True] * started
    assert (lab.fake.enabled, lab.fake.toxics) == (True, [])


def test_a_toxiproxy_that_is_stuck_ends_the_script_and_the_trial_says_so(lab: Lab) -> None:
    lab.fake.stuck_from = 0
    failed, few = cells(lab.judged(SCRIPTED).reasons)[:2]
    assert failed.startswith("script-failed step=1 change=TYPE=latency LATENCY=300 problem=toxi")
    assert few == "script-short made=1 planned=4"


def test_a_script_that_cannot_be_read_leaves_no_engine_running(lab: Lab) -> None:
    with pytest.raises(WordError):
        lab.run(plan(script=(ToxicStep(2, {"TYPE": "nonsense"}),)))
    assert all(process.stopped_early for process in lab.system.processes)


def streaming(lab: Lab) -> list[str]:
    """Lets the fake engine tell a line a second, in two pieces; the lines."""
    lab.fake.engine.streams = True
    output = lab.raw / "fake.txt"

    def add(text: str) -> None:
        with output.open("a") as file:
            file.write(text)

    lines = [f'{{"second": {second}}}' for second in range(24)]
    for second, line in enumerate(lines):
        lab.system.at(second + 1.0, lambda line=line: add(line[:5]))
        lab.system.at(second + 1.4, lambda line=line: add(f"{line[5:]}\n"))
    return ["fake", *lines]


def test_what_a_load_tells_goes_to_the_agent_line_by_line_and_it_is_not_probed(lab: Lab) -> None:
    lines = streaming(lab)
    lab.run()
    assert [line for call in lab.fake.load_told for line in call] == lines
    assert lab.fake.probe_rates == {0.0}
    # The trial is over for the agent when it knows all of it.
    assert lab.fake.marks[-1] == ("", "end")


def test_an_agent_that_is_slow_to_listen_does_not_hold_up_the_trial(lab: Lab) -> None:
    lines = streaming(lab)
    # It gets no further with the first line until the trial has come to its end.
    over = threading.Event()
    lab.fake.while_told = lambda: over.wait(60)
    lab.system.at(24.8, over.set)
    lab.run()
    assert lab.fake.load_told == [lines[:1], lines[1:]]


def test_a_trial_goes_on_when_the_agent_is_lost_in_the_middle_of_its_load(lab: Lab) -> None:
    lines = streaming(lab)
    lab.fake.while_told = lambda: setattr(lab.fake, "agent_up", False)
    lab.run()
    assert lab.fake.load_told == [lines[:1]]
