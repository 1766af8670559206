"""What holds of every file and every design, on drawn ones."""

import json
import random
from collections.abc import Iterator
from copy import replace
from typing import Any

import msgspec
import pytest

from kinds.conftest import SERVERS, Files, refusal
from lab.kinds import loads
from lab.kinds.kind import Kind
from lab.kinds.objective import LATENCIES, parse
from lab.kinds.order import Design
from lab.kinds.reading.settings import Duration, Given, Pause, Settings
from lab.kinds.registry import kinds
from lab.model import Row
from support.altered import invalid
from support.planned import experiment, planner, row

HEAD = 'question = "why?"\nhypothesis = "so."\n'
WORDS = {key.partition(".")[2]: word for word, key in kinds()["loads"].all_words.items()}


def drawn(seed: int) -> dict[str, Any]:
    """Settings of a load, as a file has them."""
    draw = random.Random(seed)
    every = {
        "servers": draw.sample(SERVERS, draw.randint(1, 3)),
        "concurrency": draw.sample(range(1, 9000), draw.randint(1, 4)),
        "routes": [draw.choice(["/downstream", "/block?wait_ms=5"])],
        "modes": [draw.choice(["open", "both"])],
        "rate": draw.choice(["auto", draw.randint(1, 10_000_000)]),
        "arrivals": (arrivals := draw.choice(["constant", "poisson"])),
        "engines": ["pacer"] if arrivals == "poisson" else draw.sample(["wrk2", "pacer"], 2),
        "duration": f"{draw.randint(1, 999)}{draw.choice('sm')}",
        "warmup": f"{draw.randint(0, 99)}s",
        "launches": draw.randint(0, 100),
        "patience": f"{draw.randint(0, 9)}h",
    }
    return {key: value for key, value in every.items() if draw.random() < 0.7}


@pytest.mark.parametrize("seed", range(25))
def test_words_and_a_file_that_say_the_same_are_one_experiment(files: Files, seed: int) -> None:
    settings = {"concurrency": [5], **drawn(seed)}
    lines = {key: f"{key} = {json.dumps(value)}" for key, value in settings.items()}
    repeat = [lines.pop(key) for key in ("launches", "patience") if key in lines]
    text = "\n".join((HEAD, "[load]", *lines.values(), "[repeat]", *repeat))
    words = {
        WORDS[key]: ",".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in settings.items()
    }
    by_file = files.experiment(text)
    by_words = files.experiment(HEAD + "[load]\nconcurrency = [7]\n", **words)
    assert by_file.words == ("EXP=x",)
    # A duration that the user asked for is kept.
    assert by_words.longer == ("duration" not in settings)
    assert replace(by_words, words=by_file.words, longer=True) == by_file


def bounded() -> Iterator[tuple[str, str, float, float]]:
    """Each number of a table of a kind, with its bounds."""
    for kind in kinds().values():
        for field in msgspec.structs.fields(kind.table):
            info = msgspec.inspect.type_info(field.type)
            known = getattr(info, "types", (info,))
            for each in known:
                if getattr(each, "ge", None) is not None:
                    yield kind.name, field.name, each.ge, each.le


@pytest.mark.parametrize(("name", "key", "least", "most"), [*bounded()])
def test_a_number_beyond_its_bounds_is_refused_with_them(
    name: str, key: str, least: float, most: float
) -> None:
    kind: Kind = kinds()[name]
    (field,) = (each for each in msgspec.structs.fields(kind.table) if each.name == key)
    one = msgspec.defstruct("One", [(key, field.type)], frozen=True)

    def read(value: object) -> object:
        return getattr(Settings("x", {f"{name}.{key}": Given("x", value)}).table(name, one), key)

    for value in (least, most):
        assert read(value) == read(str(value)) == value
    for value in (least - 1, most + 1, "many", True):
        line = refusal(read, value)
        assert line.startswith(f"x={value} is not allowed; allowed: ")
        assert f"{least}..{most}" in line


class Times(msgspec.Struct, frozen=True):
    long_s: Duration
    short_s: Pause = 0


@pytest.mark.parametrize("seed", range(25))
def test_a_duration_is_read_in_every_unit(seed: int) -> None:
    minutes = random.Random(seed).randint(1, 24 * 60)
    texts = [f"{minutes}m", f"{60 * minutes}s", f"{60 * minutes}"]
    texts += [f"{minutes // 60}h"] if minutes % 60 == 0 else []
    for text in texts:
        given = {"x.long": Given("x", text), "x.short": Given("x", "0s")}
        assert Settings("x", given).table("x", Times) == Times(60 * minutes)


@pytest.mark.parametrize("seed", range(25))
def test_objectives_are_read_as_they_are_written(seed: int) -> None:
    draw = random.Random(seed)
    limits = {name: draw.randint(1, 9999) for name in LATENCIES if draw.random() < 0.6}
    limits = limits or {"p99": 500}
    share = draw.randint(0, 99)
    text = ",".join([*(f"{name}<{ms}ms" for name, ms in limits.items()), f"errors<{share}%"])
    (objective,) = parse(text)
    assert dict(objective.limits) == limits
    assert objective.error_share == share / 100


def grown(order: Design, seed: int) -> Iterator[list[Row]]:
    """The rows of a design after each trial; some are invalid, some more than once."""
    draw, rows = random.Random(seed), list[Row]()
    reasons = ("compiling", "generator-late", "damaged", "window-short needed_s=34")
    while (plan := order.next(rows)) is not None:
        assert len(rows) < 200
        bad = draw.random() < 0.3
        rows.append(row(plan, **(invalid(draw.choice(reasons)) if bad else {})))
        yield list(rows)


@pytest.mark.parametrize("seed", range(10))
def test_the_same_rows_lead_to_the_same_trial_and_none_is_lost(seed: int) -> None:
    of = experiment(concurrencies=(100, 200), launches=2)
    order, again = loads.design(planner(of)), loads.design(planner(of))
    every: list[Row] = []
    for rows in grown(order, seed):
        assert order.next(rows) == again.next(rows)
        assert (order.left(rows) == 0) == (order.next(rows) is None)
        every = rows
    # Each was measured, under a name of its own, and the first time in the planned order.
    names = [each.trial for each in every]
    assert len({*names}) == len(names)
    first = [name for name in names if not name.endswith("-again")]
    assert first == [plan.trial for plan in order.known]
