"""The frame of a page that opens offline: its style, its scripts, and the policy that allows no
other and lets nothing be fetched.

vl-convert carries the JavaScript of Vega, Vega-Lite and vega-embed, so nothing is fetched when an
image is built or a page is opened. Vega alone would be a third smaller, but vl-convert offers the
interpreter of expressions only as a part of vega-embed; without the interpreter, Vega builds
functions from text, which needs `unsafe-eval`. Packed it is a third of its size, and figures.js
unpacks it when the first figure comes into view.
"""

import base64
import gzip
import hashlib
from functools import cache
from importlib import resources
from pathlib import Path
from string import Template

from lab.report.page.palette import DARK, LIGHT, variables


def page(title: str, heading: str, header: str, main: str, footer: str = "", **more: str) -> str:
    """All of a page; what it is made of is markup. `more` is a `nav`, and `scripts`: without them
    its policy allows none."""
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
    style = f":root{{{variables(LIGHT)}}}{dark}{read('style.css')}"
    allowed = (read("figures.js"), vega()) if "scripts" in more else ("",)
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, allowed))}; "
        f"style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {"title": title, "heading": heading, "header": header, "main": main, "footer": footer}
    return Template(read("page.html")).substitute(
        {"nav": "", "scripts": "", **more}, **parts, policy=policy, style=style
    )


def read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def packed(text: str, name: str = "") -> str:
    """A text as an element of data, which figures.js unpacks."""
    data = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    key = f' id="{name}"' if name else ""
    return f'<script type="application/gzip"{key}>{data}</script>'


@cache
def scripts() -> str:
    return f"{packed(vega(), 'vega')}\n<script>{read('figures.js')}</script>\n"


@cache
def vega() -> str:
    """Vega as one script, which sets `vegaEmbed`."""
    import vl_convert  # Here: slow to import, and most verbs draw nothing.

    # The driver's image has it ready (loadgen/Dockerfile): bundling takes seconds, for every page.
    ready = Path(vl_convert.__file__).with_name("vega.js")
    return ready.read_text(encoding="utf-8") if ready.exists() else bundled()


def bundled() -> str:
    """The same, made again."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


@cache
def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
