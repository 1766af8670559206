"""Figures: what is drawn of which trials, axes, colours that can be told apart."""

import itertools
import re
from collections.abc import Iterable
from copy import replace
from xml.etree import ElementTree

import altair
import numpy as np
import pytest

from lab.model import Peak, Row, ScriptedToxic, Spike, Sustained
from lab.report.page import palette
from lab.report.page.by_load import by_load
from lab.report.page.figure import Figure, Spec
from lab.report.page.over_time import Moment, figure, moments
from lab.report.page.panels import PANELS, Line
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
            expected_rps=load * 5.0,
            p95_ms=210.0 + launch if mode == "open" else None,
            raw_p95_ms=205.0 + launch,
        )
        for launch in range(1, launches + 1)
        for load in concurrencies
        for mode in ("closed", "open")
        for server in ("fixed-pool", "own-service")
    ]  # fmt: skip


def figures(trials: Iterable[Row], limits: dict[str, float] | None = None) -> dict[str, Figure]:
    """By name, without what they have in common."""
    drawn = by_load([*trials], limits, [BAND])
    return {one.name.removesuffix("-downstream-wrk2"): one for one in drawn}


BAND = Sustained(
    *("capacity", "fixed-pool", 0, 600.0, "req/s", 500.0, 700.0, "", "p95 ≤ 500 ms", None),
    *(1, 3, 3, False, False, None),
)


def data(drawn: Figure, name: str) -> list[Spec]:
    """What a layer draws; nothing if it is not there."""
    layers = drawn.spec["layer"]
    return [point for each in layers if each["name"] == name for point in each["data"]["values"]]


def points(drawn: Figure, name: str, series: str = "fixed-pool") -> list[tuple[float, float]]:
    return [(one["x"], one["y"]) for one in data(drawn, name) if one["series"] == series]


def legend(drawn: Figure) -> list[str]:
    return drawn.spec["layer"][0]["encoding"]["color"]["scale"]["domain"]


def texts(drawn: Figure) -> set[str]:
    """Every text that is drawn."""
    parsed = ElementTree.fromstring(drawn.svg)
    return {part for text in parsed.iter(f"{SVG}text") for part in text.itertext()}


def test_every_route_engine_and_mode_has_its_figures() -> None:
    names = ("throughput", "p95")
    assert [*figures(rows(1))] == [
        f"{name}-{mode}" for name in names for mode in ("closed", "open")
    ]
    several = figures(replace(one, route=to) for to in ("/", "/?wait_ms=200") for one in rows(1))
    assert {"throughput-open-wait-ms-200-wrk2", "throughput-open-root-wrk2"} <= several.keys()
    assert figures([row(plan(server="fixed-pool"))]) == {}


def test_every_trial_is_a_point_and_from_six_launches_on_the_median_has_its_interval() -> None:
    few = figures(rows(5))["throughput-closed"]
    assert len(points(few, "trials")) == 5 * 2
    assert not data(few, "intervals")
    expected = [(one["x"], one["expected"]) for one in data(few, "expected")]
    assert {*expected} == {(100, 500), (1000, 5000)}
    drawn = figures(rows(6))["throughput-closed"]
    assert points(drawn, "medians") == [(100, 403.5), (1000, 4003.5)]
    intervals = data(drawn, "intervals")
    assert [(one["low"], one["high"]) for one in intervals[:1]] == [(401, 406)]
    assert "fixed-pool: 100 connections 404 [401, 406]" in drawn.alt
    # Lanes of one load stand beside each other.
    assert len({one["shift"] for one in intervals}) == 2


def test_an_invalid_trial_is_a_cross_and_in_no_median() -> None:
    first, *others = rows(2)
    drawn = figures([replace(first, valid=False), *others])["throughput-closed"]
    assert points(drawn, "invalid") == [(100, 401)]
    assert points(drawn, "medians")[0] == (100, 402)
    assert (100, 401) not in points(drawn, "trials")
    assert "×: invalid" in drawn.spec["title"]["subtitle"]


def test_answers_that_are_errors_are_no_throughput_and_a_longer_window_counts_alone() -> None:
    drawn = figures(replace(one, ok=300, http_errors=100) for one in rows(1))
    assert points(drawn["throughput-closed"], "trials") == [(100, 300.75), (1000, 3000.75)]
    short = replace(rows(1)[0], trial="01")
    again = replace(short, trial="01-again", duration_s=60, achieved_rps=5.0)
    assert points(figures([short, again])["throughput-closed"], "trials") == [(100, 5)]


def test_a_search_by_rate_has_its_objective_and_a_band_and_no_line() -> None:
    opened = [one for one in rows(1) if (one.mode, one.server) == ("open", "fixed-pool")]
    # As many connections, at another rate.
    opened.append(replace(opened[0], offered_rps=800, achieved_rps=790.0, p95_ms=600.0))
    # One that tells nothing.
    lost = replace(opened[0], offered_rps=16_000, achieved_rps=None, valid=False, p95_ms=None)
    drawn = figures([*opened, lost], {"p95": 500.0})
    p95, rate = drawn["p95-open"], drawn["throughput-open"]
    assert sorted(points(p95, "trials")) == [(400, 211), (800, 600), (4000, 211)]
    assert [one["y"] for one in data(p95, "limit")] == [500.0]
    assert [(one["from"], one["to"]) for one in data(p95, "bands")] == [(500, 700)]
    assert "400 req/s 211" in p95.alt
    assert not data(rate, "limit")
    assert not data(rate, "bands")
    assert not data(rate, "medians")
    # Linear: the steps of a search are close to each other where it matters.
    assert rate.spec["encoding"]["x"]["scale"] == {"domain": [0, 4000], "nice": True}


@pytest.mark.parametrize(
    ("rates", "kind"), [((100.0, 450.0), None), ((90.0, 20_000.0), "log"), ((0.0, 20_000.0), None)]
)
def test_an_axis_of_values_far_apart_is_logarithmic(
    rates: tuple[float, ...], kind: str | None
) -> None:
    one = rows(1)[0]
    trials = [
        replace(one, trial=f"{at}", concurrency=at + 1, achieved_rps=rate, expected_rps=None)
        for at, rate in enumerate(rates)
    ]
    drawn = figures(trials)["throughput-closed"]
    assert drawn.spec["encoding"]["y"]["scale"].get("type") == kind
    assert {"1", "2"} <= texts(drawn)


def over_window(*lines: Line, marked: tuple[Moment, ...] = ()) -> Figure:
    """A panel of milliseconds with these lines, over a window of 15 s."""
    return figure("01-a-p1", PANELS[2], lines, 15.0, marked)


def line(label: str, *values: float | None, is_set: bool = False) -> Line:
    return Line(label, tuple((float(at), value) for at, value in enumerate(values)), is_set)


def test_a_panel_is_drawn_over_exactly_the_window() -> None:
    drawn = over_window(line("total", 200.0, 300.0), line("limit", 1e3, 1e3, is_set=True))
    assert legend(drawn) == ["total", "limit"]
    assert drawn.spec["encoding"]["x"]["scale"] == {"domain": [0, 15], "nice": False}
    assert "total: 200 to 300. limit: 1,000 to 1,000." in drawn.alt
    assert [one["series"] for one in data(drawn, "set")] == ["limit"]
    assert drawn.spec["title"]["subtitle"] == "broken: set, not measured"


def test_of_many_lines_the_highest_are_drawn() -> None:
    drawn = over_window(*(line(f"c{at}", float(at), 0.0) for at in range(10)))
    assert legend(drawn) == [f"c{at}" for at in range(3, 10)]
    assert drawn.spec["title"]["subtitle"] == "3 more, not higher"
    # Those that never leave 0 are not.
    assert legend(over_window(line("x", 0.0), line("y", 1.0))) == ["y"]
    assert legend(over_window(line("x", 0.0), line("y", 0.0))) == ["x"]


def test_missing_samples_leave_a_gap() -> None:
    drawn = over_window(line("x", 1.0, 1.0, None, 1.0, 1.0))
    paths = [path.get("d") or "" for path in ElementTree.fromstring(drawn.svg).iter(f"{SVG}path")]
    assert [path.count("M") for path in paths if path.count("L") == 2] == [2]


def test_spikes_and_steps_of_a_script_are_marked_where_they_were() -> None:
    spiky = record(
        plan(spike=Spike(400, None, 3, 2, 1, 0.25, 1)),
        window_offset_s=2.0,
        peaks=(Peak(5.0, 7.25),),
        script=(
            ScriptedToxic(6.0, 6.1, "TYPE=down", False, "stuck"),
            ScriptedToxic(40.0, 40.1, "TYPE=up", True),
        ),
    )
    marked = moments(spiky)
    assert [one.text for one in marked] == [
        "1 at 3.0 s: spike of 400 connections begins",
        "2 at 4.0 s: TYPE=down (stuck)",
        "3 at 5.2 s: spike ends",
        "4 at 38.0 s: TYPE=up",
    ]
    drawn = over_window(line("x", 1.0, 2.0), marked=marked)
    # The window ends before the last.
    assert [one["x"] for one in data(drawn, "marks")] == [3.0, 4.0, 5.25]
    assert {"1", "2", "3"} <= texts(drawn)
    assert "1 at 3.0 s: spike of 400 connections begins." in drawn.alt
    assert moments(record()) == ()


@pytest.fixture(scope="module")
def every_kind() -> list[Figure]:
    marked = moments(record(plan(), peaks=(Peak(11.0, 12.0),)))
    shown = over_window(line("x", 1.0, 2.0), line("y", 0.0, is_set=True), marked=marked)
    opened = [replace(one, p50_ms=9.0) for one in rows(2, (100,)) if one.mode == "open"]
    searched = figures(opened, {"p95": 300.0, "p50": 9.0})
    return [*figures(rows(6)).values(), *searched.values(), shown]


def test_a_figure_is_well_formed_and_keeps_vega_lite_s_schema(every_kind: list[Figure]) -> None:
    for drawn in every_kind:
        root = ElementTree.fromstring(drawn.svg)
        assert root.get("aria-label") == f"{drawn.title}. {drawn.alt}"
        assert not re.search(r"NaN|undefined|Infinity|\bnull\b| id=", drawn.svg.split(">", 1)[1])
        # A file has the colours of the light page.
        assert "var(--k0)" in drawn.svg
        assert "var(--" not in drawn.file
        assert palette.LIGHT["k0"] in drawn.file
        # Altair carries the schema, and raises if it is not kept.
        altair.Chart.from_dict(drawn.live, validate=True)


def test_text_and_lines_have_contrast_on_both_pages() -> None:
    for colours in (palette.LIGHT, palette.DARK):
        for ground in ("page", "card"):
            for name in ("ink", "soft", "link", "good", "bad"):
                assert contrast(colours[name], colours[ground]) >= 4.5, name
        assert contrast(colours["ink"], colours["loud"]) >= 4.5
        for hue in range(palette.HUES):
            assert contrast(colours[f"k{hue}"], colours["page"]) >= 3, hue


def test_a_server_keeps_its_hue_whoever_it_is_measured_with() -> None:
    known = ("fixed-pool", "virtual-threads", "event-loop", "netty", "netty-virtual")
    assert palette.numbers(known[::-1]) == {name: at for at, name in enumerate(known)}
    mixed = palette.numbers(("own", "netty", "other"))
    assert mixed["netty"] == 3
    assert len({number % palette.HUES for number in mixed.values()}) == 3
    # When hues are used up lanes differ in shape.
    names = [*("fixed-pool", "virtual-threads", "netty"), *(f"framework-{n}" for n in range(7))]
    numbers = palette.numbers(names).values()
    looks = {(number % palette.HUES, number % len(palette.SHAPES)) for number in numbers}
    assert len(looks) == len(names)


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
