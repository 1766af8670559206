"""The planted cases of a smoke test's run, each with its row.

`python -m support.planted_run NAME` prints the names of the cases that run NAME did not name right,
with commas: the smoke test plants them once more.
"""

import sys

from lab.kinds.cases import Case
from lab.kinds.kind import settings_of
from lab.kinds.planted import Planted, right
from lab.model import Row
from support.stored import Run


def judged(name: str) -> list[tuple[Case, Row]]:
    """Every case of the one run of that name, in the order of its file."""
    run = Run(name)
    cases = settings_of(Planted, run.manifest.experiment).cases
    assert [row.trial.partition("-")[2] for row in run.every_row] == [case.name for case in cases]
    return list(zip(cases, run.every_row, strict=True))


if __name__ == "__main__":
    print(",".join(case.name for case, row in judged(sys.argv[1]) if not right(case, row)))
