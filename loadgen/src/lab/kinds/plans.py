"""What the user asks for, by the words of a verb or by a file with words, as what to measure.

The keys of a file and what they mean: docs/experiments.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from lab.errors import WordError
from lab.kinds.kind import SEVERAL, Kind, ToMeasure, Verb
from lab.kinds.reading import Asked, Here, Settings, refuse_unknown, target
from lab.kinds.reading.settings import Given, Name
from lab.kinds.reading.words import as_given
from lab.kinds.registry import kinds


class Head(Struct, frozen=True):
    """The settings without a table."""

    question: str = ""
    hypothesis: str = ""
    name: Name = ""
    scale: Annotated[float, Meta(ge=0.001, le=10)] = 1.0


def verbs() -> dict[str, tuple[Verb, Kind]]:
    return {kind.verb.name: (kind.verb, kind) for kind in kinds().values() if kind.verb}


def of_verb(
    name: str, words: Mapping[str, str], here: Here, called: str | None = None
) -> ToMeasure:
    """What the words of a verb ask for, as of `bench CONC=2000`. `called` is the name of another
    verb that takes its words. Raises WordError."""
    verb, kind = verbs()[name]
    name = called or name
    accepted = {word: key for word, key in kind.all_words.items() if word != "SCALE"}
    refuse_unknown(words, tuple(accepted), name)
    target.refuse_beside(words, name)
    if verb.connections is not None and "CONC" not in words:
        raise WordError(
            f"{name}: CONC is missing; give the number of connections, as CONC={verb.connections}"
        )
    defaults = {key: Given(f"{name}: {key}", text) for key, text in verb.defaults.items()}
    given = {**defaults, **_given(words, accepted, name)}
    return _to_measure(kind, Settings(name, given), name, here, words)


def of_file(words: Mapping[str, str], here: Here, folder: Path) -> ToMeasure:
    """The experiment of the file in EXP, changed by the other words. Raises WordError."""
    target.refuse_beside(words, "run")
    path = _find(words, folder)
    file = f"{folder.name}/{path.name}"
    loaded = _load(path, file)
    kind = _kind(loaded, file)
    tables = loaded.pop(kind.tables, None) if kind.tables else None
    given = {key: Given(f"{file}: {key}", value) for key, value in _flat(loaded)}
    Settings(file, given).refuse_unknown(kind.keys)
    for key in ("question", "hypothesis"):
        if key not in given or not str(given[key].value).strip():
            raise WordError(f"{file}: {key} is missing or empty; every experiment starts with one")
    others = {word: value for word, value in words.items() if word != "EXP"}
    for word in others:
        if word not in kind.all_words:
            allowed = ", ".join(("EXP", *kind.all_words))
            what = f"does not apply to {file} (kind {kind.name}); allowed: {allowed}"
            raise WordError(f"run: {word} {what}")
    settings = Settings(file, given | _given(others, kind.all_words, "run"))
    return _to_measure(kind, settings, path.stem, here, words, tables)


def _flat(loaded: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keys of a file, as load.servers."""
    for key, value in loaded.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", each) for inner, each in value.items())
        else:
            yield key, value


def _to_measure(
    kind: Kind,
    settings: Settings,
    name: str,
    here: Here,
    words: Mapping[str, str],
    tables: object = None,
) -> ToMeasure:
    head = settings.table("", Head)
    settings.scale = head.scale
    texts = head.name or name, head.question.strip(), head.hypothesis.strip()
    return kind.to_measure(Asked(here, settings, *texts, as_given(words), tables))


def _find(words: Mapping[str, str], folder: Path) -> Path:
    files = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    there = ", ".join(files) or f"none, for {folder} has no *.toml"
    if "EXP" not in words:
        raise WordError(f"run: EXP is missing; allowed: {there}")
    if words["EXP"] not in files:
        raise WordError(f"run: EXP={words['EXP']} is not an experiment; allowed: {there}")
    return files[words["EXP"]]


def _load(path: Path, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise WordError(f"{file}: cannot be read: {failure.strerror}") from None
    except (ValueError, RecursionError) as failure:
        raise WordError(f"{file}: is not TOML: {failure}") from None


def _kind(loaded: Mapping[str, object], file: str) -> Kind:
    name = loaded.get("kind", "loads")
    if not isinstance(name, str) or name not in kinds():
        allowed = ", ".join(kinds())
        raise Given(f"{file}: kind", name).refuse(f"is not allowed; allowed: {allowed}")
    return kinds()[name]


def _given(words: Mapping[str, str], keys: Mapping[str, str], verb: str) -> dict[str, Given]:
    return {
        keys[word]: Given(f"{verb}: {word}", text.split(",") if word in SEVERAL else text, True)
        for word, text in words.items()
    }
