"""The smallest parts of figures: shapes, texts, legends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

# Of text at 11 px, on average; to break a line before it is too long.
CHAR_PX = 6.1
LEGEND_PX = 16.0
SHAPES = 8


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a legend."""

    text: str
    hue: int
    style: str = ""
    shape: int | None = None
    hollow: bool = False
    line: bool = True
    struck: bool = False


def legend(keys: Sequence[Key], left: float, top: float, width: float) -> tuple[str, float]:
    """The entries in as many lines as they need, and where they end."""
    if not keys:
        return "", top
    parts, x, y = [], left, top
    for key in keys:
        length = 26.0 + CHAR_PX * len(key.text) + 10.0
        if x > left and x + length > width:
            x, y = left, y + LEGEND_PX
        middle = y + 8.0
        if key.struck:
            parts.append(cross(key.hue, x + 10, middle))
        elif key.line:
            style = f" {key.style}" if key.style else ""
            parts.append(f'<path class="l k{key.hue}{style}" d="M{px(x)} {px(middle)}h20"/>')
        if key.shape is not None:
            kind = "h" if key.hollow else "f"
            parts.append(
                f'<path class="{kind} k{key.hue}" d="{shape(key.shape, x + 10, middle, 3.8)}"/>'
            )
        parts.append(text_at(x + 25, middle + 4, key.text, ""))
        x += length
    return "".join(parts), y + LEGEND_PX


def shape(number: int, x: float, y: float, r: float) -> str:
    """A path of one of eight shapes around a place: circle, square, two triangles, diamond, plus,
    hourglass, bar."""
    cx, cy = px(x), px(y)
    d, t = px(2 * r), px(1.15 * r)
    match number % SHAPES:
        case 0:
            return f"M{px(x - r)} {cy}a{px(r)} {px(r)} 0 1 0 {d} 0a{px(r)} {px(r)} 0 1 0-{d} 0z"
        case 1:
            s = px(1.8 * r)
            return f"M{px(x - 0.9 * r)} {px(y - 0.9 * r)}h{s}v{s}h-{s}z"
        case 2:
            return f"M{cx} {px(y - 1.2 * r)}l{t} {d}h-{px(2.3 * r)}z"
        case 3:
            q = px(1.3 * r)
            return f"M{cx} {px(y - 1.3 * r)}l{q} {q}l-{q} {q}l-{q}-{q}z"
        case 4:
            return f"M{cx} {px(y + 1.2 * r)}l{t}-{d}h-{px(2.3 * r)}z"
        case 5:
            a, b = px(0.8 * r), px(-0.8 * r)
            return (
                f"M{px(x - 0.4 * r)} {px(y - 1.2 * r)}h{a}v{a}h{a}v{a}h{b}v{a}h{b}v{b}h{b}v{b}h{a}z"
            )
        case 6:
            w = px(2.4 * r)
            return f"M{px(x - 1.2 * r)} {px(y - 1.2 * r)}h{w}l-{w} {w}h{w}z"
        case _:
            w = px(2.4 * r)
            return f"M{px(x - 1.2 * r)} {px(y - 0.5 * r)}h{w}v{px(r)}h-{w}z"


def cross(hue: int, x: float, y: float) -> str:
    """A cross: measured, and not valid."""
    return (
        f'<path class="l thin k{hue}" '
        f'd="M{px(x - 3.5)} {px(y - 3.5)}l7 7M{px(x + 3.5)} {px(y - 3.5)}l-7 7"/>'
    )


def text_at(x: float, y: float, text: str, classes: str) -> str:
    """A text at a place, with its classes; nothing for no text."""
    names = f' class="{classes}"' if classes else ""
    return f'<text{names} x="{px(x)}" y="{px(y)}">{escape(text)}</text>' if text else ""


def px(value: float) -> str:
    """A length or a place, to a tenth of a pixel."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")
