"""The frame of a page that opens offline, with nothing to fetch."""

from importlib import resources
from string import Template

from lab.report.page.palette import DARK, LIGHT, variables
from lab.report.page.script import policy


def page(title: str, heading: str, header: str, main: str, footer: str = "", **more: str) -> str:
    """All of a page; what it is made of is markup. `more` is a `nav`, and `scripts`: without them
    its policy allows none."""
    css = read("style.css")
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
    style = f":root{{{variables(LIGHT)}}}{dark}{css}"
    allowed = policy(style, has_scripts="scripts" in more)
    parts = {"title": title, "heading": heading, "header": header, "main": main, "footer": footer}
    return Template(read("page.html")).substitute(
        {"nav": "", "scripts": "", **more}, **parts, policy=allowed, style=style
    )


def read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
