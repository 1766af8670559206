"""Figures: axes, what is drawn of which trials, colours that can be told apart."""

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from xml.etree import ElementTree

import altair
import numpy as np
import pytest
import vl_convert

from lab.model import Peak, Row, ScriptedToxic, Spike
from lab.report.page import palette, units
from lab.report.page.by_load import by_load
from lab.report.page.figure import Figure, alone, still
from lab.report.page.lane_styles import LaneStyles
from lab.report.page.observed import Line, Moment, Observed, Panel, moments
from lab.report.page.observed import drawn as over_time
from lab.report.page.spec import DASHES, SHAPES, Spec
from support.fakes import plan, record
from support.planned import row

type Vector = np.typing.NDArray[np.float64]

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


def figures(of: Iterable[Row], limits: dict[str, float] | None = None) -> dict[str, Figure]:
    """By name, without what they have in common."""
    of = list(of)
    places = by_load(of, LaneStyles.of(("fixed-pool", "own-service"), of), limits)
    drawn = (one for place in places for one in place.figures)
    return {one.name.removesuffix("-downstream-wrk2"): one for one in drawn}


def closed_rates(of: Iterable[Row]) -> Figure:
    return figures(of)["throughput-closed"]


def opened(concurrencies: tuple[int, ...] = (100, 1000)) -> list[Row]:
    """The open loads of one server, one launch."""
    both = rows(1, concurrencies)
    return [one for one in both if (one.mode, one.server) == ("open", "fixed-pool")]


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
    layers = figure.spec["layer"]
    return [one for each in layers if each["name"] == name for one in each["data"]["values"]]


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


def test_from_six_launches_on_the_median_has_its_interval() -> None:
    few = closed_rates(rows(5))
    # Every launch of 2 loads is a shape.
    assert len(points(few, "launches", "fixed-pool")) == 5 * 2
    assert not data(few, "intervals")
    drawn = closed_rates(rows(6))
    assert len(points(drawn, "launches", "fixed-pool")) == 2
    intervals = data(drawn, "intervals")
    assert len(intervals) == 2 * 2
    assert (intervals[0]["low"], intervals[0]["high"]) == (401, 406)
    assert "100 connections 404 [401, 406]" in drawn.alt
    assert intervals[0]["tip"] == "fixed-pool\n100 connections\nmedian 404 [401, 406]"


def test_closed_and_open_stand_beside_each_other_with_what_was_set() -> None:
    drawn = figures(rows(1))
    names = ["throughput-closed", "throughput-open", "latency-closed", "latency-open"]
    assert list(drawn) == names
    closed, by_rate = (drawn[name].spec["encoding"]["y"]["scale"] for name in names[:2])
    assert closed == by_rate
    for mode, name, ends in (("closed", "bound", (500, 5000)), ("open", "offered", (400, 4000))):
        # The bound of an open load is what is offered: one line says both.
        figure = drawn[f"throughput-{mode}"]
        assert list(legend(figure)) == ["fixed-pool", "own-service", name]
        assert points(figure, "set", name) == [(100, ends[0]), (1000, ends[1])]


def test_a_search_by_rate_is_drawn_against_the_rate_with_its_objective() -> None:
    of = opened()
    # As many connections, at another rate.
    of.append(replace(of[0], offered_rps=800, achieved_rps=790.0, p95_ms=600.0))
    # One that tells nothing.
    lost = replace(of[0], offered_rps=16_000, achieved_rps=None, p50_ms=None, valid=False)
    drawn = figures([*of, replace(lost, p95_ms=None, p99_ms=None, raw_p95_ms=None)], {"p95": 500.0})
    p95 = drawn["p95-by-rate"]
    assert points(p95, "launches", "fixed-pool") == [(400, 211), (800, 600), (4000, 211)]
    assert points(p95, "set", "objective") == [(400, 500), (4000, 500)]
    assert "400 requests/s 211 ms" in p95.alt
    rate = drawn["throughput-by-rate"]
    assert points(rate, "launches", "fixed-pool") == [(400, 401), (800, 790), (4000, 4001)]
    # Linear: the steps of a search are close to each other where it matters.
    x, y = (rate.spec["encoding"][axis] for axis in "xy")
    assert x["scale"] == {"domain": [0, 4000], "nice": True}
    assert "values" not in x["axis"]
    assert y["scale"] == {"domain": [0, 4001], "nice": True}
    assert "objective" not in legend(rate)


def test_a_search_by_rate_over_as_many_connections_has_each_trial() -> None:
    (first,) = opened((10,))
    of = [replace(first, offered_rps=rate) for rate in (250, 350, 500)]
    p95 = figures(of, {"p95": 5.0})["p95-by-rate"]
    assert [x for x, _ in points(p95, "launches", "fixed-pool")] == [250, 350, 500]
    # One rate is a point.
    p95 = figures(of[:1], {"p95": 5.0})["p95-by-rate"]
    assert data(p95, "launches")[0]["tip"].splitlines()[1] == "250 requests/s"


def test_a_single_load_has_its_points_above_it() -> None:
    drawn = closed_rates(rows(2, (100,)))
    assert {x for x, _ in points(drawn, "launches", "fixed-pool")} == {100}
    assert len({one["shift"] for one in data(drawn, "launches")}) == 2
    # A line is drawn across it.
    assert points(drawn, "set", "bound") == [(50, 500), (200, 500)]
    assert {"fixed-pool", "own-service", "100"} <= texts(drawn)


def test_only_the_longest_windows_are_drawn_along_connections() -> None:
    of = {one.trial: one for one in rows(2)}
    # The second launch measured a load in a longer window, one trial of it again.
    of["fixed-pool-closed-100-2"] = replace(of["fixed-pool-closed-100-2"], duration_s=34)
    again = replace(of["fixed-pool-closed-1000-2"], duration_s=34, trial="again")
    drawn = closed_rates([*of.values(), again])
    assert points(drawn, "launches", "fixed-pool") == [(100, 402), (1000, 4002)]
    assert len(points(drawn, "launches", "own-service")) == 4


def test_answers_that_are_errors_are_no_throughput() -> None:
    drawn = closed_rates(replace(one, ok=300, http_errors=100) for one in rows(1))
    assert "fixed-pool: 100 connections 301, 1,000 connections 3,001" in drawn.alt


def test_a_bound_of_one_server_only_has_that_server_s_hue() -> None:
    drawn = closed_rates(
        replace(one, predicted_rps=900.0) if one.server == "fixed-pool" else one for one in rows(1)
    )
    bounds = layer(drawn, "own-bounds")
    lanes = list(dict.fromkeys(one["series"] for one in bounds["data"]["values"]))
    assert lanes == ["fixed-pool", "own-service"]
    assert bounds["encoding"]["color"]["scale"]["range"][:2] == ["var(--k0)", "var(--k5)"]
    assert subtitle(drawn) == "dotted: its bound"


def test_corrected_and_raw_are_in_one_figure() -> None:
    drawn = figures(rows(1))["latency-open"]
    assert len(points(drawn, "raw-launches", "fixed-pool")) == 2
    assert layer(drawn, "raw-launches")["mark"]["fill"] == "var(--page)"
    assert "hollow: raw" in subtitle(drawn)
    assert "own-service raw: 100 connections 206 ms" in drawn.alt


def test_an_invalid_trial_is_a_cross_and_in_no_median() -> None:
    first, *others = rows(1)
    drawn = closed_rates([replace(first, valid=False), *others])
    [struck] = data(drawn, "invalid")
    assert (struck["series"], struck["x"], struck["y"]) == ("fixed-pool", 100, 401)
    assert "invalid trial" in struck["tip"]
    assert "fixed-pool: 100 connections no valid trial" in drawn.alt
    assert (100, 401) not in points(drawn, "launches", "fixed-pool")
    assert "×: invalid trial" in subtitle(drawn)


def test_servers_have_a_shape_each_and_arms_of_one_server_its_hue() -> None:
    scale = layer(closed_rates(rows(1)), "launches")["encoding"]["shape"]["scale"]
    assert scale["domain"][:2] == ["fixed-pool", "own-service"]
    assert scale["range"][0] != scale["range"][1]
    assert set(scale["range"][:2]) <= set(SHAPES)
    arms = [row(plan(server="a", arm=arm, trial=arm)) for arm in ("x", "y")]
    x, y = (LaneStyles.of(("a",), arms).lanes[f"a@{arm}"] for arm in ("x", "y"))
    assert x.hue == y.hue
    assert x.shape != y.shape
    assert x.dash != y.dash


def test_the_bound_of_a_load_is_one_that_a_trial_had() -> None:
    odd = (replace(one, predicted_rps=1.0) if one.launch == 2 else one for one in rows(2))
    assert points(closed_rates(odd), "set", "bound") == [(100, 1.0), (1000, 1.0)]


def test_without_an_answer_there_is_nothing_to_draw() -> None:
    assert figures([row(plan(server="fixed-pool"))]) == {}
    # All of the longer window are lost.
    of = rows(1, (100,))
    nothing = {"achieved_rps": None, "p95_ms": None, "raw_p95_ms": None, "ok": 0}
    lost = [replace(one, duration_s=99, valid=False, **nothing) for one in of]
    assert figures([*of, *lost]) == {}


def test_every_route_and_engine_is_a_place() -> None:
    several = figures(replace(one, route=to) for to in ("/", "/?wait_ms=200") for one in rows(1))
    assert {"throughput-open-wait-ms-200-wrk2", "throughput-open-root-wrk2"} <= several.keys()


def over_window(
    *lines: Line, trial: str = "01-a", marked: Sequence[Moment] = (), **hues: int
) -> Figure:
    """The one panel with these lines, over a window of 15 s."""
    of = Observed(15.0, 1.0, (Panel("p95", "s", "What it is.", lines),))
    [figure] = over_time(trial, trial.partition("-")[2], of, hues, marked)
    return figure


def line(label: str, *values: float, is_set: bool = False, owner: str = "") -> Line:
    return Line(label, tuple((float(at), value) for at, value in enumerate(values)), owner, is_set)


def test_a_panel_is_drawn_over_exactly_the_window() -> None:
    lines = [line("total", 0.2, 0.3, owner="a"), line("queue", 0.0, 0.1, owner="a")]
    figure = over_window(*lines, line("limit", 1.0, 1.0, is_set=True), a=3)
    assert (figure.title, figure.name) == ("p95", "01-a-p1")
    assert legend(figure) == {
        "total": ("var(--k3)", ""), "queue": ("var(--k0)", ""), "limit": ("var(--k1)", "dash"),
    }  # fmt: skip
    assert figure.spec["encoding"]["x"]["scale"] == {"domain": [0, 15], "nice": False}
    assert figure.alt.startswith("What it is. total: 200 ms to 300 ms.")


def test_of_many_lines_the_highest_have_names() -> None:
    lines = [line(f"c{at}", float(at), owner=f"c{at}") for at in range(1, 10)]
    figure = over_window(*lines, c2=0, c9=2)
    assert list(legend(figure))[-2:] == ["c9", "3 more, lower"]
    assert legend(figure)["c9"] == ("var(--k2)", "")
    assert len(data(figure, "lines") + data(figure, "more")) == 9
    # The trial's own server has one too, however low it is.
    idle = [line(f"z{at}", 0.0, owner=f"z{at}") for at in range(3)]
    for value in (0.5, 0.0):
        lines[0] = line("c1", value, owner="c1")
        figure = over_window(*lines, *idle, trial="01-c1", c1=5, c9=5)
        keys = {name: colour for name, (colour, _) in legend(figure).items()}
        names = [f"c{at}" for at in (1, 4, 5, 6, 7, 8, 9)]
        assert list(keys) == [*names, "2 more, lower", "3 more, all 0"]
        # The hue that another server shares is the trial's own server's.
        assert keys["c1"] == "var(--k5)"
        assert len({keys[name] for name in names}) == 7


def test_spikes_and_steps_of_a_script_are_marked_where_they_were() -> None:
    up = ScriptedToxic(40.0, 40.1, "TYPE=up", True)
    spiky = record(
        plan(spike=Spike(400, None, 3, 2, 1, 0.25, 1)),
        window_offset_s=2.0,
        peaks=(Peak(5.0, 7.25),),
        script=(ScriptedToxic(6.0, 6.1, "TYPE=down", False, "stuck"), up),
    )
    marked = moments(spiky)
    assert [one.text for one in marked] == [
        "1 at 3.0 s: spike of 400 connections begins",
        "2 at 4.0 s: TYPE=down (stuck)",
        "3 at 5.2 s: spike ends",
        "4 at 38.0 s: TYPE=up",
    ]
    figure = over_window(line("x", 1.0, 2.0), marked=marked)
    # The window ends before the last.
    assert [one["x"] for one in data(figure, "marks")] == [3.0, 4.0, 5.25]
    assert [one["number"] for one in data(figure, "numbers")] == ["1", "2", "3"]
    assert data(figure, "marks")[0]["tip"] == marked[0].text
    assert {"1", "2", "3"} <= texts(figure)
    assert "1 at 3.0 s: spike of 400 connections begins." in figure.alt
    assert moments(record()) == ()


def test_many_lines_that_never_leave_zero_are_one_entry() -> None:
    quiet = [line(f"error {at}", 0.0, 0.0) for at in range(3)]
    more = over_window(*quiet, line("rejected", 0.0, 5.0))
    assert list(legend(more)) == ["rejected", "3 more, all 0"]
    assert list(legend(over_window(*quiet))) == ["3, all 0"]
    assert list(legend(over_window(*quiet[:2]))) == ["error 0", "error 1"]


def test_missing_samples_leave_a_gap() -> None:
    figure = over_window(Line("x", ((0, 1), (1, 1), (9, 1), (10, 1))))
    assert [one["x"] for one in data(figure, "lines")] == [[0, 1], [9, 10]]
    paths = [path.get("stroke") for path in parsed(figure).iter(f"{SVG}path")]
    # One for the legend.
    assert paths.count("var(--k0)") == 1 + 2


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
def test_an_axis_of_values_far_apart_is_logarithmic(values: tuple[float, ...], scale: Spec) -> None:
    assert {"clamp": True, **units.scale(values)} == {"clamp": True, **scale}


def test_a_logarithmic_axis_names_some_of_its_values() -> None:
    assert {"100", "1,000"} <= texts(closed_rates(rows(1, (20, 4000))))


def test_units_are_written_as_people_read_them() -> None:
    for written, values, texts in (
        (units.milliseconds, (0, 0.5, 200, 1500, 1e6), "0|0.5 ms|200 ms|1.5 s|16.7 min"),
        (units.data, (0, 512, 2**26, 1000 * 2**20, 3 * 2**29), "0|512 B|64 MiB|1,000 MiB|1.5 GiB"),
        (units.number, (0.25, 12, 1800, 25_000, 1.25e6), "0.25|12|1,800|25k|1.25M"),
    ):
        assert [*map(written, values)] == texts.split("|")
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
    # When hues are used up servers differ in shape and line.
    names = [*("fixed-pool", "virtual-threads", "netty"), *(f"framework-{n}" for n in range(7))]
    of = [replace(rows(1)[0], server=name) for name in names]
    styles = LaneStyles.of(names, of).lanes
    assert len({(style.hue, style.dash) for style in styles.values()}) == len(names)
    assert len({(style.hue, style.shape) for style in styles.values()}) == len(names)


def test_hues_can_be_told_apart_with_colour_blindness() -> None:
    # G. M. Machado et al., IEEE TVCG 15 (2009) 1291, severity 1; distances in CIELAB (1976).
    for colours, eye in itertools.product((palette.LIGHT, palette.DARK), MACHADO):
        hues = [linear(colours[f"k{at}"]) for at in range(palette.HUES)]
        seen = [lab((MACHADO[eye] @ hue).clip(0, 1)) for hue in hues]
        for one, other in itertools.combinations(seen, 2):
            assert np.linalg.norm(one - other) > 25, (eye, one, other)


MACHADO = {
    "protan": np.array([(0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
                        (-0.003882, -0.048116, 1.051998)]),
    "deutan": np.array([(0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
                        (-0.011820, 0.042940, 0.968881)]),
    "none": np.eye(3),
}  # fmt: skip
TO_XYZ = np.array([(0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505)])
WHITE = np.array((0.9505, 1, 1.089))


def linear(colour: str) -> Vector:
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb: Vector) -> Vector:
    xyz = TO_XYZ @ rgb / WHITE
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array((116 * y - 16, 500 * (x - y), 200 * (y - z)))


def contrast(*colours: str) -> float:
    """WCAG 2.2, relative luminance."""
    dark, light = sorted(float(TO_XYZ[1] @ linear(one)) for one in colours)
    return (light + 0.05) / (dark + 0.05)


@pytest.fixture(scope="module")
def every_kind() -> list[Figure]:
    marked = moments(record(plan(), peaks=(Peak(1.0, 2.0),)))
    shown = over_window(line("x", 1.0, 2.0), line("y", 0.0), marked=marked)
    return [*figures(rows(6)).values(), *figures(rows(2, (100,))).values(), shown]


def test_a_figure_is_well_formed_and_names_itself(every_kind: list[Figure]) -> None:
    for drawn in every_kind:
        root = parsed(drawn)
        title, said = root[0], root[1]
        assert root.get("aria-labelledby") == f"{title.get('id')} {said.get('id')}"
        assert title.text
        assert said.text
        drawing = drawn.svg.partition("</desc>")[2]
        assert not re.search(r"NaN|undefined|Infinity|\bnull\b|e[+-]\d", drawing)
        # A file has the colours of the light page.
        file = alone(drawn.svg)
        assert "var(--k0)" in drawn.svg
        assert "var(--" not in file
        assert palette.LIGHT["k0"] in file


def test_every_specification_is_of_vega_lite(every_kind: list[Figure]) -> None:
    for drawn in every_kind:
        # Altair carries the schema, and raises where it is not kept.
        altair.Chart.from_dict(drawn.live, validate=True)
        # What only a pointer needs is not printed, and stays in the live one.
        printed = json.dumps(still(drawn.live))
        assert not re.search('"(tooltip|params|clip)"', printed)
        assert "tooltip" in json.dumps(drawn.live)
