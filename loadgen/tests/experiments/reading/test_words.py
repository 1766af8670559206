from pathlib import Path

import pytest

from lab.errors import LabUnreachable, WordError
from lab.experiments.explain import Explain
from lab.experiments.kind import settings_of
from lab.experiments.loads import Loads
from lab.experiments.plans import of_verb
from lab.experiments.reading import Here, given_settings, read_servers, read_words
from lab.model import Experiment

SERVERS = ("fixed-pool", "virtual-threads")
LIMIT = 20_000


def bench(**words: str) -> Experiment:
    return asked("bench", words)


def asked(verb: str, words: dict[str, str], limit: int = LIMIT) -> Experiment:
    found, _ = of_verb(verb, words, Here(SERVERS, limit))
    return found


def test_one_word_is_enough() -> None:
    assert bench(CONC="2000") == Experiment(
        name="bench",
        words=("CONC=2000",),
        servers=SERVERS,
        concurrencies=(2000,),
        routes=("/downstream",),
        modes=("closed", "open"),
        rate_rps=None,
        duration_s=10,
        warmup_s=None,
        engines=(),
        kind="loads",
        launches=0,
        scale=1.0,
        longer=True,
    )


def test_every_word_is_taken() -> None:
    found = bench(
        CONC="50,200", SERVER="virtual-threads", ROUTE="/?wait_ms=50", MODE="open", RATE="900",
        DURATION="2m", WARMUP="20s", ENGINE="wrk2", LAUNCHES="6", NAME="try-1",
    )  # fmt: skip
    assert (found.concurrencies, found.servers) == ((50, 200), ("virtual-threads",))
    assert (found.routes, found.modes, found.rate_rps) == (("/?wait_ms=50",), ("open",), 900)
    assert (found.duration_s, found.warmup_s) == (120, 20)
    assert (found.engines, found.launches, found.name) == (("wrk2",), 6, "try-1")


def test_a_quick_look_waits_for_nothing_and_what_takes_long_for_a_quiet_machine() -> None:
    assert bench(CONC="5").patience_s == 0
    assert bench(CONC="5", LAUNCHES="6").patience_s == 300
    assert asked("capacity", {}).patience_s == 300
    assert bench(CONC="5", PATIENCE="2m").patience_s == 120
    assert asked("capacity", {"PATIENCE": "0s"}).patience_s == 0
    check_refused("bench", {"CONC": "5", "PATIENCE": "long"}, "PATIENCE=long is not a duration")


def test_what_is_recorded_is_a_setting_of_the_kind() -> None:
    of = bench(CONC="5", RECORD="lock")
    assert (of.own["record"], settings_of(Loads, of)) == ("lock", Loads())
    _, [note] = of_verb("bench", {"CONC": "5", "RECORD": "lock"}, Here(SERVERS, LIMIT))
    assert note.startswith("RECORD=lock: each server's last load once more with a recording")
    assert "record" not in bench(CONC="5").own
    searched, [note] = of_verb("capacity", {"RECORD": "cpu"}, Here(SERVERS, LIMIT))
    assert (searched.own["record"], searched.own["first"]) == ("cpu", 500)
    assert note.startswith(
        "RECORD=cpu: the highest rate that each server's last JVM held once more"
    )
    explained, _ = of_verb("explain", {"CONC": "5", "RECORD": "cpu"}, Here(SERVERS, LIMIT))
    assert (explained.own["record"], settings_of(Explain, explained).pairs) == ("cpu", 6)


def check_refused(verb: str, words: dict[str, str], says: str) -> None:
    with pytest.raises(WordError) as refused:
        asked(verb, words)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({}, "CONC is missing"),
        ({"CONC": "0"}, "CONC=0 is not a number of connections; allowed: 1..9500"),
        ({"CONC": "1e3"}, "CONC=1e3"),
        ({"CONC": "-5"}, "CONC=-5"),
        ({"CONC": "９"}, "CONC=９"),
        ({"CONC": ""}, "CONC= is not"),
        ({"CONC": "9501"}, "more than this machine holds; allowed: 1..9500"),
        ({"CONC": "5,5"}, "CONC=5,5 names the same twice"),
        ({"CONC": "5", "SERVER": "fixed"}, "allowed: fixed-pool, virtual-threads"),
        ({"CONC": "5", "SERVER": ""}, "SERVER= is not"),
        ({"CONC": "5", "ROUTE": "downstream"}, "bench: ROUTE=downstream is not a route"),
        ({"CONC": "5", "ROUTE": "/downstream?x=1"}, "ROUTE=/downstream?x=1"),
        ({"CONC": "5", "ROUTE": "/?wait_ms=a"}, "ROUTE=/?wait_ms=a"),
        ({"CONC": "5", "ROUTE": "http://elsewhere/"}, "ROUTE=http://elsewhere/"),
        ({"CONC": "5", "ROUTE": "//elsewhere/"}, "ROUTE=//elsewhere/"),
        ({"CONC": "5", "ROUTE": "/block?ms=100"}, "/block takes wait_ms=0..60000"),
        ({"CONC": "5", "ROUTE": "/compute", "MODE": "open"}, "/compute does not wait now; allow"),
        ({"CONC": "5", "MODE": "Open"}, "MODE=Open is not allowed; allowed: open, closed, both"),
        ({"CONC": "5", "RATE": "0"}, "RATE=0 is not a rate; allowed: auto, or 1.."),
        ({"CONC": "5", "RATE": "99999999"}, "RATE=99999999"),
        ({"CONC": "5", "RATE": "10", "MODE": "closed"}, "a closed load has no rate"),
        ({"CONC": "5", "DURATION": "0s"}, "DURATION=0s is not a duration; allowed: 1s..24h"),
        ({"CONC": "5", "DURATION": "1.5s"}, "DURATION=1.5s"),
        ({"CONC": "5", "DURATION": "25h"}, "DURATION=25h"),
        ({"CONC": "5", "WARMUP": "soon"}, "WARMUP=soon is not a duration; allowed: 0s..24h"),
        ({"CONC": "5", "ENGINE": "ab"}, "ENGINE=ab is not allowed; allowed: wrk2, pacer"),
        ({"CONC": "5", "ARRIVALS": "late"}, "ARRIVALS=late is not allowed; allowed: constant, poi"),
        (
            {"CONC": "5", "ARRIVALS": "poisson", "MODE": "closed"},
            "ARRIVALS=poisson is not allowed: a closed load has no arrivals",
        ),
        (
            {"CONC": "5", "ARRIVALS": "poisson", "ENGINE": "wrk2"},
            "ARRIVALS=poisson with wrk2 is not allowed; allowed: ENGINE=pacer",
        ),
        ({"CONC": "5", "ENGINE": "wrk2,wrk2"}, "ENGINE=wrk2,wrk2 names the same twice"),
        ({"CONC": "5", "LAUNCHES": "-1"}, "LAUNCHES=-1 is not allowed; allowed: 0..100"),
        ({"CONC": "5", "LAUNCHES": "101"}, "LAUNCHES=101 is not allowed"),
        ({"CONC": "5", "SCALE": "0.1"}, "unknown word SCALE"),
        ({"CONC": "5", "RECORD": "heap"}, "RECORD=heap is not allowed; allowed: cpu, alloc, lock"),
        ({"CONC": "5", "RECORD": "wall"}, "samples no thread that waits; allowed: cpu, alloc"),
        ({"CONC": "5", "MODE": "open,closed"}, "MODE=open,closed is not allowed"),
        ({"CONC": "5", "NAME": "../up"}, "NAME=../up"),
        ({"CONC": "5", "NAME": "Up"}, "NAME=Up"),
        ({"CONC": "5", "CONCURRENCY": "5"}, "unknown word CONCURRENCY; allowed: CONC, SERVER"),
    ],
)
def test_a_wrong_word_gets_one_line_saying_what_is_allowed(
    words: dict[str, str], says: str
) -> None:
    check_refused("bench", words, says)


def test_a_route_that_opens_nothing_needs_one_descriptor_per_connection() -> None:
    assert bench(CONC="19000", ROUTE="/").concurrencies == (19000,)
    with pytest.raises(WordError, match="two, as each opens a file, per connection"):
        bench(CONC="9501", ROUTE="/file")
    with pytest.raises(WordError, match="one per connection"):
        bench(CONC="19001", ROUTE="/")


def test_words_of_make_are_read_and_settings_of_the_lab_are_left_out() -> None:
    environ = {
        "LAB_WORDS": "CONC=200 NAME=a\\ b GRAFANA_PORT=4000",
        "LAB_SETTING_NAMES": "GRAFANA_PORT PROMETHEUS_PORT",
    }
    assert read_words([], environ) == {"CONC": "200", "NAME": "a b"}


def test_settings_that_nothing_reads_back_are_kept_and_no_secret_is() -> None:
    environ = {
        "LAB_WORDS": "CONC=200 NOFILE=300 GRAFANA_ADMIN_PASSWORD=x LOOPS=4 LOADGEN_CPUSET=0 "
        "TOXIPROXY_GOMAXPROCS=2",
        "LAB_SETTING_NAMES": "NOFILE LOADGEN_CPUSET LOOPS GRAFANA_ADMIN_PASSWORD "
        "TOXIPROXY_GOMAXPROCS",
    }
    assert given_settings(environ) == (
        "NOFILE=300",
        "LOADGEN_CPUSET=0",
        "TOXIPROXY_GOMAXPROCS=2",
    )
    assert given_settings({}) == ()


def test_a_word_of_the_command_line_wins() -> None:
    assert read_words(["CONC=7"], {"LAB_WORDS": "CONC=200"}) == {"CONC": "7"}


@pytest.mark.parametrize("word", ["CONC", "=5", "--conc=5", "5=5"])
def test_what_is_no_word_is_refused(word: str) -> None:
    with pytest.raises(WordError, match="is not a word like"):
        read_words([word], {})


def test_unreadable_quotes_are_refused() -> None:
    with pytest.raises(WordError, match="cannot read the words"):
        read_words([], {"LAB_WORDS": "CONC='5"})


@pytest.mark.parametrize("text", ["'x y'", '"x"', "$(x)", r"\x", "it's"])
def test_an_address_that_would_be_changed_on_its_way_is_refused(text: str) -> None:
    with pytest.raises(WordError, match="allowed: no \\$, quote or backslash"):
        read_words([], {"LAB_WORDS": f"CONC=5 TARGET=http://a/{text}"})
    # What make puts before a blank is its own; other words may be quoted.
    given = {"LAB_WORDS": r"TARGET=http://a\ b/ NAME='a b'"}
    assert read_words([], given) == {"TARGET": "http://a b/", "NAME": "a b"}


def test_servers_come_from_prometheus_target_list(tmp_path: Path) -> None:
    (tmp_path / "core.json").write_text('[{"targets": ["z", "b"]}, {"targets": ["c"]}]')
    (tmp_path / "a-profile.json").write_text('[{"targets": ["a"]}]')
    assert read_servers(tmp_path, {}) == ("z", "b", "c", "a")
    assert read_servers(tmp_path, {"LAB_PROFILES": "grafana,a-profile"}) == ("z", "b", "c", "a")
    assert read_servers(tmp_path, {"LAB_PROFILES": ""}) == ("z", "b", "c")


def test_without_a_target_list_there_is_no_lab(tmp_path: Path) -> None:
    with pytest.raises(LabUnreachable, match="list of servers"):
        read_servers(tmp_path, {})


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[{}]", '[{"targets": []}]', '[{"targets": ["A/b"]}]']
)
def test_a_broken_target_list_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "core.json").write_text(text)
    with pytest.raises(LabUnreachable, match=r"core\.json"):
        read_servers(tmp_path, {})


def test_several_engines_may_measure_the_same_load() -> None:
    assert bench(CONC="5", ENGINE="wrk2,pacer").engines == ("wrk2", "pacer")


def test_a_machine_without_descriptors_is_said() -> None:
    with pytest.raises(WordError, match="only 1000 open files"):
        asked("bench", {"CONC": "5"}, 1000)


def explain(**words: str) -> Experiment:
    return asked("explain", words)


def test_explain_takes_one_word_and_short_closed_trials() -> None:
    found = explain(CONC="5000")
    assert (found.name, found.kind) == ("explain", "explain")
    # One descriptor in, and one out to the downstream.
    assert settings_of(Explain, found) == Explain(6, 4, None, (LIMIT - 1000) // 2)
    assert (found.servers, found.routes) == (SERVERS, ("/downstream",))
    assert found.concurrencies == (5000,)
    assert (found.modes, found.duration_s, found.launches) == (("closed",), 5, 0)
    assert found.words == ("CONC=5000",)


def test_explain_takes_its_own_words_and_those_of_a_load() -> None:
    found = explain(
        CONC="50", SERVER="fixed-pool", ROUTE="/block", MODE="open", RATE="300", DURATION="8s",
        PAIRS="10", STEPS="1", SUSPECT="worker pool", NAME="mine", ENGINE="wrk2",
    )  # fmt: skip
    assert settings_of(Explain, found) == Explain(10, 1, "worker pool", LIMIT - 1000)
    assert (found.name, found.servers, found.routes) == ("mine", ("fixed-pool",), ("/block",))
    assert (found.modes, found.rate_rps, found.duration_s) == (("open",), 300, 8)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({}, "explain: CONC is missing"),
        ({"CONC": "5", "LAUNCHES": "6"}, "explain: unknown word LAUNCHES; allowed: CONC, SERVER"),
        ({"CONC": "5,6"}, "explain: CONC=5,6 is more than one; allowed: one in this kind"),
        ({"CONC": "5", "SUSPECT": "disk"}, "explain: SUSPECT=disk is not allowed; allowed: worker"),
        ({"CONC": "999999"}, "explain: CONC=999999 is more than this machine holds"),
    ],
)
def test_wrong_words_of_explain_are_refused(words: dict[str, str], says: str) -> None:
    check_refused("explain", words, says)


def test_a_suspect_of_two_words_comes_through_make() -> None:
    words = read_words([], {"LAB_WORDS": r"CONC=5 SUSPECT=worker\ pool"})
    assert words["SUSPECT"] == "worker pool"
