"""The page itself: one file that opens offline, with nothing to fetch."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from lab.report.page import answers, made_with
from lab.report.page import trials as each
from lab.report.page.by_load import FigureGroup
from lab.report.page.figure import Figure
from lab.report.page.markup import inline
from lab.report.page.palette import DARK, LIGHT, variables
from lab.report.page.script import policy, scripts
from lab.report.words import Content
from lab.store.records import time_text


def html(
    of: Content,
    shown: Sequence[each.Shown],
    places: Sequence[FigureGroup],
    curves: Sequence[Figure],
    over_time: Sequence[Sequence[tuple[str, Figure]]],
) -> str:
    """The whole page."""
    sections = (
        ("question", "Question", answers.question(of)),
        ("results", "What came out", answers.came_out(of)),
        ("prediction", "Prediction", answers.prediction(of)),
        ("loads", "Throughput and latency", answers.loads(of, places)),
        ("percentiles", "Latency by rank", answers.percentiles(curves)),
        ("trials", "Every trial over time", each.trials(shown, over_time)),
        ("validity", "Validity", each.validity(of)),
        ("fairness", "Fairness manifest", made_with.fairness(of)),
        ("run", "What was run, on what", made_with.what(of) + made_with.host(of)),
        ("again", "Run it again", made_with.again(of)),
    )
    name, run = inline(of.experiment.name), inline(of.manifest.run)
    links = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title, _ in sections)
    body = "".join(
        f'<section aria-labelledby="{key}"><h2 id="{key}">{title}</h2>\n{content}</section>\n'
        for key, title, content in sections
    )
    return (
        f"{head(f'{name}: {run}', _style())}<body>\n"
        f'<header><p class="over">Concurrency Lab, report</p><h1>{name}</h1>'
        f'<p class="meta">{inline(_about(of))}</p>'
        f"{answers.first(of)}{answers.notices(of)}</header>\n"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>\n{body}</main>\n'
        f"<footer><p>Run {run}. Every number here follows from its raw data and manifest; the "
        "figures are beside this page as SVG and PNG, in the folder figures. The same as text: "
        f"REPORT.md.</p></footer>\n{scripts()}</body>\n</html>\n"
    )


def head(title: str, style: str, *scripts: str) -> str:
    """How a page begins: with its policy, before anything that a run says. The control page looks
    for it there. `scripts` as of `policy`."""
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


def _style() -> str:
    css = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    return (
        f":root{{{variables(LIGHT)}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
        f"{css}"
    )
