"""Colours of the page and of its figures, and the shape of each lane.

Seven hues and a grey. Each has a contrast of at least 3 to 1 to the page, as WCAG 2.2 asks of
graphics (1.4.11), and any two stay apart, by at least 25 in CIELAB, to eyes with and without
protanopia and deuteranopia (G. M. Machado et al., IEEE TVCG 15 (2009) 1291): they were searched
for so. A lane also has a shape, so that nothing is shown by colour alone.
"""

from collections.abc import Mapping, Sequence
from itertools import count

# On a light page and on a dark one.
_COLOURS = {
    "page": ("#ffffff", "#14161a"),
    "card": ("#f6f7f9", "#1d2026"),
    "ink": ("#16181d", "#e8eaee"),
    "soft": ("#565c66", "#a3aab6"),
    "rule": ("#dcdfe4", "#343942"),
    "link": ("#0b5cad", "#7db8f5"),
    "good": ("#00703f", "#58c98c"),
    "bad": ("#b3261e", "#ff8a80"),
    "loud": ("#fff1d6", "#3a2c10"),
    "loud-rule": ("#b26a00", "#e0a030"),
    "k0": ("#4194e1", "#65affb"),
    "k1": ("#91270b", "#d45329"),
    "k2": ("#23a869", "#14f699"),
    "k3": ("#812f56", "#cc4e83"),
    "k4": ("#bd8b09", "#f4c407"),
    "k5": ("#7c3cf7", "#7b5fff"),
    "k6": ("#4a9eaf", "#51eef1"),
}
LIGHT: Mapping[str, str] = {name: light for name, (light, _) in _COLOURS.items()}
DARK: Mapping[str, str] = {name: dark for name, (_, dark) in _COLOURS.items()}
HUES = 7
# In Vega's words; one more than hues, so that lanes of one hue differ in their shapes.
SHAPES = (
    *("circle", "square", "triangle-up", "diamond", "triangle-down", "cross"),
    *("M-1,-1H1L-1,1H1Z", "M-1,-.4H1V.4H-1Z"),
)
# The models of the lab have their own number, in every run; other lanes take what is left.
_MODELS = ("fixed-pool", "virtual-threads", "event-loop", "netty", "netty-virtual")


def numbers(lanes: Sequence[str]) -> dict[str, int]:
    """A number for each lane, by which it has its hue and its shape."""
    fixed = {lane: _MODELS.index(lane) for lane in lanes if lane in _MODELS}
    free = (at for at in count(len(_MODELS)) if at % HUES not in fixed.values())
    return {lane: fixed[lane] if lane in fixed else next(free) for lane in lanes}


def variables(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())
