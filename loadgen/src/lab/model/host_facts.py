"""host.json: what a run's manifest records of the machine, from the facts that the host tells."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

# The facts that make a host another one, for its id and for `lab.judge.same_lab`, which also asks
# for the same Docker. Names of machines are among them only in the hash.
OF_HOST = ("cpu_model", "cores", "memory_bytes", "kernel")
# CPU_SETS of .env, where the lab gives its parts sets of their own by itself.
AUTO = "auto"
# The names of the machines of a lab on several (compose.swarm.yaml), for the agent and the driver,
# and the addresses of further generators, HOST:PORT with spaces between. Empty: one machine.
MACHINES, GENERATORS = "LAB_MACHINES", "LAB_GENERATORS"
# As many as a machine of today may have, several times over.
MOST_CPUS = 16_384


def host_facts(lines: Iterable[str]) -> dict[str, Any]:
    """The content of host.json, from lines "name value" (host/lab/facts.sh tells them). `cpuset`,
    `image`, `service` (of the user's own) and `machine` (of a lab on several) have a name of their
    own before the value; the values of all but `cpuset`, and that of `engine`, are JSON. Raises
    ValueError for JSON that is none."""
    facts: dict[str, Any] = {"commit_dirty": False, "cpusets": {}, "images": {}}
    named: dict[str, dict[str, Any]] = {"services": {}, "machines": {}}
    for line in lines:
        name, _, value = line.strip().partition(" ")
        key, _, rest = value.partition(" ")
        match name:
            case "":
                continue
            case "engine":
                facts |= json.loads(value)
            case "cpuset":
                facts["cpusets"][key.lower()] = rest
            case "image":
                facts["images"][key] = json.loads(rest)
            case "service" | "machine":
                named[f"{name}s"][key] = _summed(json.loads(rest))
            case "nofile":
                facts[name] = int(value)
            case "commit_dirty":
                facts[name] = True
            case _:
                facts[name] = "".join(filter(str.isprintable, value))
    facts |= {name: entries for name, entries in named.items() if entries}
    return facts | ({"id": host} if (host := host_id(facts)) else {})


def host_id(facts: Mapping[str, Any]) -> str | None:
    """A short id of the machine, as amd25-2c-k6.18-3f2a: vendor and family of its CPUs, their
    number, its kernel, and a hash of these with the CPUs' model, the memory and the kernel's whole
    release. It holds no name or address. None where one of OF_HOST is not recorded."""
    if any(facts.get(name) is None for name in OF_HOST):
        return None
    cpu = str(facts.get("cpu_id", ""))
    vendor = re.search("amd|intel|apple|arm", f"{cpu} {facts['cpu_model']}", re.IGNORECASE)
    family = cpu.split()[1:2]
    kernel = re.match(r"\d+\.\d+", str(facts["kernel"]))
    every = [facts.get(name) for name in (*OF_HOST, "cpu_id", "machines")]
    digest = hashlib.sha256(json.dumps(every, sort_keys=True).encode()).hexdigest()
    name = f"{vendor[0].lower() if vendor else 'cpu'}{''.join(family)}"
    return f"{name}-{facts['cores']}c-k{kernel[0] if kernel else ''}-{digest[:4]}"


def cpus_of(cpu_set: str) -> frozenset[int]:
    """The numbers of the CPUs in a set; an empty one has none. Raises ValueError for no set."""
    parts = [part.split("-") for part in cpu_set.split(",") if part]
    ranges = [(int(ends[0]), int(ends[-1])) for ends in parts]
    if any(last >= MOST_CPUS for _, last in ranges):
        raise ValueError(f"a CPU has a number below {MOST_CPUS}")
    return frozenset(cpu for first, last in ranges for cpu in range(first, last + 1))


def cores_of(facts: Mapping[str, Any]) -> int | None:
    cores = facts.get("cores")
    return cores if isinstance(cores, int) else None


def _summed(service: dict[str, Any]) -> dict[str, Any]:
    """With the SHA-256 of `config` (environment, entry point, command) in its place: secrets may be
    in it. Compose gives the variables to each container in another order."""
    if "config" not in service:
        return service
    environment, *command = service["config"]
    config = json.dumps([sorted(environment or ()), *command]).encode()
    return service | {"config": hashlib.sha256(config).hexdigest()}
