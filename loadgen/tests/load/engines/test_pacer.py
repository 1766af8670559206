"""pacer: exact figures of every second, from its lines."""

import copy
import gzip
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import RawDataError
from lab.judge.checks.data import damaged
from lab.judge.checks.generator import generator_exhausted
from lab.load.engines import pacer_output
from lab.load.engines.pacer import LOAD, LOOK_BACK_S, OUTPUT, PACKED, Pacer, load_of
from lab.load.engines.pacer_output import End, Head, Output, meant, read_output
from lab.load.engines.pacer_reading import reading_of
from lab.model import (
    NOT_STORED,
    Counts,
    Expect,
    Peak,
    Reading,
    Request,
    Spike,
    TrialPlan,
    error_share,
)
from lab.store.records import write_packed_lines
from load.engines.conftest import plan
from support import fakes
from support.fakes import cells
from support.pacer import second, text, write
from support.repo import REPO

Seconds = list[dict[str, Any]]


# Of 10 connections and 10 requests a second: 2 s of warm-up, and a window of 2 s.
OPENED = plan(10, 10, duration_s=2, warmup_s=2, engine="pacer")


def read_back(raw: Path, seconds: Seconds, plan: TrialPlan = OPENED, **changes: Any) -> Reading:
    write(raw, seconds, **changes)
    return Pacer().read(plan, raw)


def usual(at: int, **changes: Any) -> dict[str, Any]:
    """A second with 10 requests, each of 100 ms and 5 ms late."""
    return second(at, [100.0] * 10, [105.0] * 10, [5.0] * 10, **changes)


def even(count: int = 4) -> Seconds:
    return [usual(at) for at in range(count)]


def loaded(warm_up_s: float = 10, base: TrialPlan = OPENED, **changes: Any) -> dict[str, Any]:
    """The load of a plan with these changes, as pacer reads it."""
    return load_of(copy.replace(base, **changes), warm_up_s, Path())


# What was answered in each second: (ms, an error).
ANSWERED = st.lists(st.tuples(st.integers(1, 5000), st.booleans()), max_size=12)


def at_share(values: list[int], share: float) -> int:
    return sorted(values)[math.ceil(share * len(values) - 1e-9) - 1]


@given(answers=st.lists(ANSWERED, min_size=4, max_size=4), is_open=st.booleans())
def test_figures_are_those_of_the_answers_in_the_window(
    answers: list[list[tuple[int, bool]]], is_open: bool
) -> None:
    """Those of errors are no latencies of answers. Each is 5 ms late."""
    seconds = []
    for at, each in enumerate(answers):
        took = [ms for ms, bad in each if not bad] + [ms for ms, bad in each if bad]
        statuses = {"200": sum(not bad for _, bad in each), "500": sum(bad for _, bad in each)}
        due = [ms + 5 for ms in took] if is_open else None
        line = second(at, took, due, [5] * len(each), statuses)
        seconds.append(meant(json.dumps(line).encode()))
    in_window = [answer for each in answers[2:] for answer in each]
    good, bad = ([ms for ms, failed in in_window if failed == which] for which in (False, True))
    end = End("complete", 4.0, 60, 60, 50, 10, {}, 0, 0, 0.1)
    planned = OPENED if is_open else copy.replace(OPENED, mode="closed", offered_rps=None)
    reading = reading_of(planned, Output(Head("1", 2), tuple(seconds), end), seconds[2:])
    assert (reading.samples, reading.achieved_rps) == (len(in_window), len(in_window) / 2)
    assert (reading.window_ok, reading.window_http_errors) == (len(good), len(bad))
    assert reading.due == (len(in_window) if is_open else None)
    assert (reading.corrected is None) == (not is_open or not good)
    assert reading.lag_ms == (5 if in_window else None)
    for latency, values in (
        (reading.raw, good),
        (reading.failed, bad),
        (reading.corrected, [ms + 5 for ms in good] if is_open else []),
    ):
        found = latency and (latency.mean_ms, latency.p50_ms, latency.p95_ms, latency.max_ms)
        known = values and (fmean(values), at_share(values, 0.5), at_share(values, 0.95))
        assert found == (pytest.approx((*known, max(values)), rel=1e-3) if values else None)
    mean_ms = fmean([*good, *bad]) if in_window else None
    assert reading.answer_ms == (mean_ms and pytest.approx(mean_ms))
    counted = (5 if is_open else 0) + max(good, default=0)
    assert reading.ranks[-1:] == (((counted, len(good)),) if good else ())
    assert [(each.answers, each.good) for each in reading.seconds] == [
        (len(each), sum(not bad for _, bad in each)) for each in answers[2:]
    ]
    lasting = (each.mean_ms is not None for each in reading.seconds)
    assert [*lasting] == [each.good > 0 for each in reading.seconds]


def at(ms: float, seconds: int) -> Seconds:
    """Seconds of 300 answers each that took so long, after 2 s of warm-up."""
    return [second(at, [ms] * 300, [ms] * 300) for at in range(2 + seconds)]


@pytest.mark.parametrize(
    ("seconds", "settled_s"),
    [
        # Too few seconds, whatever they say.
        (at(100, 4), None),
        # Far from the limit, or near it and known well.
        (at(100, 5), 5),
        (at(100, 6), None),
        (at(400, 5), None),
        (at(400, 10), 10),
        (at(900, 5), 5),
        # Its window has to have more than five of its latencies.
        (at(1000, 5), None),
        (at(1000, 10), 10),
        # Too few answers for a p99.
        ([second(at, [100.0] * 100, [100.0] * 100) for at in range(7)], None),
        # It rises, and where it ends is not known.
        ([*at(150, 0), *(second(2 + t, [150.0 * (1 + t)] * 300, [150.0 * (1 + t)] * 300)
                         for t in range(5))], None),
        # Nothing was answered.
        ([second(at, [], []) for at in range(7)], None),
    ],
)  # fmt: skip
def test_a_window_is_settled_where_its_latencies_are_known(
    tmp_path: Path, seconds: Seconds, settled_s: int | None
) -> None:
    write(tmp_path, seconds)
    lines = read_output(tmp_path / OUTPUT).seconds
    limited = copy.replace(OPENED, limits={"p99": (450.0,)})
    assert Pacer().settled_s(limited, 2.0, lines) == settled_s
    assert Pacer(("far:9465",)).settled_s(limited, 2.0, lines) is None


def test_waves_are_seen_in_10_ms_of_the_window(tmp_path: Path) -> None:
    crowd, even = [10, *[0] * 99], [1, *[0] * 9] * 10
    seconds = [usual(at, sent_in_10ms=crowd if at < 3 else even) for at in range(4)]
    # 100 parts of 0.1 on average with squares of 100, and 100 with 10.
    found = read_back(tmp_path, seconds).dispersion
    assert found == pytest.approx((110 / 200 - 0.1**2) / 0.1)
    assert read_back(tmp_path, [usual(at) for at in range(4)]).dispersion is None
    with pytest.raises(RawDataError, match="requests in its parts: 9, not 10"):
        read_back(tmp_path, [usual(at, sent_in_10ms=[9]) for at in range(4)])


def test_its_threads_times_are_those_of_the_window(tmp_path: Path) -> None:
    times = [(900_000, 50_000), (900_000, 50_000), (300_000, 20_000), (250_000, 10_000)]
    told = [usual(at, run_us=run, runq_us=queue) for at, (run, queue) in enumerate(times)]
    reading = read_back(tmp_path, told)
    assert (reading.generator_run_s, reading.generator_runq_s) == (0.55, 0.03)
    # The extra load of a spike is another process'.
    spiky = copy.replace(OPENED, spike=SPIKE)
    assert Pacer().read(spiky, tmp_path).generator_run_s is None
    # In a second of the window, and in one before it.
    for unknown, known in ((3, None), (0, 0.55)):
        some = [usual(at) if at == unknown else line for at, line in enumerate(told)]
        assert read_back(tmp_path, some).generator_run_s == known


def test_each_machine_of_several_tells_how_late_it_was(tmp_path: Path) -> None:
    for name, late_ms in (("here", 1.0), ("far-9465", 41.0)):
        write(tmp_path, [second(at, [100.0] * 5, [105.0] * 5, [late_ms] * 5) for at in range(4)])
        (tmp_path / OUTPUT).rename(tmp_path / f"pacer-{name}.jsonl")
    both_ms = [1.0] * 5 + [41.0] * 5
    whole = [second(at, [100.0] * 10, [105.0] * 10, both_ms) for at in range(4)]
    reading = read_back(tmp_path, whole)
    assert [(one.machine, one.lag_ms) for one in reading.shares] == [
        ("far-9465", pytest.approx(41.0)),
        ("here", pytest.approx(1.0)),
    ]
    kept = [one.name for one in sorted(tmp_path.glob("pacer-*"))]
    assert kept == ["pacer-far-9465.jsonl.gz", "pacer-here.jsonl.gz"]
    assert reading == Pacer().read(OPENED, tmp_path)
    # One machine's share is not all of the load.
    (tmp_path / "pacer-far-9465.jsonl.gz").unlink()
    with pytest.raises(RawDataError, match="20 requests were sent by its machines, 40 in all"):
        Pacer().read(OPENED, tmp_path)


QUIET: dict[str, Any] = {"connect_failed": {}, "oldest_us": 0}
SECRETS = {"Authorization": True, "X-Api-Key": True, "Cookie": True, "Accept": False}


@pytest.mark.parametrize("header", SECRETS)
def test_what_is_secret_needs_a_certificate_and_is_not_written(tmp_path: Path, header: str) -> None:
    headers, secret = {header: "Bearer 5ecret", "Accept-Language": "a"}, SECRETS[header]
    of = copy.replace(OPENED, requests=(Request("/"), Request("/a", headers=headers)))
    schedule = Pacer().schedule(of, tmp_path)
    assert json.loads(schedule.stdin)["requests"][1]["headers"] == headers
    (kept,) = schedule.files.values()
    written = json.loads(kept)
    stored = headers | {header: NOT_STORED} if secret else headers
    assert written["requests"][1]["headers"] == stored
    assert written["insecure"] is not secret
    assert not [word for word in schedule.argv if "5ecret" in word]


LOADS: list[tuple[float, TrialPlan, dict[str, Any]]] = [
    # A warm-up, a plan, and keys of the load. Held connections send once, and wait longer than
    # the run.
    (20, fakes.plan("closed", hold="idle"), {"once": True, "timeout_s": 20 + 15 + 60}),
    (10, plan(10, None), {"arrivals": "closed", "once": None, "rate": None, "insecure": True}),
    (10, copy.replace(OPENED, arrivals="poisson"), {"arrivals": "poisson", "rate": 10}),
    # Connections open in half of the warm-up.
    (10, plan(500, None), {"connect_per_s": 500}),
    (10, plan(6000, None), {"connect_per_s": 2000}),
    (10, plan(19_000, None), {"connect_per_s": 3800}),
    (1, plan(400, None), {"connect_per_s": 800}),
    (0, plan(500, None), {"connect_per_s": 0}),
    # A loop for four CPUs, and an open load has those that its rate needs: each has connections
    # that no other may use.
    *(
        (10, plan(connections, rate, cores=cores), {"loops": loops})
        for connections, rate, cores, loops in (
            (100, None, 1, 1), (100, None, 4, 1), (100, None, 8, 2), (100, None, 16, 4),
            (3, None, 64, 3), (9000, 100, 16, 1), (9000, 20_000, 16, 1), (9000, 20_001, 16, 2),
            (9000, 500_000, 16, 4),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("warm_up_s", "of", "keys"), LOADS)
def test_a_load_has_what_its_plan_says(
    warm_up_s: float, of: TrialPlan, keys: dict[str, Any]
) -> None:
    load = loaded(warm_up_s, of)
    assert {name: load.get(name) for name in keys} == keys


# Of 13 due: 9 answered, 1 reset, 1 timed out, 1 in flight, 1 that waits for a connection.
LOSSES = second(
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


def test_every_request_is_accounted_for(tmp_path: Path) -> None:
    reading = read_back(tmp_path, [*even(3), LOSSES])
    assert reading.counts == Counts(42, 37, 2, 1, 1, 1, 4.0)
    assert (reading.window_lost, reading.due, reading.unexpected) == (2, 23, None)
    assert [line.lost for line in Pacer().seconds(OPENED, tmp_path)] == [0, 0, 0, 2]
    # The one that was reset and the one that timed out were in the window.
    assert error_share(reading, 10) == pytest.approx((2 + 2) / (17 + 2 + 2))


def late(ms: float, *, due: bool = False) -> dict[str, Any]:
    return second(3, [100.0] * 10, [100.0 + ms] * 10 if due else None, [ms] * 10)


NOTES: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    # The last second of the window, what is changed of the plan, and the notes.
    (
        LOSSES,
        {},
        [
            "socket-errors cause=reset count=1 in_window=1",
            "connect-failed cause=refused count=3 in_window=3",
            "unsent requests=1",
        ],
    ),
    # One good second hides no bad one.
    (usual(3, connections=4), {}, ["connections-closed opened=7 planned=10"]),
    (usual(3, connections=9), {}, []),
    (usual(3, reopened=1), {}, ["reopened times=1 answers=20"]),
    # Twice as long as any, and a second.
    (usual(3, oldest_us=2_100_000), {}, ["request-waits waited_s=2.1 longest_s=0.1"]),
    (usual(3, oldest_us=900_000), {}, []),
    (
        usual(3, connect_failed={"no_port_left": 2, "no_descriptor_left": 1}),
        {},
        [
            "generator-exhausted what=port count=2",
            "generator-exhausted what=file descriptor count=1",
            "connect-failed cause=no_descriptor_left count=1 in_window=1",
            "connect-failed cause=no_port_left count=2 in_window=2",
        ],
    ),
    # By https the kernel dates no answers; an open load's corrected latencies have the lateness.
    (late(11.0), {"url": "https://a/"}, ["partly-late figure=p95 late_ms=11"]),
    (late(9.0), {"url": "https://a/"}, []),
    (late(11.0), {"url": "http://a/"}, []),
    (late(11.0, due=True), {"url": "https://a/"}, []),
]


@pytest.mark.parametrize(("last", "changes", "notes"), NOTES)
def test_what_else_the_lines_show_is_noted(
    tmp_path: Path, last: dict[str, Any], changes: dict[str, Any], notes: list[str]
) -> None:
    rate = 10 if last["corrected"] else None
    of = plan(10, rate, duration_s=2, warmup_s=2, engine="pacer", **changes)
    first = [last | {"second": at, **QUIET} for at in range(3)] if changes else even(3)
    reading = read_back(tmp_path, [*first, last], of)
    found = [cell.replace("longest_s=0.100351", "longest_s=0.1") for cell in cells(reading.remarks)]
    assert found == notes


def test_condensed_it_is_the_same_and_the_plain_file_is_gone(tmp_path: Path) -> None:
    write(tmp_path, even())
    plain = (tmp_path / OUTPUT).read_text()
    Pacer().read(OPENED, tmp_path)
    assert not (tmp_path / OUTPUT).exists()
    packed = (tmp_path / PACKED).read_bytes()
    assert gzip.decompress(packed).decode() == plain
    assert Pacer().read(OPENED, tmp_path).samples == 20
    (tmp_path / PACKED).write_bytes(packed[:-20])
    with pytest.raises(RawDataError, match=PACKED):
        Pacer().read(OPENED, tmp_path)


def test_the_plain_file_stays_if_the_condensed_one_reads_back_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(path: Path, lines: Iterable[Any]) -> None:
        head, *more = lines
        write_packed_lines(path, [{**head, "pacer": "other"}, *more])

    monkeypatch.setattr(pacer_output, "write_packed_lines", other)
    write(tmp_path, even())
    with pytest.raises(RawDataError, match="does not read back as it was written"):
        Pacer().read(OPENED, tmp_path)
    assert (tmp_path / OUTPUT).exists()


NO_FAILED = '"failed":{"sum_us":0,"max_us":0,"buckets":[]}'
A_FAILED = '"failed":{"sum_us":1,"max_us":1,"buckets":[[1,1]]}'
# What is changed in a line, or the lines that are left, and what is wrong then.
DAMAGES: list[tuple[int, str, str, str]] = [
    (0, '"format":2', '"format":1', ":1: format 1 is not this lab's"),
    (0, '"pacer"', '"packer"', ":1: is no line of pacer: "),
    (3, '"second":2', '"second":3', ":4: is second 3 after 2 seconds"),
    (3, '"statuses":{"200":10}', '"statuses":{"200":9}', ":4: statuses: 9, not 10"),
    (3, NO_FAILED, A_FAILED, ":4: latencies of errors: 1, not 0"),
    (3, '"ok":10,"http_errors":0', '"ok":11,"http_errors":-1', ":4: latencies of errors: 0, not -"),
    (3, '"sent":10', '"sent":9', ":4: times of sending: 10, not 9"),
    (3, '"timeouts":0', '"timeouts":1', ":6: timeouts: 1, not 0"),
    (5, '"ok":40', '"ok":39', ":6: ok: 40, not 39"),
    (5, '"unfinished":0', '"unfinished":1', ":6: requests accounted for: 41, not 40"),
    (5, '"socket_errors":{}', '"socket_errors":{"a":1}', ":6: socket errors: 0, not 1"),
    (2, "{", "pacer: out of memory", ":3: is no line of pacer: "),
]
KEPT: list[tuple[list[int], str]] = [
    ([0, 1, 2, 3, 4], ":5: ends before its last line (was pacer killed, or the disk "),
    ([0, 1, 3, 4, 5], ":3: is second 2 after 1 seconds"),
    ([1, 2, 3, 4, 5], ":1: begins without its first line"),
    ([0, 0, 1], ":2: begins without its first line, or has it twice"),
    ([0, 1, 2, 3, 4, 5, 5], ":7: goes on after its last line"),
    ([], ": ends before its last line"),
]


def refused(raw: Path, lines: list[str], problem: str) -> None:
    (raw / OUTPUT).write_text("".join(lines))
    with pytest.raises(RawDataError) as failure:
        Pacer().read(OPENED, raw)
    assert failure.value.said.startswith(f"pacer.jsonl{problem}")
    assert (raw / OUTPUT).exists()


@pytest.mark.parametrize(("at", "old", "new", "problem"), DAMAGES)
def test_what_does_not_add_up_is_named_with_its_line(
    tmp_path: Path, at: int, old: str, new: str, problem: str
) -> None:
    lines = text(even()).splitlines(keepends=True)
    assert old in lines[at]
    lines[at] = lines[at].replace(old, new, 1)
    refused(tmp_path, lines, problem)


@pytest.mark.parametrize(("kept", "problem"), KEPT)
def test_lines_that_are_missing_are_named(tmp_path: Path, kept: list[int], problem: str) -> None:
    lines = text(even()).splitlines(keepends=True)
    refused(tmp_path, [lines[at] for at in kept], problem)
    refused(tmp_path, [*lines[:3], lines[3][:100]], ":4: is no line of pacer")


def test_without_a_whole_load_there_are_no_figures(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match="pacer wrote no result: and said nothing"):
        Pacer().read(OPENED, tmp_path)
    (tmp_path / OUTPUT).write_text("pacer: connections: 30000 is more than 20000 descriptors\n")
    with pytest.raises(RawDataError, match="connections: 30000 is more than 20000 descriptors"):
        Pacer().read(OPENED, tmp_path)
    write(tmp_path, even(3), ended="orphaned")
    with pytest.raises(RawDataError, match=r"did not run to its end: orphaned after 3\.0 of 4 s"):
        Pacer().read(OPENED, tmp_path)


def test_the_load_is_written_as_the_plan_says(tmp_path: Path) -> None:
    schedule = Pacer().schedule(OPENED, tmp_path)
    assert schedule.argv == ("pacer", "-")
    assert (schedule.run_s, schedule.window_offset_s, schedule.window_s) == (4, 2, 2)
    assert schedule.streams
    load = json.loads(schedule.files[LOAD])
    assert (load["connections"], load["arrivals"], load["rate"]) == (10, "constant", 10)
    assert (load["warmup_s"], load["window_s"], load["timeout_s"]) == (2, 2, 30)
    assert [one["url"] for one in load["requests"]] == [OPENED.url]
    assert load["hlog"] == str(tmp_path)
    # With a further machine.
    spread = Pacer(("far:9465",)).schedule(OPENED, tmp_path)
    assert spread.argv == ("pacer", "spread", str(tmp_path / LOAD), "far:9465")
    assert spread.files == schedule.files


def test_a_mix_of_requests_is_sent_to_the_plans_host() -> None:
    url = "https://shop:1/x?a=1"
    mix = (Request("/x?a=1", weight=9), Request("/y", "POST", {"A": "b"}, "c"))
    get = {"method": "GET", "url": url, "headers": {}, "body": "", "weight": 9.0}
    post = {"method": "POST", "url": "https://shop:1/y", "headers": {"A": "b"}, "body": "c"}
    assert loaded(url=url, requests=mix)["requests"] == [get, {**post, "weight": 1.0}]
    for expect, status, contained in (
        (Expect(404), (404,), None),
        (Expect((200, 201), "ok"), (200, 201), "ok"),
        (Expect(body_contains="ok"), None, "ok"),
    ):
        (request,) = loaded(requests=(Request("/x", expect=expect),))["requests"]
        assert request["expect"] == {"status": status, "body_contains": contained}


def test_answers_that_are_not_as_expected_are_errors_and_told_by_request(tmp_path: Path) -> None:
    mix = (
        Request("/x", expect=Expect(body_contains='"done"' + "!" * 40)),
        Request("/y", "POST", expect=Expect((201, 409))),
        Request("/z"),
    )
    of = copy.replace(OPENED, requests=mix)
    half: dict[str, Any] = {"statuses": {"200": 9, "500": 1}, "ok": 5, "http_errors": 5}
    missed = {"unexpected": [[0, 200, 2], [1, 200, 1], [1, 500, 1]]}
    # In the warm-up nothing of this is told.
    seconds = [usual(at, **half, **(missed if at >= 2 else {})) for at in range(4)]
    reading = read_back(tmp_path, seconds, of)
    assert (reading.window_ok, reading.window_http_errors, reading.unexpected) == (10, 10, 8)
    assert cells(reading.remarks)[-3:] == [
        f'not-as-expected request=1 name=GET /x count=4 status=200 without="done"{"!" * 34}',
        "not-as-expected request=2 name=POST /y count=2 status=200 statuses=201 or 409",
        "not-as-expected request=2 name=POST /y count=2 status=500 statuses=201 or 409",
    ]


def test_what_prometheus_tells_of_a_window_looks_back_at_open_connections() -> None:
    starts_s = [
        Pacer().schedule(plan(connections), Path()).window_offset_s
        for connections in (1, 2000, 2001, 5000, 19_000)
    ]
    assert starts_s == [7, 7, 8, 9, 10]
    # What the machine has does not change with the load, and a pause may outlast two scrapes. irate
    # takes the last two samples only of the time in which it looks for them.
    rules = (file.read_text() for file in (REPO / "prometheus" / "rules").glob("*.yml"))
    expressions = "".join(re.sub(r"irate\([^()]*\)", "", text) for text in rules)
    looks_back = [
        int(seconds)
        for what, seconds in re.findall(r"(\w+)(?:\{[^}]*\})?\[(\d+)s\]", expressions)
        if what != "jvm_gc_collection_seconds_sum"
    ]
    assert len(looks_back) > 10
    assert max(looks_back) == LOOK_BACK_S
    # What clients see comes late as well, so it is told more often.
    latency = yaml.safe_load((REPO / "prometheus" / "rules" / "latency.yml").read_text())
    clients = [group for group in latency["groups"] if "lab_client_" in str(group)]
    assert [group["interval"] for group in clients] == ["1s"]


def test_a_run_is_read_with_the_warm_up_that_it_had(tmp_path: Path) -> None:
    seconds = [second(at, [900.0 if at < 10 else 100.0] * 10) for at in range(13)]
    reading = read_back(tmp_path, seconds, plan(10, None, duration_s=3), warmup_s=10)
    assert (reading.samples, reading.raw.max_ms) == (30, pytest.approx(100))
    with pytest.raises(RawDataError, match=r"to its end: complete after 13\.0 of 14 s"):
        Pacer().read(plan(10, None, duration_s=4), tmp_path)


def test_what_speaks_tls_runs_beside_the_loops(tmp_path: Path) -> None:
    assert read_back(tmp_path, even()).threads == 1
    assert Pacer().read(copy.replace(OPENED, url="https://a/"), tmp_path).threads == 2


def test_servers_of_a_launch_get_the_same_arrivals() -> None:
    assert loaded(server="a")["seed"] == loaded(server="b")["seed"]
    # Its next trial of that load is another one, and so is each launch.
    seeds = {loaded(launch=launch, draw=draw)["seed"] for launch in (0, 1, 100) for draw in (0, 1)}
    assert len(seeds) == 6


SPIKE = Spike(100, 50, calm_s=4, peak_s=2, repeats=1, tolerance=0.1, steady_s=1)


def peaked(raw: Path, seconds: Seconds, **changes: Any) -> Peak:
    """A peak that was started 14.5 s after the trial's load, by its own pacer."""
    folder = raw / "peak-1"
    folder.mkdir(exist_ok=True)
    write(folder, seconds, **changes)
    lines = (folder / OUTPUT).read_text().replace('"unix_s":1.5', '"unix_s":16.25')
    (folder / OUTPUT).write_text(lines)
    return Pacer().peak(raw, 1, Peak(14.5, 16.6))


def crowd(at: int, **changes: Any) -> dict[str, Any]:
    """A second of a peak: 50 were due, and 40 were sent."""
    return second(at, [100.0] * 40, [100.0] * 40, [1.0] * 37 + [600.0] * 3, due=50, **changes)


def test_a_peak_is_what_its_own_pacer_told(tmp_path: Path) -> None:
    write(tmp_path, even())
    begin = crowd(0, connections=30, untried=60, unfinished=10, waiting=10)
    end = crowd(1, connections=40, untried=10, unfinished=20, waiting=20)
    assert peaked(tmp_path, [begin, end], ended="interrupted") == Peak(
        # It began 14.75 s after the trial's load, and lasted 2 s.
        14.75, 16.75, connections=40, untried=35.0, due=100, sent=80, late_p95_ms=600.0,
    )  # fmt: skip
    # A closed load, in seconds of a load that is condensed by now. The driver ended it later.
    Pacer().read(OPENED, tmp_path)
    assert peaked(tmp_path, [second(0, [100.0] * 40)]) == Peak(
        14.75, 16.6, connections=10, untried=0.0, sent=40, late_p95_ms=0.0
    )
    assert Pacer().peak(tmp_path, 2, Peak(20.0, 22.0)) == Peak(20.0, 22.0)


def test_why_a_peak_was_less_than_planned(tmp_path: Path) -> None:
    write(tmp_path, even())
    failed = {"refused": 7, "no_port_left": 2}
    peak = peaked(tmp_path, [crowd(0, unfinished=10, connect_failed=failed)])
    assert peak.problems == (generator_exhausted.remark(what="port", count=2),)
    lost = damaged.remark(problem="pacer.jsonl:3: requests accounted for: 51, not 50")
    assert peaked(tmp_path, [crowd(0, unfinished=11)]) == Peak(14.5, 16.6, problems=(lost,))


def test_a_peak_that_the_server_kept_out_is_a_note(tmp_path: Path) -> None:
    spiked = copy.replace(OPENED, spike=SPIKE)
    peaked(tmp_path, [crowd(0, connections=30, unfinished=10)])
    assert cells(read_back(tmp_path, even(), spiked).remarks) == [
        "spike-refused spike=1 opened=30 extra=100",
        "spike-unsent spike=1 sent=40 due=50",
    ]
    peaked(tmp_path, [second(0, [100.0] * 40, [100.0] * 40, connections=100)])
    assert Pacer().read(spiked, tmp_path).remarks == ()
