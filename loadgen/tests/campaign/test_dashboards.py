"""The pictures of dashboards: what is asked for them, what they show, and the page they are on."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.campaign.dashboards import main, parse, pictures
from lab.errors import LabUnreachable, WordError
from lab.system.dashboards.model import Dashboard, load
from lab.system.http import Http
from lab.system.prometheus import Prometheus
from support.repo import REPO

NOW = 1_795_464_000.0  # 2026-11-23T20:00:00Z
DASHBOARDS = REPO / "grafana" / "dashboards"
PAGE = REPO / "docs" / "dashboards.md"


def panel(title: str, x: int, *exprs: str, legend: str = "{{server}}") -> dict[str, Any]:
    return {
        "id": 1, "title": title, "type": "timeseries", "gridPos": {"x": x, "y": 1, "w": 12, "h": 9},
        "fieldConfig": {"defaults": {"unit": "s"}},
        "targets": [
            {"refId": ref, "expr": expr, "legendFormat": legend}
            for ref, expr in zip("AB", exprs, strict=False)
        ],
    }  # fmt: skip


def board(uid: str = "lab-jvm", **fields: Any) -> dict[str, Any]:
    server = {"name": "server", "multi": True, "allValue": ".+", "current": {"value": ["$__all"]}}
    trials = {"name": "Trials", "expr": "trials", "titleFormat": "{{server}}, {{phase}}"}
    toxics = {"name": "Toxics", "expr": "toxics", "titleFormat": "changed", "useValueForTime": True}
    rows = [{"type": "row", "id": 9, "title": "Memory", "gridPos": {"x": 0, "y": 0, "w": 24}}]
    return {
        "uid": uid, "title": "JVM",
        "panels": [*rows, panel("Heap", 0, 'heap{server=~"$server"}'), panel("Pause", 12, "none")],
        "templating": {"list": [server]},
        "annotations": {"list": [trials, toxics]},
    } | fields  # fmt: skip


def boards(folder: Path, *contents: dict[str, Any]) -> tuple[Dashboard, ...]:
    for content in contents:
        (folder / f"{content['uid']}.json").write_text(json.dumps(content))
    return load(folder)


def prometheus(asked: list[dict[str, str]]) -> Prometheus:
    """It knows the heap of two servers, a trial in two phases, and two changes of toxics."""

    def lines(query: str, at: float) -> list[dict[str, Any]]:
        def one(values: list[tuple[float, float]], **labels: str) -> dict[str, Any]:
            return {"metric": labels, "values": [[time, str(value)] for time, value in values]}

        if query.startswith("heap"):
            return [
                one([(at, 0.1), (at + 10, 0.2), (at + 120, 0.15)], server=server)
                for server in ("netty", "own")
            ]
        if query == "trials":
            return [
                one([(at + 3, 1), (at + 4, 1)], server="netty", phase="warmup"),
                one([(at + 10, 1), (at + 11, 1)], server="netty", phase="measure"),
                one([(at, 1), (at + 1, 1)], server="own", phase="measure"),
            ]
        if query == "toxics":
            moments = (at - 50, at + 40, at + 40)
            return [one([(at + n, 1000 * when) for n, when in enumerate(moments)], proxy="p")]
        return []

    def answer(request: httpx.Request) -> httpx.Response:
        query = dict(httpx.QueryParams(request.content.decode()))
        asked.append(query)
        result = lines(query["query"], float(query.get("start", 0)))
        return httpx.Response(200, json={"status": "success", "data": {"result": result}})

    return Prometheus("http://prometheus:9090", Http(httpx.MockTransport(answer)))


def texts(picture: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text())


def test_a_dashboard_is_drawn_from_what_its_queries_answer(tmp_path: Path) -> None:
    asked: list[dict[str, str]] = []
    (tmp_path / "to").mkdir()
    found = boards(tmp_path, board())
    words = {"TO": str(tmp_path / "to"), "server": "netty|own"}
    (said,) = pictures(parse(words, found, NOW), found, prometheus(asked))
    assert asked[0] == {
        "query": 'heap{server=~"netty|own"}',
        "start": f"{NOW - 120:.3f}", "end": f"{NOW:.3f}", "step": "2",
    }  # fmt: skip
    assert re.fullmatch(r"dashboard-jvm\.svg: 2 panels, \d kB; no data: Pause", said)
    drawn = texts(tmp_path / "to" / "dashboard-jvm.svg")
    assert drawn[:5] == [
        "JVM",
        "2026-11-23T19:58:00Z to 2026-11-23T20:00:00Z; server: netty|own",
        # A warm-up is no mark, and neither is a trial or a change from before the window.
        "1 at 10.0 s: netty, measure",
        "2 at 40.0 s: changed",
        "Memory",
    ]
    assert {"Heap", "netty", "own", "200 ms", "Pause", "no data in this time"} <= set(drawn)


def test_it_says_what_is_chosen_where_nothing_was_asked_for(tmp_path: Path) -> None:
    found = boards(tmp_path, board())
    words = {"TO": str(tmp_path), "SECONDS": "300", "UNTIL": "2026-11-23T19:00:00"}
    asked: list[dict[str, str]] = []
    list(pictures(parse(words, found, NOW), found, prometheus(asked)))
    # 60 samples are enough.
    assert (asked[0]["start"], asked[0]["step"]) == (f"{NOW - 3900:.3f}", "5")
    assert "2026-11-23T18:55:00Z to 2026-11-23T19:00:00Z; server: all" in texts(
        tmp_path / "dashboard-jvm.svg"
    )


def test_compare_has_its_own_time_and_a_hue_for_each_side(tmp_path: Path) -> None:
    fixed = {"from": "2000-01-01T00:00:00.000Z", "to": "2000-01-01T00:01:00.000Z"}
    sides = [{"name": f"run_{side}", "current": {"value": f"r{side}"}} for side in "ab"]
    shift = {"name": "shift_a", "current": {"value": "5"}}
    both = panel("Heap", 0, "heap", legend="A $run_a")
    both["targets"].append({"refId": "B", "expr": "heap offset ${shift_a}s", "legendFormat": "B"})
    content = board(
        "lab-compare", title="Compare", time=fixed, panels=[both],
        templating={"list": [*sides, shift]}, annotations={"list": []},
    )  # fmt: skip
    found = boards(tmp_path, content)
    asked: list[dict[str, str]] = []
    list(pictures(parse({"TO": str(tmp_path)}, found, NOW), found, prometheus(asked)))
    assert [one["query"] for one in asked] == ["heap", "heap offset 5s"]
    assert (asked[0]["start"], asked[0]["end"]) == ("946684800.000", "946684860.000")
    assert asked[0]["step"] == "1"
    drawn = texts(tmp_path / "dashboard-compare.svg")
    assert drawn[:2] == ["Compare", "run_a: ra, run_b: rb"]
    assert "A ra" in drawn
    # The last sample is later than the minute that is shown.
    assert "60" in drawn


def test_compare_ends_with_its_trials(tmp_path: Path) -> None:
    fixed = {"from": "2000-01-01T00:00:00.000Z", "to": "2000-01-01T00:10:00.000Z"}
    found = boards(tmp_path, board("lab-compare", time=fixed))
    list(pictures(parse({"TO": str(tmp_path)}, found, NOW), found, prometheus([])))
    drawn = texts(tmp_path / "dashboard-compare.svg")
    assert "120" in drawn
    assert "s" in drawn


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({}, "TO= is not allowed; allowed: a folder that is there"),
        ({"TO": "/nowhere"}, "TO=/nowhere is not allowed"),
        ({"TO": ".", "SECONDS": "1"}, "SECONDS=1 is not allowed; allowed: 2..7200"),
        ({"TO": ".", "SECONDS": "7201"}, "SECONDS=7201 is not allowed"),
        ({"TO": ".", "SECONDS": "2m"}, "SECONDS=2m is not allowed"),
        ({"TO": ".", "UNTIL": "noon"}, "UNTIL=noon is not allowed; allowed: a time as"),
        ({"TO": ".", "service": "x"}, "unknown word service; allowed: TO, SECONDS, UNTIL, server"),
    ],
)
def test_a_word_that_cannot_be_is_refused(tmp_path: Path, words: dict[str, str], said: str) -> None:
    with pytest.raises(WordError, match=re.escape(said)):
        parse(words, boards(tmp_path, board()), NOW)


def test_without_prometheus_it_is_one_clear_error(tmp_path: Path) -> None:
    folder = tmp_path / "grafana" / "dashboards"
    folder.mkdir(parents=True)
    boards(folder, board())
    environ = {"LAB_HOME": str(tmp_path), "LAB_PROMETHEUS_URL": "http://127.0.0.1:9"}
    with pytest.raises(LabUnreachable, match=r"prometheus: http://\S+ does not answer"):
        main([f"TO={tmp_path}"], environ, io.StringIO())
    assert list(tmp_path.glob("*.svg")) == []


def test_the_page_shows_every_dashboard_and_names_its_choosers() -> None:
    page = PAGE.read_text()
    sections = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", page, re.MULTILINE))
    for one in load(DASHBOARDS):
        section = sections[one.title]
        picture = f"images/dashboard-{one.uid.removeprefix('lab-')}.svg"
        assert f"({picture})" in section, one.uid
        content = json.loads((DASHBOARDS / f"{one.uid}.json").read_text())
        shown = [v["name"] for v in content["templating"]["list"] if not v.get("hide")]
        assert [name for name in shown if f"`{name}`" not in section] == [], one.uid
        # A panel in italics is one of this dashboard.
        titles = {panel.title for panel in one.panels}
        assert set(re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", section)) <= titles, one.uid
