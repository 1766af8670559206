"""The verb `doctor`: what is up and what this machine can do, one line each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Literal

from lab.app.call import Call, file_limit
from lab.app.engine_choice import HOW
from lab.errors import LabError, LabUnreachable, harmless
from lab.kinds.reading import max_concurrency
from lab.kinds.reading.load import EXACT
from lab.load.engines import ENGINES, Engine
from lab.load.engines.base import cores
from lab.model.routes import ROUTES
from lab.system.management import Management
from lab.system.stack import Stack

ENOUGH_CONNECTIONS, ENOUGH_CORES = 5000, 2
# A line of the output.
type Finding = tuple[Literal["ok", "warn", "FAIL"], str]


def doctor(call: Call) -> int:
    """Returns 1 if anything fails."""
    levels = set()
    with closing(Stack(call.variables.get("LAB_SECRET", ""))) as stack:
        for level, text in examine(stack, call.servers, call.results, file_limit(), cores()):
            print(harmless(f"{level:<5} {text}"), flush=True)
            levels.add(level)
    return 1 if "FAIL" in levels else 0


def examine(
    stack: Stack,
    servers: Sequence[str],
    results: Path,
    files: int,
    cpus: int,
    engines: Sequence[Engine] = ENGINES,
) -> Iterator[Finding]:
    parts = (partial(_server, stack, server) for server in servers)
    for part in (*parts, partial(_downstream, stack), partial(_agent, stack)):
        try:
            yield "ok", part()
        except LabError as failure:
            yield "FAIL", str(failure)
    try:
        yield from _prometheus(stack, servers)
    except LabUnreachable as failure:
        yield "FAIL", str(failure)
    yield from _engines({engine.name: engine.version() for engine in engines})
    route = next(route for route in ROUTES if route.calls_downstream)
    most = max_concurrency(route, files)
    text = f"{files} open files per process: up to CONC={most} on {route.path}"
    yield "ok" if most >= ENOUGH_CONNECTIONS else "warn", text
    yield "ok" if cpus >= ENOUGH_CORES else "warn", f"{cpus} CPUs for the load engine"
    writable = os.access(results, os.W_OK)
    text = f"results in {results} {'can' if writable else 'cannot'} be written"
    yield "ok" if writable else "FAIL", text


def _server(stack: Stack, server: str) -> str:
    management = Management(stack.http, server)
    identity, settings = management.identity(), management.settings()
    if identity.model != server:
        raise LabUnreachable(f"{identity.model} answers under this name", server)
    gc = identity.gc[0].split()[0] if identity.gc else "unknown GC"
    heap, pool = f"{identity.max_heap_bytes / 2**20:.0f} MiB, {gc}", settings.get("pool_size")
    return (
        f"{server} {identity.version} up: JDK {identity.jdk}, {identity.cpus} CPUs, heap {heap}, "
        f"pool {pool or 'none'}"
    )


def _downstream(stack: Stack) -> str:
    (delay_ms, spread), toxics = stack.downstream.delay(), stack.toxics()
    delay = f"{delay_ms:.4g} ms{f', {spread.words}' if spread else ''}"
    return (
        f"downstream answers after {delay}, toxics in force: {'; '.join(toxics.in_force) or 'none'}"
    )


def _agent(stack: Stack) -> str:
    stack.agent.check()
    return "agent up: live probe, trial marks, watch of toxics"


def _prometheus(stack: Stack, servers: Sequence[str]) -> Iterator[Finding]:
    version, targets = stack.prometheus.version(), stack.prometheus.targets()
    up = sum(target.up is True for target in targets)
    # Right after Prometheus was told another interval for a target, that is not scraped yet.
    waiting = sum(target.up is None for target in targets)
    more = f", {waiting} not scraped yet" if waiting else ""
    yield (
        "ok" if targets else "FAIL",
        f"prometheus {version}, {up} of {len(targets)} targets up{more}",
    )
    for target in targets:
        if target.up is False:
            # The JVM of a service of the user's own need not be there.
            is_own = target.job == "jvm" and target.instance.partition(":")[0] not in servers
            text = f"target {target.job} {target.instance} is down: {target.last_error}"
            yield "warn" if is_own else "FAIL", text


def _engines(versions: dict[str, str | None]) -> Iterator[Finding]:
    for name, version in versions.items():
        if version is not None:
            yield "ok", f"engine {name}: {version}"
        elif name in HOW:
            yield "ok", f"no engine {name} here: {HOW[name]}"
        else:
            yield "warn", f"engine {name} does not run here"
    if not any(versions.values()):
        yield "FAIL", f"no load engine runs here, not even {EXACT}"
