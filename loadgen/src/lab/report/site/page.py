"""The page of a site: all that is known of its runs, and the script that filters it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any

from lab.report.blocks import Beside, Folded, Paragraph, Strong
from lab.report.page import spec
from lab.report.page.by_load import HEIGHT
from lab.report.page.html import head, style
from lab.report.page.markup import markup
from lab.report.page.script import figures, packed, scripts, vega
from lab.report.site.cells import HEADER, groups
from lab.report.site.figures import Place, places
from lab.report.site.told import SiteRun

NAME = "index.html"
CURVES = (
    "A line is one server of one run. A point is a median over fresh JVMs with its 95 % interval, "
    "or each launch where fewer than 6 give no interval. × is an invalid trial, and in no median. "
    "A figure is of one machine, and of runs that are alike in limits, settings, toxics, delay and "
    "kind; only code and images may differ. Runs are never pooled. They came one after the other: "
    "what drifted on the machine between them is part of every difference. `make compare` answers "
    "whether one is faster. Axes stay as they are while you filter."
)
TREND = (
    "One load on one machine. A point is a run, in the order in which they began; it names the "
    "code that ran. All else that the lab reads back is alike."
)
NO_SCRIPT = (
    "<noscript><p>Filters, figures and tables need this page's script. The runs below do not."
    "</p></noscript>"
)
# The script fills it.
FILLED = '<div class="filled"></div>'


def page(runs: Sequence[SiteRun]) -> str:
    """The whole page: one file that opens offline. The newest run is first."""
    newest = sorted(runs, key=lambda run: (run.started, run.name), reverse=True)
    machines = len({run.machine.key for run in runs})
    about = (
        f"{len(runs)} run{'' if len(runs) == 1 else 's'} on "
        f"{machines} machine{'' if machines == 1 else 's'}"
    )
    script = _file("site.js")
    whole = style(_file("site.css"))
    parts = (
        ("curves", "Curves", markup([Paragraph(CURVES, "soft")]) + FILLED),
        ("trend", "Trend", markup([Paragraph(TREND, "soft")]) + FILLED),
        ("cells", "Cells", FILLED),
        ("invalid", "Invalid trials", FILLED),
        ("runs", "Runs", markup(map(_run, newest))),
    )
    main = "".join(
        f'<section id="{key}" aria-labelledby="{key}-h"><h2 id="{key}-h">{title}</h2>\n{body}'
        "</section>\n"
        for key, title, body in parts
    )
    return (
        f"{head('Concurrency Lab: results', whole, figures(), vega(), script)}<body>\n"
        f'<header><p class="over">Concurrency Lab, results</p><h1>{about}</h1>'
        '<p class="meta">The address of this page holds its filters: pass it on.</p></header>\n'
        f'<main>\n{NO_SCRIPT}<form id="filters" aria-label="Filters"></form>\n'
        f'<p id="said" role="status"></p>\n{main}</main>\n'
        "<footer><p>Every trial was judged again from its raw data, by the rules of the version "
        "that made this page.</p></footer>\n"
        f"{packed(json.dumps(data(newest), separators=(',', ':')), 'data')}\n"
        f"{scripts()}<script>{script}</script>\n</body>\n</html>\n"
    )


def data(newest: Sequence[SiteRun]) -> dict[str, Any]:
    """What the script shows: `machines` by their keys, `runs` in the order of the page with what
    an address can ask of each, `cells` of these, and the `places` of figures."""
    return {
        "machines": {run.machine.key: run.machine.name for run in newest},
        "runs": [{**run.facets, "servers": list(run.servers)} for run in newest],
        "header": HEADER,
        "cells": [group.facts for run in newest for group in groups(run)],
        "places": [_place(one) for one in places(newest)],
        "height": HEIGHT,
        "legend": spec.LEGEND_PX,
    }


def _place(of: Place) -> dict[str, Any]:
    return {
        "trend": of.trend,
        "heading": of.heading,
        "machine": of.machine,
        "route": of.route,
        "mode": of.mode,
        "figures": [one.live for one in of.figures],
    }


def _run(of: SiteRun) -> Folded:
    return Folded((Strong(of.name), Beside(", ".join(_about(of)))), of.shown)


def _about(of: SiteRun) -> Iterator[str]:
    yield of.kind
    yield from of.said
    yield f"code {of.commit}"
    yield f"machine: {of.machine.name}"


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
