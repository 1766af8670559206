"""Figures: axes, what is drawn of which trials, colours that can be told apart."""

import dataclasses
import itertools
import json
import re
from xml.etree import ElementTree

import altair
import pytest
import vl_convert

from lab.model import (
    Peak,
    Row,
    ScriptedToxic,
    Spike,
)
from lab.report.page import palette, units
from lab.report.page.by_load import by_load
from lab.report.page.figure import Figure, alone, still
from lab.report.page.lane_styles import LaneStyles
from lab.report.page.observed import Line, Observed, Panel, moments
from lab.report.page.observed import drawn as over_time
from lab.report.page.spec import DASHES, SHAPES, Spec
from support.fakes import plan, record
from support.planned import row

SVG = "{http://www.w3.org/2000/svg}"


def rows(launches: int, concurrencies: tuple[int, ...] = (100, 1000)) -> list[Row]:
    """Two servers, closed and open, so many launches."""
    return [
        row(
            plan(mode, trial=f"{server}-{mode}-{load}-{launch}", server=server, launch=launch,
                 concurrency=load, offered_rps=load * 4 if mode == "open" else None),
            achieved_rps=load * 4.0 + launch,
            predicted_rps=load * 5.0 if mode == "closed" else load * 4.0,
            p95_ms=210.0 + launch if mode == "open" else None,
            raw_p95_ms=205.0 + launch,
        )
        for launch in range(1, launches + 1)
        for load in concurrencies
        for mode in ("closed", "open")
        for server in ("fixed-pool", "own-service")
    ]  # fmt: skip


def figures(of: list[Row]) -> dict[str, Figure]:
    styles = LaneStyles.of(("fixed-pool", "own-service"), of)
    return {one.name: one for place in by_load(of, styles) for one in place.figures}


def closed_rates(of: list[Row]) -> Figure:
    return figures(of)["throughput-closed-downstream-wrk2"]


def parsed(figure: Figure) -> ElementTree.Element:
    return ElementTree.fromstring(figure.svg)


def texts(figure: Figure) -> set[str]:
    """Every text that is drawn."""
    return {part for text in parsed(figure).iter(f"{SVG}text") for part in text.itertext()}


def layer(figure: Figure, name: str) -> Spec:
    [found] = [one for one in figure.spec["layer"] if one["name"] == name]
    return found


def data(figure: Figure, name: str) -> list[Spec]:
    """What a layer draws; nothing where it is not there."""
    return [
        one
        for each in figure.spec["layer"]
        if each["name"] == name
        for one in each["data"]["values"]
    ]


def points(figure: Figure, name: str, series: str) -> list[tuple[float, float]]:
    return [(one["x"], one["y"]) for one in data(figure, name) if one["series"] == series]


def legend(figure: Figure) -> dict[str, tuple[str, str]]:
    """Of each entry of the legend its colour and how its line is broken."""
    found: dict[str, tuple[str, str]] = {}
    for each in figure.spec["layer"]:
        colour = each["encoding"].get("color", {}).get("scale")
        if colour:
            dash = each["encoding"].get("strokeDash", {}).get("scale", {}).get("range")
            names = [next(k for k, v in DASHES.items() if v == one) for one in dash or ()]
            for at, name in enumerate(colour["domain"]):
                if dash or name not in found:
                    found[name] = (colour["range"][at], names[at] if dash else "")
    return found


def subtitle(figure: Figure) -> str:
    return str(figure.spec["title"].get("subtitle", ""))


def test_closed_and_open_stand_beside_each_other_on_one_scale() -> None:
    drawn = figures(rows(1))
    assert list(drawn) == [
        "throughput-closed-downstream-wrk2",
        "throughput-open-downstream-wrk2",
        "latency-closed-downstream-wrk2",
        "latency-open-downstream-wrk2",
    ]
    closed, opened = list(drawn.values())[:2]
    assert closed.spec["encoding"]["y"]["scale"] == opened.spec["encoding"]["y"]["scale"]


def test_every_launch_is_a_shape_where_there_are_too_few_for_an_interval() -> None:
    drawn = closed_rates(rows(5))
    # 5 launches of 2 loads.
    assert len(points(drawn, "launches", "fixed-pool")) == 5 * 2
    assert not data(drawn, "intervals")


def test_from_six_launches_on_the_median_has_its_interval() -> None:
    drawn = closed_rates(rows(6))
    assert len(points(drawn, "launches", "fixed-pool")) == 2
    intervals = data(drawn, "intervals")
    assert len(intervals) == 2 * 2
    assert (intervals[0]["low"], intervals[0]["high"]) == (401, 406)
    assert "100 connections 404 [401, 406]" in drawn.alt
    assert intervals[0]["tip"] == "fixed-pool\n100 connections\nmedian 404 [401, 406]"


def test_the_predicted_bound_and_the_offered_rate_are_drawn() -> None:
    drawn = figures(rows(1))
    closed, opened = (drawn[f"throughput-{mode}-downstream-wrk2"] for mode in ("closed", "open"))
    assert list(legend(closed)) == ["fixed-pool", "own-service", "bound"]
    assert points(closed, "set", "bound") == [(100, 500), (1000, 5000)]
    # Its bound is what is offered: one line says both.
    assert list(legend(opened)) == ["fixed-pool", "own-service", "offered"]
    assert points(opened, "set", "offered") == [(100, 400), (1000, 4000)]


def test_a_search_by_rate_is_drawn_against_the_rate_with_its_objective() -> None:
    of = [one for one in rows(1) if one.mode == "open" and one.server == "fixed-pool"]
    # As many connections, at another rate.
    of.append(dataclasses.replace(of[0], offered_rps=800, achieved_rps=790.0, p95_ms=600.0))
    # One that tells nothing.
    lost = dataclasses.replace(of[0], offered_rps=16_000, achieved_rps=None, p50_ms=None)
    of.append(dataclasses.replace(lost, p95_ms=None, p99_ms=None, raw_p95_ms=None, valid=False))
    styles = LaneStyles.of(("fixed-pool",), of)
    [place] = by_load(of, styles, {"p95": 500.0})
    drawn = {one.name: one for one in place.figures}
    p95 = drawn["p95-by-rate-downstream-wrk2"]
    assert points(p95, "medians", "fixed-pool") == [(400, 211), (800, 600), (4000, 211)]
    assert points(p95, "set", "objective") == [(400, 500), (4000, 500)]
    assert "400 requests/s 211 ms" in p95.alt
    rate = drawn["throughput-by-rate-downstream-wrk2"]
    assert points(rate, "medians", "fixed-pool") == [(400, 401), (800, 790), (4000, 4001)]
    # Linear: the steps of a search are close to each other where it matters.
    assert rate.spec["encoding"]["x"]["scale"] == {"domain": [0, 4000], "nice": True}
    assert "values" not in rate.spec["encoding"]["x"]["axis"]
    assert rate.spec["encoding"]["y"]["scale"] == {"domain": [0, 4001], "nice": True}
    assert "objective" not in legend(rate)


def test_a_search_by_rate_over_as_many_connections_is_a_line_too() -> None:
    (first,) = (one for one in rows(1, (10,)) if (one.mode, one.server) == ("open", "fixed-pool"))
    of = [dataclasses.replace(first, offered_rps=rate) for rate in (250, 350, 500)]
    [place] = by_load(of, LaneStyles.of(("fixed-pool",), of), {"p95": 5.0})
    p95 = next(one for one in place.figures if one.name.startswith("p95"))
    assert [x for x, _ in points(p95, "medians", "fixed-pool")] == [250, 350, 500]
    # One rate is a point.
    [place] = by_load(of[:1], LaneStyles.of(("fixed-pool",), of), {"p95": 5.0})
    p95 = next(one for one in place.figures if one.name.startswith("p95"))
    assert data(p95, "launches")[0]["tip"].splitlines()[1] == "250 requests/s"


def test_a_single_load_has_its_points_above_it() -> None:
    drawn = closed_rates(rows(2, (100,)))
    assert {x for x, _ in points(drawn, "launches", "fixed-pool")} == {100}
    assert len({one["shift"] for one in data(drawn, "launches")}) == 2
    # A line is drawn across it.
    assert points(drawn, "set", "bound") == [(50, 500), (200, 500)]
    assert {"fixed-pool", "own-service", "100"} <= texts(drawn)


def test_only_the_longest_windows_of_a_load_are_drawn_along_connections() -> None:
    of = rows(2)
    # The second launch measured a load in a longer window, one trial of it again.
    load = ("fixed-pool-closed-100-2", "fixed-pool-closed-1000-2")
    longer = [dataclasses.replace(one, duration_s=34) for one in of if one.trial == load[0]]
    again = [
        dataclasses.replace(one, duration_s=34, trial=f"{one.trial}-again")
        for one in of
        if one.trial == load[1]
    ]
    drawn = closed_rates([*(one for one in of if one.trial != load[0]), *longer, *again])
    assert points(drawn, "launches", "fixed-pool") == [(100, 402), (1000, 4002)]
    assert len(points(drawn, "launches", "own-service")) == 4


def test_only_the_longest_windows_of_a_rate_are_drawn_along_rates() -> None:
    of = [one for one in rows(1) if one.mode == "open" and one.server == "fixed-pool"]
    # A search asks the same JVM again in a longer window, after a longer warm-up.
    again = dataclasses.replace(
        of[0], trial="longer", duration_s=20, warmup_s=20, p95_ms=700.0, p99_ms=800.0
    )
    [place] = by_load([*of, again], LaneStyles.of(("fixed-pool",), of), {"p95": 500.0})
    [p95] = [one for one in place.figures if one.name.startswith("p95")]
    assert points(p95, "launches", "fixed-pool") == [(400, 700.0), (4000, 211.0)]


def test_answers_that_are_errors_are_no_throughput() -> None:
    shedding = [dataclasses.replace(one, ok=300, http_errors=100) for one in rows(1)]
    drawn = closed_rates(shedding)
    assert "fixed-pool: 100 connections 301, 1,000 connections 3,001" in drawn.alt


def test_a_bound_of_one_server_only_has_that_server_s_hue() -> None:
    mixed = [
        dataclasses.replace(one, predicted_rps=900.0) if one.server == "fixed-pool" else one
        for one in rows(1)
    ]
    drawn = closed_rates(mixed)
    bounds = layer(drawn, "own-bounds")
    assert list(dict.fromkeys(one["series"] for one in bounds["data"]["values"])) == [
        "fixed-pool", "own-service",
    ]  # fmt: skip
    assert bounds["encoding"]["color"]["scale"]["range"][:2] == ["var(--k0)", "var(--k5)"]
    assert subtitle(drawn) == "dotted: its bound"


def test_corrected_and_raw_are_in_one_figure() -> None:
    drawn = figures(rows(1))["latency-open-downstream-wrk2"]
    assert len(points(drawn, "raw-launches", "fixed-pool")) == 2
    assert layer(drawn, "raw-launches")["mark"]["fill"] == "var(--page)"
    assert "hollow: raw" in subtitle(drawn)
    assert "own-service raw: 100 connections 206 ms" in drawn.alt


def test_an_invalid_trial_is_a_cross_and_in_no_median() -> None:
    wrong = [dataclasses.replace(one, valid=False) for one in rows(1)[:1]] + rows(1)[1:]
    drawn = closed_rates(wrong)
    [struck] = data(drawn, "invalid")
    assert (struck["series"], struck["x"], struck["y"]) == ("fixed-pool", 100, 401)
    assert "invalid trial" in struck["tip"]
    assert "fixed-pool: 100 connections no valid trial" in drawn.alt
    assert (100, 401) not in points(drawn, "launches", "fixed-pool")
    assert "×: invalid trial" in subtitle(drawn)


def test_arms_of_one_server_have_its_hue_and_a_shape_each() -> None:
    arms = [row(plan(server="a", arm=arm, trial=arm)) for arm in ("x", "y")]
    styles = LaneStyles.of(("a",), arms).lanes
    assert styles["a@x"].hue == styles["a@y"].hue
    assert styles["a@x"].shape != styles["a@y"].shape
    assert styles["a@x"].dash != styles["a@y"].dash


def test_the_bound_of_a_load_is_one_that_a_trial_had() -> None:
    of = rows(2, (100, 1000))
    odd = [
        dataclasses.replace(one, predicted_rps=1.0 if one.launch == 2 else one.predicted_rps)
        for one in of
    ]
    drawn = closed_rates(odd)
    assert points(drawn, "set", "bound") == [(100, 1.0), (1000, 1.0)]


def test_a_run_without_figures_has_none() -> None:
    assert figures([row(plan(server="fixed-pool"))]) == {}


def test_a_lost_trial_of_a_longer_window_leaves_nothing_to_draw() -> None:
    of = rows(1, (100,))
    nothing = {"achieved_rps": None, "p95_ms": None, "raw_p95_ms": None, "ok": 0}
    lost = [dataclasses.replace(one, duration_s=99, valid=False, **nothing) for one in of]
    assert figures([*of, *lost]) == {}


def test_every_route_and_engine_is_a_place() -> None:
    several = [
        dataclasses.replace(one, route=route) for route in ("/", "/?wait_ms=200") for one in rows(1)
    ]
    assert "throughput-open-wait-ms-200-wrk2" in figures(several)
    assert "throughput-open-root-wrk2" in figures(several)


def panels(*lines: Line, unit: str = "s") -> Observed:
    return Observed(15.0, 1.0, (Panel("p95", unit, "What it is.", lines),))


def line(label: str, *values: float, is_set: bool = False, owner: str = "") -> Line:
    return Line(label, tuple((float(at), value) for at, value in enumerate(values)), owner, is_set)


def test_a_panel_is_drawn_over_exactly_the_window() -> None:
    of = panels(
        line("total", 0.2, 0.3, owner="a"),
        line("queue", 0.0, 0.1, owner="a"),
        line("limit", 1.0, 1.0, is_set=True),
    )
    [figure] = over_time("01-a", "a", of, {"a": 3})
    assert (figure.title, figure.name) == ("p95", "01-a-p1")
    assert legend(figure) == {
        "total": ("var(--k3)", ""), "queue": ("var(--k0)", ""), "limit": ("var(--k1)", "dash"),
    }  # fmt: skip
    assert figure.spec["encoding"]["x"]["scale"] == {"domain": [0, 15], "nice": False}
    assert figure.alt.startswith("What it is. total: 200 ms to 300 ms.")


def test_of_many_lines_the_highest_have_names() -> None:
    of = panels(*(line(f"c{at}", float(at), owner=f"c{at}") for at in range(1, 10)))
    [figure] = over_time("01-a", "a", of, {"c2": 0, "c9": 2})
    assert list(legend(figure))[-2:] == ["c9", "3 more, lower"]
    assert legend(figure)["c9"] == ("var(--k2)", "")
    assert len(data(figure, "lines") + data(figure, "more")) == 9


def test_the_trial_s_own_server_is_named_among_the_containers_however_low_it_is() -> None:
    lines = [line(f"c{at}", float(at), owner=f"c{at}") for at in range(1, 10)]
    hues = {"c1": 5, "c9": 5}
    for own, value in (("c1", 0.5), ("c1", 0.0)):
        lines[0] = line(own, value, owner=own)
        idle = [line(f"z{at}", 0.0, owner=f"z{at}") for at in range(3)]
        [figure] = over_time("01-c1", "c1", panels(*lines, *idle), hues)
        keys = {name: colour for name, (colour, _) in legend(figure).items()}
        assert list(keys) == [
            "c1", "c4", "c5", "c6", "c7", "c8", "c9", "2 more, lower", "3 more, all 0",
        ]  # fmt: skip
        # The hue that another server shares is the trial's own server's.
        assert keys["c1"] == "var(--k5)"
        assert len({keys[f"c{at}"] for at in (1, 4, 5, 6, 7, 8, 9)}) == 7


def test_spikes_and_steps_of_a_script_are_marked_where_they_were() -> None:
    spiky = record(
        plan(spike=Spike(400, None, 3, 2, 1, 0.25, 1)),
        window_offset_s=2.0,
        peaks=(Peak(5.0, 7.25),),
        script=(
            ScriptedToxic(6.0, 6.1, "TYPE=down", False, "Toxiproxy does not answer"),
            ScriptedToxic(40.0, 40.1, "TYPE=up", True),
        ),
    )
    marked = moments(spiky)
    assert [one.text for one in marked] == [
        "1 at 3.0 s: spike of 400 connections begins",
        "2 at 4.0 s: TYPE=down (Toxiproxy does not answer)",
        "3 at 5.2 s: spike ends",
        "4 at 38.0 s: TYPE=up",
    ]
    [figure] = over_time("01-a", "a", panels(line("x", 1.0, 2.0)), {}, marked)
    # The window ends before the last.
    assert [one["x"] for one in data(figure, "marks")] == [3.0, 4.0, 5.25]
    assert [one["number"] for one in data(figure, "numbers")] == ["1", "2", "3"]
    assert data(figure, "marks")[0]["tip"] == marked[0].text
    assert {"1", "2", "3"} <= texts(figure)
    assert "1 at 3.0 s: spike of 400 connections begins." in figure.alt
    assert moments(record()) == ()


def test_many_lines_that_never_leave_zero_are_one_entry() -> None:
    quiet = [line(f"error {at}", 0.0, 0.0) for at in range(3)]
    [figure] = over_time("01-a", "a", panels(*quiet, line("rejected", 0.0, 5.0)), {})
    assert list(legend(figure)) == ["rejected", "3 more, all 0"]
    [figure] = over_time("01-a", "a", panels(*quiet), {})
    assert list(legend(figure)) == ["3, all 0"]
    [figure] = over_time("01-a", "a", panels(*quiet[:2]), {})
    assert list(legend(figure)) == ["error 0", "error 1"]


def test_missing_samples_leave_a_gap() -> None:
    of = panels(Line("x", ((0, 1), (1, 1), (9, 1), (10, 1))))
    [figure] = over_time("01-a", "a", of, {})
    assert [one["x"] for one in data(figure, "lines")] == [[0, 1], [9, 10]]
    drawn_lines = [p.get("d", "") for p in parsed(figure).iter(f"{SVG}path")
                   if p.get("stroke") == "var(--k0)"]  # fmt: skip
    # One for the legend.
    assert len(drawn_lines) == 1 + 2


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ((100.0, 450.0), {"domain": [0, 450], "nice": True}),
        ((0.0,), {"domain": [0, 1], "nice": True}),
        ((90.0, 20_000.0), {"type": "log", "domain": [50, 20_000], "nice": False}),
        ((9.0, 45_000.0), {"type": "log", "domain": [5, 50_000], "nice": False}),
        ((90.0, 1_900.0), {"type": "log", "domain": [50, 2_000], "nice": False}),
        # A logarithmic one has no place for a 0.
        ((0.0, 90.0, 1_900.0), {"domain": [0, 1_900], "nice": True}),
    ],
)
def test_an_axis_is_logarithmic_where_values_are_far_apart(
    values: tuple[float, ...], scale: Spec
) -> None:
    assert {"clamp": True, **units.scale(values)} == {"clamp": True, **scale}


def test_a_logarithmic_axis_names_some_of_its_values() -> None:
    assert {"100", "1,000"} <= texts(closed_rates(rows(1, (20, 4000))))


def test_units_are_written_as_people_read_them() -> None:
    assert [units.milliseconds(v) for v in (0, 0.5, 200, 1500, 1e6)] == [
        "0", "0.5 ms", "200 ms", "1.5 s", "16.7 min",
    ]  # fmt: skip
    assert [units.data(v) for v in (0, 512, 2**26, 1000 * 2**20, 1.5 * 2**30)] == [
        "0", "512 B", "64 MiB", "1,000 MiB", "1.5 GiB",
    ]  # fmt: skip
    assert [units.number(v) for v in (0.25, 12, 1800, 25_000, 1.25e6)] == [
        "0.25", "12", "1,800", "25k", "1.25M",
    ]  # fmt: skip
    assert units.of_panel("bytes", 1.2 * 2**30).factor == 1 / 2**30


@pytest.mark.parametrize(
    ("unit", "values"),
    [
        (units.RATE, (0, 0.25, 12, 99.5, 1800, 9999, 25_000, 999_600, 1.25e6, 999.6e6, 3e9)),
        (units.MILLISECONDS, (0, 0.5, 12.34, 99.97, 200, 999, 1500, 150_000, 1e6)),
    ],
)
def test_vega_writes_a_value_as_python_does(unit: units.Unit, values: tuple[float, ...]) -> None:
    spec = {
        "data": {"values": [{"y": value} for value in values]},
        "transform": [{"calculate": unit.written("datum.y"), "as": "text"}],
        "mark": "text",
        "encoding": {"text": {"field": "text"}, "y": {"field": "y", "axis": None}},
    }
    svg = vl_convert.vegalite_to_svg(spec)
    assert re.findall(">([^<>]+)</text>", svg) == [unit.words(value) for value in values]


def test_text_and_lines_have_contrast_on_both_pages() -> None:
    for colours in (palette.LIGHT, palette.DARK):
        for ground in ("page", "card"):
            for name in ("ink", "soft", "link", "good", "bad"):
                assert contrast(colours[name], colours[ground]) >= 4.5, name
        assert contrast(colours["ink"], colours["loud"]) >= 4.5
        for hue in range(palette.HUES + 1):
            assert contrast(colours[f"k{hue}"], colours["page"]) >= 3, hue


def test_a_server_keeps_its_hue_whoever_it_is_measured_with() -> None:
    known = ("fixed-pool", "virtual-threads", "event-loop", "netty", "netty-virtual")
    assert palette.colours(known[::-1]) == {name: at for at, name in enumerate(known)}
    mixed = palette.colours(("own", "netty", "other"))
    assert mixed["netty"] == 3
    assert len(set(mixed.values())) == 3


def test_when_hues_are_used_up_servers_differ_in_shape_and_line() -> None:
    names = [*("fixed-pool", "virtual-threads", "netty"), *(f"framework-{n}" for n in range(7))]
    of = [dataclasses.replace(rows(1)[0], server=name) for name in names]
    styles = LaneStyles.of(names, of).lanes
    assert len({(style.hue, style.dash) for style in styles.values()}) == len(names)
    assert len({(style.hue, style.shape) for style in styles.values()}) == len(names)


def test_hues_can_be_told_apart_with_colour_blindness() -> None:
    # G. M. Machado et al., IEEE TVCG 15 (2009) 1291, severity 1; distances in CIELAB (1976).
    for colours, kind in itertools.product((palette.LIGHT, palette.DARK), MACHADO):
        seen = [
            lab(through(MACHADO[kind], linear(colours[f"k{hue}"]))) for hue in range(palette.HUES)
        ]
        for (i, one), (j, other) in itertools.combinations(enumerate(seen), 2):
            distance = sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5
            assert distance > 25, (kind, i, j, distance)


MACHADO = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
               (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
               (-0.011820, 0.042940, 0.968881)),
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
}  # fmt: skip


def linear(colour: str) -> list[float]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


def through(matrix: tuple[tuple[float, ...], ...], rgb: list[float]) -> list[float]:
    mixed = [sum(m * c for m, c in zip(line, rgb, strict=True)) for line in matrix]
    return [min(1.0, max(0.0, c)) for c in mixed]


def lab(rgb: list[float]) -> tuple[float, float, float]:
    r, g, b = rgb
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, relative luminance."""
    light, dark = sorted(
        (sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(each), strict=True))
         for each in (one, other)),
        reverse=True,
    )  # fmt: skip
    return (light + 0.05) / (dark + 0.05)


def every_kind() -> list[Figure]:
    marked = moments(record(plan(), peaks=(Peak(1.0, 2.0),)))
    shown = over_time("01-a", "a", panels(line("x", 1.0, 2.0), line("y", 0.0)), {}, marked)
    return [
        *figures(rows(6)).values(),
        *figures(rows(2, (100,))).values(),
        *shown,
    ]


def test_a_figure_is_well_formed_and_names_itself() -> None:
    for drawn in every_kind():
        root = parsed(drawn)
        title, said = root[0], root[1]
        assert root.get("aria-labelledby") == f"{title.get('id')} {said.get('id')}"
        assert title.text
        assert said.text
        drawing = drawn.svg.partition("</desc>")[2]
        assert not re.search(r"NaN|undefined|Infinity|\bnull\b|e[+-]\d", drawing)


def test_every_specification_is_of_vega_lite() -> None:
    for drawn in every_kind():
        # Altair carries the schema, and raises where it is not kept.
        altair.Chart.from_dict(drawn.live, validate=True)


def test_what_only_a_pointer_needs_is_not_printed() -> None:
    for drawn in every_kind():
        printed = json.dumps(still(drawn.live))
        assert "tooltip" in json.dumps(drawn.live)
        assert not re.search('"(tooltip|params|clip)"', printed)


def test_a_file_has_the_colours_of_the_light_page() -> None:
    for drawn in every_kind():
        file = alone(drawn.svg)
        assert "var(--k0)" in drawn.svg
        assert "var(--" not in file
        assert palette.LIGHT["k0"] in file


def test_a_server_has_a_shape_of_its_own() -> None:
    drawn = closed_rates(rows(1))
    scale = layer(drawn, "launches")["encoding"]["shape"]["scale"]
    assert scale["domain"][:2] == ["fixed-pool", "own-service"]
    assert scale["range"][0] != scale["range"][1]
    assert set(scale["range"][:2]) <= set(SHAPES)
