"""What the user asks for, by the words of a verb or by a file with words, as what to measure.

The keys of a file and what they mean: docs/experiments.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.errors import WordError
from lab.experiments.kind import SHARED, ToMeasure, TrialKind, Verb
from lab.experiments.reading import Asked, Here, Settings, Word, refuse_unknown, rules, target
from lab.experiments.reading.settings import Given
from lab.experiments.reading.words import as_given
from lab.experiments.registry import kinds


def verbs() -> dict[str, tuple[Verb, TrialKind]]:
    return {kind.verb.name: (kind.verb, kind) for kind in kinds().values() if kind.verb}


def of_verb(
    name: str, words: Mapping[str, str], here: Here, called: str | None = None
) -> ToMeasure:
    """What the words of a verb ask for, as of `bench CONC=2000`. `called` is the name of another
    verb that takes its words. Raises WordError."""
    verb, kind = verbs()[name]
    name = called or name
    known = {word: of for word, of in kind.all_words.items() if word != "SCALE"}
    if target.WORD not in known:
        target.refuse(words, name)
    refuse_unknown(words, tuple(known), name)
    target.refuse_beside(words, name)
    if verb.connections is not None and "CONC" not in words:
        raise WordError(
            f"{name}: CONC is missing; give the number of connections, as CONC={verb.connections}"
        )
    defaults = {
        key: Given(f"{name}: {key}", (text,), by_user=False) for key, text in verb.defaults.items()
    }
    settings = Settings(name, {**defaults, **_of_words(words, known, name)})
    run = settings.one("name", rules.name, name)
    return kind.to_measure(Asked(here, settings, run, words=as_given(words)))


def of_file(words: Mapping[str, str], here: Here, folder: Path) -> ToMeasure:
    """The experiment of the file in EXP, changed by the other words. Raises WordError."""
    target.refuse_beside(words, "run")
    path = _find(words, folder)
    file = f"{folder.name}/{path.name}"
    loaded = _load(path, file)
    kind = _kind(loaded, file)
    tables = loaded.pop(kind.tables, None) if kind.tables else None
    given = dict(_of_keys(loaded, kind, file))
    question, hypothesis = (_text(given, key, file) for key in ("question", "hypothesis"))
    given |= _of_words(_meant(words, kind, file), kind.all_words, "run")
    settings = Settings(file, given)
    run = settings.one("name", rules.name, path.stem)
    return kind.to_measure(
        Asked(here, settings, run, question, hypothesis, as_given(words), tables)
    )


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


def _kind(loaded: Mapping[str, object], file: str) -> TrialKind:
    name = loaded.get("kind", "loads")
    if not isinstance(name, str) or name not in kinds():
        allowed = ", ".join(kinds())
        raise WordError(f"{file}: kind={_shown(name)} is not allowed; allowed: {allowed}")
    return kinds()[name]


def _of_keys(
    loaded: Mapping[str, object], kind: TrialKind, file: str
) -> Iterator[tuple[str, Given]]:
    """The keys of a file as settings, as `load.servers`. Raises WordError."""
    every = {key for one in kinds().values() for key in one.shapes} | SHARED.keys()
    tables = {key.partition(".")[0] for key in every if "." in key}
    flat: dict[str, object] = {}
    for key, value in loaded.items():
        if key not in tables:
            flat[key] = value
        elif isinstance(value, dict):
            flat |= {f"{key}.{inner}": item for inner, item in value.items()}
        else:
            raise WordError(f"{file}: {key}={_shown(value)} is not allowed; allowed: a table")
    allowed = kind.shapes
    for key, value in flat.items():
        if key not in allowed:
            table = key.partition(".")[0] + "."
            near = [one for one in allowed if one.startswith(table)] or allowed
            what = f"a key of kind {kind.name}" if key in every else "a key"
            raise WordError(f"{file}: {key} is not {what}; allowed: {', '.join(near)}")
        shape = allowed[key]
        values = value if shape.listed and isinstance(value, list) else [value]
        right = (not shape.listed or isinstance(value, list)) and values
        # bool is an int to isinstance, and no number.
        if not right or any(type(one) not in shape.types for one in values):
            raise WordError(f"{file}: {key}={_shown(value)} is not allowed; allowed: {shape.what}")
        yield key, Given(f"{file}: {key}", tuple(map(str, values)), by_user=False)


def _shown(value: object) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:60]}…"


def _text(given: dict[str, Given], key: str, file: str) -> str:
    text = given.pop(key).text.strip() if key in given else ""
    if not text:
        raise WordError(f"{file}: {key} is missing or empty; every experiment starts with one")
    return text


def _of_words(words: Mapping[str, str], known: Mapping[str, Word], verb: str) -> dict[str, Given]:
    return {
        known[word].key: Given(
            f"{verb}: {word}", tuple(value.split(",")) if known[word].several else (value,), True
        )
        for word, value in words.items()
    }


def _meant(words: Mapping[str, str], kind: TrialKind, file: str) -> dict[str, str]:
    """The words without EXP. Raises WordError for one that means nothing to the kind."""
    every = {word for one in kinds().values() for word in one.all_words}
    for word in words:
        if word != "EXP" and word not in kind.all_words:
            what = "does not apply to" if word in every else "is not a word of"
            allowed = ", ".join(("EXP", *kind.all_words))
            raise WordError(f"run: {word} {what} {file} (kind {kind.name}); allowed: {allowed}")
    return {word: value for word, value in words.items() if word != "EXP"}
