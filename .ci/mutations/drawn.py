"""drawn.py NUMBER SEED JOBS OUT: draws mutants of FOLDERS and counts those that the tests notice.

It runs in the tests' image (drawn.sh) on a copy of a commit, LAB_REPO. As a pytest plugin it first
records which functions each test runs. A mutant is then given to the tests that run its function,
the most specific first. Only a compiled file is mutated: a test that reads sources as text does not
see the mutant.
"""

import ast
import functools
import gc
import itertools
import json
import marshal
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import pytest
from scipy.stats import binomtest

# The judge and the kinds of experiment, wherever they lie.
FOLDERS = ("judge", "kinds")
LEFT_OUT = ("smoke", "browser", "truth")
SOURCES = Path(os.environ["LAB_REPO"], "loadgen/src")
OTHER = {ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult]}
OTHER |= {ast.FloorDiv: [ast.Div], ast.Mod: [ast.Mult], ast.Pow: [ast.Mult]}
OTHER |= {ast.BitOr: [ast.BitAnd], ast.BitAnd: [ast.BitOr], ast.And: [ast.Or], ast.Or: [ast.And]}
OTHER |= {ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is]}
OTHER |= {ast.In: [ast.NotIn], ast.NotIn: [ast.In]}
OTHER |= {ast.Lt: [ast.LtE, ast.GtE], ast.GtE: [ast.Gt, ast.Lt]}
OTHER |= {ast.Gt: [ast.GtE, ast.LtE], ast.LtE: [ast.Lt, ast.Gt]}
# How the exit status of a process tells that a timer ended it.
ENDED = (-signal.SIGPROF, -signal.SIGALRM)
OPPOSITE = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Parts that are no behaviour, or that are words for people.
SKIPPED = {"annotation", "returns", "decorator_list", "type_params", "bases", "exc", "cause"}


def changed(node, **fields):
    """A copy of the node with other fields."""
    return type(node)(**{name: getattr(node, name, None) for name in node._fields} | fields)


def variants(node):
    """What the node is replaced by: one mutant each."""
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(value * 2 or 1.0)
        case ast.Compare(ops=ops):
            for at, operator in enumerate(ops):
                for other in OTHER[type(operator)]:
                    yield changed(node, ops=[*ops[:at], other(), *ops[at + 1 :]])
        case ast.BoolOp(op=operator) | ast.BinOp(op=operator):
            yield from (changed(node, op=other()) for other in OTHER.get(type(operator), []))
        case ast.AugAssign(op=operator):
            yield from (changed(node, op=other()) for other in OTHER.get(type(operator), []))
            yield ast.Pass()
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Return(value=value) if value and ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=value) if not isinstance(value, ast.Constant):
            yield ast.Pass()
        case ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr):
                yield changed(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Call(func=func, args=args, keywords=keywords):
            if isinstance(func, ast.Name) and func.id in OPPOSITE:
                yield changed(node, func=ast.Name(OPPOSITE[func.id]))
            elif len(args) > 1 and not any(isinstance(argument, ast.Starred) for argument in args):
                yield changed(node, args=[args[1], args[0], *args[2:]])
            for at in range(len(keywords)):
                yield changed(node, keywords=keywords[:at] + keywords[at + 1 :])


def parts(node, prefix="", place=""):
    """(child, what puts another in its stead, place) of all inside the node that is behaviour.

    The place is the qualified name of a function, or `=names` of what is defined at import.
    """
    for field, value in ast.iter_fields(node):
        if field in SKIPPED or (field == "keywords" and isinstance(node, ast.ClassDef)):
            continue
        for at, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST):
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            inside, inner = prefix, place
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inside, inner = f"{prefix}{child.name}.<locals>.", prefix + child.name
            elif isinstance(child, ast.ClassDef):
                inside = f"{prefix}{child.name}."
                inner = place or f"={child.name}"
            elif not place:
                names = (name for name in ast.walk(child) if isinstance(name, ast.Name))
                inner = "=" + " ".join(n.id for n in names if isinstance(n.ctx, ast.Store))
            replace = functools.partial(setattr, node, field)
            if isinstance(value, list):
                replace = functools.partial(value.__setitem__, at)
            yield child, replace, inner
            yield from parts(child, inside, inner)


def mutants(tree):
    """(place, line, before, after, what makes it) of each mutant of a module."""
    for child, replace, place in parts(tree):
        for after in variants(child):
            texts = (ast.unparse(node).partition("\n")[0][:90] for node in (child, after))
            yield place, getattr(child, "lineno", 0), *texts, functools.partial(replace, after)


class Tests:
    """Which tests a mutant is given to."""

    def __init__(self, folder):
        self.runs, self.bounds, self.mentions = {}, {}, defaultdict(set)
        for path in folder.glob("*.json"):
            record = json.loads(path.read_text())
            for test, (seconds, numbers) in record["tests"].items():
                self.runs[test] = {record["places"][number] for number in numbers}
                self.bounds[test] = int(30 + 10 * seconds)
        for path in SOURCES.rglob("*.py"):
            for node, _, place in parts(ast.parse(path.read_text())):
                name = getattr(node, "attr", getattr(node, "id", ""))
                self.mentions[name].add(f"{path.relative_to(SOURCES)}:{place}")

    def of(self, file, place):
        """Those that run the function, or one that mentions what is defined at import."""
        places, names = {f"{file}:{place}"}, place[1:].split() if place[:1] == "=" else []
        for name in names:
            places |= self.mentions[name]
            users = {
                user for where in self.mentions[name] for user in where.partition(":=")[2].split()
            }
            names += sorted(users - set(names))
        chosen = [test for test, runs in self.runs.items() if runs & places]
        chosen.sort(key=lambda test: (len(self.runs[test]), test))
        return {test: self.bounds[test] for test in chosen}


# As a plugin of pytest. RECORD is a folder for what each test runs; SELECTED a file of the tests to
# run, in this order, each with the seconds after which it is taken for one that never ends.
RECORD, SELECTED = os.environ.get("RECORD"), os.environ.get("SELECTED")
bounds, places, recorded, failed, caches = {}, {}, {}, set(), []


def pytest_collection_modifyitems(items):
    """Picks the tests; finds the lab's caches, as only the first test runs what they keep."""
    if SELECTED:
        bounds.update(json.loads(Path(SELECTED).read_text()))
        order = {test: at for at, test in enumerate(bounds)}
        items[:] = sorted((i for i in items if i.nodeid in order), key=lambda i: order[i.nodeid])
    kept = (held for held in gc.get_objects() if isinstance(held, functools._lru_cache_wrapper))
    caches.extend(cache for cache in kept if str(cache.__module__).startswith("lab."))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Ends the process when a test does not end; records which functions a test runs."""
    if not RECORD:
        # Of CPU time, so that a busy machine ends none; and of time for one that waits for ever.
        signal.setitimer(signal.ITIMER_PROF, bounds[item.nodeid])
        signal.alarm(10 * bounds[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
    numbers, start, monitoring = set(), time.monotonic(), sys.monitoring
    for cache in caches:
        cache.cache_clear()

    def started(code, _):
        file = code.co_filename.partition("/src/")[2]
        if file.startswith("lab/"):
            numbers.add(places.setdefault(f"{file}:{code.co_qualname}", len(places)))
        return monitoring.DISABLE

    tool, event = monitoring.PROFILER_ID, monitoring.events.PY_START
    monitoring.use_tool_id(tool, "drawn")
    monitoring.register_callback(tool, event, started)
    monitoring.set_events(tool, event)
    monitoring.restart_events()
    result = yield
    monitoring.free_tool_id(tool)
    recorded[item.nodeid] = time.monotonic() - start, sorted(numbers)
    return result


def pytest_runtest_logreport(report):
    """Remembers what fails without any mutant."""
    if report.failed:
        failed.add(report.nodeid)


def pytest_sessionfinish():
    """Writes what was recorded, each process of xdist its part."""
    if RECORD and recorded:
        passed = {test: record for test, record in recorded.items() if test not in failed}
        path = Path(RECORD, os.environ.get("PYTEST_XDIST_WORKER", "alone") + ".json")
        path.write_text(json.dumps({"places": list(places), "tests": passed}))


def run(cache, *arguments, **settings):
    """Runs pytest with this folder of compiled files: its exit status and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "drawn", *arguments],
        cwd=SOURCES.parent,
        env=os.environ | {"PYTHONPYCACHEPREFIX": cache} | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def outcome(cache, file, index, chosen):
    """Runs the tests of a mutant: the outcome, and who noticed it."""
    if not chosen:
        return "no test", ""
    source = SOURCES / file
    tree = ast.parse(source.read_text())
    next(itertools.islice(mutants(tree), index, None))[-1]()
    code = marshal.dumps(compile(ast.fix_missing_locations(tree), str(source), "exec"))
    # Flag 1: no look at the source. So a test that reads that as text does not see the mutant.
    compiled = Path(f"{cache}{source.with_suffix('')}.{sys.implementation.cache_tag}.pyc")
    compiled.parent.mkdir(parents=True, exist_ok=True)
    compiled.write_bytes(MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + code)
    selected = Path(cache, "selected")
    selected.write_text(json.dumps(chosen))
    files = sorted({test.partition("::")[0] for test in chosen})
    status, text = run(cache, "-x", *files, SELECTED=str(selected))
    compiled.unlink()
    by = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
    words = {0: "survived", 5: "no test"} | dict.fromkeys(ENDED, "timeout")
    word = words.get(status, "killed")
    return word, by[1] if by else text[-200:] if word == "killed" else ""


def main(number, seed, jobs, out):
    """Draws, tries what has no outcome yet, and prints a line for each mutant and the scores."""
    population = []
    for path in sorted(
        path for folder in FOLDERS for path in (SOURCES / "lab" / folder).rglob("*.py")
    ):
        file = str(path.relative_to(SOURCES))
        for index, (place, line, *texts, _) in enumerate(mutants(ast.parse(path.read_text()))):
            population.append((file, index, place, f"{file}:{line} {' -> '.join(texts)}"))
    drawn = random.Random(seed).sample(population, number)  # noqa: S311
    if not (out / "tests").exists():
        recording = out / "recording"
        recording.mkdir(exist_ok=True)
        left_out = [f"--ignore=tests/{folder}" for folder in LEFT_OUT]
        cache = tempfile.mkdtemp()
        print(run(cache, "-n", str(jobs), *left_out, "tests", RECORD=str(recording))[1][-2000:])
        recording.rename(out / "tests")
    tests, results, own = Tests(out / "tests"), out / "results.tsv", threading.local()
    results.touch()
    known = {line.split("\t")[0]: line.split("\t")[1] for line in results.read_text().splitlines()}

    def try_out(mutant):
        file, index, place, name = mutant
        key, start = f"{file}#{index}", time.monotonic()
        if key not in known:
            cache = own.__dict__.setdefault("cache", tempfile.mkdtemp())
            known[key], by = outcome(cache, file, index, tests.of(file, place))
            seconds = f"{time.monotonic() - start:.0f} s"
            line = "\t".join((key, known[key], name, seconds, " ".join(by.split()))) + "\n"
            with results.open("a") as log:
                log.write(line)
            print(f"{len(known)} of {number}: {line}", end="", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(try_out, drawn))
    counts = defaultdict(Counter)
    for file, index, *_ in drawn:
        for folder in ("all", *map(str, Path(file).parents[:-2])):
            counts[folder][known[f"{file}#{index}"]] += 1
    for folder, count in sorted(counts.items()):
        found = binomtest(count["killed"] + count["timeout"], count.total())
        ends = found.proportion_ci(method="wilson")
        print(f"{folder}: {found.statistic:.1%} [{ends.low:.1%}, {ends.high:.1%}]", dict(count))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), Path(sys.argv[4]))
