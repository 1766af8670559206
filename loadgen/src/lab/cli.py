"""Wiring only: a verb and its words to the function that does it. The one module that sees all."""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from lab.campaign import gate
from lab.campaign.doctor import examine
from lab.campaign.ref import ref_lines
from lab.campaign.result_verbs import compare_verb, parse_compare, parse_report, report_verb
from lab.campaign.resume import resume
from lab.campaign.run import run
from lab.campaign.tools import Lab, Place
from lab.errors import LabError, WordError, harmless
from lab.experiments.kind import ToMeasure
from lab.experiments.plans import of_file, of_verb, verbs
from lab.experiments.reading import (
    Here,
    given_settings,
    needed_profiles,
    read_servers,
    read_words,
    refuse_unknown,
    with_secrets,
)
from lab.experiments.reading.words import server_lists
from lab.load.engines.base import cores
from lab.model import Experiment, OwnLever
from lab.model.host_facts import host_facts
from lab.model.knobs import READ_BACK
from lab.model.machines import GENERATORS, MACHINES
from lab.report import remarks
from lab.store import manifest
from lab.store.run_dir import find_run_dir
from lab.subject.changes import Journal
from lab.system import host_changes, lock, toxic_verbs
from lab.system.host import System, pin, source_ports
from lab.system.stack import Stack, Urls, project_of
from lab.system.tokens import PAGE, PARTS, token, token_sums

# Without a terminal nothing tells the width; the table is made for this one.
PLAIN_WIDTH = 120
Words = Mapping[str, str]
Environ = Mapping[str, str]
Verb = Callable[[Sequence[str], Environ], int]


def main() -> None:
    """Entry point of the `lab` command: `lab VERB [KEY=VALUE …]`."""
    sys.exit(do(sys.argv[1:], os.environ))


def do(argv: Sequence[str], environ: Environ) -> int:
    """Do one verb; returns the exit code. Every LabError becomes one line on stderr, and so does
    what the system refuses (a full disk, a folder that is read-only)."""
    try:
        if not argv or argv[0] not in VERBS:
            given = f"'{argv[0]}' is not a verb" if argv else "no verb"
            raise WordError(f"{given}; allowed: {', '.join(VERBS)}")
        pin(environ.get("LAB_CPUSET", ""))
        return VERBS[argv[0]](argv[1:], environ)
    except LabError as failure:
        print(f"lab: {failure}", file=sys.stderr)
        return failure.exit_code
    except OSError as failure:
        where = "" if failure.filename is None else f"{failure.filename}: "
        print(f"lab: {LabError(f'{where}{failure.strerror or failure}')}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _measure(verb: str) -> Verb:
    def do(argv: Sequence[str], environ: Environ) -> int:
        words, only_plan = _only_plan(read_words(argv, environ))
        return _start(of_verb(verb, words, _here(environ)), environ, only_plan)

    return do


def _run(argv: Sequence[str], environ: Environ) -> int:
    words, only_plan = _only_plan(read_words(argv, environ))
    if "RESUME" not in words:
        return _start(_of_file(words, environ), environ, only_plan)
    if only_plan:
        raise WordError(
            "run: PLAN with RESUME is not allowed: what is left follows from what was found"
        )
    run_dir = _resumed(words, environ)
    experiment = _experiment_of(run_dir, environ)
    return _in_lab(environ, partial(resume, run_dir, experiment))


def _only_plan(words: Words) -> tuple[Words, bool]:
    """The words without PLAN, and whether only the trials are to be said. Raises WordError."""
    given = words.get("PLAN")
    if given not in (None, "yes"):
        raise WordError(f"PLAN={given} is not allowed; allowed: yes")
    return {word: text for word, text in words.items() if word != "PLAN"}, given is not None


def _start(found: ToMeasure, environ: Environ, only_plan: bool) -> int:
    plan, notes = found
    return _in_lab(environ, partial(run, plan, notes=notes, only_plan=only_plan))


def _experiment_of(run_dir: Path, environ: Environ) -> Experiment:
    """That of a stored run. Raises LabError."""
    experiment = manifest.read(run_dir).experiment
    return with_secrets(run_dir.name, experiment, _home(environ) / "subjects")


def _in_lab(environ: Environ, do: Callable[[Lab], int]) -> int:
    """A verb that measures: alone, it can be interrupted at any wait, and closes what it opened."""
    home, console = _home(environ), _console(environ)
    # Per lab, as the lock is: labs beside each other may share a folder.
    lab = project_of(environ)
    several = bool(environ.get(MACHINES))
    claimed = lock.claimed(home / lock.FOLDER)
    with claimed as held, closing(Stack(Urls.read(environ), several=several)) as stack:
        place = Place(
            home / "results",
            home / "host.json",
            _file_limit(),
            cores(),
            home,
            journal=home / "results" / f".changed.{lab}.json" if held else None,
            warm_jvms=home / "results" / f".warm-jvms.{lab}.json" if held else None,
            settings=given_settings(environ),
            read_back=given_settings(environ, READ_BACK),
            one_machine=not several,
            generators=tuple(environ.get(GENERATORS, "").split()),
        )
        system = System(held=held, shared=place.one_machine)
        system.catch_signals()
        left = Journal(place.journal).put_back(stack)
        if left is not None:
            console.print(remarks.text(left))
        return do(Lab(place, stack, system, console))


def _of_file(words: Words, environ: Environ) -> ToMeasure:
    return of_file(words, _here(environ), _home(environ) / "experiments")


def _resumed(words: Words, environ: Environ) -> Path:
    refuse_unknown(words, ("RESUME",), "run with RESUME")
    return find_run_dir(_home(environ) / "results", "RESUME", words["RESUME"])


def _of_results(do: Callable[[Words, Path, Console], int]) -> Verb:
    return lambda argv, environ: do(
        read_words(argv, environ), _home(environ) / "results", _console(environ)
    )


def _gate(argv: Sequence[str], environ: Environ) -> int:
    words, limits = read_words(argv, environ), _limits(environ)
    judge = partial(gate.gate_verb, limits=limits, console=_console(environ))
    if not gate.is_of_images(words):
        return judge(words, _home(environ) / "results", now=datetime.now(UTC))
    experiment, notes = gate.of_images(words, _here(environ))
    limits.read()
    [server] = experiment.servers

    def judged(run_dir: Path) -> int:
        sides = gate.arms_of(run_dir.name, server)
        return judge(sides, run_dir.parent, now=datetime.now(UTC))

    return _in_lab(environ, partial(run, experiment, notes=notes, judge=judged))


def _limits(environ: Environ) -> gate.LimitsFile:
    """The limits that make hands on, as no container sees their file."""
    words = read_words((), environ)
    return gate.LimitsFile(environ.get("LAB_LIMITS", ""), words.get("LIMITS", gate.DEFAULT))


def _refuse_wrong(verb: str, words: Words, environ: Environ) -> Iterable[OwnLever]:
    """Only refuse wrong words: nothing is asked, nothing is changed. Returns what a run of them may
    change of a service of the user's own."""
    plan: Experiment | None = None
    if verb in verbs() or verb == "run":
        words, _ = _only_plan(words)
    if verb in verbs():
        plan, _ = of_verb(verb, words, _here(environ))
    elif verb == "run":
        if "RESUME" in words:
            plan = _experiment_of(_resumed(words, environ), environ)
        else:
            plan, _ = _of_file(words, environ)
    elif verb == "gate":
        _limits(environ).read()
        if gate.is_of_images(words):
            gate.of_images(words, _here(environ))
        else:
            gate.parse(words, _home(environ) / "results")
    elif verb in OF_RESULTS:
        OF_RESULTS[verb](words, _home(environ) / "results")
    else:
        refuse_unknown(words, (), verb)
    levers = tuple(plan.levers.values()) if plan is not None else ()
    # Those of a stored run were in a file that containers can write.
    for problem in (one for lever in levers for one in lever.problems()):
        raise WordError(f"levers: {problem}")
    return levers


def _plan(argv: Sequence[str], environ: Environ) -> int:
    """Tell the host, before containers start, which profiles the words need, what containers are
    told of the lab's tokens, and what it may then change of containers. Wrong words of the verb
    (`up` if none is given) are refused first."""
    verb, *given_words = argv or ["up"]
    words = read_words(given_words, environ)
    asked, running = (environ.get(name, "") for name in ("PROFILE", "LAB_RUNNING"))
    needed = needed_profiles(
        words, asked.replace(",", " ").split(), running.split(), _home(environ)
    )
    given = filter(None, environ.get("LAB_PROFILES", "").split(","))
    profiles = ",".join(dict.fromkeys((*given, *needed)))
    environ = {**environ, "LAB_PROFILES": profiles}
    levers = _refuse_wrong(verb, words, environ)
    print(harmless(f"profiles {profiles}"))
    if secret := environ.get("LAB_SECRET", ""):
        servers = (name for _, names in server_lists(_home(environ) / "servers") for name in names)
        print(f"env LAB_TOKEN_SUMS={token_sums(secret, (*PARTS, *servers))}")
        print(f"env LAB_PAGE_TOKEN={token(secret, PAGE)}")
    own, images = _own(environ), tuple[str, ...]()
    if verb == "gate" and gate.is_of_images(words):
        # An image is for a server of the lab, never for a service of the user's own.
        own, images = (), (words[gate.SIDES.a], words[gate.SIDES.b])
    for name, pattern in host_changes.allowed(_servers(environ), images, own, levers).items():
        print(name, pattern)
    return 0


def _host_facts(argv: Sequence[str], _environ: Environ) -> int:
    refuse_unknown(read_words(argv, {}), (), "host-facts")
    lines = sys.stdin.buffer.read().decode("utf-8", "replace").splitlines()
    print(json.dumps(host_facts(lines), indent=2))
    return 0


def _doctor(argv: Sequence[str], environ: Environ) -> int:
    refuse_unknown(read_words(argv, environ), (), "doctor")
    servers, results = _servers(environ), _home(environ) / "results"
    failed = False
    with closing(Stack(Urls.read(environ))) as stack:
        for finding in examine(stack, servers, results, _file_limit(), cores()):
            print(harmless(str(finding)), flush=True)
            failed = failed or finding.level == "FAIL"
    return 1 if failed else 0


def _ref(argv: Sequence[str], environ: Environ) -> int:
    refuse_unknown(read_words(argv, environ), (), "ref")
    for line in ref_lines(System()):
        print(line, flush=True)
    return 0


def _toxics_verb(verb: str) -> Verb:
    def do(argv: Sequence[str], environ: Environ) -> int:
        toxic_verbs.run(verb, read_words(argv, environ), environ, sys.stdout)
        return 0

    return do


def _agent(argv: Sequence[str], environ: Environ) -> int:
    from lab.live.agent import service  # Here: only the agent needs a web server.

    refuse_unknown(read_words(argv, {}), (), "agent")
    service.run(environ)
    return 0


OF_RESULTS: Mapping[str, Callable[[Words, Path], object]] = {
    "report": parse_report,
    "compare": parse_compare,
}
VERBS: Mapping[str, Verb] = {
    **{verb: _measure(verb) for verb in verbs()},
    "run": _run,
    "report": _of_results(report_verb),
    "compare": _of_results(compare_verb),
    "gate": _gate,
    "toxics": _toxics_verb("toxics"),
    "toxic": _toxics_verb("toxic"),
    "toxics-reset": _toxics_verb("toxics-reset"),
    "doctor": _doctor,
    "ref": _ref,
    "plan": _plan,
    "host-facts": _host_facts,
    "agent": _agent,
}


def _home(environ: Environ) -> Path:
    return Path(environ.get("LAB_HOME", "/lab"))


def _servers(environ: Environ) -> tuple[str, ...]:
    return read_servers(_home(environ) / "servers", environ)


def _here(environ: Environ) -> Here:
    subjects = _home(environ) / "subjects"
    tag = environ.get("LAB_TAG", "local")
    ports, own, results = source_ports(), _own(environ), _home(environ) / "results"
    return Here(_servers(environ), _file_limit(), ports, own, subjects, tag, results)


def _own(environ: Environ) -> tuple[str, ...]:
    return tuple(environ.get("LAB_OWN", "").split())


def _file_limit() -> int:
    """How many files a process may hold open here; raises its own limit to that."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return 1_048_576 if hard == resource.RLIM_INFINITY else hard


class _Screen(Console):
    """A console that shows no text that a terminal would act on."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else harmless(segment.text, "\n\t")
            yield Segment(text, segment.style, segment.control)


def _console(environ: Environ) -> Console:
    given = environ.get("COLUMNS", "")
    width = int(given) if re.fullmatch("[1-9][0-9]{0,3}", given) else PLAIN_WIDTH
    # Every text is shown as it is: names of runs and trials may hold brackets and colons.
    return _Screen(
        width=None if sys.stdout.isatty() else width, highlight=False, markup=False, emoji=False
    )
