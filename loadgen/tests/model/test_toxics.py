"""The words of `make toxic`: the toxic that they mean, and what is refused."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import WordError
from lab.model.toxics import (
    STREAMS,
    TOXIC_TYPES,
    WHOLE_PROXY,
    Proxy,
    Toxic,
    ToxicRequest,
    parse_toxic,
    refuse_unknown_words,
)

SLOW = Toxic("slow", "latency", "downstream", 1.0, {"jitter": 0, "latency": 300})
SHARES = st.integers(0, 10**6).map(lambda millionths: millionths / 10**6)
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", fullmatch=True)


def words_of(text: str) -> dict[str, str]:
    """The words of a command line."""
    return dict(word.split("=") for word in text.split())


@st.composite
def toxics(draw: st.DrawFn) -> Toxic:
    kind = draw(st.sampled_from(sorted(TOXIC_TYPES)))
    limits = {a.name: (a.minimum, a.maximum) for a in TOXIC_TYPES[kind]}
    values = {name: draw(st.integers(*ends)) for name, ends in limits.items()}
    if kind == "slicer":
        values["size_variation"] = draw(st.integers(0, values["average_size"] - 1))
    return Toxic(draw(NAMES), kind, draw(st.sampled_from(STREAMS)), draw(SHARES), values)


@given(toxics(), NAMES)
def test_a_toxic_is_read_from_its_words(toxic: Toxic, proxy: str) -> None:
    values = {name.upper(): str(value) for name, value in toxic.attributes.items()}
    words = {"TYPE": toxic.type.replace("_", "-"), "NAME": toxic.name, "STREAM": toxic.stream}
    words |= {"TOXICITY": f"{toxic.toxicity:.6f}", "PROXY": proxy, **values}
    assert parse_toxic(words) == ToxicRequest(proxy, toxic.name, toxic)
    # One in force is changed by the words that are given, and by its type. Its toxicity may have
    # more digits than a word.
    present = copy.replace(toxic, attributes=dict.fromkeys(toxic.attributes, 1), toxicity=1 / 3)
    change = parse_toxic({word: words[word] for word in ("NAME", "PROXY", *values)})
    assert change.item == (proxy, toxic.name)
    changed = change.value_on(Proxy(proxy, "", "", True, (present,)))
    assert changed == copy.replace(toxic, toxicity=1 / 3)


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        ("TYPE=latency LATENCY=300", ("latency", copy.replace(SLOW, name="latency"))),
        ("TYPE=down", (WHOLE_PROXY, False)),
        ("TYPE=up", (WHOLE_PROXY, True)),
        ("NAME=slow REMOVE=yes", ("slow",)),
        ("NAME=slow JITTER=5", ("slow", None, {"JITTER": "5"})),
    ],
)
def test_words_are_a_request(words: str, request_: tuple[Any, ...]) -> None:
    assert parse_toxic(words_of(words)) == ToxicRequest("downstream", *request_)


def test_a_word_that_the_type_in_force_has_not_is_refused() -> None:
    change = parse_toxic({"NAME": "slow", "RATE": "5"})
    with pytest.raises(WordError, match="toxic TYPE=latency: unknown word RATE=5; allowed: TYPE"):
        change.value_on(Proxy("downstream", "", "", True, (SLOW,)))


TYPES = "latency, bandwidth, slow_close, timeout, reset_peer, slicer, limit_data, down, up"
MS = "a whole number 0..3600000 (ms)"
LATENCY = "TYPE=latency"


@pytest.mark.parametrize(
    ("words", "given", "allowed"),
    [
        ("", ": no TYPE", TYPES),
        ("TYPE=lag", ": TYPE=lag", TYPES),
        (f"{LATENCY} LATENCY=-5", f" {LATENCY}: LATENCY=-5", MS),
        (f"{LATENCY} LATENCY=3600001", f" {LATENCY}: LATENCY=3600001", MS),
        ("TYPE=bandwidth RATE=0", " TYPE=bandwidth: RATE=0", "a whole number 1..2147483647 (KB/s)"),
        (
            f"{LATENCY} LATENCY=1 TOXICITY=1.5",
            f" {LATENCY}: TOXICITY=1.5",
            "0..1 with up to 6 digi",
        ),
        (f"{LATENCY} LATENCY=1 STREAM=up", f" {LATENCY}: STREAM=up", "downstream, upstream"),
        (f"{LATENCY} LATENCY=1 NAME=a/b", f" {LATENCY}: NAME=a/b", "up to 64 of A-Z a-z 0-9 _ . -"),
        (
            "TYPE=slicer AVERAGE_SIZE=10 SIZE_VARIATION=10",
            " TYPE=slicer: SIZE_VARIATION=10",
            "less than AVERAGE_SIZE=10",
        ),
        ("NAME=slow REMOVE=no", ": REMOVE=no", "yes"),
        ("NAME=slow LATENCY=much", " NAME= without TYPE: LATENCY=much", "a whole number"),
        ("NAME=slow TOXICITY=2", " NAME= without TYPE: TOXICITY=2", "0..1 with up to 6 digits"),
        ("NAME=slow STREAM=up", " NAME= without TYPE: STREAM=up", "downstream, upstream"),
    ],
)
def test_a_wrong_value_is_one_line_with_what_is_allowed(
    words: str, given: str, allowed: str
) -> None:
    with pytest.raises(WordError) as refusal:
        parse_toxic(words_of(words))
    assert str(refusal.value).startswith(f"toxic{given} is not allowed; allowed: {allowed}")
    assert refusal.value.exit_code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (LATENCY, f" {LATENCY}: LATENCY is missing; allowed: {MS}"),
        (
            f"{LATENCY} LATENCY=1 RATE=5",
            f" {LATENCY}: unknown word RATE=5; allowed: TYPE, NAME, PR",
        ),
        ("TYPE=down LATENCY=1", " TYPE=down: unknown word LATENCY=1; allowed: TYPE, PROXY"),
        ("REMOVE=yes", " REMOVE=yes: NAME is missing; give the toxic's name"),
        (
            "NAME=a REMOVE=yes LATENCY=1",
            " REMOVE=yes: unknown word LATENCY=1; allowed: NAME, PROXY",
        ),
        ("NAME=slow", " NAME= without TYPE: nothing to change"),
        ("NAME=slow COLOUR=1", " NAME= without TYPE: unknown word COLOUR=1"),
    ],
)
def test_a_word_too_much_or_too_few_is_refused(words: str, said: str) -> None:
    with pytest.raises(WordError) as refusal:
        parse_toxic(words_of(words))
    assert str(refusal.value).startswith(f"toxic{said}")


def test_show_and_reset_take_no_words() -> None:
    refuse_unknown_words({}, (), "toxics")
    with pytest.raises(WordError, match="toxics: unknown word NAME=x; allowed: no words"):
        refuse_unknown_words({"NAME": "x"}, (), "toxics")
