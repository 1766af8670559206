"""The verb `density`: what an open connection costs a server in memory, for every model.

words → model.Plan → experiment (connections, the servers' own measurements) → report.
"""

from lab.density.experiment import Place, density
from lab.density.words import density_plan, source_ports

__all__ = ["Place", "density", "density_plan", "source_ports"]
