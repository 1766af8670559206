"""``python -m lab.system.dashboards [SECONDS]`` asks every query over the last SECONDS (default
300) and prints how many samples each returned; exit status 1 when one returned none.

Let a trial run within that time: what shows clients and the trial's marks has nothing to show
otherwise.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from lab.errors import LabError
from lab.system.dashboards.asking import Answer, ask
from lab.system.dashboards.model import Window, load
from lab.system.http import Http
from lab.system.prometheus import Prometheus
from lab.system.stack import Urls

# Either the load itself tells what clients see, or a probe does. A closed trial offers nothing, and
# toxics are not in force, nor have they changed, unless somebody wants them: such queries do not
# have to answer.
ONLY_OF_A_LOAD = (
    'source="load"',
    "lab_client_requests_waiting",
    "lab_client_connections_open",
)
ONLY_OF_A_PROBE = ("lab_client_requests_skipped_total",)
MAY_BE_EMPTY = (
    *ONLY_OF_A_LOAD,
    *ONLY_OF_A_PROBE,
    "lab_trial_offered_rps",
    "lab_toxic_attribute",
    "lab_toxics_changed_timestamp_seconds",
    # Of servers that watch their locks only.
    "lab_wait_seconds_total",
)


def main(arguments: list[str], environ: Mapping[str, str], out: TextIO) -> int:
    """The module as a program; returns its exit status. Raises LabError."""
    seconds = float(arguments[0]) if arguments else 300.0
    home = Path(environ.get("LAB_HOME", "/lab"))
    now = time.time()
    url = Urls.read(environ).prometheus
    dashboards, window = load(home / "grafana/dashboards"), Window(now - seconds, now, 2)
    answers = ask(Prometheus(url, Http()), dashboards, window, everything=True)
    out.writelines(f"{answer.samples:6d}  {answer.where}\n" for answer in answers)
    empty = [answer for answer in answers if not answer.samples]
    return 0 if all(_may_be_empty(answer) for answer in empty) else 1


def _may_be_empty(answer: Answer) -> bool:
    return any(name in answer.expr for name in MAY_BE_EMPTY)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], os.environ, sys.stdout))
    except LabError as error:
        sys.exit(f"dashboards: {error}")
