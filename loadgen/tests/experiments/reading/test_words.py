"""The words of make and of the command line, and the list of servers."""

from pathlib import Path

import pytest

from experiments.conftest import refusal
from lab.errors import LabUnreachable
from lab.experiments.explain import Explain
from lab.experiments.kind import settings_of
from lab.experiments.loads import Loads
from lab.experiments.plans import of_verb
from lab.experiments.reading import Here, given_settings, read_servers, read_words
from lab.model import Experiment

SERVERS = ("fixed-pool", "virtual-threads")
LIMIT = 20_000
ADDRESS = "allowed: no $, quote or backslash"


def bench(**words: str) -> Experiment:
    return asked("bench", words)


def asked(verb: str, words: dict[str, str], limit: int = LIMIT) -> Experiment:
    found, _ = of_verb(verb, words, Here(SERVERS, limit))
    return found


def test_one_word_is_enough() -> None:
    assert bench(CONC="2000") == Experiment(
        name="bench", words=("CONC=2000",), servers=SERVERS, concurrencies=(2000,),
        routes=("/downstream",), modes=("closed", "open"), rate_rps=None, duration_s=10,
        warmup_s=None, engines=(), kind="loads", launches=0, scale=1.0, longer=True,
    )  # fmt: skip


def test_every_word_is_taken() -> None:
    found = bench(
        CONC="50,200", SERVER="virtual-threads", ROUTE="/?wait_ms=50", MODE="open", RATE="900",
        DURATION="2m", WARMUP="20s", ENGINE="wrk2", LAUNCHES="6", NAME="try-1",
    )  # fmt: skip
    assert (found.concurrencies, found.servers) == ((50, 200), ("virtual-threads",))
    assert (found.routes, found.modes, found.rate_rps) == (("/?wait_ms=50",), ("open",), 900)
    assert (found.duration_s, found.warmup_s) == (120, 20)
    assert (found.engines, found.launches, found.name) == (("wrk2",), 6, "try-1")
    assert bench(CONC="5", ENGINE="wrk2,pacer").engines == ("wrk2", "pacer")
    # A route that opens nothing needs one descriptor per connection.
    assert bench(CONC="19000", ROUTE="/").concurrencies == (19000,)


def test_a_quick_look_waits_for_nothing_and_what_takes_long_for_a_quiet_machine() -> None:
    assert bench(CONC="5").patience_s == 0
    assert bench(CONC="5", LAUNCHES="6").patience_s == 300
    assert asked("capacity", {}).patience_s == 300
    assert bench(CONC="5", PATIENCE="2m").patience_s == 120
    assert asked("capacity", {"PATIENCE": "0s"}).patience_s == 0


def test_what_is_recorded_is_a_setting_of_the_kind() -> None:
    of = bench(CONC="5", RECORD="lock")
    assert (of.own["record"], settings_of(Loads, of)) == ("lock", Loads())
    _, [note] = of_verb("bench", {"CONC": "5", "RECORD": "lock"}, Here(SERVERS, LIMIT))
    assert note.startswith("RECORD=lock: each server's last load once more with a recording")
    assert "record" not in bench(CONC="5").own
    searched, [note] = of_verb("capacity", {"RECORD": "cpu"}, Here(SERVERS, LIMIT))
    assert (searched.own["record"], searched.own["first"]) == ("cpu", 2000)
    assert note.startswith(
        "RECORD=cpu: the last rate at which each server met its objective once more"
    )
    explained, _ = of_verb("explain", {"CONC": "5", "RECORD": "cpu"}, Here(SERVERS, LIMIT))
    assert (explained.own["record"], settings_of(Explain, explained).pairs) == ("cpu", 6)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"CONC": "0"}, "CONC=0 is not a number of connections; allowed: 1..9500"),
        ({"CONC": "1e3"}, "CONC=1e3"),
        ({"CONC": "-5"}, "CONC=-5"),
        ({"CONC": "９"}, "CONC=９"),
        ({"CONC": ""}, "CONC= is not"),
        ({"CONC": "9501"}, "more than this machine holds; allowed: 1..9500"),
        ({"CONC": "5,5"}, "CONC=5,5 names the same twice"),
        ({"SERVER": "fixed"}, "allowed: fixed-pool, virtual-threads"),
        ({"SERVER": ""}, "SERVER= is not"),
        ({"ROUTE": "downstream"}, "bench: ROUTE=downstream is not a route"),
        ({"ROUTE": "/downstream?x=1"}, "ROUTE=/downstream?x=1"),
        ({"ROUTE": "/?wait_ms=a"}, "ROUTE=/?wait_ms=a"),
        ({"ROUTE": "http://elsewhere/"}, "ROUTE=http://elsewhere/"),
        ({"ROUTE": "//elsewhere/"}, "ROUTE=//elsewhere/"),
        ({"ROUTE": "/block?ms=100"}, "/block takes wait_ms=0..60000"),
        ({"ROUTE": "/compute", "MODE": "open"}, "/compute does not wait now; allow"),
        ({"ROUTE": "/file", "CONC": "9501"}, "two, as each opens a file, per connection"),
        ({"ROUTE": "/", "CONC": "19001"}, "one per connection"),
        ({"MODE": "Open"}, "MODE=Open is not allowed; allowed: open, closed, both"),
        ({"RATE": "0"}, "RATE=0 is not a rate; allowed: auto, or 1.."),
        ({"RATE": "99999999"}, "RATE=99999999"),
        ({"RATE": "10", "MODE": "closed"}, "a closed load has no rate"),
        ({"DURATION": "0s"}, "DURATION=0s is not a duration; allowed: 1s..24h"),
        ({"DURATION": "1.5s"}, "DURATION=1.5s"),
        ({"DURATION": "25h"}, "DURATION=25h"),
        ({"WARMUP": "soon"}, "WARMUP=soon is not a duration; allowed: 0s..24h"),
        ({"PATIENCE": "long"}, "PATIENCE=long is not a duration"),
        ({"ENGINE": "ab"}, "ENGINE=ab is not allowed; allowed: wrk2, pacer"),
        ({"ARRIVALS": "late"}, "ARRIVALS=late is not allowed; allowed: constant, poi"),
        (
            {"ARRIVALS": "poisson", "MODE": "closed"},
            "ARRIVALS=poisson is not allowed: a closed load has no arrivals",
        ),
        (
            {"ARRIVALS": "poisson", "ENGINE": "wrk2"},
            "ARRIVALS=poisson with wrk2 is not allowed; allowed: ENGINE=pacer",
        ),
        ({"ENGINE": "wrk2,wrk2"}, "ENGINE=wrk2,wrk2 names the same twice"),
        ({"LAUNCHES": "-1"}, "LAUNCHES=-1 is not allowed; allowed: 0..100"),
        ({"LAUNCHES": "101"}, "LAUNCHES=101 is not allowed"),
        ({"SCALE": "0.1"}, "unknown word SCALE"),
        ({"RECORD": "heap"}, "RECORD=heap is not allowed; allowed: cpu, alloc, lock"),
        ({"RECORD": "wall"}, "samples no thread that waits; allowed: cpu, alloc"),
        ({"MODE": "open,closed"}, "MODE=open,closed is not allowed"),
        ({"NAME": "../up"}, "NAME=../up"),
        ({"NAME": "Up"}, "NAME=Up"),
        ({"CONCURRENCY": "5"}, "unknown word CONCURRENCY; allowed: CONC, SERVER"),
    ],
)
def test_a_wrong_word_of_bench_is_refused(words: dict[str, str], says: str) -> None:
    assert says in refusal(bench, **{"CONC": "5", **words})


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"CONC": "5", "LAUNCHES": "6"}, "unknown word LAUNCHES; allowed: CONC, SERVER"),
        ({"CONC": "5,6"}, "CONC=5,6 is more than one; allowed: one in this kind"),
        ({"CONC": "5", "SUSPECT": "disk"}, "SUSPECT=disk is not allowed; allowed: accept"),
        ({"CONC": "999999"}, "CONC=999999 is more than this machine holds"),
    ],
)
def test_a_wrong_word_of_explain_is_refused(words: dict[str, str], says: str) -> None:
    assert f"explain: {says}" in refusal(explain, **words)


def test_without_a_word_or_descriptors_nothing_is_measured() -> None:
    for verb in ("bench", "explain"):
        assert f"{verb}: CONC is missing" in refusal(asked, verb, {})
    assert "only 1000 open files" in refusal(asked, "bench", {"CONC": "5"}, 1000)


@pytest.mark.parametrize(
    ("words", "line", "expected"),
    [
        ([], "CONC=200 NAME=a\\ b GRAFANA_PORT=4000", {"CONC": "200", "NAME": "a b"}),
        ([], r"CONC=5 SUSPECT=worker\ pool", {"CONC": "5", "SUSPECT": "worker pool"}),
        # What make puts before a blank is its own; other words may be quoted.
        ([], r"TARGET=http://a\ b/ NAME='a b'", {"TARGET": "http://a b/", "NAME": "a b"}),
        (["CONC=7"], "CONC=200", {"CONC": "7"}),
    ],
    ids=["a setting of the lab", "two words", "quotes", "the command line wins"],
)
def test_words_of_make_without_settings_of_the_lab(
    words: list[str], line: str, expected: dict[str, str]
) -> None:
    settings = {"LAB_SETTING_NAMES": "GRAFANA_PORT PROMETHEUS_PORT"}
    assert read_words(words, {"LAB_WORDS": line, **settings}) == expected


def test_settings_that_nothing_reads_back_are_kept_and_no_secret_is() -> None:
    environ = {
        "LAB_WORDS": "CONC=200 NOFILE=300 GRAFANA_ADMIN_PASSWORD=x LOOPS=4 LOADGEN_CPUSET=0 "
        "TOXIPROXY_GOMAXPROCS=2",
        "LAB_SETTING_NAMES": "NOFILE LOADGEN_CPUSET LOOPS GRAFANA_ADMIN_PASSWORD "
        "TOXIPROXY_GOMAXPROCS",
    }
    assert given_settings(environ) == ("NOFILE=300", "LOADGEN_CPUSET=0", "TOXIPROXY_GOMAXPROCS=2")
    assert given_settings(environ, ("LOOPS",)) == ("LOOPS=4",)
    assert given_settings({}) == ()


@pytest.mark.parametrize(
    ("words", "line", "says"),
    [
        *(([word], "", "is not a word like") for word in ("CONC", "=5", "--conc=5", "5=5")),
        ([], "CONC='5", "cannot read the words"),
        *(
            ([], f"CONC=5 TARGET=http://a/{text}", ADDRESS)
            for text in ("'x y'", '"x"', "$(x)", r"\x", "it's")
        ),
    ],
)
def test_words_that_cannot_be_read_are_refused(words: list[str], line: str, says: str) -> None:
    assert says in refusal(read_words, words, {"LAB_WORDS": line})


def test_servers_come_from_prometheus_target_list(tmp_path: Path) -> None:
    (tmp_path / "core.json").write_text('[{"targets": ["z", "b"]}, {"targets": ["c"]}]')
    (tmp_path / "a-profile.json").write_text('[{"targets": ["a"]}]')
    assert read_servers(tmp_path, {}) == ("z", "b", "c", "a")
    assert read_servers(tmp_path, {"LAB_PROFILES": "grafana,a-profile"}) == ("z", "b", "c", "a")
    assert read_servers(tmp_path, {"LAB_PROFILES": ""}) == ("z", "b", "c")


@pytest.mark.parametrize(
    "text", [None, "", "{}", "[]", "[{}]", '[{"targets": []}]', '[{"targets": ["A/b"]}]']
)
def test_a_missing_or_broken_target_list_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "core.json").write_text(text)
    says = "list of servers" if text is None else r"core\.json"
    with pytest.raises(LabUnreachable, match=says):
        read_servers(tmp_path, {})


def explain(**words: str) -> Experiment:
    return asked("explain", words)


def test_explain_takes_one_word_its_own_and_those_of_a_load() -> None:
    found = explain(CONC="5000")
    assert (found.name, found.kind) == ("explain", "explain")
    # One descriptor in, and one out to the downstream.
    assert settings_of(Explain, found) == Explain(6, 4, None, (LIMIT - 1000) // 2)
    assert (found.servers, found.routes) == (SERVERS, ("/downstream",))
    assert found.concurrencies == (5000,)
    assert (found.modes, found.duration_s, found.launches) == (("closed",), 5, 0)
    assert found.words == ("CONC=5000",)
    # It takes its own words and those of a load.
    found = explain(
        CONC="50", SERVER="fixed-pool", ROUTE="/block", MODE="open", RATE="300", DURATION="8s",
        PAIRS="10", STEPS="1", SUSPECT="worker pool", NAME="mine", ENGINE="wrk2",
    )  # fmt: skip
    assert settings_of(Explain, found) == Explain(10, 1, "worker pool", LIMIT - 1000)
    assert (found.name, found.servers, found.routes) == ("mine", ("fixed-pool",), ("/block",))
    assert (found.modes, found.rate_rps, found.duration_s) == (("open",), 300, 8)
