"""compose.yaml as `docker compose config --format json` says it, as far as its forms go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from support.repo import REPO

CHECKOUT = "/checkout"
PROJECT = "concurrency-lab"


def composed(environ: Mapping[str, str], profiles: frozenset[str]) -> dict[str, Any]:
    """The lab with these settings instead of those of .env."""
    known = dict(
        line.split("=", 1)
        for line in (REPO / ".env").read_text().splitlines()
        if "=" in line and not line.startswith("#")
    )
    known |= environ
    loaded = _filled(yaml.safe_load((REPO / "compose.yaml").read_text()), known)
    services = {
        name: _service(told)
        for name, told in loaded["services"].items()
        if not told.get("profiles") or profiles & set(told["profiles"])
    }
    return {
        "name": PROJECT,
        "services": services,
        "networks": {
            name: {"name": f"{PROJECT}_{name}", "ipam": {}, **told}
            for name, told in loaded["networks"].items()
        },
        "volumes": {name: {"name": f"{PROJECT}_{name}"} for name in loaded["volumes"]},
        "x-base": {},
    }


def _filled(value: Any, known: Mapping[str, str]) -> Any:
    """With its variables: ${NAME} and ${NAME:-default}, which may hold another one."""
    if isinstance(value, dict):
        return {key: _filled(one, known) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, known) for one in value]
    if not isinstance(value, str):
        return value
    while True:
        found = re.search(r"(?<!\$)\$\{(\w+)(?::-([^${}]*))?\}", value)
        if found is None:
            return value
        value = value.replace(found[0], known.get(found[1]) or found[2] or "", 1)


def _service(told: Mapping[str, Any]) -> dict[str, Any]:
    service = {"command": None, "entrypoint": None, **told}
    networks = told.get("networks")
    if isinstance(networks, list):
        service["networks"] = dict.fromkeys(networks)
    if "volumes" in told:
        service["volumes"] = [_volume(line) for line in told["volumes"]]
    if "ports" in told:
        service["ports"] = [_port(line) for line in told["ports"]]
    return service


def _volume(line: str) -> dict[str, Any]:
    source, target, *options = line.split(":")
    known: dict[str, Any] = {"target": target}
    if options == ["ro"]:
        known["read_only"] = True
    if not source.startswith((".", "/")):
        return {"type": "volume", "source": source, "volume": {}, **known}
    path = f"{CHECKOUT}/{source.removeprefix('./')}" if source.startswith(".") else source
    return {"type": "bind", "source": path, "bind": {"create_host_path": True}, **known}


def _port(line: str) -> dict[str, Any]:
    address, published, target = line.split(":")
    return {"mode": "ingress", "host_ip": address, "target": int(target), "published": published}
