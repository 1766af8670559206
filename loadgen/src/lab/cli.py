"""Wiring only: a verb and its words to the function that does it. The one module that sees all.

A verb's modules are imported when it is called: `lab` alone loads next to nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from lab.errors import LabError, WordError, harmless

if TYPE_CHECKING:
    from lab.campaign.call import Call
    from lab.model import Experiment


@dataclass(frozen=True, slots=True)
class In:
    """A function of campaign/, whose module is imported when it is needed."""

    module: str
    name: str

    @property
    def function(self) -> Callable[[Call], Any]:
        function: Callable[[Call], Any] = getattr(
            import_module(f"lab.campaign.{self.module}"), self.name
        )
        return function

    def __call__(self, call: Call) -> Any:
        return self.function(call)


@dataclass(frozen=True, slots=True)
class Verb:
    """`words` are all that the verb takes; None: it refuses others itself. `check` refuses wrong
    words before anything is built or started, and returns what would be measured."""

    do: Callable[[Call], int]
    words: tuple[str, ...] | None = ()
    check: Callable[[Call], Experiment | None] = lambda _: None

    def refuse_others(self, call: Call) -> None:
        from lab.experiments.reading import refuse_unknown

        if self.words is not None:
            refuse_unknown(call.words, self.words, call.verb)


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


def _do(name: str, given: Sequence[str], environ: Mapping[str, str]) -> int:
    from lab.campaign.call import Call
    from lab.experiments.reading import read_words
    from lab.system.host import pin

    pin(environ.get("LAB_CPUSET", ""))
    verb = VERBS[name]
    if name == "plan":
        # It is given the verb that is planned, and its words.
        name, *given = given or ("up",)
    call = Call(name, read_words(given, environ), environ)
    verb.refuse_others(call)
    return verb.do(call)


def _plan(call: Call) -> int:
    """Tell the host, before containers start, what the verb needs. Wrong words are refused."""
    from lab.campaign.verbs import lines_for_host, with_profiles

    call = with_profiles(call)
    verb = VERBS.get(call.verb, OF_THE_HOST)
    verb.refuse_others(call)
    for line in lines_for_host(call, verb.check(call)):
        print(harmless(line))
    return 0


def _toxics(call: Call) -> int:
    from lab.system import toxic_verbs

    toxic_verbs.run(call.verb, call.words, call.variables, sys.stdout)
    return 0


def _agent(call: Call) -> int:
    from lab.live.agent import service

    service.run(call.variables)
    return 0


MEASURE = Verb(In("verbs", "measure"), None, In("verbs", "asked"))
TOXICS = Verb(_toxics, None)
# A verb that is not the driver's, as `up`.
OF_THE_HOST = Verb(lambda _: 0)
VERBS: Mapping[str, Verb] = {
    "bench": MEASURE,
    "capacity": MEASURE,
    "explain": MEASURE,
    "run": MEASURE,
    "report": Verb(In("verbs", "report"), ("RUN",), In("verbs", "check_report")),
    "compare": Verb(In("compare", "compare"), ("A", "B"), In("compare", "check")),
    "gate": Verb(In("gate", "gate"), None, In("gate", "check")),
    "toxics": TOXICS,
    "toxic": TOXICS,
    "toxics-reset": TOXICS,
    "doctor": Verb(In("doctor", "doctor")),
    "ref": Verb(In("ref", "ref")),
    "plan": Verb(_plan, None),
    # Also called while the words are those of another verb.
    "host-facts": Verb(In("verbs", "host_facts"), None),
    "agent": Verb(_agent),
}
