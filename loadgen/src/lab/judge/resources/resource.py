"""What a resource is: one object in a file of this folder, which is registered by being there."""

from collections.abc import Callable
from copy import replace
from dataclasses import dataclass

from lab.judge.trial import Trial
from lab.model import Held, Standing, Wait

# What the files of resources are written with, too.
__all__ = ["Held", "Standing", "Trial", "Wait"]
# The driver reads it at the edges of the window.
DRIVER = "raw/<trial>/trial.json, usage"
# In use for this share of its capacity a pool is full: a sample every 1 or 2 s finds a worker
# between two requests, and the edges of the window lose some.
FULL = 0.95


@dataclass(frozen=True, slots=True)
class Resource:
    """`find` gives use, capacity, and what waited for it in a window; None where a trial has no
    such resource, or its use is not known. `doc` says what waits for it, and how that is measured,
    a paragraph each: docs/verdict.md is made of them."""

    name: str
    find: Callable[[Trial], Standing | None]
    doc: str = ""

    def standing(self, trial: Trial) -> Standing | None:
        trial.figures.clear()
        if (standing := self.find(trial)) is None:
            return None
        evidence = tuple(dict.fromkeys(trial.figures))
        return replace(standing, resource=self.name, evidence=evidence)


def resource(name: str) -> Callable[[Callable[[Trial], Standing | None]], Resource]:
    """Makes a resource of the function that finds its standing."""
    return lambda find: Resource(name, find, find.__doc__ or "")


def waits(places: tuple[str, ...], part: float = 1.0, *, measured: bool = True) -> tuple[Wait, ...]:
    """The same part of the waiting at each of these places."""
    return tuple(Wait(place, part=part, measured=measured) for place in places)


def holding(
    trial: Trial, count: float, alone_s: float, held_s: float, inside: tuple[str, ...]
) -> Held:
    """How much of the waiting for one of `count` places is due to their number, and not to what
    lasts longer `inside` than `alone_s` while a place is held for `held_s`.

    Closed: N = X·R and X = count / held, so the wait is proportional to the time held. Open: with
    λ·alone / count below FULL nothing would wait without the longer hold; the wait of M/M/1 then,
    over the wait now. From FULL on it is proportional too."""
    longer_ms = max(0.0, held_s - alone_s) * 1000
    if not longer_ms or alone_s <= 0:
        return Held(1.0 if alone_s > 0 else 0.0, longer_ms, inside)
    rate = (trial.offered_rps or 0.0) / count
    alone, now = rate * alone_s, rate * held_s
    if not trial.is_open or alone >= FULL:
        return Held(alone_s / held_s, longer_ms, inside)
    share = 0.0 if now >= 1 else alone / (1 - alone) * (1 - now) / now
    return Held(share, longer_ms, inside)
