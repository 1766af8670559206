"""`capacity`: the verb, and the objective as people write it."""

import dataclasses
from pathlib import Path

import pytest

from experiments.conftest import refusal
from lab.experiments.kind import settings_of
from lab.experiments.objective import Objective, parse
from lab.experiments.plans import of_verb
from lab.experiments.reading import Here
from lab.experiments.searching.state import Capacity

HERE = Here(("fixed-pool", "event-loop"), 200_000)


@pytest.mark.parametrize(
    ("text", "objective", "said"),
    [
        ("p99<500ms,errors<1%", Objective(p99_ms=500), "p99 ≤ 500 ms"),
        ("p95 < 0.2 s", Objective(p95_ms=200), "p95 ≤ 200 ms"),
        (
            "p50<100ms,max<2s,errors<0.1%",
            Objective(p50_ms=100, max_ms=2000, error_share=0.001),
            "p50 ≤ 100 ms, max ≤ 2000 ms, errors ≤ 0.1 %",
        ),
    ],
)
def test_an_objective_as_people_write_it(text: str, objective: Objective, said: str) -> None:
    assert (parse(text), objective.text) == (objective, said)


@pytest.mark.parametrize(
    "text",
    [
        *("", "p99", "p98<500ms", "p99<500", "p99>500ms", "errors<1%", "p99<0ms", "p99<1s,p99<2s"),
        *("p99<500ms,", "errors<1", "p99<500ms;max<1s"),
    ],
)
def test_a_wrong_objective_gets_one_line(text: str) -> None:
    said = refusal(of_verb, "capacity", {"OBJECTIVE": text}, HERE)
    assert said.startswith(f"capacity: OBJECTIVE={text}")
    assert "allowed: p50, p95, p99 or max < N ms or s" in said


def test_the_verb_needs_no_word_and_always_takes_the_exact_engine() -> None:
    of, notes = of_verb("capacity", {}, HERE)
    assert (of.kind, of.modes, of.engines, of.launches) == ("capacity", ("open",), ("pacer",), 0)
    own = settings_of(Capacity, of)
    # Half of the open files that the machine has to spare.
    assert own == Capacity(Objective(p99_ms=500), 500, 100_000, 0.03, 99_500)
    assert of.question.endswith("fixed-pool, event-loop hold at p99 ≤ 500 ms?")
    assert notes == ()
    for word in ("ENGINE", "RATE", "CONC", "MODE"):
        assert f"unknown word {word}" in refusal(of_verb, "capacity", {word: "1"}, HERE)


def test_a_service_of_ones_own_and_a_route_that_only_computes_are_searched(tmp_path: Path) -> None:
    target = {"TARGET": "http://shop:8080/x", "ARRIVALS": "poisson"}
    of, _ = of_verb("capacity", target, dataclasses.replace(HERE, ports=28_000))
    assert (of.target, of.modes, of.arrivals) == ("http://shop:8080", ("open",), "poisson")
    assert settings_of(Capacity, of).connections == 28_000
    of, _ = of_verb("capacity", {"ROUTE": "/compute"}, HERE)
    assert of.routes == ("/compute",)
    for word, value in (("PROVE", "yes"), ("LAUNCHES", "6")):
        said = refusal(of_verb, "capacity", {**target, word: value}, HERE)
        assert f"{word}={value} with TARGET is not allowed" in said
    request = 'url = "http://shop:8080"\n[[request]]\npath = "/x"\n'
    lever = '[levers]\n"worker pool" = {variable = "A", value = 2}\n'
    (tmp_path / "shop.toml").write_text(request + lever)
    proved = {"TARGET": "shop", "PROVE": "yes"}
    own = dataclasses.replace(HERE, own=("shop",), subjects=tmp_path)
    of, _ = of_verb("capacity", proved, own)
    assert {*of.levers} == {"worker pool"}
    said = refusal(of_verb, "capacity", proved, dataclasses.replace(own, own=()))
    assert "PROVE=yes with TARGET is not allowed: the lab lifts its" in said
