"""Figures: what is drawn of which trials, axes, colours that can be told apart."""

import itertools
import re
from collections.abc import Iterable, Iterator
from copy import replace
from pathlib import Path
from xml.etree import ElementTree

import altair
import numpy as np

from lab.model import Peak, Row, ScriptedToxic, Spike, Sustained
from lab.report.page import palette
from lab.report.page.by_load import by_load
from lab.report.page.figure import Figure
from lab.report.page.over_time import Moment, figure, moments
from lab.report.page.panels import PANELS, Line
from support.fakes import plan, record
from support.planned import row
from support.snapshot import assert_as_it_was

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


BAND = Sustained(
    *("capacity", "fixed-pool", 0, 600.0, "req/s", 500.0, 700.0, "", "p95 ≤ 500 ms", None),
    *(1, 3, 3, False, False, None),
)


def figures(trials: Iterable[Row], limits: dict[str, float] | None = None) -> list[Figure]:
    return [*by_load([*trials], limits, [BAND])]


def line(label: str, *values: float | None, is_set: bool = False) -> Line:
    return Line(label, tuple((float(at), value) for at, value in enumerate(values)), is_set)


def over_window(*lines: Line, marked: tuple[Moment, ...] = ()) -> Figure:
    """A panel of milliseconds with these lines, over a window of 15 s."""
    return figure("01-a-p1", PANELS[2], lines, 15.0, marked)


def searched() -> list[Row]:
    """A search by rate: as many connections at other rates, and a trial that tells nothing."""
    opened = [replace(one, p50_ms=9.0) for one in rows(1) if one.mode == "open"]
    more = replace(opened[0], offered_rps=800, achieved_rps=790.0, p95_ms=600.0)
    lost = {"offered_rps": 16_000, "achieved_rps": None, "valid": False, "p95_ms": None}
    return [*opened, more, replace(opened[0], **lost)]


def apart(*rates: float) -> list[Row]:
    """One server at rates that are far apart."""
    one = replace(rows(1)[0], expected_rps=None, raw_p95_ms=None)
    return [
        replace(one, trial=f"{at}", concurrency=at + 1, achieved_rps=rate)
        for at, rate in enumerate(rates)
    ]


SPIKY = record(
    plan(spike=Spike(400, None, 3, 2, 1, 0.25, 1)),
    window_offset_s=2.0,
    peaks=(Peak(5.0, 7.25),),
    script=(
        ScriptedToxic(6.0, 6.1, "TYPE=down", False, "stuck"),
        ScriptedToxic(40.0, 40.1, "TYPE=up", True),
    ),
)


def drawn() -> dict[str, list[Figure]]:
    first, *others = rows(2)
    short = replace(first, trial="01")
    again = replace(short, trial="01-again", duration_s=60, achieved_rps=5.0)
    errors = [replace(one, ok=300, http_errors=100) for one in rows(1)]
    return {
        "six launches, with intervals": figures(rows(6))[::3],
        "an invalid trial, which is a cross and in no median": figures(
            [replace(first, valid=False), *others]
        )[:1],
        "several routes": figures(
            replace(one, route=to) for to in ("/", "/?wait_ms=200") for one in rows(1, (100,))
        )[:3],
        "a longer window, which counts alone": figures([short, again]),
        "errors, which are no throughput": figures(errors[:1]),
        "a search by rate": figures(searched(), {"p95": 500.0, "p50": 9.0}),
        "nothing": figures([row(plan(server="fixed-pool"))]),
        "near": figures(apart(100.0, 450.0)),
        "far": figures(apart(90.0, 20_000.0)),
        "far, from 0": figures(apart(0.0, 20_000.0)),
        "a panel": [
            over_window(line("total", 200.0, 300.0), line("limit", 1e3, 1e3, is_set=True)),
            over_window(*(line(f"c{at}", float(at), 0.0) for at in range(10))),
            over_window(line("x", 0.0), line("y", 1.0)),
            over_window(line("x", 0.0), line("y", 0.0)),
            over_window(line("x", 1.0, 2.0), marked=moments(SPIKY)),
        ],
    }


LOOKS = ("valid", "shift", "tip")


def parts(shown: Figure) -> Iterator[str]:
    """What a reader sees of a figure, without how it looks."""
    spec = shown.spec
    yield f"## {shown.name}: {shown.title}"
    yield shown.alt
    scales = " and ".join(str(spec["encoding"][name]["scale"]) for name in "xy")
    rounded = re.sub(r"\d+\.\d{5,}", lambda found: f"{float(found[0]):.5g}", scales)
    yield f"{spec['title']}, {spec['width']} × {spec['height']}, {rounded}"
    yield f"legend {spec['layer'][0]['encoding']['color']['scale']}"
    for each in spec["layer"]:
        yield f"{each['name']}: {each['mark']} {sorted(each['encoding'])}"
        points = each["data"]["values"]
        yield f"  the first tells {points[0].get('tip')!r}"
        for point in points:
            kept = (str(value) for name, value in point.items() if name not in LOOKS)
            yield f"  {' '.join(kept)}"


def test_every_figure_is_as_it_was() -> None:
    found = [
        f"# {title}\n" + "".join(f"{part}\n" for one in every for part in parts(one))
        for title, every in drawn().items()
    ]
    assert_as_it_was(Path(__file__).with_name("figures.txt"), "\n".join(found))


def test_what_was_predicted_is_drawn_within_the_axis() -> None:
    open_loads = [row for row in rows(20) if row.mode == "open"]
    slow = [replace(row, p95_ms=3e3 * row.launch, expected_p95_ms=200.0) for row in open_loads]
    (drawn,) = (each for each in by_load(slow, {"p95": 150.0}, []) if each.name.startswith("p95"))
    scale = drawn.spec["encoding"]["y"]["scale"]
    assert scale["type"] == "log"
    assert scale["domain"][0] == 150.0


def test_missing_samples_leave_a_gap() -> None:
    shown = over_window(line("x", 1.0, 1.0, None, 1.0, 1.0))
    paths = [path.get("d") or "" for path in ElementTree.fromstring(shown.svg).iter(f"{SVG}path")]
    assert [path.count("M") for path in paths if path.count("L") == 2] == [2]


def test_steps_outside_of_the_window_are_marked_nowhere() -> None:
    assert [one.text for one in moments(SPIKY)][2:] == [
        "3 at 5.2 s: spike ends",
        "4 at 38.0 s: TYPE=up",
    ]
    assert moments(record()) == ()


def test_a_figure_is_well_formed_and_keeps_vega_lite_s_schema() -> None:
    every = drawn()
    kinds = ("six launches, with intervals", "a search by rate", "a panel")
    for shown in (one for kind in kinds for one in every[kind][-3:]):
        root = ElementTree.fromstring(shown.svg)
        assert root.get("aria-label") == f"{shown.title}. {shown.alt}"
        assert not re.search(r"NaN|undefined|Infinity|\bnull\b| id=", shown.svg.split(">", 1)[1])
        # A file has the colours of the light page.
        assert "var(--k0)" in shown.svg
        assert "var(--" not in shown.file
        assert palette.LIGHT["k0"] in shown.file
        # Altair carries the schema, and raises if it is not kept.
        altair.Chart.from_dict(shown.live, validate=True)


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
