"""pacer: exact figures of every second, from its lines."""

import dataclasses
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.errors import RawDataError
from lab.load.engines.pacer import LOAD, LOOK_BACK_S, OUTPUT, PACKED, Pacer, load_of, peak_told
from lab.load.measure import supported
from lab.model import (
    NOT_STORED,
    Expect,
    Peak,
    Reading,
    Request,
    Spike,
    TrialPlan,
    error_share,
)
from support.fakes import plan
from support.pacer import second, text, write
from support.repo import REPO

Plan = Callable[..., TrialPlan]
Seconds = list[dict[str, Any]]


def read_back(raw: Path, plan: TrialPlan, seconds: Seconds, **changes: Any) -> Reading:
    write(raw, seconds, **changes)
    Pacer().condense(plan, raw)
    return Pacer().read(plan, raw)


@pytest.fixture
def opened(plan: Plan) -> TrialPlan:
    return plan(10, 10, duration_s=2, warmup_s=2, engine="pacer")


def even(count: int = 4) -> Seconds:
    """10 requests a second, each of 100 ms and 5 ms late."""
    return [second(at, [100.0] * 10, [105.0] * 10, [5.0] * 10) for at in range(count)]


def test_the_window_leaves_the_warm_up_out_and_the_counts_do_not(
    opened: TrialPlan, tmp_path: Path
) -> None:
    cold = [second(at, [900.0] * 10, [990.0] * 10) for at in (0, 1)]
    reading = read_back(tmp_path, opened, cold + even()[2:])
    assert (reading.samples, reading.achieved_rps, reading.window_s) == (20, 10, 2)
    assert reading.raw.max_ms == pytest.approx(100)
    assert reading.corrected.max_ms == pytest.approx(105)
    assert (reading.window_ok, reading.window_http_errors, reading.due) == (20, 0, 20)
    assert (reading.counts.ok, reading.counts.accounted_s) == (40, 4.0)


def shared(raw: Path, plan: TrialPlan, shares: dict[str, Seconds], whole: Seconds) -> Reading:
    """What is read where several machines put the load on."""
    for name, seconds in shares.items():
        write(raw, seconds)
        (raw / OUTPUT).rename(raw / f"pacer-{name}.jsonl")
    return read_back(raw, plan, whole)


def test_each_machine_of_several_tells_how_late_it_was(opened: TrialPlan, tmp_path: Path) -> None:
    def half(late_ms: float) -> Seconds:
        return [second(at, [100.0] * 5, [105.0] * 5, [late_ms] * 5) for at in range(4)]

    whole = [second(at, [100.0] * 10, [105.0] * 10, [1.0] * 5 + [41.0] * 5) for at in range(4)]
    reading = shared(tmp_path, opened, {"here": half(1.0), "far-9465": half(41.0)}, whole)
    assert [(one.machine, one.lag_ms) for one in reading.shares] == [
        ("far-9465", pytest.approx(41.0)),
        ("here", pytest.approx(1.0)),
    ]
    assert [one.name for one in sorted(tmp_path.glob("pacer-*"))] == [
        "pacer-far-9465.jsonl.gz",
        "pacer-here.jsonl.gz",
    ]
    assert reading == Pacer().read(opened, tmp_path)
    # One machine's share is not all of the load.
    (tmp_path / "pacer-far-9465.jsonl.gz").unlink()
    with pytest.raises(RawDataError, match="20 requests were sent by its machines, 40 in all"):
        Pacer().read(opened, tmp_path)


def test_of_a_load_that_was_ended_no_machine_is_judged(opened: TrialPlan, tmp_path: Path) -> None:
    (tmp_path / "pacer-far-9465.jsonl").write_text("half a line")
    reading = read_back(tmp_path, opened, even(5), ended="interrupted")
    assert reading.shares == ()
    assert (tmp_path / "pacer-far-9465.jsonl").exists()


@pytest.mark.parametrize(
    ("header", "secret"),
    [("Authorization", True), ("X-Api-Key", True), ("Cookie", True), ("Accept", False)],
)
def test_what_is_secret_goes_to_no_one_without_a_certificate(
    opened: TrialPlan, tmp_path: Path, header: str, secret: bool
) -> None:
    of = dataclasses.replace(opened, requests=(Request("/"), Request("/a", headers={header: "x"})))
    assert load_of(of, 2, tmp_path)["insecure"] is not secret
    assert load_of(opened, 2, tmp_path)["insecure"] is True


def test_what_is_secret_is_sent_and_not_written(opened: TrialPlan, tmp_path: Path) -> None:
    headers = {"Authorization": "Bearer 5ecret", "Accept": "a"}
    of = dataclasses.replace(opened, requests=(Request("/a", headers=headers),))
    schedule = Pacer().schedule(of, tmp_path)
    assert json.loads(schedule.stdin)["requests"][0]["headers"] == headers
    (kept,) = schedule.files.values()
    written = json.loads(kept)["requests"][0]["headers"]
    assert written == {"Authorization": NOT_STORED, "Accept": "a"}
    assert not [word for word in schedule.argv if "5ecret" in word]
    assert json.loads(kept)["insecure"] is False


def test_held_connections_send_once_and_wait_longer_than_the_run(tmp_path: Path) -> None:
    held = load_of(plan("closed", hold="idle"), 20, tmp_path)
    assert held["once"] is True
    assert held["timeout_s"] > 20 + 15
    assert "once" not in load_of(plan("closed"), 20, tmp_path)


def test_further_machines_are_named_to_the_engine(opened: TrialPlan, tmp_path: Path) -> None:
    alone, two = Pacer(), Pacer(("far:9465",))
    assert alone.schedule(opened, tmp_path).argv == ("pacer", "-")
    told = two.schedule(opened, tmp_path)
    assert told.argv == ("pacer", "spread", str(tmp_path / LOAD), "far:9465")
    assert told.files == alone.schedule(opened, tmp_path).files


def test_its_own_lateness_is_told_of_every_request_of_the_window(
    opened: TrialPlan, tmp_path: Path
) -> None:
    late = second(3, [100.0] * 10, [100.0] * 10, [1.0] * 9 + [31.0])
    reading = read_back(tmp_path, opened, [*even(2), second(2, [100.0] * 10, [100.0] * 10), late])
    assert reading.lag_ms == pytest.approx(40 / 20)
    assert reading.late.p50_ms == 0
    assert reading.late.max_ms == pytest.approx(31)


def test_every_request_is_accounted_for(opened: TrialPlan, tmp_path: Path) -> None:
    # Of 13 due: 9 answered, 1 reset, 1 timed out, 1 in flight, 1 that waits for a connection.
    last = second(
        3,
        [100.0] * 9,
        [100.0] * 9,
        [0.0] * 12,
        {"200": 7, "503": 2},
        due=13,
        socket_errors={"reset": 1},
        timeouts=1,
        unfinished=2,
        waiting=1,
        connect_failed={"refused": 3},
    )
    reading = read_back(tmp_path, opened, [*even(3), last])
    counts = reading.counts
    assert (counts.sent, counts.ok, counts.http_errors) == (42, 37, 2)
    assert (counts.socket_errors, counts.timeouts, counts.unfinished) == (1, 1, 1)
    assert (reading.window_ok, reading.window_http_errors, reading.due) == (17, 2, 23)
    assert reading.notes == (
        "pacer: socket errors: 1 × reset, 1 of them in the window",
        "pacer: attempts to connect failed: 3 × refused, 3 of them in the window",
        "pacer: 1 requests were due and not yet sent when the load ended",
    )
    # The one that was reset and the one that timed out were in the window.
    assert error_share(reading, 10) == pytest.approx((2 + 2) / (17 + 2 + 2))


def test_clients_that_no_latency_shows_are_told(opened: TrialPlan, tmp_path: Path) -> None:
    def notes(**changes: Any) -> tuple[str, ...]:
        last = second(3, [100.0] * 10, [105.0] * 10, [5.0] * 10, **changes)
        return tuple(read_back(tmp_path, opened, [*even(3), last]).notes)

    # One good second hides no bad one.
    assert notes(connections=4) == ("pacer: on average 7 of 10 connections were open",)
    assert notes(connections=9) == ()
    assert notes(reopened=1) == (
        "pacer: connections were opened again 1 times in the window, which had 20 answers",
    )
    # Twice as long as any, and a second.
    assert notes(oldest_us=2_100_000) == (
        "pacer: a request had waited for 2.1 s when the window ended, and no answer took longer "
        "than 0.1 s: who still waits is in no latency",
    )
    assert notes(oldest_us=900_000) == ()


def test_every_second_is_told_with_those_without_an_answer(
    opened: TrialPlan, tmp_path: Path
) -> None:
    silent = second(2, [], [], [0.0] * 10, unfinished=10)
    after = second(3, [50.0] * 20, [150.0] * 20, [0.0] * 10, {"200": 15, "500": 5}, timeouts=0)
    reading = read_back(tmp_path, opened, [*even(2), silent, after])
    assert [(one.answers, one.good, one.mean_ms) for one in reading.seconds] == [
        (0, 0, None),
        (20, 15, pytest.approx(150)),
    ]
    told = Pacer().seconds(opened, tmp_path)
    assert [(one.second, one.answers, one.http_errors) for one in told] == [
        (0, 10, 0), (1, 10, 0), (2, 0, 0), (3, 20, 5),
    ]  # fmt: skip


def test_a_second_tells_the_requests_that_it_lost(opened: TrialPlan, tmp_path: Path) -> None:
    lost = second(3, [100.0] * 7, [100.0] * 7, [0.0] * 10, timeouts=2, socket_errors={"closed": 1})
    read_back(tmp_path, opened, [*even(3), lost])
    assert [one.lost for one in Pacer().seconds(opened, tmp_path)] == [0, 0, 0, 3]


def test_a_closed_load_has_no_corrected_latency(plan: Plan, tmp_path: Path) -> None:
    closed = plan(10, None, duration_s=3, warmup_s=1, engine="pacer")
    seconds = [second(at, [100.0 + n for n in range(100)]) for at in range(4)]
    reading = read_back(tmp_path, closed, seconds)
    assert (reading.corrected, reading.due) == (None, None)
    assert reading.counts.sent == 400
    assert reading.seconds[0].mean_ms == pytest.approx(149.5)


def test_latencies_of_answers_and_of_errors_are_never_one_figure(
    plan: Plan, opened: TrialPlan, tmp_path: Path
) -> None:
    # 8 answers of 100 ms, due 5 ms before they were sent, and 2 refusals of 1 ms, each second.
    def seconds(corrected: bool) -> Seconds:
        raw_ms, due_ms = [100.0] * 8 + [1.0] * 2, [105.0] * 8 + [6.0] * 2
        due = due_ms if corrected else None
        return [second(at, raw_ms, due, [0.0] * 10, {"200": 8, "429": 2}) for at in range(4)]

    reading = read_back(tmp_path, opened, seconds(corrected=True))
    assert (reading.samples, reading.achieved_rps) == (20, 10)
    assert (reading.window_ok, reading.window_http_errors) == (16, 4)
    assert (reading.raw.mean_ms, reading.corrected.mean_ms) == (100, 105)
    assert (reading.failed.mean_ms, reading.failed.p95_ms) == (1, 1)
    # (16 × 100 + 4 × 1) / 20, so 10 × 80.2 ms are in flight.
    assert (reading.answer_ms, reading.in_flight) == (80.2, pytest.approx(0.802))
    assert reading.ranks == ((105.0, 16),)
    assert [(one.answers, one.good, one.mean_ms) for one in reading.seconds] == [(10, 8, 105)] * 2
    (folder := tmp_path / "closed").mkdir()
    closed = plan(10, None, duration_s=2, warmup_s=2, engine="pacer")
    reading = read_back(folder, closed, seconds(corrected=False))
    assert reading.ranks == ((100.0, 16),)


def test_where_all_answers_are_errors_there_is_no_latency_of_answers(
    opened: TrialPlan, tmp_path: Path
) -> None:
    refused = [second(at, [1.0] * 10, [1.0] * 10, statuses={"429": 10}) for at in range(4)]
    reading = supported(read_back(tmp_path, opened, refused))
    assert (reading.raw, reading.corrected, reading.ranks, reading.answer_ms) == (None, None, (), 1)
    assert reading.failed.mean_ms == 1
    assert [one.mean_ms for one in reading.seconds] == [None, None]


def test_condensed_it_is_the_same_and_the_plain_file_is_gone(
    opened: TrialPlan, tmp_path: Path
) -> None:
    write(tmp_path, even())
    plain = (tmp_path / OUTPUT).read_text()
    Pacer().condense(opened, tmp_path)
    assert not (tmp_path / OUTPUT).exists()
    assert gzip.decompress((tmp_path / PACKED).read_bytes()).decode() == plain
    Pacer().condense(opened, tmp_path)
    assert Pacer().read(opened, tmp_path).samples == 20


def cut(lines: list[str]) -> list[str]:
    """Killed in the middle of a line."""
    return [*lines[:3], lines[3][:100]]


def without_end(lines: list[str]) -> list[str]:
    return lines[:-1]


def without_a_second(lines: list[str]) -> list[str]:
    return lines[:2] + lines[3:]


def another_count(lines: list[str]) -> list[str]:
    return [*lines[:3], lines[3].replace('"ok":10', '"ok":11'), *lines[4:]]


def unsent(lines: list[str]) -> list[str]:
    return [*lines[:3], lines[3].replace('"sent":10', '"sent":9'), *lines[4:]]


def a_complaint(lines: list[str]) -> list[str]:
    return [*lines[:2], "pacer: out of memory\n"]


def another_format(lines: list[str]) -> list[str]:
    return [lines[0].replace('"format":2', '"format":1'), *lines[1:]]


def an_error_that_is_none(lines: list[str]) -> list[str]:
    one = '"failed":{"sum_us":1,"max_us":1,"buckets":[[1,1]]}'
    return [*lines[:3], lines[3].replace('"failed":{"sum_us":0,"max_us":0,"buckets":[]}', one)]


def an_answer_that_is_an_error(lines: list[str]) -> list[str]:
    return [*lines[:3], lines[3].replace('"ok":10,"http_errors":0', '"ok":9,"http_errors":1')]


def other_totals(lines: list[str]) -> list[str]:
    return [*lines[:-1], lines[-1].replace('"ok":40', '"ok":39')]


def unaccounted(lines: list[str]) -> list[str]:
    return [*lines[:-1], lines[-1].replace('"unfinished":0', '"unfinished":1')]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (cut, "pacer.jsonl:4: is no line of pacer"),
        (without_end, "pacer.jsonl:5: ends before its last line (was pacer killed, or the disk "),
        (without_a_second, "pacer.jsonl:3: tells of second 1 after 1 seconds"),
        (another_count, "pacer.jsonl:4: its statuses and latencies are not those of 11 answers"),
        (unsent, "pacer.jsonl:4: it tells the lateness of 10 of 9 requests"),
        (a_complaint, "pacer.jsonl:3: is no line of pacer: "),
        (another_format, "pacer.jsonl:1: format 1 is not one of this lab's"),
        (an_error_that_is_none, "pacer.jsonl:4: its statuses and latencies are not those of 10 "),
        (an_answer_that_is_an_error, "pacer.jsonl:4: its statuses and latencies are not those of"),
        (other_totals, "pacer.jsonl: 40 ok in its seconds, 39 at its end"),
        (unaccounted, "pacer.jsonl: 40 requests began, and 41 are accounted for"),
        (lambda _: [], "pacer.jsonl: ends before its last line"),
    ],
)
def test_damaged_output_is_named_with_its_line(
    opened: TrialPlan, tmp_path: Path, damage: Callable[[list[str]], list[str]], says: str
) -> None:
    if damage is without_a_second:
        says = "pacer.jsonl:3: tells of second 2 after 1 seconds"
    lines = text(even()).splitlines(keepends=True)
    (tmp_path / OUTPUT).write_text("".join(damage(lines)))
    with pytest.raises(RawDataError) as failure:
        Pacer().condense(opened, tmp_path)
    assert failure.value.said.startswith(says)
    assert (tmp_path / OUTPUT).exists()


def test_what_pacer_said_instead_of_figures_is_quoted(opened: TrialPlan, tmp_path: Path) -> None:
    (tmp_path / OUTPUT).write_text("pacer: connections: 30000 is more than 20000 descriptors\n")
    with pytest.raises(RawDataError, match="connections: 30000 is more than 20000 descriptors"):
        Pacer().condense(opened, tmp_path)


def test_a_damaged_archive_is_named(opened: TrialPlan, tmp_path: Path) -> None:
    write(tmp_path, even())
    Pacer().condense(opened, tmp_path)
    path = tmp_path / PACKED
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RawDataError, match=PACKED):
        Pacer().read(opened, tmp_path)
    path.unlink()
    with pytest.raises(RawDataError, match="pacer wrote no result: and said nothing"):
        Pacer().read(opened, tmp_path)


@pytest.mark.parametrize("how", ["interrupted", "orphaned"])
def test_a_load_that_was_stopped_has_no_figures(
    opened: TrialPlan, tmp_path: Path, how: str
) -> None:
    write(tmp_path, even(3), ended=how)
    Pacer().condense(opened, tmp_path)
    with pytest.raises(RawDataError, match=f"did not run to its end: {how} after 3.0 of 4 s"):
        Pacer().read(opened, tmp_path)


def test_the_load_is_written_as_the_plan_says(opened: TrialPlan, tmp_path: Path) -> None:
    schedule = Pacer().schedule(opened, tmp_path)
    assert schedule.argv == ("pacer", "-")
    assert (schedule.run_s, schedule.window_offset_s, schedule.window_s) == (4, 2, 2)
    assert schedule.streams
    load = json.loads(schedule.files[LOAD])
    assert (load["connections"], load["arrivals"], load["rate"]) == (10, "constant", 10)
    assert (load["warmup_s"], load["window_s"], load["timeout_s"]) == (2, 2, 30)
    assert [one["url"] for one in load["requests"]] == [opened.url]
    assert load["hlog"] == str(tmp_path)


def test_a_mix_of_requests_is_sent_to_the_plans_host(opened: TrialPlan) -> None:
    mix = (Request("/x?a=1", weight=9), Request("/y", "POST", {"A": "b"}, "c"))
    load = load_of(dataclasses.replace(opened, url="https://shop:1/x?a=1", requests=mix), 2, Path())
    get = {"method": "GET", "url": "https://shop:1/x?a=1", "headers": {}, "body": "", "weight": 9.0}
    post = {"method": "POST", "url": "https://shop:1/y", "headers": {"A": "b"}, "body": "c"}
    assert load["requests"] == [get, {**post, "weight": 1.0}]


def test_what_an_answer_has_to_be_is_told_to_the_engine(opened: TrialPlan) -> None:
    mix = tuple(
        Request("/x", expect=expect)
        for expect in (None, Expect(404), Expect((200, 201), "ok"), Expect(body_contains="ok"))
    )
    load = load_of(dataclasses.replace(opened, requests=mix), 2, Path())
    assert [one.get("expect") for one in load["requests"]] == [
        None,
        {"status": (404,), "body_contains": None},
        {"status": (200, 201), "body_contains": "ok"},
        {"status": None, "body_contains": "ok"},
    ]


def test_answers_that_are_not_as_expected_are_errors_and_told_by_request(
    opened: TrialPlan, tmp_path: Path
) -> None:
    mix = (
        Request("/x", expect=Expect(body_contains='"done"' + "!" * 40)),
        Request("/y", "POST", expect=Expect((201, 409))),
        Request("/z"),
    )
    plan = dataclasses.replace(opened, requests=mix)
    one: dict[str, Any] = {"statuses": {"200": 9, "500": 1}, "ok": 5, "http_errors": 5}
    missed = [[0, 200, 2], [1, 200, 1], [1, 500, 1]]
    seconds = [second(at, [100.0] * 10, [105.0] * 10, [5.0] * 10, **one) for at in range(4)]
    # In the warm-up nothing of this is told.
    late = [{**line, "unexpected": missed} if at >= 2 else line for at, line in enumerate(seconds)]
    reading = read_back(tmp_path, plan, late)
    assert (reading.window_ok, reading.window_http_errors, reading.unexpected) == (10, 10, 8)
    assert reading.notes[-2:] == (
        "pacer: request 1 (GET /x): 4 answers in the window were not as expected: "
        f"4 × status 200 without '\"done\"{'!' * 34}'",
        "pacer: request 2 (POST /y): 4 answers in the window were not as expected: "
        "2 × status 200 where 201 or 409 is expected, 2 × status 500 where 201 or 409 is expected",
    )
    # Nobody knows better what an error is: so no status is looked at again.
    assert [line.http_errors for line in Pacer().seconds(plan, tmp_path)] == [5, 5, 5, 5]
    assert [line.answers for line in Pacer().seconds(plan, tmp_path)] == [10, 10, 10, 10]


def test_without_expectations_there_is_no_count_of_what_was_unexpected(
    opened: TrialPlan, tmp_path: Path
) -> None:
    assert read_back(tmp_path, opened, even()).unexpected is None


def test_a_closed_load_has_no_rate_and_poisson_is_said(plan: Plan) -> None:
    closed = load_of(plan(10, None, engine="pacer"), 10, Path())
    assert closed["arrivals"] == "closed"
    assert "rate" not in closed
    at_random = plan(10, 100, engine="pacer", arrivals="poisson")
    assert load_of(at_random, 10, Path())["arrivals"] == "poisson"


def test_connections_open_in_half_of_the_warm_up_at_most_2000_a_second_and_a_crowd_at_once(
    plan: Plan,
) -> None:
    def pace(connections: int, warm_up_s: float) -> int:
        return int(load_of(plan(connections, None), warm_up_s, Path())["connect_per_s"])

    assert pace(500, 10) == 500
    assert pace(6000, 10) == 2000
    assert pace(19_000, 10) == 3800
    assert pace(400, 1) == 800
    assert pace(500, 0) == 0


def _without_irate(rules: Path) -> str:
    return re.sub(r"irate\([^()]*\)", "", rules.read_text())


def test_what_prometheus_tells_of_a_window_looks_back_at_open_connections(plan: Plan) -> None:
    def usual(connections: int) -> float:
        return Pacer().schedule(plan(connections), Path()).window_offset_s

    assert [usual(n) for n in (1, 2000, 2001, 5000, 19_000)] == [7, 7, 8, 9, 10]
    # What the machine has does not change with the load, and a pause may outlast two scrapes. irate
    # takes the last two samples only of the time in which it looks for them.
    looks_back = [
        int(seconds)
        for rules in (REPO / "prometheus" / "rules").glob("*.yml")
        for what, seconds in re.findall(r"(\w+)(?:\{[^}]*\})?\[(\d+)s\]", _without_irate(rules))
        if what != "jvm_gc_collection_seconds_sum"
    ]
    assert len(looks_back) > 10
    assert max(looks_back) == LOOK_BACK_S
    # What clients see comes late besides, so it is told more often.
    latency = yaml.safe_load((REPO / "prometheus" / "rules" / "latency.yml").read_text())
    clients = [group for group in latency["groups"] if "lab_client_" in str(group)]
    assert [group["interval"] for group in clients] == ["1s"]


def test_an_older_run_is_read_with_the_warm_up_that_it_had(plan: Plan, tmp_path: Path) -> None:
    seconds = [second(at, [900.0 if at < 10 else 100.0] * 10) for at in range(13)]
    reading = read_back(tmp_path, plan(10, None, duration_s=3), seconds, warmup_s=10)
    assert (reading.samples, reading.raw.max_ms) == (30, pytest.approx(100))
    with pytest.raises(RawDataError, match=r"to its end: complete after 13\.0 of 14 s"):
        Pacer().read(plan(10, None, duration_s=4), tmp_path)


def test_a_loop_for_four_cpus_is_what_the_generator_can_use(
    plan: Plan, opened: TrialPlan, tmp_path: Path
) -> None:
    def loops(connections: int, cores: int, rate: int | None = None) -> int:
        return int(load_of(plan(connections, rate, cores=cores), 10, Path())["loops"])

    assert [loops(100, cores) for cores in (1, 2, 4, 8, 16)] == [1, 1, 1, 2, 4]
    assert loops(3, 64) == 3
    # An open load has the loops that its rate needs: each has connections that no other may use.
    assert [loops(9000, 16, rate) for rate in (100, 20_000, 20_001, 500_000)] == [1, 1, 2, 4]
    assert read_back(tmp_path, opened, even()).threads == 1
    secure = dataclasses.replace(opened, url="https://a/")
    assert Pacer().read(secure, tmp_path).threads == 2


def test_servers_of_a_launch_get_the_same_arrivals(plan: Plan) -> None:
    def seed(**changes: Any) -> int:
        return int(load_of(dataclasses.replace(plan(), **changes), 10, Path())["seed"])

    assert seed(server="a") == seed(server="b")
    # Its next trial of that load is another one, and so is each launch.
    assert len({seed(launch=launch, draw=draw) for launch in (0, 1, 100) for draw in (0, 1)}) == 6


def test_what_the_generator_itself_could_not_open_makes_it_the_limit(
    opened: TrialPlan, tmp_path: Path
) -> None:
    early = second(1, [100.0] * 10, [105.0] * 10, connect_failed={"no_port_left": 9})
    failed = {"refused": 7, "no_port_left": 2, "no_descriptor_left": 1}
    last = second(3, [100.0] * 10, [105.0] * 10, connect_failed=failed)
    seconds = even()
    reading = read_back(tmp_path, opened, [seconds[0], early, seconds[2], last])
    assert reading.problems == (
        "the generator was the limit: it had no port left, and failed to connect 2 times in the "
        "window",
        "the generator was the limit: it had no file descriptor left, and failed to connect 1 time "
        "in the window",
    )
    # Before the window, and by the server's doing.
    failed = {"refused": 7}
    last = second(3, [100.0] * 10, [105.0] * 10, connect_failed=failed)
    assert read_back(tmp_path, opened, [seconds[0], early, seconds[2], last]).problems == ()


@pytest.mark.parametrize(
    ("url", "rate", "late_ms", "said"),
    [
        ("https://a/", None, 11.0, ("p95 may be in part the generator's own: it sent 5 % late "
                                    "by 11.0 ms",)),
        ("https://a/", None, 9.0, ()),
        # By http the kernel dates the answers, and in an open load lateness is told besides.
        ("http://a/", None, 11.0, ()),
        ("https://a/", 10, 11.0, ()),
    ],
)  # fmt: skip
def test_an_answer_that_ends_when_it_is_read_may_be_late_by_the_generator(
    plan: Plan, tmp_path: Path, url: str, rate: int | None, late_ms: float, said: tuple[str, ...]
) -> None:
    of = dataclasses.replace(plan(10, rate, duration_s=2, warmup_s=2, engine="pacer"), url=url)
    due = None if rate is None else [100.0 + late_ms] * 10
    seconds = [second(at, [100.0] * 10, due, [late_ms] * 10) for at in range(4)]
    assert read_back(tmp_path, of, seconds).notes == said


SPIKE = Spike(100, 50, calm_s=4, peak_s=2, repeats=1, tolerance=0.1, steady_s=1)


def peaked(raw: Path, seconds: Seconds, **changes: Any) -> Peak:
    """A peak that was started 14.5 s after the trial's load, by its own pacer."""
    folder = raw / "peak-1"
    folder.mkdir(exist_ok=True)
    write(folder, seconds, **changes)
    lines = (folder / OUTPUT).read_text().replace('"unix_s":1.5', '"unix_s":16.25')
    (folder / OUTPUT).write_text(lines)
    return peak_told(raw, 1, Peak(14.5, 16.6))


def crowd(at: int, **changes: Any) -> dict[str, Any]:
    """A second of a peak: 50 were due, and 40 were sent."""
    return second(at, [100.0] * 40, [100.0] * 40, [1.0] * 37 + [600.0] * 3, due=50, **changes)


def test_a_peak_is_what_its_own_pacer_told(opened: TrialPlan, tmp_path: Path) -> None:
    write(tmp_path, even())
    begin = crowd(0, connections=30, untried=60, unfinished=10, waiting=10)
    end = crowd(1, connections=40, untried=10, unfinished=20, waiting=20)
    assert peaked(tmp_path, [begin, end], ended="interrupted") == Peak(
        # It began 14.75 s after the trial's load, and lasted 2 s.
        14.75, 16.75, connections=40, untried=35.0, due=100, sent=80, late_p95_ms=600.0,
    )  # fmt: skip
    # A closed load, in seconds of a load that is condensed by now. The driver ended it later.
    Pacer().condense(opened, tmp_path)
    assert peaked(tmp_path, [second(0, [100.0] * 40)]) == Peak(
        14.75, 16.6, connections=10, untried=0.0, sent=40, late_p95_ms=0.0
    )
    assert peak_told(tmp_path, 2, Peak(20.0, 22.0)) == Peak(20.0, 22.0)


def test_why_a_peak_was_less_than_planned(tmp_path: Path) -> None:
    write(tmp_path, even())
    failed = {"refused": 7, "no_port_left": 2}
    assert peaked(tmp_path, [crowd(0, unfinished=10, connect_failed=failed)]).problems == (
        "the generator was the limit: it had no port left, and failed to connect 2 times in the "
        "spike",
    )
    lost = peaked(tmp_path, [crowd(0, unfinished=11)])
    assert lost == Peak(14.5, 16.6, problems=(
        "pacer.jsonl: 50 requests began, and 51 are accounted for",
    ))  # fmt: skip


def test_a_peak_that_the_server_kept_out_is_a_note(opened: TrialPlan, tmp_path: Path) -> None:
    peaked(tmp_path, [crowd(0, connections=30, unfinished=10)])
    reading = read_back(tmp_path, dataclasses.replace(opened, spike=SPIKE), even())
    assert reading.notes == (
        "pacer: at most 30 of 100 connections of spike 1 were open at a time",
        "pacer: 40 of 50 requests of spike 1 were sent, the others waited for a connection",
    )
    assert reading.problems == ()
    whole = second(0, [100.0] * 40, [100.0] * 40, connections=100)
    peaked(tmp_path, [whole])
    assert Pacer().read(dataclasses.replace(opened, spike=SPIKE), tmp_path).notes == ()


def test_without_an_answer_there_is_no_latency(opened: TrialPlan, tmp_path: Path) -> None:
    silent = [
        second(at, [], [], [], due=10, unfinished=10 * (at + 1), waiting=10 * (at + 1),
               connect_failed={"refused": 100})
        for at in range(4)
    ]  # fmt: skip
    reading = read_back(tmp_path, opened, silent)
    assert (reading.samples, reading.raw, reading.corrected, reading.late) == (0, None, None, None)
    assert (reading.counts.sent, reading.counts.unfinished, reading.due) == (0, 0, 20)
