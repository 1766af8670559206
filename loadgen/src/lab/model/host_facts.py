"""host.json: what a run's manifest records of the machine, from the facts that the host tells."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any


def host_facts(lines: Iterable[str]) -> dict[str, Any]:
    """The content of host.json, from lines "name value" (host/lab/facts.sh tells them). `cpuset`,
    `image`, `service` (of the user's own) and `machine` (of a lab on several) have a name of their
    own before the value; the values of all but `cpuset`, and that of `engine`, are JSON. Raises
    ValueError for JSON that is none."""
    facts: dict[str, Any] = {"commit_dirty": False, "cpusets": {}, "images": {}}
    some: dict[str, dict[str, Any]] = {"services": {}, "machines": {}}
    for line in lines:
        name, _, value = line.strip().partition(" ")
        own, _, rest = value.partition(" ")
        match name:
            case "":
                continue
            case "engine":
                facts |= json.loads(value)
            case "cpuset":
                facts["cpusets"][own.lower()] = rest
            case "image":
                facts["images"][own] = json.loads(rest)
            case "service" | "machine":
                some[f"{name}s"][own] = _summed(json.loads(rest))
            case "nofile":
                facts[name] = int(value)
            case "commit_dirty":
                facts[name] = True
            case _:
                facts[name] = "".join(filter(str.isprintable, value))
    return facts | {name: of for name, of in some.items() if of}


def _summed(of: dict[str, Any]) -> dict[str, Any]:
    """With the SHA-256 of `config` (environment, entry point, command) in its place: secrets may be
    in it. Compose gives the variables to each container in another order."""
    if "config" not in of:
        return of
    environment, *command = of["config"]
    config = json.dumps([sorted(environment or ()), *command]).encode()
    return of | {"config": hashlib.sha256(config).hexdigest()}
