"""What was recorded of a server, as the console and both reports show it."""

import copy
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from lab.judge.hot import Side, side_of
from lab.model import ALLOC, CPU, LOCK, RECORDED, Recording, Row
from lab.report.markdown import markdown
from lab.report.page.flamegraph import page
from lab.report.page.markup import markup
from lab.report.recorded import changed, parts, section, table
from lab.report.result import Recorded
from lab.store import recording
from support.fakes import plan
from support.planned import row
from support.results import result

HOT = {
    "java.lang.Thread.run:9;lab.Routes.<init>:5;lab.Primes.isPrime:31": 240,
    "java.lang.Thread.run:9;lab.Routes.<init>:6;java.util.List.add:3": 60,
    "java.lang.Thread.run:9;lab.Loop.poll:3;sun.nio.ch.Net.poll": 100,
}
FEW_SAMPLES = Recording(CPU, ("jdk.CPUTimeSample",), 99, True, {"lab.Primes.isPrime:31": 99})
COST = "with recording / without: CPU per answer ×1.03 (73 → 75 µs), answers ×0.99 (one pair"


def trial(**changes: Any) -> Row:
    name = changes.pop("trial", f"01-a-closed{RECORDED}")
    figures = {"achieved_rps": 1000.0, "window_s": 10.0, "cpu_server_us": 75.0}
    return row(plan("closed", trial=name), **{**figures, **changes})


def told(kind: str = CPU, stacks: dict[str, int] = HOT, **changes: Any) -> Recorded:
    samples = changes.pop("samples", sum(stacks.values()))
    events = changes.pop("events", ("jdk.CPUTimeSample",))
    of = Recording(kind, events, samples, changes.pop("whole", True), stacks)
    beside = trial(trial="01-a-closed", achieved_rps=1010.0, cpu_server_us=73.0)
    return copy.replace(Recorded(trial(), beside, of), **changes)


def test_the_hottest_methods_have_their_shares_and_lines() -> None:
    assert table(told().recording) == [
        ("`lab.Primes.isPrime`", "60% [55%, 65%]", "60% [55%, 65%]", "31", "60%"),
        ("`sun.nio.ch.Net.poll`", "25% [21%, 29%]", "25% [21%, 29%]", "–", "25%"),
        ("`java.util.List.add`", "15% [12%, 19%]", "15% [12%, 19%]", "3", "15%"),
        ("`lab.Routes.<init>`", "0% [0%, 1%]", "75% [71%, 79%]", "5", "60%"),
        ("`lab.Loop.poll`", "0% [0%, 1%]", "25% [21%, 29%]", "3", "25%"),
    ]
    assert table(FEW_SAMPLES) == ()


STACKS = {"[lock];lab.Worker.run:1;lab.OneLock.hold:27": 40_000_000_000}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (told(), "CPU time by CPUTimeSample, 400 samples"),
        (told(), COST),
        (told(recording=FEW_SAMPLES), "99 samples: fewer than 100 name nothing"),
        (told(events=("jdk.ExecutionSample",)), "this JDK has no samples by CPU time"),
        (told(ALLOC, {"lab.Bodies.hello:4": 2_000_000_000}, samples=3000), "samples, 200 MB/s"),
        (
            told(LOCK, STACKS, samples=9000),
            "waits of 40 s in all, 4 ms for each answer (lock 100%)",
        ),
        (told(LOCK, {}, samples=0), "by CPUTimeSample: no wait of 1 ms or longer"),
        (told(recording=None, problem="it was lost"), "it was lost"),
        (
            told(beside=None),
            "what recording cost is not known: no trial without it was on the same",
        ),
        (told(whole=False), "it outgrew its room: the beginning of the window may be missing"),
        (
            told(row=trial(valid=False, invalid_reasons="cold-restarted")),
            "the recorded trial is invalid: cold JVM: the JVM restarted during the warm-up",
        ),
        (
            told(beside=trial(valid=False, cpu_server_us=None)),
            "CPU per answer not known, answers ×1.00 (one pair, the recorded one second, of which",
        ),
    ],
)
def test_what_was_recorded_is_said_with_what_is_not_known(given: Recorded, says: str) -> None:
    assert says in "; ".join(parts(given))


def test_the_page_links_to_the_flame_graph_and_escapes_names() -> None:
    shown = [section(result(recorded=[told()]))]
    html, graph = markup(shown), f"recorded/01-a-closed{RECORDED}/flamegraph.html"
    assert f'<a href="{graph}">' in html
    assert "lab.Routes.&lt;init&gt;" in html
    assert "<init>" not in html
    assert f"[Flame graph]({graph})" in markdown(shown)
    assert markup([section(result())]) == ""


def test_a_flame_graph_is_drawn_in_a_frame_that_loads_and_opens_nothing() -> None:
    evil = "\"></iframe><script>alert(1)</script>'&amp;"
    text = page('01-a"><script>', told().recording, evil)
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
    found = side_of(trial(**changes), told(stacks=stacks).recording)
    assert isinstance(found, Side)
    return found


SLOWER = {
    "java.lang.Thread.run:9;lab.Routes.<init>:5;lab.Primes.isPrime:33": 240,
    "java.lang.Thread.run:9;lab.Routes.<init>:5;lab.Log.write:3": 160,
}


def test_two_recordings_say_what_costs_more_for_an_answer() -> None:
    said = changed(side(HOT), side(SLOWER, cpu_server_us=150.0))
    assert said.startswith("75 → 150 µs of CPU for each answer (one pair of recorded trials); ")
    for part in ("; alone lab.Log.write +60 [", "] (0 → 60), lab.Primes.isPrime +45 [", "−18.8 [−"):
        assert part in said
    assert changed(side(HOT), side(HOT)).endswith("no method alone surely differs by 1% of that")
