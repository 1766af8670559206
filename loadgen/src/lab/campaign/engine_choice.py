"""The choice of load engines: the ones asked for that run on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.errors import EngineError
from lab.load.engines import ENGINES, Engine


@dataclass(frozen=True, slots=True)
class Chosen:
    """The engines of a run by name with their versions, and lines for the user about them."""

    engines: Mapping[str, Engine]
    versions: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """The versions of all, as a manifest has them."""
        return "; ".join(self.versions.values())


def choose_engines(names: Sequence[str], engines: Sequence[Engine] = ENGINES) -> Chosen:
    """The engines named, as far as they run here; the first that does both loads if none is.

    Raises EngineError when none of the named, or none at all, runs here.
    """
    versions = {engine.name: engine.version() for engine in engines}
    here = {engine.name: engine for engine in engines if versions[engine.name] is not None}
    known = ", ".join(here) or "none"
    if names:
        missing = [name for name in names if name not in here]
        if len(missing) == len(names):
            raise EngineError(
                f"ENGINE={','.join(missing)} does not run on this machine; here run: {known}"
            )
        chosen = {name: here[name] for name in names if name in here}
        notes = tuple(f"{name} does not run on this machine: left out" for name in missing)
    else:
        both = [engine for engine in here.values() if len(engine.modes) > 1]
        if not both:
            raise EngineError(f"no load engine for MODE=open runs on this machine; here: {known}")
        chosen = {both[0].name: both[0]}
        first, usual = both[0].name, engines[0].name
        notes = ()
        if first != usual:
            notes = (f"{usual} does not run on this machine: {first} is the load engine",)
    return Chosen(chosen, {name: versions[name] or "" for name in chosen}, notes)
