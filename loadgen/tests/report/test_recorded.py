"""What was recorded of a server, as the console and both reports show it."""

import copy
import re
from html import unescape
from pathlib import Path

import pytest

from lab.model import CPU, RECORDED, Recording
from lab.report.markdown import markdown
from lab.report.page.flamegraph import page
from lab.report.page.markup import markup
from lab.report.recorded import section
from lab.report.result import Recorded
from lab.store import recording
from support.fakes import plan
from support.planned import row
from support.results import result

KEPT = Recording(CPU, ("jdk.CPUTimeSample",), 400, True, {"lab.Routes.<init>:5": 400})
TRIAL = Recorded(row(plan("closed", trial=f"01-a-closed{RECORDED}")), None, KEPT)


def test_the_page_links_to_the_flame_graph_and_escapes_names() -> None:
    shown = [section(result(recorded=[TRIAL]))]
    html, graph = markup(shown), f"recorded/01-a-closed{RECORDED}/flamegraph.html"
    assert f'<a href="{graph}">' in html
    assert "lab.Routes.&lt;init&gt;" in html
    assert "<init>" not in html
    assert f"[Flame graph]({graph})" in markdown(shown)
    assert markup([section(result())]) == ""


def test_a_flame_graph_is_drawn_in_a_frame_that_loads_and_opens_nothing() -> None:
    evil = "\"></iframe><script>alert(1)</script>'&amp;"
    text = page('01-a"><script>', KEPT, evil)
    assert text.count("<script") == 0
    assert text.count("<iframe") == 1
    [inside] = re.findall(r'sandbox="allow-scripts allow-modals" srcdoc="([^"]*)"', text)
    assert unescape(inside).count("<script") == 1
    [drawn] = re.findall(r'<body data-graph="([^"]*)">', unescape(inside))
    assert unescape(drawn) == evil
    assert text.index("default-src 'none'") < text.index("<title>")
    assert "400 jdk.CPUTimeSample" in text


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    of = copy.replace(KEPT, stacks={"[lost]": 3, "a.B.<init>:1;a b.C:2": 400})
    assert recording.load_or_none(tmp_path) is None
    recording.write(tmp_path, of, "graph")
    assert recording.load_or_none(tmp_path) == of
    assert (tmp_path / "collapsed.txt").read_text() == "[lost] 3\na.B.<init>:1;a b.C:2 400\n"
    with pytest.raises(ValueError, match="no line break"):
        copy.replace(KEPT, stacks={"a\nb": 1})
