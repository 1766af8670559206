import dataclasses
import io
from typing import Any

import httpx
import pytest

from lab.errors import LabUnreachable, WordError
from lab.model.toxic_script import applied, difference
from lab.model.toxic_words import parse_toxic
from lab.model.toxics import Proxy, Toxic, ToxicsInForce, parse_proxies
from lab.system import toxic_verbs
from lab.system.http import Http
from lab.system.toxiproxy import Toxiproxy, toxic_state

URL = {"LAB_TOXIPROXY_URL": "http://toxiproxy:8474", "LAB_AGENT_URL": "http://loadgen:9464"}


def do(verb: str, transport: httpx.BaseTransport, **words: str) -> str:
    out = io.StringIO()
    toxic_verbs.run(verb, words, URL, out, transport)
    return out.getvalue()


def latency(milliseconds: int, jitter: int = 0, **fields: Any) -> Toxic:
    attributes = {"jitter": jitter, "latency": milliseconds}
    given = {"name": "latency", "stream": "downstream", "toxicity": 1.0} | fields
    return Toxic(type="latency", attributes=attributes, **given)


def in_force(*toxic: Toxic, enabled: bool = True) -> ToxicsInForce:
    return ToxicsInForce((Proxy("downstream", "[::]:8666", "downstream:8080", enabled, toxic),))


def test_a_toxic_is_created_and_shown_as_read_back(toxiproxy: Any) -> None:
    shown = do("toxic", toxiproxy, TYPE="latency", LATENCY="300", JITTER="50")
    assert shown == (
        "proxy       state  toxic    type     stream      toxicity  attributes\n"
        "downstream  up     latency  latency  downstream  1         jitter=50 ms, latency=300 ms\n"
    )
    assert toxiproxy.toxics["latency"]["attributes"] == {"latency": 300, "jitter": 50}


def test_the_same_name_again_updates_and_what_is_not_given_takes_its_default(
    toxiproxy: Any,
) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300", JITTER="50")
    do("toxic", toxiproxy, TYPE="latency", LATENCY="100")
    assert toxiproxy.toxics["latency"]["attributes"] == {"latency": 100, "jitter": 0}
    assert toxiproxy.changes == [
        "POST /proxies/downstream/toxics",
        "POST /proxies/downstream/toxics/latency",
    ]


def test_another_stream_or_type_replaces_the_toxic_of_that_name(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300", NAME="mine")
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300", NAME="mine", STREAM="upstream")
    assert toxiproxy.toxics["mine"]["stream"] == "upstream"
    do("toxic", toxiproxy, TYPE="bandwidth", RATE="10", NAME="mine")
    assert toxiproxy.toxics["mine"]["type"] == "bandwidth"


def test_reset_removes_all_and_brings_the_proxy_up(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300")
    assert "DOWN" in do("toxic", toxiproxy, TYPE="down")
    assert do("toxics-reset", toxiproxy) == ("proxy       state  toxic\ndownstream  up     none\n")


def test_reset_that_leaves_something_is_an_error(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300")
    toxiproxy.keeps_toxics = True
    with pytest.raises(LabUnreachable, match="still in force: downstream/latency"):
        do("toxics-reset", toxiproxy)


def test_one_toxic_is_removed_by_name(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300")
    do("toxic", toxiproxy, TYPE="latency", LATENCY="20", NAME="more")
    do("toxic", toxiproxy, NAME="latency", REMOVE="yes")
    assert list(toxiproxy.toxics) == ["more"]
    with pytest.raises(LabUnreachable, match=r"'latency' is not in force.*in force are more"):
        do("toxic", toxiproxy, NAME="latency", REMOVE="yes")


def test_up_ends_down_and_leaves_toxics(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300")
    assert "DOWN" in do("toxic", toxiproxy, TYPE="down")
    assert "up     latency" in do("toxic", toxiproxy, TYPE="up")


def test_by_its_name_a_toxic_is_changed_and_taken_away(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300", JITTER="50", NAME="slow")
    do("toxic", toxiproxy, NAME="slow", LATENCY="100", TOXICITY="0.5")
    assert toxiproxy.toxics["slow"]["attributes"] == {"latency": 100, "jitter": 50}
    assert toxiproxy.toxics["slow"]["toxicity"] == 0.5
    do("toxic", toxiproxy, NAME="slow", REMOVE="yes")
    assert toxiproxy.toxics == {}
    with pytest.raises(LabUnreachable, match="'slow' is not in force on downstream"):
        do("toxic", toxiproxy, NAME="slow", LATENCY="100")


def test_restore_brings_back_what_was_touched_and_nothing_else(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300")
    client = Toxiproxy(Http(toxiproxy), URL["LAB_TOXIPROXY_URL"])
    before = client.in_force()
    for words in (
        {"TYPE": "latency", "LATENCY": "900"},
        {"TYPE": "bandwidth", "RATE": "5"},
        {"TYPE": "timeout", "TIMEOUT": "0", "NAME": "of-others"},
        {"TYPE": "down"},
    ):
        client.apply(parse_toxic(words))
    touched = ("latency", "bandwidth", "never-there", "")
    client.restore(before, [("downstream", name) for name in touched])
    after = client.in_force()
    assert list(difference(before, after)) == ["downstream/of-others"]


def test_a_script_is_played_through_in_thought() -> None:
    begins = in_force()
    down = applied(begins, parse_toxic({"TYPE": "down"}))
    slow = applied(down, parse_toxic({"TYPE": "latency", "LATENCY": "300"}))
    slower = applied(slow, parse_toxic({"NAME": "latency", "LATENCY": "400"}))
    assert slower.added_latency_ms == 400
    assert list(difference(slow, slower)) == ["downstream/latency"]
    up = applied(slower, parse_toxic({"TYPE": "up"}))
    assert list(difference(begins, up)) == ["downstream/latency"]
    assert applied(up, parse_toxic({"NAME": "latency", "REMOVE": "yes"})) == begins
    with pytest.raises(LabUnreachable, match="'slow' is not in force on downstream: in force are"):
        applied(up, parse_toxic({"NAME": "slow", "REMOVE": "yes"}))


def test_what_was_there_before_the_agent_looked_says_so(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="bandwidth", RATE="5")
    assert "before 2025-06-01 11:00:00 UTC" in do("toxics", toxiproxy)


def test_show_tells_since_when_as_the_agent_saw_it(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300")
    assert "2025-06-01 12:00:00 UTC" in do("toxics", toxiproxy)


def test_show_tells_since_when_the_proxy_is_down_also_with_toxics_on_it(toxiproxy: Any) -> None:
    toxiproxy.seen = {"": "12:10:00", "(removed)": "12:20:00"}
    do("toxic", toxiproxy, TYPE="down")
    assert do("toxics", toxiproxy).splitlines()[1] == (
        "downstream  DOWN   none   2025-06-01 12:10:00 UTC"
    )
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300")
    down, toxic = do("toxics", toxiproxy).splitlines()[1:]
    assert down.split() == ["downstream", "DOWN", "2025-06-01", "12:10:00", "UTC"]
    assert toxic.endswith("2025-06-01 12:00:00 UTC")
    do("toxics-reset", toxiproxy)
    assert do("toxics", toxiproxy).endswith("none   2025-06-01 12:20:00 UTC\n")


def test_every_change_makes_the_agent_look(toxiproxy: Any) -> None:
    do("toxic", toxiproxy, TYPE="latency", LATENCY="300")
    do("toxic", toxiproxy, NAME="latency", REMOVE="yes")
    do("toxics-reset", toxiproxy)
    assert toxiproxy.looks == [["latency"], [], []]


def test_a_toxicity_reads_back_as_it_was_given(toxiproxy: Any) -> None:
    assert "0.333333" in do("toxic", toxiproxy, TYPE="timeout", TIMEOUT="0", TOXICITY="0.333333")


def test_a_change_and_a_look_work_without_the_agent(toxiproxy: Any) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "loadgen":
            raise httpx.ConnectError("refused")
        return toxiproxy.handle_request(request)

    alone = httpx.MockTransport(answer)
    assert do("toxics", alone) == "proxy       state  toxic\ndownstream  up     none\n"
    assert "DOWN" in do("toxic", alone, TYPE="down")


def test_a_wrong_word_changes_nothing(toxiproxy: Any) -> None:
    with pytest.raises(WordError):
        do("toxic", toxiproxy, TYPE="latency", LATENCY="fast")
    assert toxiproxy.changes == []


def test_an_unknown_proxy_is_named_with_those_there_are(toxiproxy: Any) -> None:
    with pytest.raises(LabUnreachable, match="'other' does not exist: toxiproxy has downstream"):
        do("toxic", toxiproxy, TYPE="latency", LATENCY="1", PROXY="other")


def test_the_client_is_not_taken_for_a_browser(toxiproxy: Any) -> None:
    do("toxics", toxiproxy)
    assert not any(agent.startswith("Mozilla") for agent in toxiproxy.user_agents - {""})
    assert "concurrency-lab" in toxiproxy.user_agents


@pytest.mark.parametrize("answer", ["[]", '{"a": 1}', '{"a": {"name": "a"}}', "not json"])
def test_nonsense_answers_are_one_clear_error(answer: str) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=answer))
    with pytest.raises(LabUnreachable, match=r"http://toxiproxy:8474: cannot read its proxies"):
        do("toxics", transport)


def test_no_toxiproxy_is_one_clear_error() -> None:
    def refused(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    with pytest.raises(LabUnreachable, match="toxiproxy: http://toxiproxy:8474/proxies does not"):
        do("toxics", httpx.MockTransport(refused))


@pytest.mark.parametrize("toxic", [latency(-5), latency(-5, 3), latency(5, -3)])
def test_of_a_negative_latency_nobody_knows_what_it_adds(toxic: Toxic) -> None:
    assert in_force(toxic).unpredicted == ("downstream/latency",)


def test_mean_added_latency_sums_both_streams() -> None:
    both = in_force(latency(300, 50), latency(20, name="up", stream="upstream"))
    assert both.added_latency_ms == 320.0
    assert both.unpredicted == ()


def test_mean_added_latency_counts_the_share_of_connections() -> None:
    # On half of the connections: 100 connections / 350 ms are 286/s, and these get 50 / 500 ms and
    # 50 / 200 ms, 350/s.
    some = in_force(latency(300, toxicity=0.5))
    assert (some.added_latency_ms, len(some.unpredicted)) == (0.0, 1)


def test_a_jitter_above_the_latency_is_cut_at_zero() -> None:
    # U(-100, 300) cut at 0: 3/4 of the draws, mean 150 -> 112.5; (100+200)^2 / 800 = 112.5.
    assert in_force(latency(100, 200)).added_latency_ms == 112.5


def test_whether_a_toxic_spreads_latencies_is_part_of_what_a_trial_depends_on() -> None:
    assert toxic_state(in_force(latency(300, 1))).jittered
    assert not toxic_state(in_force(latency(300), latency(20, name="up"))).jittered


def test_what_cannot_be_predicted_is_named() -> None:
    slow = Toxic("slow", "bandwidth", "upstream", 1.0, {"rate": 10})
    assert in_force(slow, enabled=False).unpredicted == ("downstream", "downstream/slow")
    assert in_force(slow).added_latency_ms == 0.0


def test_answers_of_toxiproxy_are_read_in_name_order() -> None:
    proxy = {"listen": "l", "upstream": "u", "enabled": False, "toxics": []}
    read = parse_proxies({"b": proxy | {"name": "b"}, "a": proxy | {"name": "a"}})
    assert [p.name for p in read.proxies] == ["a", "b"]
    assert not read.proxies[0].enabled


def test_a_name_that_a_terminal_would_act_on_is_shown_as_it_is_written() -> None:
    named = dataclasses.replace(latency(300), name="\x1b]52;c;YQ==\x07")
    shown = toxic_verbs.render(in_force(named).proxies)
    assert "\\x1b]52;c;YQ==\\x07" in shown
    assert shown.replace("\n", "").isprintable()
