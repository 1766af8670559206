"""The second form of a headline: its numbers, and to which lines it belongs."""

from dataclasses import replace

from lab.model import Drift, InUnits, Line
from lab.report.ruler import drifts, with_units

UNITS = InUnits(
    "units", "netty", 0, 0.567, "control parts", 0.55, 0.6,
    lane="event-loop", server_us=61.2, control_us=107.9, busy=0.9, broke=True, cpus=2,
    line=Line(b=156e-6, a=0.43, rates=7),
)  # fmt: skip


def test_a_line_gets_its_server_s_units_and_what_to_expect_elsewhere() -> None:
    answers = (("netty", "holds 8,800 req/s"), ("vertx", "holds 9 req/s", "then: x"), ("a note",))
    netty, vertx, note, *notes = with_units(answers, [UNITS])
    assert (vertx, note) == answers[1:]
    assert netty[:3] == ("netty", "holds 8,800 req/s", "")
    for number in ("0.57 [0.55, 0.60]", "event-loop", "61.2 / 108 µs", "90%"):
        assert number in netty[3], number
    # (2 · 0.9 / f - 0.43) / 156 µs, in two digits.
    for number in ("0.90 / f -0.43) / 156 µs", "3,000, 20,000, 43,000 req/s on 1, 4, 8 CPUs"):
        assert number in netty[4], number
    assert any("f = " in text for (text,) in notes)
    # The unit of another lane has no interval, and the reader learns why.
    assert sum("No interval" in text for (text,) in notes) == 1
    lines = with_units(answers, [replace(UNITS, lane=None)])
    assert not any("No interval" in cells[0] for cells in lines)
    lines = with_units(answers, [replace(UNITS, line=None)])
    assert len(lines[0]) == 4
    assert not any("f = " in cell for cells in lines for cell in cells)
    assert with_units((), []) == ()
    assert with_units(answers, []) == answers


def test_a_drift_is_named_with_its_share() -> None:
    found = Drift("drift", "", 0, 0.18, "share", None, None, "ref_net", (1.0, 1.0, 1.1, 1.18))
    (line,) = drifts([UNITS, found])
    assert "18%" in line
    assert "ref_net" in line
