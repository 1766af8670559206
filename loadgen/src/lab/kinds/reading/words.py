"""The user's KEY=VALUE words, and the servers and compose profiles that they need."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.errors import LabUnreachable, RawDataError, WordError
from lab.store.records import read_object

_SERVER = re.compile(r"[a-z0-9][a-z0-9.-]*")
# Settings of .env on which figures depend and which no server shows.
_NOT_READ_BACK = (
    "NOFILE",
    "CPU_SETS",
    "LOADGEN_CPUSET",
    "TOXIPROXY_CPUSET",
    "DOWNSTREAM_CPUSET",
    "OBSERVATION_CPUSET",
    "TOXIPROXY_GOMAXPROCS",
)


def read_words(argv: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The user's KEY=VALUE words: of the command line, and of LAB_WORDS (make's words).

    Words of LAB_WORDS named in LAB_SETTING_NAMES are settings of the lab, not of a verb, and
    are left out. A word of the command line wins. Raises WordError, also for an address that make
    or the shell would change: they take quotes, backslashes and $ out of a word.
    """
    settings = set(environ.get("LAB_SETTING_NAMES", "").split())
    for word in re.findall(r"(?:\\.|\S)+", environ.get("LAB_WORDS", "")):
        if word.startswith("TARGET=") and re.search(r"[\"'$]|\\(?!\s)", word):
            raise WordError(
                f"{word} is not an address; allowed: no $, quote or backslash in it (write %24, "
                "%22, %27, %5C), and quotes of the shell around it"
            )
    words = {key: value for key, value in _from_make(environ) if key not in settings}
    return words | dict(map(_split, argv))


def given_settings(
    environ: Mapping[str, str], names: Collection[str] = _NOT_READ_BACK
) -> tuple[str, ...]:
    """The settings of the lab of these names among make's words; by default those that a run must
    store as given, because no server shows them afterwards. Raises WordError."""
    return tuple(f"{key}={value}" for key, value in _from_make(environ) if key in names)


def _from_make(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    given = environ.get("LAB_WORDS", "")
    try:
        return [_split(word) for word in shlex.split(given)]
    except ValueError as failure:
        raise WordError(f"cannot read the words {given!r}: {failure}") from None


def _split(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
        raise WordError(f"'{word}' is not a word like CONC=2000")
    return key, value


def as_given(words: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in words.items())


def refuse_unknown(words: Iterable[str], allowed: Sequence[str], verb: str) -> None:
    """Raises WordError naming the first word that the verb does not know."""
    for word in words:
        if word not in allowed:
            known = ", ".join(allowed) if allowed else "none"
            raise WordError(f"{verb}: unknown word {word}; allowed: {known}")


def server_lists(folder: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Prometheus' target lists (file_sd), each by its name: `core` first, then those of compose
    profiles. Raises LabUnreachable."""
    files = sorted(folder.glob("*.json"), key=lambda path: (path.stem != "core", path.stem))
    if not files:
        raise LabUnreachable(f"cannot read the list of servers: {folder} has no *.json")
    return tuple((path.stem, _targets(path)) for path in files)


def read_servers(folder: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The server models that are up: those of `core` and of the compose profiles in LAB_PROFILES,
    of every profile where that is not set. Raises LabUnreachable."""
    lists = dict(server_lists(folder))
    up = ("core", *environ["LAB_PROFILES"].split(",")) if "LAB_PROFILES" in environ else lists
    return tuple(server for name, servers in lists.items() if name in up for server in servers)


def _targets(path: Path) -> tuple[str, ...]:
    try:
        groups = json.loads(path.read_text(encoding="utf-8"))
        names = tuple(str(target) for group in groups for target in group["targets"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as failure:
        raise LabUnreachable(f"cannot read the list of servers {path}: {failure}") from None
    if not names or any(not _SERVER.fullmatch(name) for name in names):
        raise LabUnreachable(f"{path}: targets must be one or more service names, not {names}")
    return names


def needed_profiles(
    words: Mapping[str, str], asked: Iterable[str], running: Iterable[str], home: Path
) -> tuple[str, ...]:
    """The compose profiles of servers that are `asked` for by name, or have a server that the
    words name (SERVER, EXP or RESUME) or that is `running`: the host asks before containers start.
    `home` holds servers/, experiments/ and results/. Other wrong words name no server here. Raises
    WordError for a profile that there is not, LabUnreachable without readable lists of servers."""
    lists = {name: servers for name, servers in server_lists(home / "servers") if name != "core"}
    asked = tuple(asked)
    for name in asked:
        if name not in lists:
            raise WordError(f"PROFILE={name} is not a profile; allowed: {', '.join(lists)}")
    used = {*running, *words.get("SERVER", "").split(",")}
    if "EXP" in words and "SERVER" not in words:
        used |= _servers_in(home / "experiments" / f"{words['EXP']}.toml")
    if "RESUME" in words:
        used |= _servers_in(home / "results" / words["RESUME"] / "manifest.json")
    return tuple(name for name, servers in lists.items() if name in asked or used & set(servers))


def _servers_in(path: Path) -> set[str]:
    """The names under `servers` in an experiment or a manifest, at the top or one level below: a
    list, or the keys of a table. Anything else names none: the verb itself says what is wrong."""
    try:
        toml = path.suffix == ".toml"
        loaded: Mapping[str, Any] = tomllib.loads(path.read_text()) if toml else read_object(path)
    except (OSError, ValueError, RecursionError, RawDataError):
        return set()
    parts = [loaded, *(part for part in loaded.values() if isinstance(part, dict))]
    named = [part.get("servers") for part in parts]
    return {str(name) for names in named if isinstance(names, list | dict) for name in names}
