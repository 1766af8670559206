"""Colours and shapes of the page and of its figures: the one place that gives a server its own.

Seven hues and a grey. Each has a contrast of at least 3 to 1 to the page, as WCAG 2.2 asks of
graphics (1.4.11), and any two stay apart, by at least 25 in CIELAB, to eyes with and without
protanopia and deuteranopia (G. M. Machado et al., IEEE TVCG 15 (2009) 1291): they were searched
for so. A server also has a shape of its own, so that nothing is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, count

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
    "k7": ("#565c66", "#a3aab6"),
}
LIGHT: Mapping[str, str] = {name: light for name, (light, _) in _COLOURS.items()}
DARK: Mapping[str, str] = {name: dark for name, (_, dark) in _COLOURS.items()}
# The models of the lab have theirs for good, in every run; others take what is left, and when
# none is left the hues again, as a second round.
_OWN = ("fixed-pool", "virtual-threads", "event-loop", "netty", "netty-virtual")
HUES = 7
# For bounds and the machine, which belong to no server.
NEUTRAL = 7


def colours(servers: Sequence[str]) -> Mapping[str, int]:
    """A number for each server: its hue is the remainder by HUES, its round the quotient."""
    mine = {server: _OWN.index(server) for server in servers if server in _OWN}
    unused = [hue for hue in range(len(_OWN)) if hue not in mine.values()]
    free = chain(range(len(_OWN), HUES), unused, count(HUES))
    return mine | {server: next(free) for server in servers if server not in _OWN}


def variables(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())
