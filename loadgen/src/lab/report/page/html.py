"""The page itself: one file that opens offline, with nothing to fetch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from lab.model.host_facts import host_id
from lab.report.page.by_load import FigureGroup
from lab.report.page.figure import Figure, specs
from lab.report.page.markup import content, inline, markup
from lab.report.page.palette import DARK, LIGHT, variables
from lab.report.page.script import policy, scripts
from lab.report.page.trials import Shown, trials
from lab.report.sections import first, sections
from lab.report.words import Content
from lab.store.records import time_text

HINT = (
    '<p class="soft hint">Host {}. Point at a figure to read its values. Click an entry of its '
    "legend to see that series alone, and others to add them.</p>"
)


def html(
    of: Content,
    shown: Sequence[Shown],
    places: Sequence[FigureGroup],
    over_time: Sequence[Sequence[Figure]],
) -> str:
    """The whole page: the sections of the report, with what is drawn of its loads and trials."""
    # The figure behind the answer, before any table.
    parts = [("figures", "Figures", _by_load(places, of.manifest.host))] if places else []
    for one in sections(of):
        parts.append((one.key, one.title, content(one)))
        if one.key == "loads":
            parts.append(("trials", "Every trial over time", trials(shown, over_time)))
    name, run = inline(of.experiment.name), inline(of.manifest.run)
    links = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title, _ in parts)
    main = "".join(
        f'<section aria-labelledby="{key}"><h2 id="{key}">{title}</h2>\n{body}</section>\n'
        for key, title, body in parts
    )
    return (
        f"{head(f'{name}: {run}', style())}<body>\n"
        f'<header><p class="over">Concurrency Lab, report</p><h1>{name}</h1>'
        f'<p class="meta">{inline(_about(of))}</p>{markup(first(of))}</header>\n'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>\n{main}</main>\n'
        f"<footer><p>Run {run}. Every number here follows from its raw data and manifest; the "
        "first figures are beside this page, in the folder figures. The same as text: "
        f"REPORT.md.</p></footer>\n{scripts()}</body>\n</html>\n"
    )


def _by_load(places: Sequence[FigureGroup], host: Mapping[str, Any]) -> str:
    parts = [HINT.format(inline(host_id(host) or "unknown"))]
    for place in places:
        if len(places) > 1:
            parts.append(f"<h3>{inline(place.route)}, {inline(place.engine)}</h3>")
        parts.append(_figures(place.figures))
    return "".join(parts)


def _figures(drawn: Sequence[Figure]) -> str:
    inside = "".join(f"<figure>{one.svg}</figure>\n" for one in drawn)
    return f'<div class="specs"><div class="figures">{inside}</div>{specs(drawn)}</div>\n'


def head(title: str, style: str, *scripts: str) -> str:
    """How a page begins: its policy before all that a run says. `scripts` as of `policy`."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style, *scripts)}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n"
    )


def _about(of: Content) -> str:
    day, _, time = time_text(of.manifest.started_at).partition("T")
    return f"{', '.join(of.experiment.servers)}: {len(of.rows)} trials, {day} {time[:5]} UTC"


def style() -> str:
    css = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    return (
        f":root{{{variables(LIGHT)}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
        f"{css}"
    )
