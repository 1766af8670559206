"""The verbs that measure, that judge a stored run again, and that change toxics by hand."""

import sys
from collections.abc import Sequence

from lab.app.call import Call
from lab.app.compare import UNTOLD
from lab.app.derive import derive
from lab.app.plan import asked, run_of
from lab.app.resume import resume
from lab.app.run import run
from lab.app.tools import open_lab, say, screen
from lab.load.engines import ENGINES, Engine
from lab.report import index
from lab.store import manifest
from lab.system import toxic_verbs


def measure(call: Call) -> int:
    """Returns and raises as `run` and `resume`."""
    experiment, notes, run_dir = asked(call)
    with open_lab(call) as lab:
        if run_dir is not None:
            return resume(run_dir, experiment, lab)
        return run(experiment, lab, notes, only_plan="PLAN" in call.words)


def report(call: Call, engines: Sequence[Engine] = ENGINES) -> int:
    """Every derived file of the run RUN, from its raw data. Returns 0, or UNTOLD if no trial is
    valid. Raises LabError."""
    run_dir, console = run_of(call), screen(call.variables)
    result = derive(run_dir, engines)
    valid = sum(row.valid for row in result.rows)
    say(console, f"results/{run_dir.name}: {len(result.rows)} trials, {valid} of them valid")
    status = manifest.read(run_dir).status
    if status != "complete":
        say(console, f"the run is {status}, not complete")
    for name in result.unfinished:
        say(console, f"raw/{name} is left out: its trial never ended, or cannot be read")
    index.write(call.results)
    return 0 if valid else UNTOLD


def toxics(call: Call) -> int:
    toxic_verbs.run(call.verb, call.words, call.variables, sys.stdout)
    return 0
