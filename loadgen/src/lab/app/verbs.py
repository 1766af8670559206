"""What each verb does: those that measure, those of stored runs, and what the host is told before
containers start (`plan`, `host-facts`)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import replace
from pathlib import Path

from lab.app import compare, gate
from lab.app.call import Call
from lab.app.derive import derive
from lab.app.doctor import doctor
from lab.app.ref import ref
from lab.app.resume import resume
from lab.app.run import run
from lab.app.run_record import say
from lab.app.sides import check_sides
from lab.errors import WordError, harmless
from lab.kinds.plans import of_file, of_verb
from lab.kinds.reading import needed_profiles, refuse_unknown, with_secrets
from lab.kinds.reading.words import server_lists
from lab.load.engines import ENGINES, Engine
from lab.model import Experiment
from lab.model.host_facts import host_facts
from lab.report import index
from lab.store import manifest
from lab.store.run_dir import find_run_dir
from lab.system import host_changes, toxic_verbs
from lab.system.tokens import PAGE, PARTS, token, token_sums


def measure(call: Call) -> int:
    """Returns and raises as `run` and `resume`."""
    experiment, notes, run_dir = _asked(call)
    with call.lab() as lab:
        if run_dir is not None:
            return resume(run_dir, experiment, lab)
        return run(experiment, lab, notes, only_plan="PLAN" in call.words)


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


def _run_of(call: Call) -> Path:
    """Raises WordError unless RUN is a run."""
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
    return 0 if valid else compare.UNTOLD


def plan(call: Call, words: tuple[str, ...] | None) -> int:
    """Tell the host what the call needs before containers start: profiles, what containers are told
    of the lab's tokens, and what the host may then change of them. `words` are all that the verb
    takes, if these are known. Raises LabError before the first line, also for wrong words."""
    given, profiles, running = (
        call.variables.get(name, "").replace(",", " ").split()
        for name in ("LAB_PROFILES", "PROFILE", "LAB_RUNNING")
    )
    needed = needed_profiles(call.words, profiles, running, call.home)
    up = ",".join(dict.fromkeys((*given, *needed)))
    call = replace(call, variables={**call.variables, "LAB_PROFILES": up})
    if words is not None:
        refuse_unknown(call.words, words, call.verb)
    experiment = _checked(call)
    levers = tuple(experiment.levers.values()) if experiment else ()
    images = gate.images_of(call.words) if call.verb == "gate" else ()
    # An image is for a server of the lab, never for a service of the user's own.
    services = () if images else call.services
    lines = [f"profiles {up}"]
    if secret := call.variables.get("LAB_SECRET", ""):
        servers = (name for _, names in server_lists(call.home / "servers") for name in names)
        lines.append(f"env LAB_TOKEN_SUMS={token_sums(secret, (*PARTS, *servers))}")
        lines.append(f"env LAB_PAGE_TOKEN={token(secret, PAGE)}")
    allowed = host_changes.allowed(call.servers, images, services, levers)
    lines += [f"{name} {pattern}" for name, pattern in allowed.items()]
    print(harmless("\n".join(lines), keep="\n"))
    return 0


def _checked(call: Call) -> Experiment | None:
    """What would be measured, if the words are right. Raises LabError."""
    match call.verb:
        case "bench" | "capacity" | "explain" | "run":
            return _asked(call)[0]
        case "report":
            _run_of(call)
        case "compare":
            check_sides(call, *compare.SIDES)
        case "gate":
            gate.check(call)
    return None


def _toxics(call: Call) -> int:
    toxic_verbs.run(call.verb, call.words, call.variables, sys.stdout)
    return 0


def _host_facts(_: Call) -> int:
    lines = sys.stdin.buffer.read().decode("utf-8", "replace").splitlines()
    print(json.dumps(host_facts(lines), indent=2))
    return 0


# What does each verb of the driver; `plan` is given the words of the verb that is planned, too.
DO: Mapping[str, Callable[[Call], int]] = {
    "bench": measure,
    "capacity": measure,
    "explain": measure,
    "run": measure,
    "report": report,
    "compare": compare.compare,
    "gate": gate.gate,
    "toxics": _toxics,
    "toxic": _toxics,
    "toxics-reset": _toxics,
    "doctor": doctor,
    "ref": ref,
    "host-facts": _host_facts,
}
