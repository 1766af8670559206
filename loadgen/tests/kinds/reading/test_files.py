"""Files of experiments/ with words: what they ask for, and what a wrong one is told."""

import json
import re
import tomllib
from copy import replace
from pathlib import Path

import pytest

from kinds.conftest import LIMIT, SERVERS, SHIPPED, Files, refusal
from lab.kinds.disturb import Faults
from lab.kinds.endurance import Endurance
from lab.kinds.kind import settings_of
from lab.kinds.loads import Loads, arms_of
from lab.kinds.objective import Objective
from lab.kinds.plans import of_file
from lab.kinds.reading import Here, read_servers
from lab.kinds.registry import kinds
from lab.kinds.search import Search
from lab.model import Experiment, Spike, ToxicStep
from lab.store.records import from_json, to_json

HEAD = 'question = "why?"\nhypothesis = "so."\n'
LOADS = HEAD + "[load]\nconcurrency = [100]\n"
STRESS = HEAD + 'kind = "stress"\n[stress]\nobjective = "p95<500ms"\nfirst = 100\nmost = 5000\n'
SEARCH = Search((Objective(p95_ms=500.0),), "connections", 100, 5000, 0.08, 5000)
SPIKE = (
    HEAD + 'kind = "spike"\n[load]\nconcurrency = [1000]\n[spike]\nextra = 9000\ncalm = "60s"\n'
    'peak = "30s"\nrepeats = 3\ntolerance = 0.25\nsteady = "5s"\n'
)
ENDURANCE = (
    HEAD + 'kind = "endurance"\n[load]\nconcurrency = [5000]\nduration = "1h"\n'
    '[endurance]\nleg = "5m"\n'
)
FAULTS = (
    HEAD + 'kind = "faults"\n[load]\nconcurrency = [1000]\nduration = "60s"\n'
    '[faults]\ntolerance = 0.25\nsteady = "5s"\n'
)
SLOW = '[[toxics]]\nat = "10s"\ntype = "latency"\nlatency = 300\n'
FAST = '[[toxics]]\nat = "20s"\nremove = "latency"\n'
EXPLAIN = HEAD + 'kind = "explain"\n[load]\nconcurrency = [5000]\n'
DENSITY = HEAD + 'kind = "density"\n[density]\nhold = "idle"\n'
DOWN = '[[toxics]]\nat = "10s"\ntype = "down"\n'
RESET = '[[toxics]]\nat = "10s"\ntype = "reset_peer"\ntimeout = 5000\n'
LAUNCHED = LOADS + "[repeat]\nlaunches = 1\n"


def shipped(name: str, **words: str) -> Experiment:
    known = read_servers(SHIPPED.parent / "prometheus" / "servers", {})
    return of_file({"EXP": name, **words}, Here(known, LIMIT), SHIPPED)[0]


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED.glob("*.toml")))
def test_every_shipped_file_is_an_experiment(name: str) -> None:
    experiment = shipped(name)
    assert (experiment.name, experiment.words) == (name, (f"EXP={name}",))
    keys = list(tomllib.loads((SHIPPED / f"{name}.toml").read_text()))
    assert keys[:2] == ["question", "hypothesis"]
    # As it will be read back from the run's manifest.
    assert from_json(Experiment, to_json(experiment)) == experiment


def test_the_page_names_every_key_word_and_experiment() -> None:
    page = (SHIPPED.parent / "docs/experiments.md").read_text()
    for key in {key for kind in kinds().values() for key in kind.keys}:
        assert re.search(rf"(?m)^{key.rpartition('.')[2]} = ", page), key
    for word in {word for kind in kinds().values() for word in kind.all_words} - {"TARGET"}:
        assert f"`{word}=" in page, word
    for path in SHIPPED.glob("*.toml"):
        assert f"| `{path.stem}` |" in page, path


def test_what_a_file_does_not_say_has_the_defaults_of_bench(files: Files) -> None:
    assert files.experiment(LOADS) == Experiment(
        name="x", question="why?", hypothesis="so.", words=("EXP=x",), servers=SERVERS,
        routes=("/downstream",), concurrencies=(100,), modes=("closed", "open"), rate_rps=None,
        duration_s=15, warmup_s=None, longer=True,
    )  # fmt: skip


def test_every_key_of_a_load_is_taken(files: Files) -> None:
    of = files.experiment(
        HEAD + '[load]\nservers = ["event-loop"]\nroutes = ["/", "/block?wait_ms=5"]\n'
        'concurrency = [10, 20]\nmodes = ["open"]\nrate = 300\nduration = "2m"\nwarmup = "20s"\n'
        'engines = ["pacer", "wrk2"]\n[repeat]\nlaunches = 6\narms = ["a", "b"]\n'
        'patience = "1m"\n[loads]\nrecord = "cpu"\n'
    )
    assert (of.servers, of.routes) == (("event-loop",), ("/", "/block?wait_ms=5"))
    assert (of.concurrencies, of.modes, of.rate_rps) == ((10, 20), ("open",), 300)
    assert (of.duration_s, of.warmup_s, of.patience_s) == (120, 20, 60)
    assert (of.engines, of.launches, of.arms) == (("pacer", "wrk2"), 6, ("a", "b"))
    assert of.own == {"record": "cpu"}
    assert settings_of(Loads, of) == Loads()
    # Arms may be values of a setting.
    of = files.experiment(LAUNCHED + 'arms = ["FRONTS=1", "FRONTS=2"]\n')
    assert of.arms == ("1", "2")
    assert arms_of(of) == Loads(settings={"1": "FRONTS", "2": "FRONTS"})


def test_words_take_the_place_of_what_the_file_says(files: Files) -> None:
    """As drawn in test_properties; and these."""
    of = files.experiment(LOADS, SERVER="event-loop", NAME="mine", RECORD="alloc")
    assert (of.name, of.servers) == ("mine", ("event-loop",))
    assert (of.words[:2], of.own) == (("EXP=x", "SERVER=event-loop"), {"record": "alloc"})
    closed = files.experiment(STRESS, MODE="closed")
    assert (closed.modes, closed.concurrencies) == (("closed",), (100,))
    # A closed load needs no rate of the file.
    assert files.experiment(LOADS + "rate = 5\n", MODE="closed").rate_rps is None


@pytest.mark.parametrize(
    ("text", "words", "own", "duration_s"),
    [
        (STRESS, {}, SEARCH, 15),
        (STRESS, {"SCALE": "0.1"}, SEARCH, 2),
        (SPIKE, {}, Spike(9000, None, 60, 30, 3, 0.25, 5), 330),
        (SPIKE + "extra_rate = 70\n", {}, Spike(9000, 70, 60, 30, 3, 0.25, 5), 330),
        (SPIKE + 'extra_rate = "auto"\n', {}, Spike(9000, None, 60, 30, 3, 0.25, 5), 330),
        (SPIKE, {"SCALE": "0.1", "WARMUP": "20s"}, Spike(9000, None, 6, 3, 3, 0.25, 1), 33),
        (ENDURANCE, {}, Endurance(300), 3600),
        (ENDURANCE, {"SCALE": "0.1"}, Endurance(30), 360),
        # Shorter than a leg: one leg.
        (ENDURANCE, {"DURATION": "60s"}, Endurance(60), 60),
    ],
)
def test_the_settings_of_a_kind_are_taken(
    files: Files, text: str, words: dict[str, str], own: object, duration_s: int
) -> None:
    of = files.experiment(text, **words)
    assert settings_of(type(own), of) == own
    assert (of.modes, of.duration_s) == (("open",), duration_s)
    assert of.engines == (() if text == ENDURANCE else ("pacer",))
    # The warm-up is not scaled.
    assert of.warmup_s == (20 if "WARMUP" in words else None)


def test_faults_are_taken_with_their_script(files: Files) -> None:
    of = files.experiment(FAULTS + SLOW + FAST)
    begins = ToxicStep(10, {"TYPE": "latency", "LATENCY": "300"})
    ends = ToxicStep(20, {"NAME": "latency", "REMOVE": "yes"})
    assert settings_of(Faults, of) == Faults(0.25, 5, steps=(begins, ends))
    assert (of.engines, of.modes, of.duration_s) == (("pacer",), ("open",), 60)
    quick = files.experiment(FAULTS + SLOW + FAST, SCALE="0.5")
    assert [step.at_s for step in settings_of(Faults, quick).steps] == [5, 10]
    assert settings_of(Faults, quick).steady_s == 2


@pytest.mark.parametrize(
    ("scale", "seconds"), [("0.1", 2), ("0.001", 1), ("2", 30), ("1", 15), ("10", 150)]
)
def test_scale_multiplies_durations(files: Files, scale: str, seconds: int) -> None:
    of = files.experiment(LOADS, SCALE=scale)
    assert (of.duration_s, of.scale) == (seconds, float(scale))
    assert files.experiment(LOADS, SCALE="0.5", DURATION="40s").duration_s == 20
    # Whoever looks quickly waits less, and others no longer.
    assert files.experiment(SPIKE, SCALE=scale).patience_s == min(
        300, round(300 * float(scale)) or 1
    )


# What a file, with words, is refused for: the place with the value, and what is allowed.
FILE = "experiments/x.toml: "
REFUSED: list[tuple[str, dict[str, str], str, str]] = [
    # Keys.
    (EXPLAIN + "[explain]\npair = 6\n", {}, f"{FILE}explain.pair is not a key", "explain.pairs"),
    (LOADS + "concurency = [5]\n", {}, f"{FILE}load.concurency is not a key", "load.servers, load"),
    (LOADS + "[stress]\nfirst = 1\n", {}, f"{FILE}stress.first is not a key", "question"),
    (STRESS + "[load]\nconcurrency = [5]\n", {}, f"{FILE}load.concurrency is not", "load.servers"),
    ("target = 'http://a/'\n" + LOADS, {}, f"{FILE}target is not a key", "question"),
    ("load = 5\n" + HEAD, {}, f"{FILE}load is not a key", "load.servers"),
    (HEAD + "[load\n", {}, f"{FILE}is not TOML: ", ""),
    # What must be there.
    (HEAD.replace("why?", " "), {}, f"{FILE}question is missing or empty", ""),
    ('question = "why?"\n', {}, f"{FILE}hypothesis is missing or empty", ""),
    (HEAD, {}, f"{FILE}load.concurrency is missing", ""),
    (STRESS.replace("first = 100\n", ""), {}, f"{FILE}stress.first is missing", ""),
    ('kind = "load"\n' + LOADS, {}, f"{FILE}kind=load is not allowed", "capacity, density, endur"),
    # Types and bounds.
    (HEAD + "[load]\nconcurrency = 5\n", {}, "load.concurrency=5 ", "a list of 1..1000000"),
    (HEAD + "[load]\nconcurrency = []\n", {}, "load.concurrency= is empty", "one or more"),
    (HEAD + "[load]\nconcurrency = [5, 5]\n", {}, "load.concurrency=5,5 names the same twice", ""),
    (LOADS + 'servers = ["c"]\n', {}, "load.servers=c is not a server of the lab", "fixed-pool"),
    (LOADS + 'routes = ["/x"]\n', {}, "load.routes=/x is not a route of the servers", "/, "),
    (LOADS + 'engines = ["ab"]\n', {}, "load.engines=ab is not allowed", "wrk2, pacer"),
    (LAUNCHED + 'arms = ["A"]\n', {}, "repeat.arms=A is not allowed", "a list of a name"),
    (LAUNCHED + 'arms = ["FRONTS=x"]\n', {}, "repeat.arms=FRONTS=x is not allowed", ""),
    (STRESS.replace("p95<500ms", "p95<0ms"), {}, "stress.objective=p95<0ms is not", "p50, p95"),
    # What does not go together.
    (LOADS + 'modes = ["open"]\nroutes = ["/file"]\n', {}, "/file does not wait now", "RATE=n"),
    (LOADS + '[repeat]\narms = ["a", "b"]\n', {}, "repeat.arms=a,b needs fresh JVMs", "launches"),
    (LAUNCHED + 'arms = ["FRONTS=1", "LOOPS=1"]\n', {}, "has two arms of one value", ""),
    (
        STRESS.replace("100\n", "6000\n", 1),
        {},
        "stress.most=5000 is less than stress.first=6000",
        "",
    ),
    (STRESS + '[load]\nmodes = ["both"]\n', {}, "load.modes=both is more than one", "one in this"),
    (SPIKE.replace("[1000]", "[1, 2]"), {}, "load.concurrency=1,2 is more than one", ""),
    (SPIKE.replace('"60s"', '"4s"'), {}, "spike.calm=4s is shorter than spike.steady", ""),
    (SPIKE.replace("1000]", '1]\nengines = ["wrk2"]'), {}, "wrk2 is not exact to the", "pacer"),
    # A script belongs to faults only, and ends as it began.
    (LOADS + SLOW + FAST, {}, f"{FILE}toxics is not a key", "question"),
    (FAULTS, {}, f"{FILE}toxics is missing", "one or more tables [[toxics]]"),
    (FAULTS + SLOW, {}, "toxics 1: the last step leaves latency", "a script that ends as"),
    (FAULTS + DOWN, {}, "toxics 1: the last step leaves the proxy downstream down", "a script"),
    (FAULTS + FAST, {}, "toxics 1: toxic 'latency' is not in force on downstream", ""),
    (FAULTS + SLOW.replace("10s", "25s") + FAST, {}, "toxics 2: at=20s is before the step", ""),
    (FAULTS + SLOW.replace("10s", "4s") + FAST, {}, "toxics 1: at=4s leaves less than faults", ""),
    (FAULTS + SLOW + FAST.replace("20s", "55s"), {}, "toxics 2: at=55s leaves less than fau", ""),
    (FAULTS + SLOW.replace("10s", "soon"), {}, "toxics 1: at=soon is not allowed", "1s..24h"),
    (FAULTS + DOWN.replace('at = "10s"\n', ""), {}, "toxics 1: at is missing", ""),
    (FAULTS + SLOW.replace("= 300", "= true"), {}, "toxics 1: latency=True is not", "at, remove"),
    (FAULTS + SLOW.replace("latency = 3", "rate = 3"), {}, "unknown word RATE=300", "TYPE, NAME"),
    (FAULTS + RESET, {}, "toxics 1: timeout=5000 is not allowed", "0..1000 (ms)"),
    # Words.
    (LOADS, {"SCALE": "0"}, "run: SCALE=0 is not allowed", "0.001..10"),
    (LOADS, {"SPEED": "1"}, "run: SPEED does not apply to experiments/x.toml (kind l", "EXP, CONC"),
    (SPIKE, {"ENGINE": "wrk2"}, "run: ENGINE=wrk2 is not exact to the second", "ENGINE=pacer"),
    (DENSITY, {"RECORD": "cpu"}, "run: RECORD does not apply to experiments/x.toml", ""),
    (EXPLAIN, {"SUSPECT": "disk"}, "run: SUSPECT=disk is not allowed", "accept queue, c"),
]


@pytest.mark.parametrize(("text", "words", "problem", "allowed"), REFUSED)
def test_what_is_wrong_is_named_with_what_is_allowed(
    files: Files, text: str, words: dict[str, str], problem: str, allowed: str
) -> None:
    line = files.refusal(text, **words)
    assert line.startswith((FILE, "run: ", "RATE=auto"))
    assert problem in line
    assert allowed in line.rpartition("; allowed: ")[2]


def test_an_experiment_that_is_not_there_is_refused_with_those_that_are(files: Files) -> None:
    files.read(LOADS)
    (files.folder / "y.toml").write_text(LOADS)
    here = Here(SERVERS, LIMIT)
    line = refusal(of_file, {"EXP": "z"}, here, files.folder)
    assert line == "run: EXP=z is not an experiment; allowed: x, y"
    assert refusal(of_file, {}, here, files.folder) == "run: EXP is missing; allowed: x, y"


def test_what_the_machine_does_not_hold_is_left_out_of_a_file_and_said(files: Files) -> None:
    files.limit = 20_000
    of, notes = files.read(HEAD + "[load]\nconcurrency = [100, 9501, 10000]\n")
    assert of.concurrencies == (100,)
    assert notes[0].startswith(
        "9501, 10000 connections left out: this machine holds 1..9500 on /downstream (20000 open "
    )
    one = HEAD + "[load]\nconcurrency = [9501]\n"
    assert "load.concurrency=9501 is more than this machine holds" in files.refusal(one)
    # What the user asked for by name is refused, not left out.
    assert "run: CONC=5,9501 is more than this machine holds" in files.refusal(LOADS, CONC="5,9501")
    # The route that needs most descriptors bounds all.
    text = HEAD + '[load]\nroutes = ["/", "/file"]\nconcurrency = [100, 9501]\n'
    assert files.experiment(text).concurrencies == (100,)
    assert files.experiment(text, ROUTE="/").concurrencies == (100, 9501)


def test_a_ramp_and_a_spike_end_where_the_machine_does(files: Files) -> None:
    files.limit = 5_000
    of, notes = files.read(STRESS)
    assert settings_of(Search, of).most == 2000
    assert notes[0].startswith("up to 2000 of 5000 connections: this machine holds 1..2000 on")
    files.limit = 1_150
    assert "is more than this machine holds" in files.refusal(STRESS)
    files.limit = 20_000
    of, notes = files.read(SPIKE + "extra_rate = 4500\n")
    # 9,500 in all, and the rate of each stays what it was.
    assert (settings_of(Spike, of).extra, settings_of(Spike, of).extra_rps) == (8500, 4250)
    assert notes[0].startswith("spikes to 9500 instead of 10000 connections")
    files.limit = 3_000
    assert "more than this machine holds" in files.refusal(SPIKE)


RATE = {"name": "capacity", "unit": "req/s"}
CAPACITIES = [
    {**RATE, "server": "fixed-pool", "value": 990.0, "often": [970.0, 950.0, 980.0]},
    # Of two objectives the stricter one counts.
    {**RATE, "server": "event-loop", "value": 9000.0, "often": [8800.0, 8500.0, 9000.0]},
    {**RATE, "server": "event-loop", "value": 9500.0, "often": [9300.0, 9000.0, 9400.0]},
    # A load that nearly all trials meet is not known of it, nor a rate.
    {**RATE, "server": "netty", "value": 8000.0, "often": [0.0, 0.0, 7000.0]},
    {"name": "capacity", "unit": "connections", "server": "netty", "often": [900.0, 800.0, 950.0]},
    {"name": "units", "server": "event-loop", "value": 0.5},
]


@pytest.fixture
def measured(tmp_path: Path) -> Here:
    """A machine with a run of capacity, and one of something else."""
    wrong = '[{"unit": "req/s", "often": [2, 1, 3]}]'
    for name, text in (("run", json.dumps(CAPACITIES)), ("odd", '{"name": 1}'), ("more", wrong)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "findings.json").write_text(text)
    return Here(("fixed-pool", "event-loop", "netty"), 200_000, results=tmp_path)


@pytest.mark.parametrize(("servers", "rps"), [("fixed-pool,event-loop", 679), ("event-loop", 6160)])
def test_a_share_is_of_the_least_capacity(measured: Here, servers: str, rps: int) -> None:
    words = {"EXP": "endurance", "RATE": "70%", "CAPACITY": "run", "SERVER": servers}
    assert of_file(words, measured, SHIPPED)[0].rate_rps == rps


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"RATE": "70%"}, "70% is a share of a capacity; name its run, as CAPACITY=<run>"),
        ({"CAPACITY": "run"}, "run is not allowed without a share of it, as RATE=70%"),
        ({"RATE": "70%", "CAPACITY": "none"}, "CAPACITY=none"),
        ({"RATE": "70%", "CAPACITY": "odd"}, "odd is not a run of make capacity in results/"),
        ({"RATE": "70%", "CAPACITY": "more"}, "more is not a run of make capacity in results/"),
        ({"RATE": "70%", "CAPACITY": "../run"}, "CAPACITY=../run is not a run here; allowed: "),
        ({"RATE": "70%", "CAPACITY": "run", "SERVER": "netty"}, "has no capacity of netty; a"),
        ({"RATE": "170%", "CAPACITY": "run"}, "RATE=170% is not allowed; allowed: auto, 1.."),
    ],
)
def test_a_wrong_share_gets_one_line(measured: Here, words: dict[str, str], says: str) -> None:
    assert says in refusal(of_file, {"EXP": "endurance", **words}, measured, SHIPPED)
    nowhere = replace(measured, results=None)
    whole = {"EXP": "endurance", "RATE": "7%", "CAPACITY": "run"}
    assert "is a share of a capacity" in refusal(of_file, whole, nowhere, SHIPPED)
