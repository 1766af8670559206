"""The page's one script, and the policy that allows no other.

vl-convert carries the JavaScript of Vega, Vega-Lite and vega-embed and bundles it with figures.js,
so nothing is fetched when an image is built or a page is opened. Vega alone would be a third
smaller, but vl-convert offers the interpreter of expressions only as a part of vega-embed; without
the interpreter, Vega builds functions from text, which needs `unsafe-eval`.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

import vl_convert


@cache
def script() -> str:
    """Vega and figures.js as one script."""
    own = resources.files(__package__).joinpath("figures.js").read_text(encoding="utf-8")
    return vl_convert.javascript_bundle(own)


def policy(script: str, style: str) -> str:
    """A Content-Security-Policy that allows exactly this script and this style, and nothing to be
    fetched but pictures that lie beside the page."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data: 'self'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
