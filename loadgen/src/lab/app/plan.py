"""What is asked for, and what the host is told of it before containers start."""

from __future__ import annotations

import json
import sys
from copy import replace
from pathlib import Path

from lab.app.call import Call
from lab.errors import WordError, harmless
from lab.kinds.plans import of_file, of_verb
from lab.kinds.reading import needed_profiles, refuse_unknown, with_secrets
from lab.kinds.reading.words import server_lists
from lab.model import Experiment
from lab.model.host_facts import host_facts
from lab.store import manifest
from lab.store.run_dir import find_run_dir
from lab.system import host_changes
from lab.system.tokens import PAGE, PARTS, token, token_sums


def asked(call: Call) -> tuple[Experiment, tuple[str, ...], Path | None]:
    """The experiment, notes on it, and the run that goes on, which stores no secrets of it. Raises
    LabError."""
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


def run_of(call: Call) -> Path:
    """The stored run of RUN (default: latest). Raises WordError."""
    return find_run_dir(call.results, "RUN", call.words.get("RUN", "latest"))


def plan(call: Call) -> int:
    """Tell the host what the call needs before containers start: profiles, what containers are told
    of the lab's tokens, and what the host may then change of them. Raises LabError before the first
    line, also for wrong words."""
    given, profiles, running = (
        call.variables.get(name, "").replace(",", " ").split()
        for name in ("LAB_PROFILES", "PROFILE", "LAB_RUNNING")
    )
    needed = needed_profiles(call.words, profiles, running, call.home)
    up = ",".join(dict.fromkeys((*given, *needed)))
    call = replace(call, variables={**call.variables, "LAB_PROFILES": up})
    experiment, images = _checked(call)
    levers = tuple(experiment.levers.values()) if experiment else ()
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


def _checked(call: Call) -> tuple[Experiment | None, tuple[str, ...]]:
    """What would be measured, and the images that it is of, if the words are right. Raises
    LabError."""
    match call.verb:
        case "bench" | "capacity" | "explain" | "run":
            return asked(call)[0], ()
        case "report":
            run_of(call)
        case "compare" | "gate":
            from lab.app import gate, sides

            if call.verb == "gate":
                gate.check(call)
                return None, gate.images_of(call.words)
            sides.check_sides(call, "A", "B")
    return None, ()


def facts(_: Call) -> int:
    """host.json, from what the host tells of itself."""
    lines = sys.stdin.buffer.read().decode("utf-8", "replace").splitlines()
    print(json.dumps(host_facts(lines), indent=2))
    return 0
