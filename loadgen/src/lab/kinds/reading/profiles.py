"""The servers that the words of a verb need. The host asks before containers start."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lab.errors import RawDataError, WordError
from lab.kinds.reading.words import server_lists
from lab.store.records import read_object


def needed_profiles(
    words: Mapping[str, str], asked: Iterable[str], running: Iterable[str], home: Path
) -> tuple[str, ...]:
    """The compose profiles of servers that are `asked` for by name, or have a server that the
    words name (SERVER, EXP or RESUME) or that is `running`. `home` holds servers/, experiments/
    and results/. Raises WordError for a profile that there is not, LabUnreachable without
    readable lists of servers. Other wrong words name no server here."""
    lists = {name: servers for name, servers in server_lists(home / "servers") if name != "core"}
    asked = tuple(asked)
    for name in asked:
        if name not in lists:
            raise WordError(f"PROFILE={name} is not a profile; allowed: {', '.join(lists)}")
    used = {*running, *_named(words, home)}
    return tuple(name for name, servers in lists.items() if name in asked or used & set(servers))


def _named(words: Mapping[str, str], home: Path) -> set[str]:
    named = set(words.get("SERVER", "").split(","))
    if "EXP" in words and "SERVER" not in words:
        named |= _servers_of(_read(home / "experiments" / f"{words['EXP']}.toml"))
    if "RESUME" in words:
        manifest = _read(home / "results" / words["RESUME"] / "manifest.json")
        named |= _servers_of(manifest)
    return named


def _read(path: Path) -> Mapping[str, Any]:
    """An experiment or a manifest; empty if it cannot be read: the verb itself says why."""
    try:
        if path.suffix != ".toml":
            return read_object(path)
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, RawDataError):
        return {}


def _servers_of(loaded: Mapping[str, Any]) -> set[str]:
    """The names under `servers`, at the top or one level below: a list, or the keys of a table.
    Anything else names none: the verb itself says what is wrong."""
    parts = [loaded, *(part for part in loaded.values() if isinstance(part, dict))]
    named = [part.get("servers") for part in parts]
    return {str(name) for names in named if isinstance(names, list | dict) for name in names}
