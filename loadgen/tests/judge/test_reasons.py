"""Checks of conditions, machines and other work; and what follows from reasons."""

import copy
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lab.judge.checks import CHECKS, by_accident, judge, lab_differed, server_failures
from lab.judge.checks.data import damaged, lab_unreadable, not_begun, wrk2_uncalibrated
from lab.judge.checks.state import server_gone
from lab.judge.metrics import CPUS, USED
from lab.judge.trial import Trial
from lab.kinds.objective import gave_way
from lab.load.engines.wrk2 import Wrk2
from lab.model import (
    Condition,
    Measurement,
    Observation,
    Remark,
    Series,
    Snapshot,
    ToxicState,
    TrialRecord,
    Warmth,
    cell_of,
)
from support.fakes import (
    IDENTITY,
    START,
    USAGE,
    cells,
    judged_row,
    measurement,
    observation,
    plan,
    reading,
    record,
    snapshot,
)
from support.judged import bad, check, ok, table

CAPTURES = Path(__file__).parents[1] / "load/engines/captures"
OPENS = START.timestamp() + 10.5
SILENCE = reading(0.0, corrected=None, raw=None)
GONE = record(after=None, after_problem=server_gone.remark(problem="a: no answer"))
UNCALIBRATED = wrk2_uncalibrated.remark(calibrated=3, threads=4)
FLAG = IDENTITY.jvm_flags[0]


@pytest.mark.parametrize(
    ("setting", "asked", "has", "other"),
    [
        ("SERVER_CPUS", "0.4", {"cpu_quota": 0.4}, None),
        ("SERVER_CPUS", "0.4", {}, "no limit"),
        ("SERVER_CPUS", "0.4", {"cpu_quota": 1.5}, "1.5"),
        # All of the machine's CPUs.
        ("SERVER_CPUS", str(IDENTITY.cpus), {}, None),
        ("LOOPS", "2", {"loops": 2}, None),
        ("LOOPS", "2", {"loops": 1}, "1"),
        ("LOOPS", "2", {}, "none"),
        ("SERVER_POOL_SIZE", "20", {"pool_size": 30}, "30"),
        ("SERVER_PORTS", "10000 10400", {}, None),
        ("SERVER_PORTS", "10000 10400", {"local_ports": None}, None),
        ("SERVER_PORTS", "10000 10400", {"local_ports": "1 2"}, "1 2"),
        ("FRONTS", "2", {"fronts": 1}, "1"),
        ("SERVER_POOL_ORDER", "lifo", {"pool_order": "fifo"}, "fifo"),
        ("CONNECTION_THREADS", "platform", {"connection_threads": "virtual"}, "virtual"),
        ("NETTY_TRANSPORT", "epoll", {"netty_transport": "nio"}, "nio"),
        ("FRAMEWORK_DEFAULTS", "shipped", {"framework_defaults": None}, "none"),
        ("DOWNSTREAM_CLIENT", "lab", {"downstream_client": "framework"}, "framework"),
        ("SERVER_BACKLOG", "16", {"backlog": 4096}, "4096"),
        ("BLOCK_THE_LOOP", "true", {"block_the_loop": True}, None),
        ("BLOCK_THE_LOOP", "false", {"block_the_loop": "spin"}, "spin"),
        ("SERVER_JVM_FLAGS", FLAG, {}, None),
        ("SERVER_JVM_FLAGS", f"{FLAG} -Xmx40m", {}, "others"),
        ("SERVER_JVM_FLAGS", f"{FLAG} -XX:+OfAnotherJdk", {}, None),
        ("NOFILE", "300", {}, None),
    ],
)
def test_a_condition_in_force(
    setting: str, asked: str, has: dict[str, Any], other: str | None
) -> None:
    before = snapshot()
    before = copy.replace(before, settings={**before.settings, "loops": None, **has})
    of = record(plan(condition=Condition(host={setting: asked})), before=before, after=before)
    reasons = cells(judge(Trial(measurement(of), observation())).reasons)
    reason = f"not-in-force setting={setting} asked={asked} has={other}"
    assert reasons == ([reason] if other else [])
    # What was changed live is no longer as the container was given it.
    live = copy.replace(of.plan.condition, knobs={"pool_size": 30})
    of = copy.replace(of, plan=copy.replace(of.plan, condition=live))
    kept = judge(Trial(measurement(of), observation())).reasons
    assert cells(kept) == ([] if setting == "SERVER_POOL_SIZE" else reasons)


def lab_used(cpus: float) -> Observation:
    """The containers of the lab used so many of the machine's two CPUs."""
    times = tuple(OPENS - 1 + at * 17 / 15 for at in range(16))
    rising = tuple(cpus / 2 * (at - times[0]) for at in times)
    return observation(
        *(Series({"__name__": USED, "service": one}, times, rising) for one in ("a", "toxiproxy")),
        Series({"__name__": CPUS}, times, (2.0,) * 16),
    )


def usage(**changes: Any) -> TrialRecord:
    return record(usage=copy.replace(USAGE, **changes))


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
    seen = lab_used(cpus or 0.0)
    if cpus is None:
        others = (series for series in seen.all if series.labels["__name__"] != USED)
        seen = copy.replace(seen, all=tuple(others))
    judgement = judge(Trial(measurement(usage(**changes)), seen))
    assert judgement.valid
    assert judgement.others_cpu == (share and pytest.approx(share))
    assert ("others-cpu" in [one.code for one in judgement.notes]) == bool(share)
    assert ("unread readings=others-cpu" in cells(judgement.notes)) == (cpus is None)


def test_a_container_that_ends_in_the_window_does_not_hide_what_others_used() -> None:
    """As that of `make toxics`, a second one of the driver."""
    both = lab_used(1.0)
    times = (OPENS - 1, OPENS + 4, OPENS + 8)
    gone = Series({"__name__": USED, "service": "driver", "name": "toxics"}, times, (0, 0.5, 1.5))
    seen = copy.replace(both, all=(*both.all, gone))
    judgement = judge(Trial(measurement(usage(host_busy=0.9)), seen))
    # 90 %, less 1 CPU and 1.4 s in 15 s, of 2 CPUs.
    assert judgement.others_cpu == pytest.approx(0.9 - (1 + 1.4 / 15) / 2, abs=1e-3)
    # The CPUs of a foreign service are not those of others.
    foreign = Snapshot(None, {"url": "x"}, ToxicState(), 0.0)
    of = copy.replace(usage(host_busy=0.9), before=foreign)
    assert judge(Trial(measurement(of), lab_used(0.6))).others_cpu is None


OTHERS_UNREAD = "unread readings=others-cpu"


def of_machines(*failed: int, answering: str = "") -> Observation:
    """A window of a lab on several machines. Scrapes of what is on the server's machine failed
    (by their numbers: one every 2 s, from 3 s before the window on), but of that job."""
    times = tuple(OPENS - 3 + 2 * at for at in range(10))
    seen = tuple(float(at not in failed) for at in range(10))
    ups: list[dict[str, str]] = [
        {"__name__": "up", "job": "cadvisor", "machine": "tested"},
        {"__name__": "up", "job": "server", "server": "a"},
    ]
    used = {"__name__": USED, "machine": "tested"}
    return observation(
        *(Series(up, times, (1.0,) * 10 if up["job"] == answering else seen) for up in ups),
        Series({"__name__": "up", "job": "cadvisor", "machine": "load"}, times, (1.0,) * 10),
        *(Series({**used, "service": one}, times[:2], (1.0, 2.0)) for one in ("a", "cadvisor")),
    )


@table(
    bad("machine-away machine=tested gap_s=8", seen=of_machines(3, 4, 5)),
    # Something on it answered, or it was back before the window.
    ok(OTHERS_UNREAD, seen=of_machines()),
    ok(OTHERS_UNREAD, seen=of_machines(4)),
    ok(OTHERS_UNREAD, seen=of_machines(0)),
    ok(OTHERS_UNREAD, seen=of_machines(*range(4, 10), answering="cadvisor")),
    ok(OTHERS_UNREAD, seen=of_machines(*range(4, 10), answering="server")),
)
def test_a_machine_that_was_away(line: Any) -> None:
    check(line)


def test_a_machine_that_was_away_is_no_finding_of_the_server() -> None:
    # As when its link was cut for 5 s: the names of what is on it were not known for a minute.
    reasons = judge(Trial(measurement(GONE), of_machines(4, 5, 6, 7, 8, 9))).reasons
    away = "machine-away machine=tested gap_s=12"
    assert cells(reasons) == ["server-gone problem=a: no answer", away]
    assert by_accident(reasons)
    row = copy.replace(judged_row("r", measurement(GONE)), invalid_reasons=cell_of(reasons))
    assert gave_way(row) is None
    # Alone it shows that the server gave way, which counts in a search.
    assert server_failures(judge(Trial(measurement(GONE), observation())).reasons)
    unreadable = record(after=None, after_problem=lab_unreadable.remark(problem="toxiproxy"))
    assert not server_failures(judge(Trial(measurement(unreadable), observation())).reasons)


def test_what_a_foreign_service_may_not_depend_on_is_a_note() -> None:
    alien = snapshot(identity=None, settings={"url": "http://x:80"}, downstream_delay_ms=100.0)
    start = snapshot(settings=alien.settings, toxics=ToxicState(("downstream/latency",), 300.0))
    judgement = judge(Trial(measurement(record(before=alien, after=alien)), observation(), start))
    assert judgement.valid, judgement.reasons
    differs = {
        "differs what=toxics was=downstream/latency now=none",
        "differs what=delay was=200 ms now=100 ms",
    }
    assert differs <= {*cells(judgement.notes)}
    lab = judge(Trial(measurement(record(before=snapshot(downstream_delay_ms=100.0))), start=start))
    assert "differs" in {reason.code for reason in lab.reasons}


def test_no_answers_to_a_generator_that_did_not_do_its_part() -> None:
    uncalibrated = measurement(said=copy.replace(SILENCE, remarks=(UNCALIBRATED,)))
    stopped = measurement(usage(window_throttled_s=3.0), SILENCE)
    for whole, expected in (
        (uncalibrated, ["wrk2-uncalibrated", "few-answers"]),
        (stopped, ["few-answers", "generator-throttled"]),
    ):
        assert [reason.code for reason in judge(Trial(whole)).reasons] == expected


def test_a_restart_that_stopped_the_engine_is_told_by_its_real_output(tmp_path: Path) -> None:
    shutil.copy(CAPTURES / "wrk2-11-server-restart-midrun.txt", tmp_path / "wrk2.txt")
    of = plan(engine="wrk2", concurrency=50, offered_rps=1000, duration_s=3, predicted_rps=None)
    judgement = judge(Trial(measurement(record(of), Wrk2().read(of, tmp_path)), observation()))
    # 920 of 1,000 req/s answered, and 47 requests in 14 s lost; 421,225 writes were attempts.
    [reason] = [one for one in judgement.reasons if one.code == "generator-short"]
    assert round(float(reason.values["ended_rps"])) == 924
    [lost] = [one for one in judgement.notes if one.code == "without-answer"]
    assert lost.values["share"] == pytest.approx(0.0036, rel=0.1)


# A terminal acts on the first, a reason ends at the last.
HOSTILE = ("\x1b]52;c;YQ==\x07", "\x9b2J", "\r", "\u202e", "\n", ";", " ", "; ", ";; ", "a", ", ")


def test_a_row_has_the_reasons_of_its_judgement_whatever_is_in_them() -> None:
    random = Random(49)
    for _ in range(100):
        told = ["".join(random.choices(HOSTILE, k=random.randrange(6))) for _ in range(4)]
        remarks = tuple(damaged.remark(problem=text, at=1.5) for text in told)
        said = copy.replace(reading(), remarks=remarks)
        row = judged_row("run", measurement(said=said))
        assert row.reasons == judge(Trial(measurement(said=said), observation())).reasons
        assert len(row.reasons) == len(set(told))
        assert row.invalid_reasons.isprintable()


def test_a_trial_without_raw_data_or_series() -> None:
    problem = damaged.remark(problem="wrk2.txt:3: ends before")
    assert judge(Trial(Measurement(record(), None, problem))).reasons == (problem,)
    # It could not begin: it is repeated whatever Docker says.
    refused = not_begun.remark(problem="the host refused a: no space left; try again\nor not")
    row = judged_row("run", Measurement(record(lost=True, problem=refused), None, refused))
    assert row.reasons == (refused,)
    assert by_accident(row.reasons)
    # Without any series that is a note.
    nothing = judge(Trial(measurement()))
    assert (nothing.valid, nothing.notes[0].code) == (True, "series-missing")


def test_a_stored_problem_without_a_check_is_a_reason() -> None:
    gone = Remark("cold-load", {"problem": "no descriptor left"})
    for stored in (
        Measurement(record(), None, gone),
        measurement(record(after_problem=gone)),
        measurement(record(warmth=Warmth(False, (), gone))),
    ):
        reasons = judge(Trial(stored, observation())).reasons
        assert gone in reasons
        assert not by_accident(reasons)
        assert not server_failures(reasons)
        assert not lab_differed(reasons)


def test_what_may_be_measured_again() -> None:
    """A finding of the server, a lab that is not as planned, and what would come again are not."""
    again = {one.code for one in CHECKS.values() if one.repeatable}
    assert not again & {one.code for one in CHECKS.values() if one.server_failed}
    assert not by_accident([])
    for code in again - {"machine-away"}:
        assert by_accident([Remark(code)])
        assert not by_accident([Remark(code), Remark("wrong-server")])
    assert by_accident([Remark("machine-away"), Remark("wrong-server")])
    assert not by_accident([Remark("mostly-errors")])
