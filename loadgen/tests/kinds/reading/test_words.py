"""The words of make and of the command line, and the servers and profiles that they need."""

import json
import shutil
from pathlib import Path

import pytest

from kinds.conftest import SHIPPED, refusal
from lab.errors import LabUnreachable
from lab.kinds.explain import Explain
from lab.kinds.kind import settings_of
from lab.kinds.loads import Loads
from lab.kinds.plans import of_verb
from lab.kinds.reading import (
    Here,
    given_settings,
    needed_profiles,
    read_servers,
    read_words,
)
from lab.model import Experiment
from support.repo import REPO

SERVERS = ("fixed-pool", "virtual-threads")
LIMIT = 20_000
ADDRESS = "allowed: no $, quote or backslash"
CONNECTIONS = "a list of 1..1000000"


def asked(verb: str, words: dict[str, str], limit: int = LIMIT) -> Experiment:
    return of_verb(verb, words, Here(SERVERS, limit))[0]


def bench(**words: str) -> Experiment:
    return asked("bench", words)


def test_one_word_is_enough() -> None:
    assert bench(CONC="2000") == Experiment(
        name="bench", words=("CONC=2000",), servers=SERVERS, concurrencies=(2000,),
        routes=("/downstream",), modes=("closed", "open"), rate_rps=None, duration_s=10,
        warmup_s=None, engines=(), kind="loads", launches=0, scale=1.0, longer=True,
    )  # fmt: skip


def test_some_words_take_several_values() -> None:
    of = bench(CONC="50,200", SERVER="virtual-threads,fixed-pool", ENGINE="wrk2,pacer")
    assert (of.concurrencies, of.engines) == ((50, 200), ("wrk2", "pacer"))
    assert of.servers == ("virtual-threads", "fixed-pool")
    # A route that opens nothing needs one descriptor per connection.
    assert bench(CONC="19000", ROUTE="/").concurrencies == (19000,)


def test_explain_takes_one_word_its_own_and_those_of_a_load() -> None:
    of = asked("explain", {"CONC": "5000"})
    assert (of.name, of.kind, of.concurrencies) == ("explain", "explain", (5000,))
    assert (of.modes, of.duration_s, of.launches) == (("closed",), 5, 0)
    assert of.question == "What limits fixed-pool, virtual-threads at 5,000 connections?"
    # One descriptor in, and one out to the downstream.
    assert settings_of(Explain, of) == Explain(6, 4, None, (LIMIT - 1000) // 2)
    of = asked("explain", {
        "CONC": "50", "ROUTE": "/block", "MODE": "open", "RATE": "300", "PAIRS": "10",
        "STEPS": "1", "SUSPECT": "worker pool", "ENGINE": "wrk2", "RECORD": "cpu",
    })  # fmt: skip
    assert settings_of(Explain, of) == Explain(10, 1, "worker pool", LIMIT - 1000)
    assert (of.modes, of.rate_rps, of.own["record"]) == (("open",), 300, "cpu")


@pytest.mark.parametrize(
    ("verb", "words", "patience_s"),
    [
        # A quick look waits for nothing, and what takes long for a quiet machine.
        ("bench", {"CONC": "5"}, 0),
        ("bench", {"CONC": "5", "LAUNCHES": "6"}, 300),
        ("bench", {"CONC": "5", "PATIENCE": "2m"}, 120),
        ("capacity", {}, 300),
        ("capacity", {"PATIENCE": "0s"}, 0),
    ],
)
def test_how_long_a_run_waits_for_a_quiet_machine(
    verb: str, words: dict[str, str], patience_s: int
) -> None:
    assert asked(verb, words).patience_s == patience_s


def test_what_is_recorded_is_a_setting_of_the_kind() -> None:
    of, [note] = of_verb("bench", {"CONC": "5", "RECORD": "lock"}, Here(SERVERS, LIMIT))
    assert (of.own["record"], settings_of(Loads, of)) == ("lock", Loads())
    assert note.startswith("RECORD=lock: a load of each server once more with a recording")
    assert "record" not in bench(CONC="5").own


@pytest.mark.parametrize(
    ("verb", "words", "problem", "allowed"),
    [
        ("bench", {"CONC": "９"}, "CONC=９ ", CONNECTIONS),
        ("bench", {"CONC": ""}, "CONC= ", CONNECTIONS),
        ("bench", {"CONC": "9501"}, "more than this machine holds", "1..9500 on /downstream"),
        ("bench", {"SERVER": ""}, "SERVER= is not", "fixed-pool, virtual-threads"),
        ("bench", {"ROUTE": "downstream"}, "ROUTE=downstream is not a route", "/"),
        ("bench", {"ROUTE": "/block?ms=100"}, "/block takes wait_ms=0..60000", ""),
        ("bench", {"ROUTE": "/", "CONC": "19001"}, "more than this machine holds", "1..19000 on /"),
        ("bench", {"MODE": "open,closed"}, "MODE=open,closed ", "a list of both, closed, open"),
        ("bench", {"RATE": "0"}, "RATE=0 ", "auto, 1..10000000 requests per second"),
        ("bench", {"RATE": "10000001"}, "RATE=10000001 ", "auto, 1..10000000 requests"),
        ("bench", {"RATE": "10", "MODE": "closed"}, "a closed load has no rate", ""),
        ("bench", {"DURATION": "0s"}, "DURATION=0s ", "1s..24h"),
        ("bench", {"DURATION": "25h"}, "DURATION=25h ", "1s..24h"),
        ("bench", {"ENGINE": "wrk2,wrk2"}, "ENGINE=wrk2,wrk2 names the same twice", ""),
        ("bench", {"ARRIVALS": "poisson", "MODE": "closed"}, "a closed load has no arrivals", ""),
        ("bench", {"ARRIVALS": "poisson", "ENGINE": "wrk2"}, "sends no poisson", "ENGINE=pacer"),
        ("bench", {"SCALE": "0.1"}, "unknown word SCALE", "CONC, SERVER"),
        ("bench", {"RECORD": "wall"}, "RECORD=wall ", "cpu, alloc, lock"),
        ("bench", {"NAME": "up\n"}, "NAME=up ", "up to 40 of a-z"),
        ("explain", {"LAUNCHES": "6"}, "unknown word LAUNCHES", "CONC, SERVER"),
    ],
)
def test_a_wrong_word_gets_one_line_with_what_is_allowed(
    verb: str, words: dict[str, str], problem: str, allowed: str
) -> None:
    line = refusal(asked, verb, {"CONC": "5", **words})
    assert line.startswith((f"{verb}: ", "RATE=auto"))
    assert problem in line
    assert allowed in line.rpartition("; allowed: ")[2]


def test_without_a_word_or_descriptors_nothing_is_measured() -> None:
    for verb in ("bench", "explain"):
        assert f"{verb}: CONC is missing" in refusal(asked, verb, {})
    assert "only 1000 open files" in refusal(asked, "bench", {"CONC": "5"}, 1000)


@pytest.mark.parametrize(
    ("words", "line", "expected"),
    [
        ([], "CONC=200 NAME=a\\ b GRAFANA_PORT=4000", {"CONC": "200", "NAME": "a b"}),
        # What make puts before a blank is its own; other words may be quoted.
        ([], r"TARGET=http://a\ b/ NAME='a b'", {"TARGET": "http://a b/", "NAME": "a b"}),
        (["CONC=7"], "CONC=200", {"CONC": "7"}),
    ],
    ids=["a setting of the lab", "quotes", "the command line wins"],
)
def test_words_of_make_without_settings_of_the_lab(
    words: list[str], line: str, expected: dict[str, str]
) -> None:
    settings = {"LAB_SETTING_NAMES": "GRAFANA_PORT PROMETHEUS_PORT"}
    assert read_words(words, {"LAB_WORDS": line, **settings}) == expected


def test_settings_that_nothing_reads_back_are_kept_and_no_secret_is() -> None:
    words = "CONC=200 NOFILE=300 GRAFANA_ADMIN_PASSWORD=x LOOPS=4 LOADGEN_CPUSET=0"
    assert given_settings({"LAB_WORDS": words}) == ("NOFILE=300", "LOADGEN_CPUSET=0")
    assert given_settings({"LAB_WORDS": words}, ("LOOPS",)) == ("LOOPS=4",)
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


@pytest.fixture
def home(tmp_path: Path) -> Path:
    shutil.copytree(REPO / "prometheus" / "servers", tmp_path / "servers")
    shutil.copytree(SHIPPED, tmp_path / "experiments")
    for name, manifest in (
        ("measured", {"experiment": {}, "servers": {"vertx": {}}}),
        ("begun", {"experiment": {"servers": ["netty", "vertx"]}, "servers": {}}),
        ("of-core", {"experiment": {"servers": ["netty"]}, "servers": {"netty": {}}}),
    ):
        (tmp_path / "results" / name).mkdir(parents=True)
        (tmp_path / "results" / name / "manifest.json").write_text(json.dumps(manifest))
    wrong = ("servers = 3", "[load]\nservers = 3", 'servers = "vertx"', "x = [")
    for number, text in enumerate(wrong):
        (tmp_path / f"experiments/wrong{number}.toml").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "asked", "running", "expected"),
    [
        ({"SERVER": "fixed-pool,vertx"}, "", "", "frameworks"),
        ({"SERVER": "fixed-pool,thread-per-connection"}, "", "", ""),
        ({"SERVER": "vertx,jdk-pool"}, "", "", "frameworks more"),
        ({"EXP": "frameworks"}, "", "", "frameworks"),
        ({"EXP": "sweep"}, "", "", ""),
        ({"EXP": "frameworks", "SERVER": "netty"}, "", "", ""),
        ({"RESUME": "measured"}, "", "", "frameworks"),
        ({"RESUME": "begun"}, "", "", "frameworks"),
        ({"RESUME": "of-core"}, "", "", ""),
        # The verb itself says what is wrong.
        ({"EXP": "nosuch", "RESUME": "../nosuch"}, "", "", ""),
        *(({"EXP": f"wrong{number}"}, "", "", "") for number in range(4)),
        # A profile is asked for by name, or stays up.
        ({}, "frameworks", "", "frameworks"),
        ({}, "", "loadgen helidon", "frameworks"),
    ],
)
def test_profiles_of_the_servers_named(
    words: dict[str, str], asked: str, running: str, expected: str, home: Path
) -> None:
    needed = needed_profiles(words, asked.split(), running.split(), home)
    assert needed == tuple(expected.split())


@pytest.mark.parametrize("name", ["framework", "frameworks.*", "core"])
def test_a_wrong_profile_is_one_line_with_what_is_allowed(name: str, home: Path) -> None:
    said = refusal(needed_profiles, {}, (name,), (), home)
    assert said == f"PROFILE={name} is not a profile; allowed: frameworks, more"
