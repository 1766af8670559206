"""A file of experiments/, with the user's words in place of what it says, as an Experiment.

The keys and what they mean: docs/experiments.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import WordError
from lab.experiments.reading import cases, kinds, rules, script, target
from lab.experiments.reading.bench import EXPLAIN_WORDS, LOAD_WORDS, given_words
from lab.experiments.reading.settings import Given, Head, Settings
from lab.experiments.reading.words import as_given
from lab.model import KINDS, Experiment

DENSITY = "density"
WORDS: Mapping[str, str] = {
    **LOAD_WORDS,
    "SCALE": "scale",
    "CASE": kinds.PICKED,
    "CONNECTIONS": "density.connections",
    "KIND": "density.kind",
    **EXPLAIN_WORDS,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """What TOML type a key has, for people and as Python's; `listed`: a list of them."""

    what: str
    types: tuple[type, ...]
    listed: bool = False


TEXT = Shape("a text", (str,))
TEXTS = Shape("a list of texts", (str,), listed=True)
WHOLE = Shape("a whole number", (int,))
WHOLES = Shape("a list of whole numbers", (int,), listed=True)
DECIMAL = Shape("a number", (int, float))
DURATION = Shape('a duration, as "15s" or "2m"', (str,))
RATE = Shape('"auto" or a whole number', (str, int))

SHAPES: Mapping[str, Shape] = {
    "question": TEXT,
    "hypothesis": TEXT,
    "kind": TEXT,
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
    "stress.first": WHOLE,
    "stress.step": WHOLE,
    "stress.most": WHOLE,
    "stress.resolution": WHOLE,
    "stress.p95_ms": DECIMAL,
    "stress.error_share": DECIMAL,
    "stress.fall": DECIMAL,
    "spike.extra": WHOLE,
    "spike.extra_rate": RATE,
    "spike.calm": DURATION,
    "spike.peak": DURATION,
    "spike.repeats": WHOLE,
    "spike.tolerance": DECIMAL,
    "spike.steady": DURATION,
    "endurance.leg": DURATION,
    "faults.tolerance": DECIMAL,
    "faults.steady": DURATION,
    "explain.pairs": WHOLE,
    "explain.steps": WHOLE,
    "explain.suspect": TEXT,
    "density.connections": WHOLE,
    "density.kind": TEXT,
}
_ALWAYS = ("question", "hypothesis", "kind")
_EVERY_LOAD = ("load.servers", "load.routes", "load.warmup", "load.engines", "repeat.launches")
_TABLES = {key.partition(".")[0] for key in SHAPES if "." in key}


def _own(table: str) -> tuple[str, ...]:
    return tuple(key for key in SHAPES if key.startswith(f"{table}."))


# The keys that mean something to each kind.
KEYS: Mapping[str, tuple[str, ...]] = {
    "loads": (*_ALWAYS, *_own("load"), *_own("repeat")),
    "stress": (*_ALWAYS, *_EVERY_LOAD, "load.modes", "load.duration", *_own("stress")),
    "spike": (*_ALWAYS, *_EVERY_LOAD, "load.concurrency", "load.rate", *_own("spike")),
    "endurance": (*_ALWAYS, *_own("load"), "repeat.launches", *_own("endurance")),
    "faults": (
        *_ALWAYS,
        *_EVERY_LOAD,
        "load.concurrency",
        "load.rate",
        "load.duration",
        *_own("faults"),
    ),
    "explain": (*_ALWAYS, *_own("load"), *_own("explain")),
    "planted": (
        *_ALWAYS,
        "load.duration",
        "load.warmup",
        "load.modes",
        "load.engines",
        "repeat.launches",
    ),
    DENSITY: (*_ALWAYS, "load.servers", "repeat.launches", *_own("density")),
}


@dataclass(frozen=True, slots=True)
class DensityFile:
    """A file of kind density: its settings, for lab.density to read with the words' rules."""

    head: Head
    settings: Settings


def run_experiment(
    words: Mapping[str, str], servers: Sequence[str], file_limit: int, experiments_dir: Path
) -> tuple[Experiment | DensityFile, tuple[str, ...]]:
    """The experiment EXP names, as its file and the other words describe it, and notes of
    what this machine cannot hold of it and is therefore left out.

    `servers` and `file_limit` as for bench_experiment. Raises WordError.
    """
    target.refuse(words, "run")
    path = _find(words, experiments_dir)
    file = f"{experiments_dir.name}/{path.name}"
    loaded = _load(path, file)
    kind = _kind(loaded, file)
    steps: tuple[script.Step, ...] = ()
    if kind == "faults":
        steps = script.read(loaded.get(script.KEY), file)
        loaded = {key: value for key, value in loaded.items() if key != script.KEY}
    planted: tuple[cases.Table, ...] = ()
    if kind == "planted":
        planted = cases.read(loaded.get(cases.KEY), file)
        loaded = {key: value for key, value in loaded.items() if key != cases.KEY}
    given = dict(_flatten(loaded, KEYS[kind], kind, file))
    question, hypothesis = (_text(given.pop(key, None), key, file) for key in _ALWAYS[:2])
    given |= given_words(_meant(words, kind, file), WORDS, "run")
    settings = Settings(file, given)
    name = settings.one("name", rules.name, path.stem)
    head = Head(name, question, hypothesis, as_given(words))
    if kind == DENSITY:
        return DensityFile(head, settings), ()
    return kinds.experiment(kind, settings, head, servers, file_limit, steps, planted)


def _find(words: Mapping[str, str], experiments_dir: Path) -> Path:
    files = {path.stem: path for path in sorted(experiments_dir.glob("*.toml"))}
    there = ", ".join(files) or f"none, for {experiments_dir} has no *.toml"
    if "EXP" not in words:
        raise WordError(f"run: EXP is missing; allowed: {there}")
    if words["EXP"] not in files:
        raise WordError(f"run: EXP={words['EXP']} is not an experiment; allowed: {there}")
    return files[words["EXP"]]


def _load(path: Path, file: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise WordError(f"{file}: cannot be read: {failure.strerror}") from None
    except ValueError as failure:
        raise WordError(f"{file}: is not TOML: {failure}") from None


def _kind(loaded: Mapping[str, object], file: str) -> str:
    kind = loaded.get("kind", "loads")
    if not isinstance(kind, str) or kind not in KEYS:
        allowed = ", ".join((*KINDS, DENSITY))
        raise WordError(f"{file}: kind={_shown(kind)} is not allowed; allowed: {allowed}")
    return kind


def _flatten(
    loaded: Mapping[str, object], allowed: Sequence[str], kind: str, file: str
) -> Iterator[tuple[str, Given]]:
    for key, value in loaded.items():
        if key not in _TABLES:
            yield _given(key, value, allowed, kind, file)
        elif isinstance(value, dict):
            for inner, item in value.items():
                yield _given(f"{key}.{inner}", item, allowed, kind, file)
        else:
            raise WordError(f"{file}: {key}={_shown(value)} is not allowed; allowed: a table")


def _given(
    key: str, value: object, allowed: Sequence[str], kind: str, file: str
) -> tuple[str, Given]:
    if key not in allowed:
        table = key.partition(".")[0] + "."
        near = [one for one in allowed if one.startswith(table)] or allowed
        what = f"a key of kind {kind}" if key in SHAPES else "a key"
        raise WordError(f"{file}: {key} is not {what}; allowed: {', '.join(near)}")
    shape = SHAPES[key]
    values = value if shape.listed and isinstance(value, list) else [value]
    right = (not shape.listed or isinstance(value, list)) and values
    # bool is an int to isinstance, and no number.
    if not right or any(type(one) not in shape.types for one in values):
        raise WordError(f"{file}: {key}={_shown(value)} is not allowed; allowed: {shape.what}")
    return key, Given(f"{file}: {key}", tuple(map(str, values)), by_user=False)


def _shown(value: object) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:60]}…"


def _text(given: Given | None, key: str, file: str) -> str:
    text = given.texts[0].strip() if given else ""
    if not text:
        raise WordError(f"{file}: {key} is missing or empty; every experiment starts with one")
    return text


def _meant(words: Mapping[str, str], kind: str, file: str) -> dict[str, str]:
    """The words without EXP. Raises WordError for one that means nothing to the kind."""
    allowed = [word for word, key in WORDS.items() if key in KEYS[kind] or key == "name"]
    if kind != DENSITY:
        allowed.append("SCALE")
    if kind == "planted":
        allowed.append("CASE")
    for word in words:
        if word != "EXP" and word not in allowed:
            what = "does not apply to" if word in WORDS else "is not a word of"
            raise WordError(
                f"run: {word} {what} {file} (kind {kind}); allowed: EXP, {', '.join(allowed)}"
            )
    return {word: value for word, value in words.items() if word != "EXP"}
