"""The words of `make toxic`: the toxic that they mean, and what is refused."""

import copy

import pytest

from lab.errors import WordError
from lab.model.toxic_words import ToxicRequest, parse_none, parse_toxic
from lab.model.toxics import WHOLE_PROXY, Proxy, Toxic

SLOW = {"TYPE": "latency", "LATENCY": "1"}


def words_of(text: str) -> dict[str, str]:
    """The words of a command line."""
    return dict(word.split("=") for word in text.split())


def test_a_latency_toxic_is_named_after_its_type_and_sits_on_the_downstream_proxy() -> None:
    attributes = {"jitter": 50, "latency": 300}
    toxic = Toxic("latency", "latency", "downstream", 1.0, attributes)
    request = parse_toxic(words_of("TYPE=latency LATENCY=300 JITTER=50"))
    assert request == ToxicRequest("downstream", "latency", toxic)


@pytest.mark.parametrize(
    "words",
    [
        "TYPE=latency LATENCY=0",
        "TYPE=bandwidth RATE=64",
        "TYPE=slow_close DELAY=1000",
        "TYPE=slow-close DELAY=1000",
        "TYPE=timeout TIMEOUT=0",
        "TYPE=reset_peer",
        "TYPE=reset_peer TIMEOUT=100",
        "TYPE=slicer AVERAGE_SIZE=64 SIZE_VARIATION=32 DELAY=10",
        "TYPE=limit_data BYTES=0",
        "TYPE=latency LATENCY=1 TOXICITY=.25 STREAM=upstream NAME=a-1",
    ],
)
def test_every_type_of_toxiproxy_is_accepted(words: str) -> None:
    assert isinstance(parse_toxic(words_of(words)).value, Toxic)


def test_down_and_up_are_the_proxy_itself_and_remove_takes_a_toxic_away() -> None:
    assert parse_toxic({"TYPE": "down"}) == ToxicRequest("downstream", WHOLE_PROXY, False)
    assert parse_toxic({"TYPE": "up", "PROXY": "other"}) == ToxicRequest("other", WHOLE_PROXY, True)
    assert parse_toxic({"NAME": "slow", "REMOVE": "yes"}) == ToxicRequest("downstream", "slow")


def test_a_toxicity_has_no_more_digits_than_toxiproxy_keeps() -> None:
    kept = parse_toxic({**SLOW, "TOXICITY": "0.333333"})
    assert kept.value.toxicity == 0.333333
    with pytest.raises(WordError, match=r"TOXICITY=0\.3333333 is not allowed"):
        parse_toxic({**SLOW, "TOXICITY": "0.3333333"})


def test_a_change_is_of_what_is_given_and_judged_by_the_type_in_force() -> None:
    # A toxicity of more digits stays as it reads back.
    slow = Toxic("slow", "latency", "upstream", 0.33333334, {"jitter": 0, "latency": 300})
    changed = copy.replace(slow, attributes={"jitter": 5, "latency": 300})
    proxy = Proxy("downstream", "", "", True, (slow,))
    assert parse_toxic({"NAME": "slow", "JITTER": "5"}).value_on(proxy) == changed
    change = parse_toxic({"NAME": "slow", "RATE": "5"})
    with pytest.raises(WordError, match="toxic TYPE=latency: unknown word RATE=5; allowed: TYPE"):
        change.value_on(proxy)


TYPES = "latency, bandwidth, slow_close, timeout, reset_peer, slicer, limit_data, down, up"
WORDS = "TYPE, NAME, PROXY, STREAM, TOXICITY, LATENCY, JITTER"
MS, KBS = "a whole number 0..3600000 (ms)", "a whole number 1..2147483647 (KB/s)"
SHARE = "0..1 with up to 6 digits after the point (share of connections)"
NAMES, STREAMS = "up to 64 of A-Z a-z 0-9 _ . -", "downstream, upstream"
LATENCY, REMOVE, CHANGE = "TYPE=latency", "REMOVE=yes", "NAME= without TYPE"
SLICER, SIZES = "TYPE=slicer", "AVERAGE_SIZE=10 SIZE_VARIATION=10"


@pytest.mark.parametrize(
    ("words", "place", "said"),
    [
        ("", "", f"no TYPE is not allowed; allowed: {TYPES}"),
        ("TYPE=lag", "", f"TYPE=lag is not allowed; allowed: {TYPES}"),
        (LATENCY, LATENCY, f"LATENCY is missing; allowed: {MS}"),
        (f"{LATENCY} LATENCY=-5", LATENCY, f"LATENCY=-5 is not allowed; allowed: {MS}"),
        (f"{LATENCY} LATENCY=3600001", LATENCY, f"LATENCY=3600001 is not allowed; allowed: {MS}"),
        ("TYPE=bandwidth RATE=0", "TYPE=bandwidth", f"RATE=0 is not allowed; allowed: {KBS}"),
        (f"{LATENCY} LATENCY=1 RATE=5", LATENCY, f"unknown word RATE=5; allowed: {WORDS}"),
        (
            f"{LATENCY} LATENCY=1 TOXICITY=1.5",
            LATENCY,
            f"TOXICITY=1.5 is not allowed; allowed: {SHARE}",
        ),
        (
            f"{LATENCY} LATENCY=1 STREAM=sideways",
            LATENCY,
            f"STREAM=sideways is not allowed; allowed: {STREAMS}",
        ),
        (f"{LATENCY} LATENCY=1 NAME=a/b", LATENCY, f"NAME=a/b is not allowed; allowed: {NAMES}"),
        (
            f"{SLICER} {SIZES}",
            SLICER,
            "SIZE_VARIATION=10 is not allowed; allowed: less than AVERAGE_SIZE=10",
        ),
        ("TYPE=down LATENCY=1", "TYPE=down", "unknown word LATENCY=1; allowed: TYPE, PROXY"),
        ("NAME=slow REMOVE=no", "", "REMOVE=no is not allowed; allowed: yes"),
        (REMOVE, REMOVE, "NAME is missing; give the toxic's name, as `toxics` shows it"),
        (
            f"NAME=slow {REMOVE} LATENCY=1",
            REMOVE,
            "unknown word LATENCY=1; allowed: NAME, PROXY, REMOVE",
        ),
        ("NAME=slow", CHANGE, "nothing to change; give an attribute, TYPE=… or REMOVE=yes"),
        ("NAME=slow LATENCY=much", CHANGE, "LATENCY=much is not allowed; allowed: a whole number"),
    ],
)
def test_a_wrong_word_is_one_line_with_what_is_allowed(words: str, place: str, said: str) -> None:
    with pytest.raises(WordError) as refusal:
        parse_toxic(words_of(words))
    assert str(refusal.value) == f"toxic {place}: {said}".replace(" :", ":")
    assert refusal.value.exit_code == 2


@pytest.mark.parametrize("verb", ["toxics", "toxics-reset"])
def test_show_and_reset_take_no_words(verb: str) -> None:
    parse_none({}, verb)
    with pytest.raises(WordError, match=f"{verb}: unknown word NAME=x; allowed: no words"):
        parse_none({"NAME": "x"}, verb)
