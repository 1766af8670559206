"""The choice of load engines: the ones asked for, else the one that fits the load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.errors import EngineError
from lab.experiments.reading.load import EXACT
from lab.experiments.registry import kind_of
from lab.load.engines import ENGINES, Engine
from lab.load.engines.wrk2 import BURSTS_FROM
from lab.model import Experiment

# How to get an engine that not every machine has.
HOW = {
    "wrk2": "it is there where WRK2_IMAGE= in .env names an image with it, or nixos/nix can be "
    "pulled (amd64)",
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The engines of a run by name with their versions, and lines for the user about them."""

    engines: Mapping[str, Engine]
    versions: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        return "; ".join(self.versions.values())


def choose_engines(experiment: Experiment, engines: Sequence[Engine] = ENGINES) -> Chosen:
    """The engines that the experiment names, as far as they run here. If it names none: one for the
    whole run, wrk2 where it runs and the load fits it, else pacer; a note says which, and why.

    Raises EngineError when none of the named, or none at all, runs here.
    """
    versions = {engine.name: engine.version() for engine in engines}
    here = {engine.name: engine for engine in engines if versions[engine.name] is not None}
    names = experiment.engines
    missing = [name for name in names if name not in here]
    if names and len(missing) == len(names):
        hints = "".join(f"; {name}: {HOW[name]}" for name in missing if name in HOW)
        raise EngineError(
            f"ENGINE={','.join(missing)} does not run on this machine; here run: "
            f"{', '.join(here) or 'none'}{hints}"
        )
    if names:
        chosen = {name: here[name] for name in names if name in here}
        notes = tuple(f"{name} does not run on this machine: left out" for name in missing)
    else:
        one, why = _fitting(experiment, engines, here)
        chosen, notes = {one.name: one}, (f"{one.name} is the load engine: {why}",)
    return Chosen(chosen, {name: versions[name] or "" for name in chosen}, notes)


def why_exact(experiment: Experiment) -> str | None:
    """Why the load needs the engine that is exact; None where wrk2 fits."""
    kind = kind_of(experiment)
    if kind.exact is not None:
        return kind.exact
    if experiment.target is not None:
        return "it opens again what a service of your own closes, and speaks TLS"
    if experiment.warmup_s is not None:
        return "it alone has a warm-up of any length"
    if experiment.arrivals != "constant":
        return f"it alone sends {experiment.arrivals.capitalize()} arrivals"
    if "open" not in experiment.modes:
        return None
    if experiment.rate_rps is None:
        return "where the lab chooses the rate (RATE=auto), no burst of wrk2 decides what is held"
    if max(experiment.concurrencies) >= BURSTS_FROM:
        return f"wrk2 sends an open load in bursts from {BURSTS_FROM:,} connections on"
    return None


def _fitting(
    experiment: Experiment, engines: Sequence[Engine], here: Mapping[str, Engine]
) -> tuple[Engine, str]:
    """The engine that fits the load, with the reason. Raises EngineError."""
    if not here:
        raise EngineError("no load engine runs on this machine")
    first, usual, why = next(iter(here.values())), engines[0], why_exact(experiment)
    if why is not None and EXACT in here:
        return here[EXACT], why
    if experiment.requests:
        raise EngineError(
            f"{EXACT} alone sends what {experiment.routes[0]} is made of, and does not run here"
        )
    if why is not None:
        return first, f"{EXACT} does not run on this machine ({why})"
    if first is usual:
        return first, "it runs here, and the load fits it"
    return first, f"{usual.name} does not run on this machine"
