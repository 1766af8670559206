"""report.html and its figures: a whole run for people, as one page that opens anywhere.

The same run gives the same bytes: no time but the run's own, nothing of where it lies.
"""

from collections.abc import Mapping, Sequence

from lab.model import Sustained
from lab.report.blocks import Drawing, Section
from lab.report.page import frame, trials
from lab.report.page.by_load import by_load
from lab.report.page.figure import Figure, figures_of
from lab.report.page.markup import body_of, inline, markup
from lab.report.result import Result, Trial
from lab.report.sections import first, sections

NAME = "report.html"
FIGURES = "figures"
HINT = (
    '<p class="soft hint">Point at a figure to read its values. Click an entry of its legend to '
    "see that series alone, and others to add them.</p>"
)
FOOTER = (
    "Every number here follows from its raw data and manifest; the first figures are beside this "
    "page, in the folder figures. The same as text: REPORT.md."
)


def build(
    result: Result, shown: Sequence[tuple[Trial, Sequence[Figure]]]
) -> tuple[str, Mapping[str, str]]:
    """The page of a run, of its trials with their figures over time; and the figures by load, each
    an SVG file by its name."""
    sustained = [finding for finding in result.findings if isinstance(finding, Sustained)]
    drawn = () if result.changes_lab else by_load(result.loaded, result.limits, sustained)
    figures = tuple(drawn)
    # The figure behind the answer, before any table.
    answer = [Drawing(HINT + figures_of(figures))] if figures else []
    parts = [Section("Figures", answer, "figures"), *sections(result)]
    at = next(at for at, part in enumerate(parts) if part.key == "validity")
    parts.insert(at, trials.section(shown))
    written = [(part.key, part.title, body) for part in parts if (body := body_of(part))]
    name, run = inline(result.experiment.name), inline(result.manifest.run)
    links = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title, _ in written)
    main = "".join(
        f'<section aria-labelledby="{key}"><h2 id="{key}">{title}</h2>\n{body}</section>\n'
        for key, title, body in written
    )
    page = frame.page(
        title=f"{name}: {run}",
        heading=name,
        header=markup(first(result)),
        nav=f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n',
        main=main,
        footer=f"Run {run}. {FOOTER}",
        scripts=frame.scripts(),
    )
    return page, {figure.name: figure.file for figure in figures}
