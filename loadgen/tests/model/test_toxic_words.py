import pytest

from lab.errors import WordError
from lab.model.toxic_words import Enable, Put, Remove, parse_none, parse_toxic
from lab.model.toxics import Toxic


def test_a_latency_toxic_is_named_after_its_type_and_sits_on_the_downstream_proxy() -> None:
    request = parse_toxic({"TYPE": "latency", "LATENCY": "300", "JITTER": "50"})
    assert request.proxy == "downstream"
    assert (request.toxic.name, request.toxic.stream) == ("latency", "downstream")
    assert request.toxic.toxicity == 1.0
    assert request.toxic.attributes == {"jitter": 50, "latency": 300}


@pytest.mark.parametrize(
    "words",
    [
        {"TYPE": "latency", "LATENCY": "0"},
        {"TYPE": "bandwidth", "RATE": "64"},
        {"TYPE": "slow_close", "DELAY": "1000"},
        {"TYPE": "slow-close", "DELAY": "1000"},
        {"TYPE": "timeout", "TIMEOUT": "0"},
        {"TYPE": "reset_peer"},
        {"TYPE": "reset_peer", "TIMEOUT": "100"},
        {"TYPE": "slicer", "AVERAGE_SIZE": "64", "SIZE_VARIATION": "32", "DELAY": "10"},
        {"TYPE": "limit_data", "BYTES": "0"},
        {"TYPE": "latency", "LATENCY": "1", "TOXICITY": ".25", "STREAM": "upstream", "NAME": "a-1"},
    ],
)
def test_every_type_of_toxiproxy_is_accepted(words: dict[str, str]) -> None:
    assert isinstance(parse_toxic(words), Put)


def test_down_and_up_are_the_proxy_itself() -> None:
    assert parse_toxic({"TYPE": "down"}) == Enable("downstream", False)
    assert parse_toxic({"TYPE": "up", "PROXY": "other"}) == Enable("other", True)


def test_a_name_and_remove_take_one_away() -> None:
    assert parse_toxic({"NAME": "slow", "REMOVE": "yes"}) == Remove("downstream", "slow")


def test_a_name_without_a_type_changes_only_what_is_given() -> None:
    change = parse_toxic({"NAME": "slow", "JITTER": "5"})
    slow = Toxic("slow", "latency", "upstream", 0.5, {"jitter": 0, "latency": 300})
    changed = Toxic("slow", "latency", "upstream", 0.5, {"jitter": 5, "latency": 300})
    assert change.of(slow) == Put("downstream", changed)


def test_a_toxicity_has_no_more_digits_than_toxiproxy_keeps() -> None:
    kept = parse_toxic({"TYPE": "latency", "LATENCY": "1", "TOXICITY": "0.333333"})
    assert kept.toxic.toxicity == 0.333333
    with pytest.raises(WordError, match=r"TOXICITY=0\.3333333 is not allowed"):
        parse_toxic({"TYPE": "latency", "LATENCY": "1", "TOXICITY": "0.3333333"})


def test_a_change_leaves_a_toxicity_of_more_digits_as_it_reads_back() -> None:
    slow = Toxic("slow", "latency", "upstream", 0.33333334, {"jitter": 0, "latency": 300})
    change = parse_toxic({"NAME": "slow", "LATENCY": "5"})
    assert change.of(slow).toxic.toxicity == 0.33333334


def test_a_change_is_judged_by_the_type_in_force() -> None:
    change = parse_toxic({"NAME": "slow", "RATE": "5"})
    with pytest.raises(WordError, match="toxic TYPE=latency: unknown word RATE=5; allowed: TYPE"):
        change.of(Toxic("slow", "latency", "upstream", 1.0, {"latency": 300}))


TYPES = "latency, bandwidth, slow_close, timeout, reset_peer, slicer, limit_data, down, up"
SLOW = {"TYPE": "latency", "LATENCY": "1"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, f"toxic: no TYPE is not allowed; allowed: {TYPES}"),
        ({"TYPE": "lag"}, f"toxic: TYPE=lag is not allowed; allowed: {TYPES}"),
        (
            {"TYPE": "latency"},
            "toxic TYPE=latency: LATENCY is missing; allowed: a whole number 0..3600000 (ms)",
        ),
        (
            {"TYPE": "latency", "LATENCY": "-5"},
            "toxic TYPE=latency: LATENCY=-5 is not allowed; "
            "allowed: a whole number 0..3600000 (ms)",
        ),
        (
            {"TYPE": "latency", "LATENCY": "3600001"},
            "toxic TYPE=latency: LATENCY=3600001 is not allowed; "
            "allowed: a whole number 0..3600000 (ms)",
        ),
        (
            {"TYPE": "bandwidth", "RATE": "0"},
            "toxic TYPE=bandwidth: RATE=0 is not allowed; "
            "allowed: a whole number 1..2147483647 (KB/s)",
        ),
        (
            {**SLOW, "RATE": "5"},
            "toxic TYPE=latency: unknown word RATE=5; "
            "allowed: TYPE, NAME, PROXY, STREAM, TOXICITY, LATENCY, JITTER",
        ),
        (
            {**SLOW, "TOXICITY": "1.5"},
            "toxic TYPE=latency: TOXICITY=1.5 is not allowed; allowed: 0..1 with up to 6 digits "
            "after the point (share of connections)",
        ),
        (
            {**SLOW, "STREAM": "sideways"},
            "toxic TYPE=latency: STREAM=sideways is not allowed; allowed: downstream, upstream",
        ),
        (
            {**SLOW, "NAME": "a/b"},
            "toxic TYPE=latency: NAME=a/b is not allowed; allowed: up to 64 of A-Z a-z 0-9 _ . -",
        ),
        (
            {"TYPE": "slicer", "AVERAGE_SIZE": "10", "SIZE_VARIATION": "10"},
            "toxic TYPE=slicer: SIZE_VARIATION=10 is not allowed; "
            "allowed: less than AVERAGE_SIZE=10",
        ),
        (
            {"TYPE": "down", "LATENCY": "1"},
            "toxic TYPE=down: unknown word LATENCY=1; allowed: TYPE, PROXY",
        ),
        ({"NAME": "slow", "REMOVE": "no"}, "toxic: REMOVE=no is not allowed; allowed: yes"),
        (
            {"REMOVE": "yes"},
            "toxic REMOVE=yes: NAME is missing; give the toxic's name, as `toxics` shows it",
        ),
        (
            {"NAME": "slow", "REMOVE": "yes", "LATENCY": "1"},
            "toxic REMOVE=yes: unknown word LATENCY=1; allowed: NAME, PROXY, REMOVE",
        ),
        (
            {"NAME": "slow"},
            "toxic NAME= without TYPE: nothing to change; give an attribute, TYPE=… or REMOVE=yes",
        ),
        (
            {"NAME": "slow", "LATENCY": "much"},
            "toxic NAME= without TYPE: LATENCY=much is not allowed; allowed: a whole number",
        ),
    ],
)
def test_a_wrong_word_is_one_line_with_what_was_given_and_what_is_allowed(
    words: dict[str, str], message: str
) -> None:
    with pytest.raises(WordError) as refusal:
        parse_toxic(words)
    assert str(refusal.value) == message
    assert refusal.value.exit_code == 2


@pytest.mark.parametrize("verb", ["toxics", "toxics-reset"])
def test_show_and_reset_take_no_words(verb: str) -> None:
    parse_none({}, verb)
    with pytest.raises(WordError, match=f"{verb}: unknown word NAME=x; allowed: no words"):
        parse_none({"NAME": "x"}, verb)
