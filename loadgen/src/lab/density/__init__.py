"""The verb `density`: what an open connection costs a server in memory, for every model.

words, or a file of experiments/, → model.Plan → experiment (connections, what the servers measure
of themselves) → report, which `make report` makes again.
"""

from lab.density.experiment import Place, density, rebuild, resume
from lab.density.model import Plan
from lab.density.report import is_density
from lab.density.words import density_plan, file_plan, source_ports

__all__ = [
    "Place",
    "Plan",
    "density",
    "density_plan",
    "file_plan",
    "is_density",
    "rebuild",
    "resume",
    "source_ports",
]
