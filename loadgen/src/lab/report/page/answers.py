"""The first part of the page: what was asked and expected, what came out, and the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from lab.judge.compare import Answer, Comparison
from lab.judge.gates.generator import KEPT_UP
from lab.judge.grouping import Load, lane_of
from lab.model import Mode, Row
from lab.report import answers as first_lines
from lab.report import comparison as texts
from lab.report import spent, verdicts, words
from lab.report.page.by_load import FigureGroup
from lab.report.page.figure import Figure, specs
from lab.report.page.markup import MOST, bullets, first_of, folded, inline, long_table, prose, table
from lab.report.page.recorded import recorded
from lab.report.table import NOTHING, UNBOUND
from lab.report.words import Content

HINT = (
    "Point at a figure to read its values. Click an entry of its legend to see that series alone, "
    "and others to add them. Ctrl and the mouse wheel zoom, dragging moves, and a double click "
    "shows all again."
)
_MARKS = {"faster": "good", "slower": "bad"}
_ORDER: tuple[Answer, ...] = get_args(Answer)


def first(of: Content) -> str:
    """The answer, where the kind has one."""
    if not of.answers:
        return ""
    lines = "\n".join(map(inline, first_lines.lines(of.answers)))
    notes = "".join(f'<p class="soft">{inline(one)}</p>' for one in first_lines.notes(of.answers))
    return f'<pre class="answer">{lines}</pre>{notes}'


def notices(of: Content) -> str:
    """The notices that a reader must see first."""
    lines = []
    for line in words.notices(of):
        more = f'<a href="#{line.place}">{inline(line.more)}</a>.' if line.place else ""
        parts = (f"<strong>{inline(line.strong)}</strong>", inline(line.text), more)
        lines.append(" ".join(filter(None, parts)))
    if not lines:
        return ""
    said = "".join(f"<p>{line}</p>" for line in lines)
    return f'<div class="loud" role="note" aria-label="Read this first">{said}</div>'


def question(of: Content) -> str:
    """The experiment's question, and what was expected before the run."""
    asked = prose(words.question(of)).replace("<p>", '<p class="asked">')
    if not of.experiment.hypothesis.strip():
        return f"{asked}<p>No hypothesis was written down for this run.</p>"
    return f"{asked}<h3>Hypothesis</h3>{prose(of.experiment.hypothesis)}"


def _limited(of: Content) -> str:
    items = []
    for load, verdict, beside in verdicts.lines(of.said):
        below = f'<br><span class="soft">{inline(beside)}</span>' if beside else ""
        items.append(f"<li><strong>{inline(load)}</strong>: {inline(verdict)}{below}</li>")
    if not items:
        return ""
    told = first_of(items, "loads", lambda some: f'<ul class="limited">{"".join(some)}</ul>')
    return f"<h3>What limited</h3>{told}"


def prediction(of: Content) -> str:
    """The bounds that were known before the run, and what was measured beside them."""
    parts = []
    if of.loads:
        unbound = UNBOUND[of.experiment.target is not None]
        parts.append(_bounds(of))
        parts.append(
            '<p class="legend">The most requests per second that the load and the settings allow, '
            "predicted before the run: connections, threads and downstream connections, each "
            f"over how long a request holds one. {NOTHING}: {unbound}.</p>"
        )
    compared = [one.cells for one in of.said if one.expected_rps is not None]
    if compared:
        parts.append("<h3>Predicted and measured</h3>")
        parts.append(long_table("Predicted and measured", verdicts.HEADER, compared))
        parts.append(f'<p class="legend">{inline(verdicts.LEGEND)}</p>')
    return "".join(parts) or "<p>No bound is known of any load of this run.</p>"


def _bounds(of: Content) -> str:
    lanes = list(dict.fromkeys(load.lane for load in of.loads))
    routes = len({load.route for load in of.loads}) > 1
    offers = any(load.offered_rps is not None for load in of.loads)
    found: dict[tuple[str, int, int | None], dict[str, str]] = {}
    for load in of.loads:
        place = (load.route, load.concurrency, load.offered_rps)
        found.setdefault(place, {}).setdefault(load.lane, texts.rate(load.bound_rps))
    names = (
        *(("route",) if routes else ()),
        "connections",
        *(("offered/s",) if offers else ()),
    )
    rows = [
        (
            *((route,) if routes else ()),
            str(concurrency),
            *((NOTHING if rate is None else str(rate),) if offers else ()),
            *(bounds.get(lane, NOTHING) for lane in lanes),
        )
        for (route, concurrency, rate), bounds in found.items()
    ]
    return long_table("Predicted bounds", (*names, *lanes), rows, names=len(names))


def _at_a_glance(of: Content) -> str:
    """The highest closed throughput of each lane, beside its bound there, and the highest
    offered rate that it kept."""
    routes = len({(load.route, load.engine) for load in of.loads}) > 1
    groups: dict[tuple[str, str, str], list[Load]] = {}
    for load in of.loads:
        groups.setdefault((load.route, load.engine, load.lane), []).append(load)
    rows = []
    for (route, engine, lane), loads_of in groups.items():
        of_lane = [
            row for row in of.rows if (row.route, row.engine, lane_of(row)) == (route, engine, lane)
        ]
        closed = [load for load in loads_of if load.closed_rps is not None]
        kept = [load for load in loads_of if _keeps(load)]
        best = max(closed, key=lambda load: load.closed_rps.median if load.closed_rps else 0.0,
                   default=None)  # fmt: skip
        most = max(kept, key=lambda load: load.offered_rps or 0, default=None)
        rows.append(
            (
                *((route,) if routes else ()),
                lane,
                *(_highest(best) if best else _none_of(of_lane, "closed", 4)),
                *(_kept(most) if most else _none_of(of_lane, "open", 2)),
            )
        )
    if not rows:
        return ""
    header = (
        *(("route",) if routes else ()),
        *("server", "highest closed req/s", "at connections", "of its bound there"),
        *("raw p95 there", "highest rate kept/s", "p95 there"),
    )
    said = (
        '<p class="legend">Of the valid trials of this run. Kept: at least '
        f"{KEPT_UP * 100:g} % of what was "
        f"offered was answered. {NOTHING}: none of them, or nothing that bounds. Latencies in "
        "ms.</p>"
    )
    whole = long_table("At a glance", header, rows, names=1 + routes)
    return f"<h3>At a glance</h3>{whole}{said}"


def _none_of(rows: Sequence[Row], mode: Mode, columns: int) -> tuple[str, ...]:
    """So many cells of a lane that has no figure of a mode."""
    valid = [row.valid for row in rows if row.mode == mode]
    first = verdicts.NO_VALID if valid and not any(valid) else NOTHING
    return (first, *(NOTHING,) * (columns - 1))


def _keeps(load: Load) -> bool:
    if load.open_rps is None or load.offered_rps is None:
        return False
    return load.open_rps.median >= KEPT_UP * load.offered_rps


def _highest(load: Load) -> tuple[str, str, str, str]:
    share = NOTHING
    if load.bound_rps and load.closed_rps:
        share = f"{load.closed_rps.median / load.bound_rps:.0%}"
    return (
        texts.median_text(load.closed_rps, "goodput_rps"),
        str(load.concurrency),
        share,
        texts.median_text(load.closed_p95_ms, "raw_p95_ms"),
    )


def _kept(load: Load) -> tuple[str, str]:
    return texts.rate(load.offered_rps), texts.median_text(load.open_p95_ms, "p95_ms")


def came_out(of: Content) -> str:
    """The answers: findings, what limited each load, comparisons, and the figures at a glance."""
    parts = []
    if of.findings:
        parts.append("<h3>Findings</h3>")
        parts.append(bullets(map(words.finding, of.findings)))
    parts.append(_limited(of))
    parts.append(recorded(of.recorded))
    if of.comparisons:
        parts.append("<h3>Comparisons</h3>")
        parts.append(first_of([_comparison(one) for one in of.comparisons], "comparisons", "".join))
        parts += [f'<p class="legend">{inline(line)}</p>' for line in texts.legend(of.comparisons)]
    elif not of.changes_lab and len(set(map(lane_of, of.rows))) == 1:
        parts.append("<p>Only one server was measured: there is nothing to compare.</p>")
    parts.append(_at_a_glance(of))
    return "".join(parts) or "<p>No trial ended: nothing came out.</p>"


def _comparison(of: Comparison) -> str:
    counts = Counter(cell.answer for cell in of.cells)
    told = ", ".join(f"{counts[answer]} × {answer}" for answer in _ORDER if counts[answer])
    summary = (
        f"<strong>{inline(of.b)}</strong> (B) against <strong>{inline(of.a)}</strong> (A)"
        f'<span class="soft">{inline(told) or "no load in common"}</span>'
    )
    parts = []
    if of.cells:
        label = f"{of.b} against {of.a}"
        parts.append(table(label, texts.HEADER, texts.rows(of), names=2, marks=_MARKS))
    parts.append(bullets(texts.beside(of)))
    surely = len(of.cells) > counts["inconclusive"]
    return folded(summary, "".join(parts), is_open=surely and len(of.cells) <= MOST)


def loads(of: Content, places: Sequence[FigureGroup]) -> str:
    """Throughput and latency against concurrency: figures, and the same as a table."""
    parts = []
    if places:
        parts.append(f'<p class="soft hint">{HINT}</p>')
    for place in places:
        if len(places) > 1:
            parts.append(f"<h3>{inline(place.route)}, {inline(place.engine)}</h3>")
        parts.append(figures(place.figures))
    if not places:
        parts.append("<p>No trial gave figures.</p>")
    same = words.same(of.loads)
    parts.append("<h3>The same as a table</h3>")
    if same:
        parts.append(f"<p>All: {inline(same)}.</p>")
    header, rows = words.loads_table(of.loads)
    names = header.index("server") + 1
    parts.append(long_table("Loads", header, rows, names=names))
    parts.append(f'<p class="legend">{inline(words.LOADS_LEGEND)}</p>')
    for one in spent.tables(of.loads):
        parts.append(f"<h3>{one.title}</h3>")
        parts.append(bullets(one.lines))
        parts.append(long_table(one.title, one.header, one.rows, names=one.names))
        parts.append(f'<p class="legend">{inline(one.legend)}</p>')
    return "".join(parts)


def percentiles(drawn: Sequence[Figure]) -> str:
    """Full percentile curves."""
    if not drawn:
        return "<p>No trial has a readable histogram.</p>"
    said = (
        '<p class="soft">Every trial is one curve; it ends where fewer than 10 answers lie beyond. '
        "Corrected counts from when a request was due, raw from when it was sent: where the two "
        "part, requests waited to be sent.</p>"
    )
    return said + first_of(drawn, "loads", figures)


def figures(drawn: Sequence[Figure]) -> str:
    """Figures side by side as far as there is room."""
    inside = "".join(f"<figure>{one.svg}</figure>\n" for one in drawn)
    return f'<div class="specs"><div class="figures">{inside}</div>{specs(drawn)}</div>\n'
