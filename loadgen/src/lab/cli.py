"""The command line: a verb and its words in, an exit code out. The one module that sees all.

What does the verbs is imported when one is called: the list of them loads next to nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from lab.errors import LabError, WordError

# The verbs: module and function of lab.app that do each, and all its words. None: these know them.
VERBS: Mapping[str, tuple[str, str, tuple[str, ...] | None]] = {
    "bench": ("verbs", "measure", None),
    "capacity": ("verbs", "measure", None),
    "explain": ("verbs", "measure", None),
    "run": ("verbs", "measure", None),
    "report": ("verbs", "report", ("RUN",)),
    "compare": ("compare", "compare", ("A", "B")),
    "gate": ("gate", "gate", None),
    "toxics": ("verbs", "toxics", None),
    "toxic": ("verbs", "toxics", None),
    "toxics-reset": ("verbs", "toxics", None),
    "doctor": ("doctor", "doctor", ()),
    "ref": ("ref", "ref", ()),
    # It is given the verb that is planned, and its words.
    "plan": ("plan", "plan", None),
    # Also called while make's words are those of another verb.
    "host-facts": ("plan", "facts", None),
    "agent": ("", "", ()),
}


def main() -> None:
    """Entry point of the `lab` command: `lab VERB [KEY=VALUE …]`."""
    sys.exit(do(sys.argv[1:], os.environ))


def do(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Do one verb; returns the exit code. Every LabError becomes one line on stderr, and so does
    what the system refuses (a full disk, a folder that is read-only)."""
    try:
        if not argv or argv[0] not in VERBS:
            given = f"'{argv[0]}' is not a verb" if argv else "no verb"
            raise WordError(f"{given}; allowed: {', '.join(VERBS)}")
        return _do(argv[0], argv[1:], environ)
    except LabError as failure:
        print(f"lab: {failure}", file=sys.stderr)
        return failure.exit_code
    except OSError as failure:
        where = "" if failure.filename is None else f"{failure.filename}: "
        print(f"lab: {LabError(f'{where}{failure.strerror or failure}')}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _do(verb: str, given: Sequence[str], environ: Mapping[str, str]) -> int:
    from lab.app.call import Call
    from lab.kinds.reading import read_words, refuse_unknown
    from lab.system.host import pin

    pin(environ.get("LAB_CPUSET", ""))
    module, name, words = VERBS[verb]
    if verb == "plan":
        verb, *given = given or ("up",)
        words = VERBS[verb][2] if verb in VERBS else ()
    call = Call(verb, read_words(given, environ), environ)
    if words is not None:
        refuse_unknown(call.words, words, verb)
    if verb == "agent":
        from lab.live.agent import service

        service.run(environ)
        return 0
    done: int = getattr(import_module(f"lab.app.{module}"), name)(call)
    return done
