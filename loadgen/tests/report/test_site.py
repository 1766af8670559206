"""A site of runs: its cells, its figures, and a page that is safe with any text."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import altair
import pytest

from lab.model import BESIDE, LIFTED, Row
from lab.report.blocks import Paragraph
from lab.report.site import Machine, SiteRun, page
from lab.report.site.cells import HEADER, groups
from lab.report.site.figures import Place, places
from report.test_html import Page, digest
from support.fakes import plan
from support.planned import row
from support.sited import data

HERE, THERE = Machine("m-here", "here"), Machine("m-there", "there")
EVIL = "<script>alert('x')</script> & </details>"


def of_load(
    run: str, concurrency: int, rate: int | None = None, launches: int = 6, **changes: object
) -> list[Row]:
    """Trials of one load, a little different from launch to launch."""
    mode = "closed" if rate is None else "open"
    return [
        row(
            plan(mode, trial=f"{launch:02d}-{mode}-{concurrency}", server="netty", launch=launch,
                 concurrency=concurrency, offered_rps=rate, **changes),
            run=run,
            achieved_rps=(rate or concurrency * 5.0) - launch,
            window_s=15.0,
            raw_p50_ms=200.0, raw_p95_ms=210.0 + launch, raw_p99_ms=220.0,
            p50_ms=None if rate is None else 201.0,
            p95_ms=None if rate is None else 211.0 + launch,
        )
        for launch in range(1, launches + 1)
    ]  # fmt: skip


def a_run(rows: Sequence[Row], name: str = "r", **changes: object) -> SiteRun:
    whole = SiteRun(name, "loads", HERE, "74a71a6", f"2026-01-31 {name}", ("netty",), rows, alike=0)
    return dataclasses.replace(whole, **changes)  # type: ignore[arg-type]


def curves(*runs: SiteRun) -> list[Place]:
    return [place for place in places(runs) if not place.trend]


def titles(of: Place) -> list[str]:
    return [figure.title for figure in of.figures]


def xs(of: Place) -> set[object]:
    layers = [layer for figure in of.figures for layer in figure.spec["layer"]]
    return {point["x"] for layer in layers for point in layer["data"]["values"]}


def test_a_cell_has_a_median_with_its_interval() -> None:
    [cell] = groups(a_run(of_load("r", 100)))
    cells = dict(zip(HEADER, cell.facts["cells"], strict=True))  # type: ignore[call-overload]
    assert cells["load"] == "closed, 100 connections, wrk2, 15 s"
    assert cells["goodput, requests/s"] == "496 [494, 499]"
    assert cells["p95"] == "214 ms [211 ms, 216 ms]"
    assert (cells["launches"], cells["trials"]) == ("6", "6 of 6 valid")
    assert cell.facts["load"] == "100"


def test_few_launches_have_no_interval_and_say_so() -> None:
    [cell] = groups(a_run(of_load("r", 100, 450, launches=3)))
    cells = dict(zip(HEADER, cell.facts["cells"], strict=True))  # type: ignore[call-overload]
    assert cells["goodput, requests/s"] == "448"
    assert cells["p99"] == "–"
    assert cells["launches"] == "3, no interval"
    assert cell.facts["load"] == "100@450"


def test_a_cell_without_a_valid_trial_is_there_and_says_why() -> None:
    rows = [
        dataclasses.replace(one, valid=False, invalid_reasons="toxics changed")
        for one in of_load("r", 100)
    ]
    [cell] = groups(a_run(rows))
    assert cell.facts["cells"].count("no valid trial") == 4  # type: ignore[attr-defined]
    assert cell.facts["invalid"] == [[one.trial, "toxics changed"] for one in rows]
    [place] = curves(a_run(rows))
    layers = {layer["name"] for figure in place.figures for layer in figure.spec["layer"]}
    assert layers == {"invalid"}


def test_an_overloaded_load_says_that_its_latencies_say_little() -> None:
    rows = [dataclasses.replace(one, overloaded=True) for one in of_load("r", 100, 450)]
    [cell] = groups(a_run(rows))
    assert "overloaded: latencies grow with the length of the window" in list(cell.notes())
    [place] = curves(a_run(rows))
    said = ["subtitle" in figure.spec["title"] for figure in place.figures]
    assert said == [False, True, True]
    assert "overloaded" in place.figures[1].spec["layer"][0]["data"]["values"][0]["tip"]


def test_what_limited_says_how_strong_the_evidence_is() -> None:
    one, *others = of_load("r", 100)
    named = [dataclasses.replace(of, bottleneck="host CPU", strength="weak") for of in others]
    first = dataclasses.replace(one, bottleneck="host CPU", strength="strong")
    [cell] = groups(a_run([first, *named]))
    cells = dict(zip(HEADER, cell.facts["cells"], strict=True))  # type: ignore[call-overload]
    assert cells["what limited"] == "host CPU (strong, 1 of 6), host CPU (weak, 5 of 6)"


def test_what_was_changed_on_purpose_is_in_cells_and_in_no_curve() -> None:
    plain = of_load("r", 100, 450)
    changed = [
        dataclasses.replace(one, arm=arm)
        for arm, one in zip((LIFTED, *BESIDE), of_load("r", 100, 450), strict=False)
    ]
    run = a_run([*plain, *changed])
    assert len(groups(run)) == 1 + len(changed)
    [place] = curves(run)
    layers = [layer for figure in place.figures for layer in figure.spec["layer"]]
    shown = {point["series"] for layer in layers for point in layer["data"]["values"]}
    assert shown == {"netty · r"}


def test_loads_are_drawn_where_no_two_are_at_one_place() -> None:
    by_connections = [*of_load("r", 100, 450), *of_load("r", 200, 900)]
    [place] = curves(a_run(by_connections))
    assert xs(place) == {100, 200}
    [place] = curves(a_run([*by_connections, *of_load("r", 200, 950)]))
    assert xs(place) == {450, 900, 950}
    crossed = [*by_connections, *of_load("r", 100, 900), *of_load("r", 200, 450)]
    assert [xs(place) for place in curves(a_run(crossed))] == [{100, 200}] * 2
    [place] = curves(a_run(by_connections, limits={"p99": 500.0}))
    assert xs(place) == {450, 900}


def test_a_latency_says_from_when_it_counts() -> None:
    closed, opened = curves(a_run([*of_load("r", 100), *of_load("r", 100, 450)]))
    assert titles(closed)[2] == "p95, from when it was sent"
    # The engine told no p99.
    assert titles(opened) == [
        "Throughput (goodput)", "p50, from when it was due", "p95, from when it was due",
    ]  # fmt: skip


def test_only_runs_of_one_machine_that_are_alike_share_a_figure() -> None:
    runs = [
        a_run(of_load("r", 100), "r"),
        a_run(of_load("s", 100), "s"),
        a_run(of_load("t", 100), "t", machine=THERE),
        a_run(of_load("u", 100), "u", alike=1),
        a_run(of_load("v", 100), "v", alike=None),
    ]
    shown = []
    for place in places(runs):
        layers = [layer for figure in place.figures for layer in figure.spec["layer"]]
        points = [point for layer in layers for point in layer["data"]["values"]]
        shown.append((place.trend, {point["run"] for point in points}))
    assert shown == [(False, {"u"}), (False, {"r", "s"}), (False, {"t"}), (True, {"r", "s"})]


def test_no_two_lines_of_a_figure_look_alike() -> None:
    runs = [a_run(of_load(name, 100), name) for name in "abcdefgh"]
    [place] = curves(*runs)
    color, shape = (
        place.figures[0].spec["layer"][-1]["encoding"][name]["scale"] for name in ("color", "shape")
    )
    assert len(color["domain"]) == 8
    assert len(set(zip(color["range"], shape["range"], strict=True))) == 8


def test_a_trend_takes_the_same_load_in_the_same_window_only() -> None:
    rows = of_load("r", 100)
    longer = of_load("s", 100, duration_s=30)
    assert not any(place.trend for place in places([a_run(rows, "r"), a_run(longer, "s")]))
    runs = [a_run(of_load(name, 100), name) for name in ("s", "r")]
    [trend] = [place for place in places(runs) if place.trend]
    assert trend.figures[0].spec["encoding"]["x"]["scale"]["domain"] == [
        "2026-01-31 r 74a71a6",
        "2026-01-31 s 74a71a6",
    ]
    assert [one.name for one in trend.figures] == ["goodput", "p95"]


def test_runs_that_began_at_once_stay_apart_in_a_trend() -> None:
    runs = [a_run(of_load(name, 100), name, started="2026-01-31") for name in "rs"]
    [trend] = [place for place in places(runs) if place.trend]
    assert xs(trend) == {"2026-01-31 74a71a6 r", "2026-01-31 74a71a6 s"}


def test_every_specification_is_of_vega_lite() -> None:
    runs = [
        a_run([*of_load(name, 100), *of_load(name, 200, 450)], name, limits={"p95": 500.0})
        for name in "rs"
    ]
    found = [figure for place in places(runs) for figure in place.figures]
    assert len(found) == 4 + 3 + 2 + 2
    for figure in found:
        altair.Chart.from_dict(figure.live, validate=True)
        # As it is drawn: in the axes, without a gap in their names.
        assert not re.search(r"NaN|undefined|Infinity", figure.svg.partition("</desc>")[2])


def evil() -> SiteRun:
    rows = [
        dataclasses.replace(one, server=EVIL, valid=False, invalid_reasons=EVIL)
        for one in of_load("r", 100)
    ]
    shown = (Paragraph(EVIL),)
    return a_run(rows, machine=Machine("m", EVIL), said=(EVIL,), shown=shown, kind=EVIL)


def test_nothing_that_a_run_says_is_markup() -> None:
    text = page([evil()])
    parsed = Page(text)
    assert EVIL not in text
    assert len(parsed.all("details")) == 1
    kinds = [one.get("type") for one in parsed.all("script")]
    assert kinds == ["application/gzip"] * 2 + [None] * 2
    assert data(text)["cells"][0]["server"] == EVIL


def test_nothing_is_fetched_and_only_its_own_scripts_run() -> None:
    text = page([a_run(of_load("r", 100))])
    parsed = Page(text)
    assert not parsed.all("img", "iframe", "object", "embed")
    assert not any("src" in one for one in parsed.all("script"))
    assert [link["href"] for link in parsed.all("link")] == ["data:,"]
    [policy] = [one["content"] for one in parsed.all("meta") if one.get("http-equiv")]
    own = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    assert len(own) == 2
    assert all(digest(one) in str(policy) for one in own)
    assert "default-src 'none'" in str(policy)


@pytest.mark.parametrize("count", [1, 2])
def test_it_says_how_many_runs_and_machines_it_is_of(count: int) -> None:
    runs = [a_run(of_load(name, 100), name) for name in "rs"[:count]]
    said = {1: "1 run on 1 machine", 2: "2 runs on 1 machine"}
    assert f"<h1>{said[count]}</h1>" in page(runs)


def test_a_site_without_trials_is_a_list_of_its_runs() -> None:
    text = page([a_run((), alike=None, shown=(Paragraph("why"),))])
    assert "<p>why</p>" in text
    assert data(text)["places"] == data(text)["cells"] == []
