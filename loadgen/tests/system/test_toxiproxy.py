"""Toxics as the verbs change and show them, and the latency that they add."""

import copy
import io
from typing import Any

import httpx
import pytest

from lab.errors import LabUnreachable, WordError
from lab.model.toxics import Proxy, Toxic, ToxicsInForce, ordered
from lab.system import toxic_verbs
from lab.system.agent import ToxicsSeen
from lab.system.toxiproxy import toxic_state


def do(verb: str, transport: httpx.BaseTransport, **words: str) -> str:
    out = io.StringIO()
    toxic_verbs.run(verb, words, {}, out, transport)
    return out.getvalue()


def latency(milliseconds: int, jitter: int = 0, **fields: Any) -> Toxic:
    attributes = {"jitter": jitter, "latency": milliseconds}
    given = {"name": "latency", "stream": "downstream", "toxicity": 1.0} | fields
    return Toxic(type="latency", attributes=attributes, **given)


def in_force(*toxic: Toxic, enabled: bool = True) -> ToxicsInForce:
    return ToxicsInForce((Proxy("downstream", "[::]:8666", "downstream:8080", enabled, toxic),))


def test_a_toxic_is_created_and_shown_as_read_back(toxiproxy: Any) -> None:
    shown = do("toxic", toxiproxy, TYPE="latency", LATENCY="300", JITTER="50")
    header, line = shown.splitlines()
    assert header.split() == [*toxic_verbs.COLUMNS]
    assert line == (
        "downstream  up     latency  latency  downstream  1         jitter=50 ms, latency=300 ms  "
        "2025-06-01 12:00:00 UTC"
    )
    assert toxiproxy.toxics["latency"]["attributes"] == {"latency": 300, "jitter": 50}
    assert "0.333333" in do("toxic", toxiproxy, TYPE="timeout", TIMEOUT="0", TOXICITY="0.333333")
    # It is not taken for a browser.
    assert toxiproxy.user_agents == {"concurrency-lab"}


def test_the_same_name_updates_and_another_stream_or_type_replaces(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300", JITTER="50")
    do("toxic", toxiproxy, TYPE="latency", LATENCY="100")
    assert toxiproxy.toxics["latency"]["attributes"] == {"latency": 100, "jitter": 0}
    toxics = "POST /proxies/downstream/toxics"
    assert toxiproxy.changes == [toxics, f"{toxics}/latency"]
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300", STREAM="upstream")
    assert toxiproxy.toxics["latency"]["stream"] == "upstream"
    do("toxic", toxiproxy, TYPE="bandwidth", RATE="10", NAME="latency")
    assert toxiproxy.toxics["latency"]["type"] == "bandwidth"


def test_up_ends_down_and_a_reset_removes_toxics_as_well(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300")
    assert "DOWN" in do("toxic", toxiproxy, TYPE="down")
    assert "up     latency" in do("toxic", toxiproxy, TYPE="up")
    do("toxic", toxiproxy, TYPE="down")
    toxiproxy.keeps_toxics = True
    with pytest.raises(LabUnreachable, match="still in force: downstream/latency"):
        do("toxics-reset", toxiproxy)
    toxiproxy.keeps_toxics = False
    do("toxic", toxiproxy, TYPE="down")
    assert do("toxics-reset", toxiproxy).splitlines()[1].startswith("downstream  up     none")


def test_a_toxic_is_changed_and_removed_by_its_name(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300", JITTER="50", NAME="slow")
    do("toxic", toxiproxy, TYPE="latency", LATENCY="20", NAME="more")
    do("toxic", toxiproxy, NAME="slow", LATENCY="100", TOXICITY="0.5")
    assert toxiproxy.toxics["slow"]["attributes"] == {"latency": 100, "jitter": 50}
    assert toxiproxy.toxics["slow"]["toxicity"] == 0.5
    do("toxic", toxiproxy, NAME="slow", REMOVE="yes")
    assert list(toxiproxy.toxics) == ["more"]
    for change in ({"REMOVE": "yes"}, {"LATENCY": "100"}):
        with pytest.raises(LabUnreachable, match=r"'slow' is not in force on .*in force are more"):
            do("toxic", toxiproxy, NAME="slow", **change)


def test_every_change_makes_the_agent_look_if_there_is_one(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300")
    do("toxic", toxiproxy, NAME="latency", REMOVE="yes")
    do("toxics-reset", toxiproxy)
    assert toxiproxy.looks == [["latency"], [], []]

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "loadgen":
            raise httpx.ConnectError("refused")
        return toxiproxy.handle_request(request)

    alone = httpx.MockTransport(answer)
    assert do("toxics", alone) == "proxy       state  toxic\ndownstream  up     none\n"


def test_since_when_is_shown_as_far_as_the_agent_saw_it(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300")
    do("toxic", toxiproxy, TYPE="latency", LATENCY="20", NAME="older")
    toxiproxy.seen = {"": "12:10:00", "gone": "12:20:00"}
    for verb, since in (
        ("toxics", ["12:00:00", "before 2025-06-01 11:00:00"]),
        ("toxics-reset", ["12:20:00"]),
    ):
        lines = do(verb, toxiproxy).splitlines()[1:]
        assert len(lines) == len(since)
        assert all(line.endswith(f"{at} UTC") for line, at in zip(lines, since, strict=True))


def test_a_wrong_word_or_proxy_changes_nothing(toxiproxy: Any) -> None:
    with pytest.raises(WordError):
        do("toxic", toxiproxy, TYPE="latency", LATENCY="fast")
    with pytest.raises(LabUnreachable, match="'other' does not exist: toxiproxy has downstream"):
        do("toxic", toxiproxy, TYPE="latency", LATENCY="1", PROXY="other")
    assert toxiproxy.changes == []


UPSTREAM = latency(20, name="up", stream="upstream")
ADDED: dict[str, tuple[list[Toxic], float, tuple[str, ...]]] = {
    "both streams": ([latency(300, 50), UPSTREAM], 320.0, ()),
    # On half of the connections: 100 connections / 350 ms are 286/s, and these get 50 / 500 ms and
    # 50 / 200 ms, 350/s.
    "some": ([latency(300, toxicity=0.5)], 0.0, ("latency",)),
    # U(-100, 300) cut at 0: 3/4 of the draws, mean 150 -> 112.5; (100+200)^2 / 800 = 112.5.
    "cut at zero": ([latency(100, 200)], 112.5, ()),
    "negative": ([latency(-5)], 0.0, ("latency",)),
    "negative with a jitter": ([latency(-5, 3)], 0.0, ("latency",)),
    "negative jitter": ([latency(5, -3)], 0.0, ("latency",)),
    "slow": ([Toxic("slow", "bandwidth", "upstream", 1.0, {"rate": 10})], 0.0, ("slow",)),
}


@pytest.mark.parametrize("case", ADDED)
def test_the_mean_latency_that_toxics_add(case: str) -> None:
    toxics, added_ms, names = ADDED[case]
    unpredicted = [f"downstream/{name}" for name in names]
    assert in_force(*toxics).added_latency_ms == added_ms
    assert [*in_force(*toxics).unpredicted] == unpredicted
    assert [*in_force(*toxics, enabled=False).unpredicted] == ["downstream", *unpredicted]


def test_whether_a_toxic_spreads_latencies_is_part_of_what_a_trial_depends_on() -> None:
    assert toxic_state(in_force(latency(300, 1))).jittered
    assert not toxic_state(in_force(latency(300), latency(20, name="up"))).jittered


def test_proxies_are_in_the_order_of_their_names() -> None:
    proxies = (Proxy(name, "l", "u", enabled=False) for name in "ba")
    assert [proxy.name for proxy in ordered(proxies).proxies] == ["a", "b"]


def test_a_name_that_a_terminal_would_act_on_is_shown_as_it_is_written() -> None:
    named = copy.replace(latency(300), name="\x1b]52;c;YQ==\x07")
    shown = toxic_verbs.render(in_force(named).proxies, ToxicsSeen(answers=False, watched=None))
    assert "\\x1b]52;c;YQ==\\x07" in shown
    assert shown.replace("\n", "").isprintable()
