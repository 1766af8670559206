"""The kinds of experiments there are: every file of this folder that defines KIND."""

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
    """All kinds by name, in the order of the alphabet. Raises ValueError for a kind that has not
    the name of its file, and so for two of one name."""
    by_name = {}
    for name in sorted(file.name for file in iter_modules(package.__path__)):
        module = import_module(f"{package.__name__}.{name}")
        if hasattr(module, "KIND"):
            if module.KIND.name != name:
                raise ValueError(f"{module.__file__} defines the kind {module.KIND.name}")
            by_name[name] = module.KIND
    return by_name


def kind_of(experiment: Experiment) -> Kind:
    """The kind of an experiment. Raises LabError for one that this version of the lab lacks."""
    kind = kinds().get(experiment.kind)
    if kind is None:
        names = ", ".join(kinds())
        raise LabError(f"{experiment.name} is of kind {experiment.kind}; known are: {names}")
    return kind
