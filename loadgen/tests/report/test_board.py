"""A dashboard as one picture: its panels where Grafana has them, and a small file."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from lab.model import PanelAnswers, PanelLine, Panels
from lab.report.page import palette
from lab.report.page.board import COLUMN_PX, GAP_PX, NO_DATA, WIDE_PX, Tile, board, small
from lab.report.page.over_time import Moment

SVG = "{http://www.w3.org/2000/svg}"
OF = Panels("Lab", 10.0, 1.0, ())
MARKED = (Moment(1, 4.0, "netty: 300 connections, open, measure"),)


def line(label: str, *values: float, is_set: bool = False, **labels: str) -> PanelLine:
    return PanelLine(label, labels, is_set, tuple((float(at), v) for at, v in enumerate(values)))


def tile(
    title: str, column: int, top: int, width: int, *lines: PanelLine, row: str = "Load"
) -> Tile:
    return Tile(column, top, width, PanelAnswers(title, row, "What it is.", "reqps", lines))


TILES = (
    tile("Memory", 0, 11, 24, row="Server"),
    tile("Errors", 12, 1, 12, line("netty ok", 1, 2, 3, server="netty"), line("limit", 4, 4)),
    tile("Throughput", 0, 1, 12, line("netty achieved", 0, 9000, 9500, server="netty")),
)


@pytest.fixture(scope="module")
def root() -> ElementTree.Element:
    return ElementTree.fromstring(
        board("dashboard-lab", OF, TILES, ("12:00",), {"netty": 3}, MARKED)
    )


def texts(of: ElementTree.Element) -> list[str]:
    return ["".join(one.itertext()) for one in of.iter(f"{SVG}text")]


def frames(root: ElementTree.Element) -> list[tuple[int, int, int, int, list[str]]]:
    """Of each panel its left, top, right and bottom, and its texts."""
    found = []
    for group in root.iter(f"{SVG}g"):
        frame = group.find(f"{SVG}rect")
        if frame is not None and frame.get("rx"):
            x, y = map(int, re.findall(r"\d+", group.get("transform", "")))
            size = int(frame.get("width", 0)), int(frame.get("height", 0))
            found.append((x, y, x + size[0], y + size[1], texts(group)))
    return found


def test_panels_stand_where_grafana_has_them(root: ElementTree.Element) -> None:
    throughput, errors, memory = frames(root)
    assert [one[4][0] for one in (memory,)] == ["Memory"]
    assert "Throughput" in throughput[4]
    assert "Errors" in errors[4]
    assert (throughput[0], errors[0]) == (GAP_PX, round(GAP_PX + 12 * COLUMN_PX))
    assert throughput[1] == errors[1]
    assert throughput[2] < errors[0]
    assert errors[2] == memory[2] == WIDE_PX - GAP_PX
    assert max(throughput[3], errors[3]) < memory[1]
    assert memory[3] < int(root.get("height", 0))
    assert root.get("width") == str(WIDE_PX)


def test_title_time_marks_and_rows_are_told(root: ElementTree.Element) -> None:
    said = texts(root)
    rows = [one for one in said if one in ("Load", "Server")]
    assert rows == ["Load", "Server"]
    assert said[:3] == ["Lab", "12:00", "1 at 4.0 s: netty: 300 connections, open, measure"]


def test_a_panel_has_its_unit_its_lines_names_and_the_marks(root: ElementTree.Element) -> None:
    throughput, errors, _ = frames(root)
    assert {"requests/s", "netty achieved", "0", "10k", "10", "s", "1"} <= set(throughput[4])
    assert {"netty ok", "limit"} <= set(errors[4])


def test_a_panel_without_data_says_so(root: ElementTree.Element) -> None:
    assert frames(root)[2][4] == ["Memory", NO_DATA]


def test_a_server_has_its_hue_on_every_panel(root: ElementTree.Element) -> None:
    hue = palette.LIGHT["k3"]
    for group in (one for one in root.iter(f"{SVG}g") if one.find(f"{SVG}rect") is not None):
        drawn = "".join(texts(group))
        if "netty" in drawn:
            assert hue in {path.get("stroke") for path in group.iter(f"{SVG}path")}


def test_the_axis_of_a_wide_panel_has_decades() -> None:
    lines = (line("open", 3, 300, 250), line("limit", 20_000, 20_000, 20_000, is_set=True))
    answers = PanelAnswers("Files", "Load", "What it is.", "short", lines, is_wide=True)
    root = ElementTree.fromstring(board("b", OF, (Tile(0, 0, 8, answers),), (), {}))
    # Vega names every second one where they are close.
    assert {"0", "10", "1,000"} <= set(texts(root))
    assert not {"5,000", "10k", "15k", "20k"} & set(texts(root))


def test_what_is_said_once_is_not_said_again(root: ElementTree.Element) -> None:
    drawn = ElementTree.tostring(root, encoding="unicode")
    assert drawn.count("Liberation Sans") == 1
    assert "<g>" not in drawn
    assert not re.search(r"\d\.\d{3}", drawn)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        # A level stretch is one step; every number is rounded by itself, so no error adds up.
        ('<path d="M0,0.696L15.389,50.82L30.778,50.82L46.167,50.8L61.556,20"/>',
         '<path d="M0,.7l15.4,50.1 30.8,0 15.4-30.8"/>'),
        ('<path d="M0,9L10,9L20,9"/>', '<path d="M0,9l20,0"/>'),
        ('<path d="M5,9L4.9,8"/>', '<path d="M5,9l-.1-1"/>'),
        ('<path d="M0,90Z" stroke="a"/>', '<path d="M0,90Z" stroke="a"/>'),
        ('<g><g transform="translate(30.7777,16)"><g><a/></g></g></g><g fill="x"/>',
         '<g transform="translate(30.8,16)"><a/></g><g fill="x"/>'),
        ('<g><text font-size="11px" transform="translate(0,-16.04)">1.234</text></g>',
         '<text x="0" y="-16">1.234</text>'),
        ('<line transform="translate(0,-9)" x2="5" y2="0" stroke="a" stroke-width="1"/>'
         '<line x2="0" y2="5" stroke="a"/><line x2="5" stroke="b"/>'
         '<line x2="5" stroke-dasharray="2,3"/>',
         '<path d="M0,-9h5M0,0v5" stroke="a"/><path d="M0,0h5" stroke="b"/>'
         '<line x2="5" stroke-dasharray="2,3"/>'),
    ],
)  # fmt: skip
def test_a_drawing_is_made_small(given: str, made: str) -> None:
    assert small(given) == made
