"""A file of experiments/: which there are, and its keys as settings.

The keys and what they mean: docs/experiments.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.errors import WordError
from lab.experiments.reading.rules import DURATION, RATE, TEXT, TEXTS, WHOLE, WHOLES, Shape
from lab.experiments.reading.settings import Given

ALWAYS: Mapping[str, Shape] = {"question": TEXT, "hypothesis": TEXT, "kind": TEXT}
# Keys that several kinds read; each kind names its own.
SHARED: Mapping[str, Shape] = {
    "load.servers": TEXTS,
    "load.routes": TEXTS,
    "load.concurrency": WHOLES,
    "load.modes": TEXTS,
    "load.rate": RATE,
    "load.duration": DURATION,
    "load.warmup": DURATION,
    "load.engines": TEXTS,
    "repeat.launches": WHOLE,
    "repeat.arms": TEXTS,
}


def find(words: Mapping[str, str], folder: Path) -> Path:
    """The file that the word EXP names. Raises WordError."""
    files = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    there = ", ".join(files) or f"none, for {folder} has no *.toml"
    if "EXP" not in words:
        raise WordError(f"run: EXP is missing; allowed: {there}")
    if words["EXP"] not in files:
        raise WordError(f"run: EXP={words['EXP']} is not an experiment; allowed: {there}")
    return files[words["EXP"]]


def load(path: Path, file: str) -> dict[str, Any]:
    """What is in it; `file` is its name for messages, here and below. Raises WordError."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise WordError(f"{file}: cannot be read: {failure.strerror}") from None
    except ValueError as failure:
        raise WordError(f"{file}: is not TOML: {failure}") from None


def kind_of(loaded: Mapping[str, object], kinds: Collection[str], file: str) -> str:
    """The kind that a file names. Raises WordError."""
    kind = loaded.get("kind", "loads")
    if not isinstance(kind, str) or kind not in kinds:
        allowed = ", ".join(kinds)
        raise WordError(f"{file}: kind={_shown(kind)} is not allowed; allowed: {allowed}")
    return kind


def settings(
    loaded: Mapping[str, object],
    kind: str,
    allowed: Mapping[str, Shape],
    every: Collection[str],
    file: str,
) -> Iterator[tuple[str, Given]]:
    """The keys as settings, as `load.servers`: `allowed` are those of the kind, `every` are those
    of all kinds. Raises WordError."""
    tables = {key.partition(".")[0] for key in every if "." in key}
    for key, value in loaded.items():
        if key not in tables:
            yield key, _given(key, value, kind, allowed, every, file)
        elif isinstance(value, dict):
            for inner, item in value.items():
                name = f"{key}.{inner}"
                yield name, _given(name, item, kind, allowed, every, file)
        else:
            raise WordError(f"{file}: {key}={_shown(value)} is not allowed; allowed: a table")


def _given(
    key: str,
    value: object,
    kind: str,
    allowed: Mapping[str, Shape],
    every: Collection[str],
    file: str,
) -> Given:
    if key not in allowed:
        table = key.partition(".")[0] + "."
        near = [one for one in allowed if one.startswith(table)] or allowed
        what = f"a key of kind {kind}" if key in every else "a key"
        raise WordError(f"{file}: {key} is not {what}; allowed: {', '.join(near)}")
    shape = allowed[key]
    values = value if shape.listed and isinstance(value, list) else [value]
    right = (not shape.listed or isinstance(value, list)) and values
    # bool is an int to isinstance, and no number.
    if not right or any(type(one) not in shape.types for one in values):
        raise WordError(f"{file}: {key}={_shown(value)} is not allowed; allowed: {shape.what}")
    return Given(f"{file}: {key}", tuple(map(str, values)), by_user=False)


def _shown(value: object) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:60]}…"


def text_of(given: Given | None, key: str, file: str) -> str:
    """A text that every experiment starts with. Raises WordError."""
    text = given.texts[0].strip() if given else ""
    if not text:
        raise WordError(f"{file}: {key} is missing or empty; every experiment starts with one")
    return text
