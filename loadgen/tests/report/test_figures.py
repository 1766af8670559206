"""Figures: axes, what is drawn of which trials, colours that can be told apart."""

import dataclasses
import itertools
import re
from xml.etree import ElementTree

import pytest
from lab.report.page.chart import Drawn

from lab.model import (
    Curve,
    Curves,
    PanelAnswers,
    PanelLine,
    Panels,
    Peak,
    Row,
    ScriptedToxic,
    Spike,
)
from lab.report.page import palette, scale
from lab.report.page.by_load import by_load
from lab.report.page.by_rank import Ranked, by_rank
from lab.report.page.looks import Looks
from lab.report.page.over_time import moments, over_time
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


def figures(of: list[Row]) -> dict[str, Drawn]:
    looks = Looks.of(("fixed-pool", "own-service"), of)
    return {one.chart.name: one for place in by_load(of, looks) for one in place.figures}


def parsed(drawn: Drawn) -> ElementTree.Element:
    return ElementTree.fromstring(drawn.svg())


def count(drawn: Drawn, classes: str) -> int:
    """How many shapes of these classes are drawn (each begins with one M)."""
    paths = [p for p in parsed(drawn).iter(f"{SVG}path") if p.get("class") == classes]
    return sum(path.get("d", "").count("M") for path in paths)


def test_closed_and_open_stand_beside_each_other_on_one_scale() -> None:
    drawn = figures(rows(1))
    assert list(drawn) == [
        "throughput-closed-downstream-wrk2",
        "throughput-open-downstream-wrk2",
        "latency-closed-downstream-wrk2",
        "latency-open-downstream-wrk2",
    ]
    closed, opened = list(drawn.values())[:2]
    assert closed.chart.y == opened.chart.y


def test_every_launch_is_a_shape_where_there_are_too_few_for_an_interval() -> None:
    drawn = figures(rows(5))["throughput-closed-downstream-wrk2"]
    # 5 launches of 2 loads, and the legend's own.
    assert count(drawn, "f k0") == 5 * 2 + 1
    assert not drawn.chart.whiskers


def test_from_six_launches_on_the_median_has_its_interval() -> None:
    drawn = figures(rows(6))["throughput-closed-downstream-wrk2"]
    assert count(drawn, "f k0") == 2 + 1
    assert len(drawn.chart.whiskers) == 2 * 2
    assert (drawn.chart.whiskers[0].low, drawn.chart.whiskers[0].high) == (401, 406)
    assert "100 connections 404 [401, 406]" in drawn.chart.alt


def test_the_predicted_bound_and_the_offered_rate_are_drawn() -> None:
    drawn = figures(rows(1))
    closed, opened = drawn["throughput-closed-downstream-wrk2"], drawn[
        "throughput-open-downstream-wrk2"
    ]  # fmt: skip
    assert [key.text for key in closed.chart.keys] == ["fixed-pool", "own-service", "bound"]
    assert closed.chart.traces[0].points == ((100, 500), (1000, 5000))
    # Its bound is what is offered: one line says both.
    assert [key.text for key in opened.chart.keys] == ["fixed-pool", "own-service", "offered"]
    assert opened.chart.traces[0].points == ((100, 400), (1000, 4000))


def test_answers_that_are_errors_are_no_throughput() -> None:
    shedding = [dataclasses.replace(one, ok=300, http_errors=100) for one in rows(1)]
    drawn = figures(shedding)["throughput-closed-downstream-wrk2"]
    assert "fixed-pool: 100 connections 301, 1,000 connections 3,001" in drawn.chart.alt


def test_a_bound_of_one_server_only_has_that_server_s_hue() -> None:
    mixed = [
        dataclasses.replace(one, predicted_rps=900.0) if one.server == "fixed-pool" else one
        for one in rows(1)
    ]
    chart = figures(mixed)["throughput-closed-downstream-wrk2"].chart
    assert [trace.hue for trace in chart.traces[:2]] == [0, 5]
    assert chart.keys[-1].text == "bound, in its server's colour"


def test_corrected_and_raw_are_in_one_figure() -> None:
    drawn = figures(rows(1))["latency-open-downstream-wrk2"]
    assert count(drawn, "h k0") == 2
    assert "hollow: raw" in drawn.markup
    assert "own-service raw: 100 connections 206 ms" in drawn.chart.alt


def test_an_invalid_trial_is_a_cross_and_in_no_median() -> None:
    wrong = [dataclasses.replace(one, valid=False) for one in rows(1)[:1]] + rows(1)[1:]
    chart = figures(wrong)["throughput-closed-downstream-wrk2"].chart
    [struck] = [trace for trace in chart.traces if trace.struck]
    assert struck.points == ((100, 401),)
    assert "fixed-pool: 100 connections no valid trial" in chart.alt
    assert chart.keys[-1].text == "invalid trial"


def test_a_single_load_has_a_row_for_each_lane() -> None:
    drawn = figures(rows(2, (100,)))["throughput-closed-downstream-wrk2"]
    assert drawn.chart.load == "100 connections"
    assert count(drawn, "f k0") == 2
    texts = [text.text for text in parsed(drawn).iter(f"{SVG}text")]
    assert {"fixed-pool", "own-service", "402"} <= set(texts)


def test_arms_of_one_server_have_its_hue_and_a_shape_each() -> None:
    arms = [row(plan(server="a", arm=arm, trial=arm)) for arm in ("x", "y")]
    looks = Looks.of(("a",), arms).lanes
    assert looks["a@x"].hue == looks["a@y"].hue
    assert looks["a@x"].shape != looks["a@y"].shape
    assert looks["a@x"].style != looks["a@y"].style


def conditions(count: int, server: str = "a", start: int = 0) -> list[Row]:
    """Trials of one server and one load, each under a condition of its own."""
    return [
        row(
            plan("closed", server=server, arm=f"case-{at}", trial=f"{at:02d}-case-{at}"),
            achieved_rps=100.0 + at,
            raw_p95_ms=200.0 + at,
            predicted_rps=300.0 + at,
        )
        for at in range(start, start + count)
    ]


def test_conditions_of_one_server_have_a_hue_each_and_then_another_line() -> None:
    looks = Looks.of(("a",), conditions(14)).lanes
    assert len({look.hue for look in list(looks.values())[:7]}) == 7
    assert len({look.line for look in looks.values()}) == 14


def test_lanes_that_would_look_alike_are_in_figures_of_their_own() -> None:
    of = conditions(25)
    curve = Curve(1000, ((0.0, 1.0), (0.99, 2.0)))
    looks = Looks.of(("a",), of)
    drawn = [one.chart for one in by_rank([Ranked(one, Curves(None, curve)) for one in of], looks)]
    assert [len(one.traces) for one in drawn] == [21, 4]
    for chart in drawn:
        assert len({(key.hue, key.style) for key in chart.keys}) == len(chart.keys)
    assert [one.name[-7:] for one in drawn] == ["-part-1", "-part-2"]
    assert drawn[1].title == "Closed, 100 connections"
    assert drawn[1].load == "raw (2 of 2)"


def test_conditions_of_one_load_are_rows_with_their_own_values_and_bounds() -> None:
    of = conditions(3)
    of[2] = dataclasses.replace(of[2], concurrency=50)
    drawn = figures(of)["throughput-closed-downstream-wrk2"]
    assert drawn.chart.load == "a"
    texts = [text.text for text in parsed(drawn).iter(f"{SVG}text")]
    assert {"case-0", "case-1", "case-2", "100 connections", "50 connections"} <= set(texts)
    assert {"100", "101", "102"} <= set(texts)
    assert count(drawn, "l dash k7") == 3
    of[1] = dataclasses.replace(of[1], server="b")
    both = figures(of)["throughput-closed-downstream-wrk2"]
    texts = [text.text for text in parsed(both).iter(f"{SVG}text")]
    assert {"a, 100 connections", "b, 100 connections"} <= set(texts)
    assert both.chart.load == ""


def test_a_name_that_is_too_long_for_its_row_is_cut() -> None:
    of = [dataclasses.replace(one, arm=f"{one.arm}-{'x' * 40}") for one in conditions(2)]
    drawn = figures(of)["throughput-closed-downstream-wrk2"]
    [first, _] = [t.text for t in parsed(drawn).iter(f"{SVG}text") if "case" in (t.text or "")]
    assert first is not None
    assert first.endswith("xx…")
    assert len(first) <= 33
    assert of[0].arm is not None
    assert of[0].arm in drawn.chart.alt


def test_the_bound_of_a_load_is_one_that_a_trial_had() -> None:
    of = rows(2, (100, 1000))
    odd = [
        dataclasses.replace(one, predicted_rps=1.0 if one.launch == 2 else one.predicted_rps)
        for one in of
    ]
    chart = figures(odd)["throughput-closed-downstream-wrk2"].chart
    assert chart.traces[0].points == ((100, 1.0), (1000, 1.0))


def test_a_run_without_figures_has_none() -> None:
    assert figures([row(plan(server="fixed-pool"))]) == {}


def test_every_route_and_engine_is_a_place() -> None:
    several = [
        dataclasses.replace(one, route=route) for route in ("/", "/?wait_ms=200") for one in rows(1)
    ]
    assert "throughput-open-wait-ms-200-wrk2" in figures(several)
    assert "throughput-open-root-wrk2" in figures(several)


def test_a_curve_ends_where_fewer_than_ten_answers_lie_beyond() -> None:
    every = [(share / 1000, 200 + share / 10) for share in range(1000)]
    curve = Curve.of(every, 1000)
    assert curve is not None
    assert curve.points[0] == (0.0, 200.0)
    assert curve.points[-1] == (0.99, 299.0)
    assert len(curve.points) <= 92
    assert Curve.of(every, 10) is None
    assert Curve.of([], 0) is None


def test_curves_of_a_load_are_in_one_figure_corrected_and_raw() -> None:
    corrected = Curve(1000, ((0.0, 1.0), (0.5, 2.0), (0.99, 300.0)))
    raw = Curve(1000, ((0.0, 1.0), (0.99, 2.0)))
    of = [
        Ranked(one, Curves(corrected if one.mode == "open" else None, raw))
        for one in rows(1, (100,))
    ]
    drawn = list(by_rank(of, Looks.of((), [one.row for one in of])))
    assert [one.chart.name for one in drawn] == [
        "percentiles-downstream-wrk2-closed-100",
        "percentiles-downstream-wrk2-open-100-at-400-s",
    ]
    opened = drawn[1].chart
    assert len(opened.traces) == 4
    assert opened.traces[1].points[-1][0] == pytest.approx(100)
    assert "fixed-pool: 50 % within 2 ms, 99 % within 300 ms" in opened.alt
    assert [text for _, text in opened.x.ticks] == ["0", "50 %", "90 %", "99 %"]
    assert list(by_rank([Ranked(of[0].row, Curves(None, None))], Looks.of((), []))) == []


def test_the_curve_of_an_invalid_trial_is_thin_and_grey_and_told() -> None:
    corrected = Curve(1000, ((0.0, 1.0), (0.99, 300.0)))
    raw = Curve(1000, ((0.0, 1.0), (0.99, 2.0)))
    first, second = (one for one in rows(1, (100,)) if one.mode == "open")
    wrong = dataclasses.replace(first, valid=False)
    looks = Looks.of((), [wrong, second])
    [drawn] = by_rank([Ranked(one, Curves(corrected, raw)) for one in (second, wrong)], looks)
    chart = drawn.chart
    assert [(trace.hue, trace.style) for trace in chart.traces] == [
        (palette.NEUTRAL, "thin dot faint"), (palette.NEUTRAL, "thin faint"),
        (5, "thin dot faint"), (5, ""),
    ]  # fmt: skip
    assert [key.text for key in chart.keys] == ["own-service", "dotted: raw", "invalid trial"]
    assert chart.keys[-1].style == "thin faint"
    assert "fixed-pool (invalid) raw: 50 % within" in chart.alt
    assert "fixed-pool (invalid): 50 % within" in chart.alt
    assert "own-service: 50 % within" in chart.alt


def panels(*lines: PanelLine, unit: str = "s") -> Panels:
    return Panels("Lab", 15.0, 1.0, (PanelAnswers("p95", "Load", "What it is.", unit, lines),))


def line(label: str, *values: float, is_set: bool = False, **labels: str) -> PanelLine:
    points = tuple((float(at), value) for at, value in enumerate(values))
    return PanelLine(label, labels, is_set, points)


def test_a_panel_is_drawn_over_exactly_the_window_and_named_as_in_grafana() -> None:
    of = panels(
        line("a total", 0.2, 0.3, server="a"),
        line("a queue", 0.0, 0.1, server="a"),
        line("limit", 1.0, 1.0, is_set=True),
    )
    [(section, drawn)] = over_time("01-a", "a", of, {"a": 3})
    assert section == "Load"
    assert (drawn.chart.title, drawn.chart.name) == ("p95", "01-a-p1")
    assert [key.text for key in drawn.chart.keys] == ["total", "queue", "limit"]
    assert [key.hue for key in drawn.chart.keys] == [3, 0, 1]
    assert drawn.chart.keys[2].style == "thin dash"
    assert (drawn.chart.x.low, drawn.chart.x.high) == (0, 15)
    assert drawn.chart.alt.startswith("What it is. a total: 200 ms to 300 ms.")


def test_of_many_lines_the_highest_have_names() -> None:
    of = panels(*(line(f"c{at}", float(at), service=f"c{at}") for at in range(1, 10)))
    [(_, drawn)] = over_time("01-a", "a", of, {"c2": 0, "c9": 2})
    keys = drawn.chart.keys
    assert [key.text for key in keys][-2:] == ["c9", "3 more, lower"]
    assert keys[5].hue == 2
    assert len(drawn.chart.traces) == 9


def test_the_trial_s_own_server_is_named_among_the_containers_however_low_it_is() -> None:
    lines = [line(f"c{at}", float(at), service=f"c{at}") for at in range(1, 10)]
    hues = {"c1": 5, "c9": 5}
    for own, value in (("c1", 0.5), ("c1", 0.0)):
        lines[0] = line(own, value, service=own)
        idle = [line(f"z{at}", 0.0, service=f"z{at}") for at in range(3)]
        [(_, drawn)] = over_time("01-c1", "c1", panels(*lines, *idle), hues)
        keys = {key.text: key.hue for key in drawn.chart.keys}
        assert list(keys) == [
            "c1", "c4", "c5", "c6", "c7", "c8", "c9", "2 more, lower", "3 more, all 0",
        ]  # fmt: skip
        # The hue that another server shares is the trial's own server's.
        assert keys["c1"] == 5
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
    [(_, drawn)] = over_time("01-a", "a", panels(line("x", 1.0, 2.0)), {}, marked)
    # The window ends before the last.
    assert count(drawn, "mark") == 3
    feet = ["0", "5", "10", "15"]
    named = [t.text for t in parsed(drawn).iter(f"{SVG}text") if t.get("class") == "s c"]
    assert named == [*feet, "1", "2", "3"]
    assert "1 at 3.0 s: spike of 400 connections begins." in drawn.chart.alt
    assert moments(record()) == ()


def test_many_lines_that_never_leave_zero_are_one_entry() -> None:
    quiet = [line(f"error {at}", 0.0, 0.0) for at in range(3)]
    [(_, drawn)] = over_time("01-a", "a", panels(*quiet, line("rejected", 0.0, 5.0)), {})
    assert [key.text for key in drawn.chart.keys] == ["rejected", "3 more, all 0"]
    [(_, drawn)] = over_time("01-a", "a", panels(*quiet), {})
    assert [key.text for key in drawn.chart.keys] == ["3, all 0"]
    [(_, drawn)] = over_time("01-a", "a", panels(*quiet[:2]), {})
    assert [key.text for key in drawn.chart.keys] == ["error 0", "error 1"]


def test_a_panel_without_samples_is_not_drawn() -> None:
    assert list(over_time("01-a", "a", panels(PanelLine("x", {}, False, ())), {})) == []


def test_missing_samples_leave_a_gap() -> None:
    of = panels(PanelLine("x", {}, False, ((0, 1), (1, 1), (9, 1), (10, 1))))
    [(_, drawn)] = over_time("01-a", "a", of, {})
    [path] = [p for p in parsed(drawn).iter(f"{SVG}path") if p.get("class") == "l k0"][1:]
    assert path.get("d", "").count("M") == 2


@pytest.mark.parametrize(
    ("values", "is_log", "texts"),
    [
        ((100.0, 450.0), False, ["0", "100", "200", "300", "400", "500"]),
        ((0.0,), False, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (
            (90.0, 20_000.0),
            True,
            ["50", "100", "200", "500", "1,000", "2,000", "5,000", "10k", "20k"],
        ),
        ((9.0, 45_000.0), True, ["10", "100", "1,000", "10k"]),
        ((90.0, 1_900.0), True, ["50", "100", "200", "500", "1,000", "2,000"]),
    ],
)
def test_an_axis_is_logarithmic_where_values_are_far_apart(
    values: tuple[float, ...], is_log: bool, texts: list[str]
) -> None:
    axis = scale.fitting(values, "", scale.number)
    assert axis.is_log == is_log
    assert [text for _, text in axis.ticks] == texts
    assert all(-1e-9 <= axis.place(value) <= 1 + 1e-9 for value in values)


def test_units_are_written_as_people_read_them() -> None:
    assert [scale.milliseconds(v) for v in (0, 0.5, 200, 1500, 1e6)] == [
        "0", "0.5 ms", "200 ms", "1.5 s", "16.7 min",
    ]  # fmt: skip
    assert [scale.data(v) for v in (0, 512, 2**26, 1000 * 2**20, 1.5 * 2**30)] == [
        "0", "512 B", "64 MiB", "1,000 MiB", "1.5 GiB",
    ]  # fmt: skip
    assert [scale.number(v) for v in (0.25, 12, 1800, 25_000, 1.25e6)] == [
        "0.25", "12", "1,800", "25k", "1.25M",
    ]  # fmt: skip
    assert [text for _, text in scale.binary(1.2 * 2**30, "", 4).ticks][-1] == "1 GiB"


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
    looks = Looks.of(names, of).lanes
    assert len({(look.hue, look.style) for look in looks.values()}) == len(names)
    assert len({(look.hue, look.shape) for look in looks.values()}) == len(names)


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


def test_a_figure_is_well_formed_and_names_itself() -> None:
    for drawn in figures(rows(6)).values():
        root = parsed(drawn)
        title, said = root[0], root[1]
        assert root.get("aria-labelledby") == f"{title.get('id')} {said.get('id')}"
        assert title.text
        assert said.text
        assert not re.search(r"nan|inf|e[+-]\d", drawn.markup.replace("font", ""))
