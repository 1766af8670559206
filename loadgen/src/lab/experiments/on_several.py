"""What can be measured with a lab on several machines: the kinds of experiments that were tried."""

from __future__ import annotations

from lab.errors import WordError
from lab.experiments.kind import settings_of
from lab.experiments.loads import images
from lab.experiments.searching.state import Capacity
from lab.model import Experiment
from lab.model.density import Plan as DensityPlan

# Of all others some change containers, which nobody on the nodes does for a driver, or take what
# their machine says for the whole lab's.
KINDS = ("loads", "faults", "capacity")


def check(plan: Experiment | DensityPlan | None) -> None:
    """Raises WordError for what is not possible on several machines yet. None: a stored run without
    trials."""
    name = plan.name if plan else "RESUME"
    if not isinstance(plan, Experiment) or plan.kind not in KINDS:
        kind = plan.kind if isinstance(plan, Experiment) else "density"
        raise WordError(
            f"{name}: experiments of kind {kind} are not possible on several machines yet; "
            f"possible kinds: {', '.join(KINDS)}"
        )
    if plan.kind == "capacity" and settings_of(Capacity, plan).prove:
        raise WordError(
            f"{name}: PROVE is not possible on several machines yet: nobody makes containers anew "
            "with other settings there"
        )
    if plan.target:
        raise WordError(
            f"{name}: TARGET is not possible on several machines yet: the servers are those of "
            "the lab"
        )
    if images(plan):
        raise WordError(f"{name}: images as arms are not possible on several machines yet")
