"""Figures as PNG: drawn by resvg, with one font, so that everywhere the bytes are the same."""

from __future__ import annotations

from pathlib import Path

import resvg_py

# Of the image's package fonts-dejavu-core.
FONTS = Path("/usr/share/fonts/truetype/dejavu")
FACES = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")
# Pixels for each of the figure's own: sharp on today's screens and on paper.
ZOOM = 2.0


def png(svg: str, fonts: Path = FONTS) -> bytes:
    """The picture of a figure that says its own size and style, on its light page."""
    return resvg_py.svg_to_bytes(
        svg_string=svg,
        zoom=ZOOM,
        background="#ffffff",
        font_files=[str(fonts / face) for face in FACES if (fonts / face).exists()],
        font_family="DejaVu Sans",
        sans_serif_family="DejaVu Sans",
        skip_system_fonts=True,
    )
