"""host.json: what a run's manifest records of the machine, from the facts that the host tells."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def host_facts(lines: Iterable[str]) -> dict[str, Any]:
    """The content of host.json, from lines "name value" (host/lab/facts.sh tells them). `cpuset`,
    `image` and `machine` (of a lab on several) have a name of their own before the value; the
    values of `engine`, `image` and `machine` are JSON. Raises ValueError for JSON that is none."""
    facts: dict[str, Any] = {"commit_dirty": False, "cpusets": {}, "images": {}}
    machines: dict[str, Any] = {}
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
            case "machine":
                machines[own] = json.loads(rest)
            case "nofile":
                facts[name] = int(value)
            case "commit_dirty":
                facts[name] = True
            case _:
                facts[name] = "".join(filter(str.isprintable, value))
    return facts | ({"machines": machines} if machines else {})
