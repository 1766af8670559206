"""What was recorded of a server, as the console and both reports say it."""

import dataclasses
import io
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.judge.hot import Side, side_of
from lab.model import ALLOC, CPU, LOCK, RECORDED, Recording, Row
from lab.report.markdown import markdown
from lab.report.page.flamegraph import page
from lab.report.page.markup import markup
from lab.report.recorded import Recorded, changed, lines, render, section, table
from lab.store import recording
from support.fakes import plan
from support.planned import row

HOT = {
    "java.lang.Thread.run:9;lab.Routes.<init>:5;lab.Primes.isPrime:31": 240,
    "java.lang.Thread.run:9;lab.Routes.<init>:6;java.util.List.add:3": 60,
    "java.lang.Thread.run:9;lab.Loop.poll:3;sun.nio.ch.Net.poll": 100,
}


def trial(**changes: Any) -> Row:
    name = changes.pop("trial", f"01-a-closed{RECORDED}")
    figures = {"achieved_rps": 1000.0, "window_s": 10.0, "cpu_server_us": 75.0}
    return row(plan("closed", trial=name), **{**figures, **changes})


def told(kind: str = CPU, stacks: dict[str, int] = HOT, **changes: Any) -> Recorded:
    samples = changes.pop("samples", sum(stacks.values()))
    events = changes.pop("events", ("jdk.CPUTimeSample",))
    of = Recording(kind, events, samples, changes.pop("whole", True), stacks)
    beside = trial(trial="01-a-closed", achieved_rps=1010.0, cpu_server_us=73.0)
    return dataclasses.replace(Recorded(trial(), beside, of), **changes)


def test_the_hottest_method_is_named_with_its_share_its_line_and_the_cost() -> None:
    assert list(lines(told())) == [
        "CPU time by CPUTimeSample, 400 samples",
        "alone lab.Primes.isPrime 60% [55%, 65%] (line 31: 60%), "
        "sun.nio.ch.Net.poll 25% [21%, 29%], java.util.List.add 15% [12%, 19%] (line 3: 15%)",
        "with what they call lab.Routes.<init> 75% [71%, 79%], lab.Loop.poll 25% [21%, 29%]",
        "with recording / without: CPU per answer ×1.03 (73 → 75 µs), answers ×0.99 (one pair, the "
        "recorded one second)",
    ]


def said_of(*given: Any, **changes: Any) -> list[str]:
    return list(lines(told(*given, **changes)))


def test_few_samples_name_nothing() -> None:
    few = {"lab.Primes.isPrime:31": 99}
    first, *rest = said_of(stacks=few)
    assert first == "CPU time by CPUTimeSample, 99 samples: fewer than 100 name nothing"
    assert len(rest) == 1
    assert table(Recording(CPU, (), 99, whole=True, stacks=few)) == []
    # An older JDK says what its samples are.
    [seen, *_] = said_of(events=("jdk.ExecutionSample",))
    assert "this JDK has no samples by CPU time" in seen


def test_allocation_is_a_rate_without_an_interval_and_a_lock_a_wait() -> None:
    said = said_of(ALLOC, {"lab.Bodies.hello:4": 2_000_000_000}, samples=3000)
    assert said[0] == "allocation by CPUTimeSample, 3,000 samples, 200 MB/s"
    assert said[1] == "alone lab.Bodies.hello 100% (line 4: 100%)"
    # A lock has its site and the wait of each answer.
    stacks = {"[lock];lab.Worker.run:1;lab.OneLock.hold:27": 40_000_000_000}
    said = said_of(LOCK, stacks, samples=9000)
    assert "9,000 waits of 40 s in all, 4 ms for each answer (lock 100%)" in said[0]
    assert said[1] == "alone lab.OneLock.hold 100% (line 27: 100%)"
    # Nobody must take that for no wait at all: JFR does not see those of virtual threads.
    none = "waits of platform threads for locks by CPUTimeSample: no wait of 1 ms or longer"
    assert said_of(LOCK, {}, samples=0)[0] == none


def test_what_is_not_known_is_said() -> None:
    assert said_of(recording=None, problem="it was lost", beside=None) == [
        "it was lost",
        "what recording cost is not known: no trial without it was on the same JVM",
    ]
    said = said_of(whole=False, row=trial(valid=False, invalid_reasons="cold-restarted"))
    assert "it outgrew its room: the beginning of the window may be missing" in said
    assert "the recorded trial is invalid: cold JVM: the JVM restarted during the warm-up" in said
    assert said_of(beside=trial(valid=False, cpu_server_us=None))[-1] == (
        "with recording / without: CPU per answer not known, answers ×1.00 "
        "(one pair, the recorded one second, of which the one without is invalid)"
    )


def test_the_console_says_where_the_flame_graph_is() -> None:
    out = io.StringIO()
    render(Console(file=out, width=120), [told()], "20260131T120000Z-bench")
    said = out.getvalue()
    assert said.startswith("a, /downstream closed, 100 connections, recorded: CPU time by ")
    graph = f"recorded/01-a-closed{RECORDED}/flamegraph.html"
    assert said.endswith(f"; results/20260131T120000Z-bench/{graph}\n")


def test_the_page_links_to_the_flame_graph_and_escapes_names() -> None:
    shown = [section([told()])]
    html = markup(shown)
    graph = f"(recorded/01-a-closed{RECORDED}/flamegraph.html)"
    assert f'<a href="{graph[1:-1]}">' in html
    assert "lab.Routes.&lt;init&gt;" in html
    assert "<init>" not in html
    assert f"[Flame graph]{graph}" in markdown(shown)
    assert markup([section([])]) == markdown([section([])]) == ""


def test_a_flame_graph_is_drawn_in_a_frame_that_loads_and_opens_nothing() -> None:
    of = told().recording
    evil = "\"></iframe><script>alert(1)</script>'&amp;"
    text = page('01-a"><script>', of, evil)
    assert text.count("<script") == 0
    assert text.count("<iframe") == 1
    [inside] = re.findall(r'sandbox="allow-scripts allow-modals" srcdoc="([^"]*)"', text)
    assert unescape(inside).count("<script") == 1
    [drawn] = re.findall(r'<body data-graph="([^"]*)">', unescape(inside))
    assert unescape(drawn) == evil
    assert text.index("default-src 'none'") < text.index("<title>")
    assert "400 jdk.CPUTimeSample" in text


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    of = told(stacks={"[lost]": 3, "a.B.<init>:1;a b.C:2": 400}).recording
    assert recording.load_or_none(tmp_path) is None
    recording.write(tmp_path, of, "graph")
    assert recording.load_or_none(tmp_path) == of
    assert (tmp_path / "collapsed.txt").read_text() == "[lost] 3\na.B.<init>:1;a b.C:2 400\n"
    with pytest.raises(ValueError, match="no line break"):
        told(stacks={"a\nb": 1})


def side(stacks: dict[str, int], **changes: Any) -> Side:
    of = told(stacks=stacks).recording
    found = side_of(trial(**changes), of)
    assert isinstance(found, Side)
    return found


SLOWER = {
    "java.lang.Thread.run:9;lab.Routes.<init>:5;lab.Primes.isPrime:33": 240,
    "java.lang.Thread.run:9;lab.Routes.<init>:5;lab.Log.write:3": 160,
}


def test_two_recordings_say_what_costs_more_for_an_answer() -> None:
    said = changed(side(HOT), side(SLOWER, cpu_server_us=150.0))
    assert said.startswith("75 → 150 µs of CPU for each answer (one pair of recorded trials); ")
    assert "; alone lab.Log.write +60 [" in said
    assert "] (0 → 60), lab.Primes.isPrime +45 [" in said
    assert "sun.nio.ch.Net.poll −18.8 [−" in said
    assert said.endswith(" (two JVMs of one version may differ so, too)")
    assert changed(side(HOT), side(HOT)).endswith("no method alone surely differs by 1% of that")
