"""What the user asks for, by the words of a verb or by a file with words, as what to measure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lab.errors import WordError
from lab.experiments.kind import Found, Kind, Verb
from lab.experiments.reading import Asked, Here, Settings, Word, file, refuse_unknown, rules, target
from lab.experiments.reading.settings import Given
from lab.experiments.reading.words import as_given
from lab.experiments.registry import kinds


def verbs() -> dict[str, tuple[Verb, Kind]]:
    """The verbs that measure a kind from words alone."""
    return {kind.verb.name: (kind.verb, kind) for kind in kinds().values() if kind.verb}


def of_verb(name: str, words: Mapping[str, str], here: Here) -> Found:
    """What the words of a verb ask for, as of `bench CONC=2000`. Raises WordError."""
    verb, kind = verbs()[name]
    known = {word: of for word, of in kind.all_words.items() if word != "SCALE"}
    known |= verb.words
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
    settings = Settings(name, {**defaults, **_given(words, known, name)})
    run = settings.one("name", rules.name, name)
    return kind.read(Asked(here, settings, run, words=as_given(words)))


def of_file(words: Mapping[str, str], here: Here, folder: Path) -> Found:
    """What the file that EXP names asks for, with the other words in place of what it says.
    Raises WordError."""
    target.refuse(words, "run")
    path = file.find(words, folder)
    name = f"{folder.name}/{path.name}"
    loaded = file.load(path, name)
    kind = kinds()[file.kind_of(loaded, kinds(), name)]
    tables = loaded.pop(kind.tables, None) if kind.tables else None
    every = {key for one in kinds().values() for key in one.shapes} | file.SHARED.keys()
    given = dict(file.settings(loaded, kind.name, kind.shapes, every, name))
    question, hypothesis = (
        file.text_of(given.pop(key, None), key, name) for key in ("question", "hypothesis")
    )
    given |= _given(_meant(words, kind, name), kind.all_words, "run")
    settings = Settings(name, given)
    run = settings.one("name", rules.name, path.stem)
    return kind.read(Asked(here, settings, run, question, hypothesis, as_given(words), tables))


def _given(words: Mapping[str, str], known: Mapping[str, Word], verb: str) -> dict[str, Given]:
    return {
        known[word].key: Given(
            f"{verb}: {word}", tuple(value.split(",")) if known[word].several else (value,), True
        )
        for word, value in words.items()
    }


def _meant(words: Mapping[str, str], kind: Kind, name: str) -> dict[str, str]:
    """The words without EXP. Raises WordError for one that means nothing to the kind."""
    every = {word for one in kinds().values() for word in one.all_words}
    for word in words:
        if word != "EXP" and word not in kind.all_words:
            what = "does not apply to" if word in every else "is not a word of"
            allowed = ", ".join(("EXP", *kind.all_words))
            raise WordError(f"run: {word} {what} {name} (kind {kind.name}); allowed: {allowed}")
    return {word: value for word, value in words.items() if word != "EXP"}
