"""The choice of load engines: the ones asked for, else the one that fits the load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.errors import EngineError
from lab.kinds.reading.load import EXACT
from lab.load.engines import Engine
from lab.load.engines.wrk2 import BURSTS_FROM
from lab.model import Experiment

# How to get the engine that not every machine has.
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


def choose_engines(experiment: Experiment, engines: Sequence[Engine]) -> Chosen:
    """The engines that the experiment names, as far as they run here. If it names none: one for the
    whole run, and a note says why. Raises EngineError if none of them runs here."""
    read = [(engine, engine.version()) for engine in engines]
    versions = {engine.name: version for engine, version in read if version is not None}
    asked = experiment.engines
    names = [name for name in asked or versions if name in versions]
    if not names:
        hints = (f"; {name}: {HOW[name]}" for name in asked if name in HOW)
        raise EngineError(
            f"ENGINE={','.join(asked) or 'any'} does not run on this machine; here run: "
            f"{', '.join(versions) or 'none'}{''.join(hints)}"
        )
    missing = (name for name in asked if name not in versions)
    notes = tuple(f"{name} does not run on this machine: left out" for name in missing)
    if not asked:
        name, why = _fitting(experiment, names)
        names, notes = [name], (f"{name} is the load engine: {why}",)
    by_name = {engine.name: engine for engine in engines}
    chosen = {name: by_name[name] for name in names}
    return Chosen(chosen, {name: versions[name] for name in names}, notes)


def _fitting(experiment: Experiment, names: Sequence[str]) -> tuple[str, str]:
    """Of the engines that run here, the one that fits the load, and why. Raises EngineError."""
    why = why_exact(experiment)
    if why is None:
        return names[0], "it runs here, and the load fits it"
    if EXACT in names:
        return EXACT, why
    if experiment.requests:
        raise EngineError(
            f"{EXACT} alone sends what {experiment.routes[0]} is made of, and does not run here"
        )
    return names[0], f"{EXACT} does not run here ({why})"


def why_exact(experiment: Experiment) -> str | None:
    """Why the load needs the engine that is exact; None if wrk2 fits."""
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
