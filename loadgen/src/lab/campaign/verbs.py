"""The verbs that measure (`bench`, `capacity`, `explain`, `run`), `report`, and what the host is
told of any verb before containers start (`plan`, `host-facts`)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lab.campaign.call import Call
from lab.campaign.compare import UNTOLD
from lab.campaign.derive import derive
from lab.campaign.gate import images_of
from lab.campaign.resume import resume
from lab.campaign.run import run
from lab.campaign.run_record import say
from lab.errors import WordError
from lab.experiments.plans import of_file, of_verb
from lab.experiments.reading import needed_profiles, refuse_unknown, with_secrets
from lab.experiments.reading.words import server_lists
from lab.load.engines import ENGINES, Engine
from lab.model import Experiment
from lab.model.host_facts import host_facts as facts_in
from lab.report import index
from lab.store import manifest
from lab.store.run_dir import find_run_dir
from lab.system import host_changes
from lab.system.tokens import PAGE, PARTS, token, token_sums


def measure(call: Call) -> int:
    """Returns and raises as `run` and `resume`."""
    experiment, notes, run_dir = _asked(call)
    with call.lab() as lab:
        if run_dir is not None:
            return resume(run_dir, experiment, lab)
        return run(experiment, lab, notes, only_plan="PLAN" in call.words)


def asked(call: Call) -> Experiment:
    """What would be measured. Raises LabError."""
    return _asked(call)[0]


def _asked(call: Call) -> tuple[Experiment, tuple[str, ...], Path | None]:
    """The experiment, notes on it, and the run that goes on, which stores no secrets of it."""
    words = {**call.words}
    if call.verb == "run" and "RESUME" in words:
        refuse_unknown(words, ("RESUME",), "run with RESUME")
        run_dir = find_run_dir(call.results, "RESUME", words["RESUME"])
        stored = manifest.read(run_dir).experiment
        return with_secrets(run_dir.name, stored, call.home / "subjects"), (), run_dir
    plan = words.pop("PLAN", "yes")
    if plan != "yes":
        raise WordError(f"PLAN={plan} is not allowed; allowed: yes")
    if call.verb == "run":
        return *of_file(words, call.here, call.home / "experiments"), None
    return *of_verb(call.verb, words, call.here), None


def check_report(call: Call) -> None:
    """Raises WordError unless RUN is a run."""
    _run_of(call)


def _run_of(call: Call) -> Path:
    return find_run_dir(call.results, "RUN", call.words.get("RUN", "latest"))


def report(call: Call, engines: Sequence[Engine] = ENGINES) -> int:
    """Every derived file of the run RUN (default: latest), from its raw data. Returns 0, or UNTOLD
    if no trial is valid. Raises LabError."""
    run_dir, console = _run_of(call), call.console
    derived = derive(run_dir, engines)
    valid = sum(row.valid for row in derived.rows)
    say(console, f"results/{run_dir.name}: {len(derived.rows)} trials, {valid} of them valid")
    status = manifest.read(run_dir).status
    if status != "complete":
        say(console, f"the run is {status}, not complete")
    for name in derived.unfinished:
        say(console, f"raw/{name} is left out: its trial never ended, or cannot be read")
    say(console, f"rebuilt: {', '.join(derived.changed) or 'nothing, each file is as it was'}")
    index.write(call.results)
    return 0 if valid else UNTOLD


def with_profiles(call: Call) -> Call:
    """The call as it will be with the profiles up that are given, or that its words need. Raises
    LabError."""
    given, asked, running = (
        call.variables.get(name, "").replace(",", " ").split()
        for name in ("LAB_PROFILES", "PROFILE", "LAB_RUNNING")
    )
    needed = needed_profiles(call.words, asked, running, call.home)
    profiles = ",".join(dict.fromkeys((*given, *needed)))
    return replace(call, variables={**call.variables, "LAB_PROFILES": profiles})


def lines_for_host(call: Call, experiment: Experiment | None) -> Iterator[str]:
    """The profiles that the words need, what containers are told of the lab's tokens, and what the
    host may then change of containers. Raises LabError before the first line."""
    levers = tuple(experiment.levers.values()) if experiment else ()
    # Those of a stored run were in a file that containers can write.
    for problem in (problem for lever in levers for problem in lever.problems()):
        raise WordError(f"levers: {problem}")
    images = images_of(call.words) if call.verb == "gate" else ()
    # An image is for a server of the lab, never for a service of the user's own.
    services = () if images else call.services
    yield f"profiles {call.variables['LAB_PROFILES']}"
    if secret := call.variables.get("LAB_SECRET", ""):
        servers = (name for _, names in server_lists(call.home / "servers") for name in names)
        yield f"env LAB_TOKEN_SUMS={token_sums(secret, (*PARTS, *servers))}"
        yield f"env LAB_PAGE_TOKEN={token(secret, PAGE)}"
    for name, pattern in host_changes.allowed(call.servers, images, services, levers).items():
        yield f"{name} {pattern}"


def host_facts(_: Call) -> int:
    """Prints host.json, of what the host's commands print."""
    lines = sys.stdin.buffer.read().decode("utf-8", "replace").splitlines()
    print(json.dumps(facts_in(lines), indent=2))
    return 0
