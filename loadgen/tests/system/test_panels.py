"""What the dashboard shows of a trial: asked, kept, read back."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lab.errors import RawDataError
from lab.store.panels import NAME as PANELS
from lab.store.panels import load
from lab.system.http import Http
from lab.system.panels import keep, panels
from lab.system.prometheus import Prometheus
from support.drawn import BOARD, reader
from support.fakes import START, plan, record

OPENS = START.timestamp() + 10.5
NOBODY = Prometheus("http://127.0.0.1:9", Http())


def test_the_panels_queries_are_asked_over_exactly_the_window(tmp_path: Path) -> None:
    asked: list[dict[str, str]] = []
    keep(record(plan(route="/downstream?wait_ms=5")), 15.0, tmp_path, BOARD, reader(asked))
    assert asked[0] == {
        "query": 'a{server=~"a",route="/downstream"}',
        "start": f"{OPENS:.3f}",
        "end": f"{OPENS + 15:.3f}",
        "step": "1",
    }
    assert len(asked) == 3


def test_what_was_kept_is_what_grafana_would_have_shown(tmp_path: Path) -> None:
    keep(record(), 15.0, tmp_path, BOARD, reader())
    kept = load(tmp_path)
    assert (kept.dashboard, kept.length_s, kept.step_s) == ("Lab", 15.0, 1.0)
    first, other = kept.panels
    assert (first.title, first.section, first.unit) == ("Throughput", "Load and latency", "reqps")
    assert [(one.label, one.is_set) for one in first.lines] == [
        ("a achieved", False),
        ("a offered", True),
    ]
    assert first.lines[0].points == ((0.0, 1234.6), (1.0, 1234.6), (2.0, 1234.6))
    # Samples that are no numbers are none.
    assert [one.points for one in other.lines] == [()]


def test_the_file_is_the_same_whenever_it_is_written(tmp_path: Path) -> None:
    keep(record(), 15.0, tmp_path, BOARD, reader())
    first = (tmp_path / PANELS).read_bytes()
    keep(record(), 15.0, tmp_path, BOARD, reader())
    assert (tmp_path / PANELS).read_bytes() == first
    header = json.loads(gzip.decompress(first).splitlines()[0])
    assert header["window"] == [round(OPENS * 1000), round(OPENS * 1000) + 15_000]


def test_a_long_window_has_wider_steps(tmp_path: Path) -> None:
    asked: list[dict[str, str]] = []
    keep(record(plan(duration_s=3600)), 3600.0, tmp_path, BOARD, reader(asked))
    assert asked[0]["step"] == "15"


def test_a_server_s_name_is_not_a_pattern(tmp_path: Path) -> None:
    asked: list[dict[str, str]] = []
    keep(record(plan(server="a.b")), 15.0, tmp_path, BOARD, reader(asked))
    assert r'server=~"a\\.b"' in asked[0]["query"]


def test_without_prometheus_nothing_is_kept_and_it_is_said(tmp_path: Path) -> None:
    boards = tmp_path / "boards"
    boards.mkdir()
    (boards / "lab.json").write_text(json.dumps(JSON))
    said = panels(record(), 15.0, tmp_path, boards, NOBODY)
    assert said.startswith("no panels were stored: prometheus: http://127.0.0.1:9/api/v1/")
    assert load(tmp_path) is None


def test_without_the_dashboard_it_is_said(tmp_path: Path) -> None:
    said = panels(record(), 15.0, tmp_path, tmp_path / "nowhere", NOBODY)
    assert "no dashboard (*.json) is there" in said
    (tmp_path / "x.json").write_text(json.dumps(JSON | {"uid": "other"}))
    said = panels(record(), 15.0, tmp_path, tmp_path, NOBODY)
    assert "has no dashboard lab" in said


JSON: dict[str, Any] = {
    "uid": "lab",
    "title": "Lab",
    "panels": [
        {"id": 2, "type": "timeseries", "title": "T", "targets": [{"refId": "A", "expr": "a"}]}
    ],
    "templating": {"list": []},
}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        gzip.compress(b'{"format":2}\n'),
        gzip.compress(b'{"window":[0,1],"dashboard":"Lab","step_ms":1}\n{"title":"x"}\n'),
        gzip.compress(b'{"window":[0,1]}\n')[:-9],
    ],
    ids=["empty", "no gzip", "no window", "a panel without lines", "cut off"],
)
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / PANELS).write_bytes(content)
    with pytest.raises(RawDataError, match=r"panels\.jsonl\.gz"):
        load(tmp_path)
