"""The verb `doctor`: what is up and what this machine can do, one line each."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from lab.campaign.engine_choice import HOW
from lab.errors import LabError, LabUnreachable
from lab.experiments.reading import max_concurrency
from lab.experiments.reading.load import EXACT
from lab.load.engines import ENGINES, Engine
from lab.model.routes import ROUTES
from lab.system.management import Management
from lab.system.prometheus import Target
from lab.system.stack import Stack

Level = Literal["ok", "warn", "FAIL"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the output."""

    level: Level
    text: str

    def __str__(self) -> str:
        return f"{self.level:<5} {self.text}"


def examine(
    stack: Stack,
    servers: Sequence[str],
    results: Path,
    file_limit: int,
    cores: int,
    engines: Sequence[Engine] = ENGINES,
) -> Iterator[Finding]:
    for server in servers:
        yield _ask(partial(_server, stack, server))
    yield _ask(lambda: _downstream(stack))
    yield _ask(
        lambda: f"toxiproxy up, toxics in force: {'; '.join(stack.toxics().in_force) or 'none'}"
    )
    yield from _prometheus(stack, servers)
    yield _ask(lambda: _agent(stack))
    yield from _engines(engines)
    route = next(route for route in ROUTES if route.calls_downstream)
    most = max_concurrency(route, file_limit)
    yield Finding(
        "ok" if most >= 5000 else "warn",
        f"{file_limit} open files per process: up to CONC={most} on {route.path}",
    )
    yield Finding("ok" if cores >= 2 else "warn", f"{cores} CPUs for the load engine")
    writable = os.access(results, os.W_OK)
    where = f"results in {results} {'can' if writable else 'cannot'} be written"
    yield Finding("ok" if writable else "FAIL", where)


def _ask(check: Callable[[], str]) -> Finding:
    try:
        return Finding("ok", check())
    except LabError as failure:
        return Finding("FAIL", str(failure))


def _server(stack: Stack, server: str) -> str:
    management = Management(stack.http, server)
    identity = management.identity()
    if identity.model != server:
        raise LabUnreachable(f"{identity.model} answers under this name", server)
    settings = management.settings()
    heap = identity.max_heap_bytes / 2**20
    gc = identity.gc[0].split()[0] if identity.gc else "unknown GC"
    return (
        f"{server} {identity.version} up: JDK {identity.jdk}, {identity.cpus} CPUs, "
        f"heap {heap:.0f} MiB, {gc}, pool {settings.get('pool_size') or 'none'}"
    )


def _downstream(stack: Stack) -> str:
    delay_ms, spread = stack.downstream.delay()
    text = f"downstream answers after {delay_ms:.4g} ms"
    return text if spread is None else f"{text} on average, {spread.words}"


def _agent(stack: Stack) -> str:
    stack.agent.check()
    return "agent up: live probe, trial marks, watch of toxics"


def _prometheus(stack: Stack, servers: Sequence[str]) -> Iterator[Finding]:
    try:
        version, targets = stack.prometheus.version(), stack.prometheus.targets()
    except LabUnreachable as failure:
        yield Finding("FAIL", str(failure))
        return
    down = [target for target in targets if target.up is False]
    waiting = sum(target.up is None for target in targets)
    wrong = [target for target in down if not _is_own(target, servers)]
    level: Level = "ok" if targets and not wrong else "FAIL"
    up = f"{len(targets) - len(down) - waiting} of {len(targets)} targets up"
    if waiting:
        up += f", {waiting} not scraped yet"
    yield Finding(level, f"prometheus {version}, {up}")
    for target in down:
        level = "FAIL" if target in wrong else "warn"
        yield Finding(level, f"target {target.job} {target.instance} is down: {target.last_error}")


def _is_own(target: Target, servers: Sequence[str]) -> bool:
    return target.job == "jvm" and target.instance.partition(":")[0] not in servers


def _engines(engines: Sequence[Engine]) -> Iterator[Finding]:
    versions = {engine.name: engine.version() for engine in engines}
    usable = any(version is not None for version in versions.values())
    for engine in engines:
        version = versions[engine.name]
        if version is not None:
            yield Finding("ok", f"engine {engine.name}: {version}")
        elif engine.name in HOW and usable:
            yield Finding("ok", f"no engine {engine.name} here: {HOW[engine.name]}")
        elif usable:
            yield Finding("warn", f"engine {engine.name} does not run here")
    if not usable:
        yield Finding("FAIL", f"no load engine runs here, not even {EXACT}")
