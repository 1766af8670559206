"""The kinds of experiments there are: every Kind that a file of this folder defines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from lab import kinds as package
from lab.errors import LabError
from lab.kinds.kind import Kind
from lab.model import Experiment


@cache
def kinds() -> Mapping[str, Kind]:
    """All kinds by name, in the order of the alphabet. Raises ValueError for two of one name."""
    by_name: dict[str, Kind] = {}
    for file in iter_modules(package.__path__):
        for kind in vars(import_module(f"{package.__name__}.{file.name}")).values():
            if isinstance(kind, Kind) and by_name.setdefault(kind.name, kind) is not kind:
                raise ValueError(f"{file.name}.py defines the kind {kind.name}, which is there")
    return dict(sorted(by_name.items()))


def kind_of(experiment: Experiment) -> Kind:
    """The kind of an experiment. Raises LabError for one that this version of the lab lacks."""
    kind = kinds().get(experiment.kind)
    if kind is None:
        names = ", ".join(kinds())
        raise LabError(f"{experiment.name} is of kind {experiment.kind}; known are: {names}")
    return kind
