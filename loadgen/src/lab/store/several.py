"""The folder by which make (host/swarm.sh) and the driver's image hand over a lab on several
machines.

make writes hosts.toml, what engines told (engines/<node>, members, architecture), and what Compose
says of the lab (config.json, image-ids, checkout). It finds there nodes, stack.json and the files/
of its configs, driver.json, home/ and images.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from lab.errors import WordError
from lab.model.hosts import Node, check_engines, read_hosts
from lab.model.swarm import Lab, derive
from lab.store.records import write_bytes, write_json, write_text


def nodes_of(folder: Path) -> tuple[Node, ...]:
    """The nodes that the user asks for; once engines have told, only those that the lab can use.
    Raises WordError."""
    nodes = read_hosts(_text(folder, "hosts.toml")).nodes
    engines = folder / "engines"
    if engines.is_dir():
        told = {path.name: path.read_text("utf-8", "replace") for path in engines.iterdir()}
        found = check_engines(
            nodes, told, _text(folder, "architecture").strip(), _text(folder, "members")
        )
        lines = (f"{n.name} {n.address} {found[n.name]} {','.join(n.roles)}\n" for n in nodes)
        write_text(folder / "nodes", "".join(lines))
    return nodes


def write_stack(folder: Path, project: str, checkout: Path, servers: frozenset[str]) -> None:
    """Derive the stack, and write all that it is made of. `checkout` is where this process finds
    what Compose calls by its path on the host. Raises WordError."""
    ids = dict(line.split(" ", 1) for line in _text(folder, "image-ids").splitlines())
    hosts = read_hosts(_text(folder, "hosts.toml"))
    lab = Lab(
        project=project,
        nodes=hosts.nodes,
        servers=servers,
        images=ids,
        checkout=_text(folder, "checkout").strip(),
        read=lambda path: files_of(checkout / path),
        encrypted=hosts.encrypted,
    )
    derived = derive(json.loads(_text(folder, "config.json")), lab)
    for name, contents in (("files", derived.files), ("home", derived.home)):
        shutil.rmtree(folder / name, ignore_errors=True)
        for path, content in contents.items():
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            write_bytes(folder / name / path, content)
    write_json(folder / "stack.json", derived.stack)
    write_json(folder / "driver.json", derived.driver)
    write_text(folder / "images", "".join(f"{n} {i}\n" for n, i in sorted(derived.images)))


def files_of(path: Path) -> Mapping[str, bytes]:
    """The files at a path, by their paths below it; of a file that one, as "". Raises WordError."""
    try:
        if not path.is_dir():
            return {"": path.read_bytes()}
        found = sorted(one for one in path.rglob("*") if one.is_file())
        return {str(one.relative_to(path)): one.read_bytes() for one in found}
    except OSError as failure:
        raise WordError(f"cannot read {path}: {failure.strerror or failure}") from None


def _text(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text("utf-8")
    except (OSError, ValueError) as failure:
        raise WordError(f"cannot read {name}: {failure}") from None
