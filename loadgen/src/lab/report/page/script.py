"""The page's scripts, and the policy that allows no other.

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


def packed(text: str, name: str = "") -> str:
    """A text as an element of data, which figures.js unpacks."""
    data = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    key = f' id="{name}"' if name else ""
    return f'<script type="application/gzip"{key}>{data}</script>'


@cache
def vega() -> str:
    """Vega as one script, which sets `vegaEmbed`."""
    import vl_convert  # Here: slow to import, and most verbs draw nothing.

    # The driver's image has it ready (loadgen/Dockerfile): bundling takes seconds, for every page.
    ready = Path(vl_convert.__file__).with_name("vega.js")
    return ready.read_text(encoding="utf-8") if ready.exists() else bundled()


def bundled() -> str:
    """The same, made anew."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


@cache
def scripts() -> str:
    return f"{packed(vega(), 'vega')}\n<script>{figures()}</script>\n"


def figures() -> str:
    return resources.files(__package__).joinpath("figures.js").read_text(encoding="utf-8")


@cache
def policy(style: str, *, has_scripts: bool) -> str:
    """A Content-Security-Policy that allows exactly this style, the scripts of a report or none,
    and nothing to be fetched."""
    allowed = (figures(), vega()) if has_scripts else ("",)
    return (
        f"default-src 'none'; script-src {' '.join(map(_hash, allowed))}; "
        f"style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
