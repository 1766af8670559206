"""Files of experiments/: the shipped ones, and what a wrong one is told."""

import re
import tomllib

import pytest

from experiments.conftest import LIMIT, SERVERS, SHIPPED, Files, refusal
from lab.experiments.endurance import Endurance
from lab.experiments.faults import Faults
from lab.experiments.kind import settings_of
from lab.experiments.loads import Loads, arms_of
from lab.experiments.objective import Objective
from lab.experiments.plans import of_file
from lab.experiments.reading import Here, read_servers
from lab.experiments.registry import kinds
from lab.experiments.search import Search
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


def shipped(name: str, **words: str) -> Experiment:
    known = read_servers(SHIPPED.parent / "prometheus" / "servers", {})
    return of_file({"EXP": name, **words}, Here(known, LIMIT), SHIPPED)[0]


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED.glob("*.toml")))
def test_every_shipped_file_is_an_experiment(name: str) -> None:
    found = shipped(name)
    assert (found.name, found.words) == (name, (f"EXP={name}",))
    assert found.question
    assert found.hypothesis
    keys = list(tomllib.loads((SHIPPED / f"{name}.toml").read_text()))
    assert keys[:2] == ["question", "hypothesis"]
    # As it will be read back from the run's manifest.
    assert from_json(type(found), to_json(found)) == found


def test_the_promised_experiments_are_there() -> None:
    names = {path.stem for path in SHIPPED.glob("*.toml")}
    assert names >= {
        "sweep", "baseline", "stress", "spike", "faults", "endurance", "routes", "density", "aa",
        "demonstrations", "engines", "next-bottleneck", "bottlenecks", "frameworks",
        "truth", "truth-doses",
    }  # fmt: skip


def test_the_page_names_every_key_word_and_experiment() -> None:
    page = (SHIPPED.parent / "docs/experiments.md").read_text()
    keys = {key for kind in kinds().values() for key in kind.shapes}
    for key in keys:
        assert re.search(rf"(?m)^{key.rpartition('.')[2]} = ", page), key
    for word in {word for kind in kinds().values() for word in kind.all_words}:
        assert f"`{word}=" in page, word
    for path in SHIPPED.glob("*.toml"):
        assert f"| `{path.stem}` |" in page, path


def test_the_sweep_is_what_others_did() -> None:
    sweep = shipped("sweep")
    assert sweep.servers == ("fixed-pool", "virtual-threads")
    assert (sweep.concurrencies, sweep.modes) == ((50, 200, 1000, 2000, 5000), ("closed", "open"))
    assert (sweep.duration_s, sweep.launches, sweep.kind) == (15, 1, "loads")


def test_what_a_file_does_not_say_has_the_defaults_of_bench(files: Files) -> None:
    found = files.experiment(LOADS)
    assert (found.name, found.question, found.hypothesis) == ("x", "why?", "so.")
    assert (found.servers, found.routes) == (SERVERS, ("/downstream",))
    assert (found.concurrencies, found.modes) == ((100,), ("closed", "open"))
    assert (found.rate_rps, found.duration_s, found.warmup_s) == (None, 15, None)
    assert (found.engines, found.launches, found.arms) == ((), 0, ())
    assert (found.kind, found.scale, found.words) == ("loads", 1.0, ("EXP=x",))


def test_a_file_may_ask_for_a_recording(files: Files) -> None:
    found = files.experiment(f'{LOADS}\n[loads]\nrecord = "cpu"\n')
    assert found.own["record"] == "cpu"
    assert files.experiment(LOADS, RECORD="alloc").own["record"] == "alloc"
    assert "RECORD does not apply to experiments/x.toml" in files.refusal(DENSITY, RECORD="cpu")


def test_every_key_of_a_load_is_taken(files: Files) -> None:
    found = files.experiment(
        HEAD + '[load]\nservers = ["event-loop"]\nroutes = ["/", "/block?wait_ms=5"]\n'
        'concurrency = [10, 20]\nmodes = ["open"]\nrate = 300\nduration = "2m"\nwarmup = "20s"\n'
        'engines = ["pacer", "wrk2"]\n[repeat]\nlaunches = 6\narms = ["a", "b"]\n'
    )
    assert (found.servers, found.routes) == (("event-loop",), ("/", "/block?wait_ms=5"))
    assert (found.concurrencies, found.modes, found.rate_rps) == ((10, 20), ("open",), 300)
    assert (found.duration_s, found.warmup_s) == (120, 20)
    assert (found.engines, found.launches, found.arms) == (("pacer", "wrk2"), 6, ("a", "b"))


def test_arms_may_be_values_of_a_setting(files: Files) -> None:
    found = files.experiment(LOADS + '[repeat]\nlaunches = 6\narms = ["FRONTS=1", "FRONTS=2"]\n')
    assert found.arms == ("1", "2")
    assert arms_of(found) == Loads(settings={"1": "FRONTS", "2": "FRONTS"})


def test_words_take_the_place_of_what_the_file_says(files: Files) -> None:
    found = files.experiment(
        LOADS, SERVER="event-loop", CONC="5,6", ROUTE="/", MODE="open", RATE="70", DURATION="9s",
        WARMUP="3s", ENGINE="wrk2", LAUNCHES="2", NAME="mine",
    )  # fmt: skip
    assert (found.servers, found.concurrencies, found.routes) == (("event-loop",), (5, 6), ("/",))
    assert (found.modes, found.rate_rps, found.duration_s) == (("open",), 70, 9)
    assert (found.warmup_s, found.engines, found.launches) == (3, ("wrk2",), 2)
    assert (found.name, found.words[:2]) == ("mine", ("EXP=x", "SERVER=event-loop"))
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
    found = files.experiment(text, **words)
    assert settings_of(type(own), found) == own
    assert (found.engines, found.modes, found.duration_s) == ((), ("open",), duration_s)
    # The warm-up is not scaled.
    assert found.warmup_s == (20 if "WARMUP" in words else None)


def test_faults_are_taken_with_their_script(files: Files) -> None:
    found = files.experiment(FAULTS + SLOW + FAST)
    begins = ToxicStep(10, {"TYPE": "latency", "LATENCY": "300"})
    ends = ToxicStep(20, {"NAME": "latency", "REMOVE": "yes"})
    assert settings_of(Faults, found) == Faults((begins, ends), 0.25, 5)
    assert (found.engines, found.modes, found.duration_s) == ((), ("open",), 60)
    assert from_json(Experiment, to_json(found)) == found
    quick = files.experiment(FAULTS + SLOW + FAST, SCALE="0.5")
    assert [step.at_s for step in settings_of(Faults, quick).steps] == [5, 10]
    assert settings_of(Faults, quick).steady_s == 2


@pytest.mark.parametrize(
    ("scale", "seconds"), [("0.1", 2), ("0.001", 1), ("2", 30), ("1", 15), ("10", 150)]
)
def test_scale_multiplies_durations(files: Files, scale: str, seconds: int) -> None:
    found = files.experiment(LOADS, SCALE=scale)
    assert (found.duration_s, found.scale) == (seconds, float(scale))
    assert files.experiment(LOADS, SCALE="0.5", DURATION="40s").duration_s == 20


def test_a_quick_look_waits_less_and_a_long_one_no_longer(files: Files) -> None:
    waits = {scale: files.experiment(SPIKE, SCALE=scale).patience_s for scale in ("0.2", "1", "2")}
    assert waits == {"0.2": 60, "1": 300, "2": 300}


@pytest.mark.parametrize("scale", ["0", "11", "0.0001", "-1", "half", "1e2", ""])
def test_a_wrong_scale_is_refused(files: Files, scale: str) -> None:
    says = f"run: SCALE={scale} is not allowed; allowed: 0.001..10"
    assert says in files.refusal(LOADS, SCALE=scale)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (EXPLAIN + "[explain]\npair = 6\n", "explain.pair is not a key; allowed: explain.pairs"),
        (LOADS + "concurency = [5]\n", "load.concurency is not a key; allowed: load.servers, load"),
        (LOADS + "[repeat]\nlaunch = 1\n", "repeat.launch is not a key; allowed: repeat.launches"),
        (STRESS + "last = 1\n", "stress.last is not a key; allowed: stress.objective"),
        (SPIKE + "last = 1\n", "spike.last is not a key; allowed: spike.extra"),
        (ENDURANCE + "last = 1\n", "endurance.last is not a key; allowed: endurance.leg"),
        (DENSITY + "last = 1\n", "density.last is not a key; allowed: density.hold"),
        ("names = 1\n" + LOADS, "names is not a key; allowed: question, hypothesis"),
        (LOADS + "[other]\nx = 1\n", "other is not a key; allowed: question"),
        (LOADS + "[stress]\nfirst = 1\n", "stress.first is not a key of kind loads; allowed"),
        (STRESS + "[load]\nconcurrency = [5]\n", "load.concurrency is not a key of kind stress"),
        (DENSITY + '[load]\nmodes = ["open"]\n', "load.modes is not a key of kind density"),
        # A script belongs to faults only, and ends as it began.
        (LOADS + SLOW + FAST, "toxics is not a key; allowed: question"),
        (FAULTS, "toxics is missing; allowed: one or more tables [[toxics]]"),
        (FAULTS + SLOW, "toxics 1: the last step leaves latency; allowed: a script that ends as"),
        (FAULTS + DOWN, "toxics 1: the last step leaves the proxy downstream down; allowed: a scr"),
        (FAULTS + FAST, "toxics 1: toxic 'latency' is not in force on downstream: in force are no"),
        (FAULTS + SLOW.replace("10s", "25s") + FAST, "toxics 2: at=20s is before the step above"),
        (FAULTS + SLOW.replace("10s", "4s") + FAST, "toxics 1: at=4s leaves less than faults.stea"),
        (FAULTS + SLOW + FAST.replace("20s", "55s"), "toxics 2: at=55s leaves less than faults.st"),
        (FAULTS + SLOW.replace("10s", "soon"), "toxics 1: at=soon is not a duration"),
        (FAULTS + DOWN.replace('at = "10s"\n', ""), "toxics 1: at is missing; give the time in"),
        (
            FAULTS + SLOW.replace("latency = 300", "latency = true"),
            "toxics 1: latency=True is not allowed; allowed: at, remove, and the words of",
        ),
        (
            FAULTS + SLOW.replace("latency = 300", "rate = 300"),
            "toxics 1: toxic TYPE=latency: unknown word RATE=300; allowed: TYPE, NAME",
        ),
        (FAULTS + RESET, "toxics 1: timeout=5000 is not allowed; allowed: 0..1000 (ms) in a scr"),
    ],
)
def test_an_unknown_key_or_script_is_refused(files: Files, text: str, says: str) -> None:
    assert f"experiments/x.toml: {says}" in files.refusal(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD.replace("why?", " "), "question is missing or empty"),
        ('question = "why?"\n', "hypothesis is missing or empty"),
        ("question = 5\n", "question=5 is not allowed; allowed: a text"),
        ('kind = "load"\n' + LOADS, "kind='load' is not allowed; allowed: capacity, density, endu"),
        ("kind = 1\n" + LOADS, "kind=1 is not allowed; allowed: capacity"),
        ("load = 5\n" + HEAD, "load=5 is not allowed; allowed: a table"),
        (HEAD, "load.concurrency is missing"),
        (HEAD + "[load]\nconcurrency = 5\n", "load.concurrency=5 is not allowed; allowed: a list"),
        (HEAD + "[load]\nconcurrency = []\n", "load.concurrency=[] is not allowed; allowed: a l"),
        (HEAD + '[load]\nconcurrency = ["5"]\n', "allowed: a list of whole numbers"),
        (HEAD + "[load]\nconcurrency = [true]\n", "load.concurrency=[True] is not allowed"),
        (HEAD + "[load]\nconcurrency = [0]\n", "load.concurrency=0 is not a number of connections"),
        (HEAD + "[load]\nconcurrency = [5, 5]\n", "load.concurrency=5,5 names the same twice"),
        (LOADS + 'servers = ["c"]\n', "load.servers=c is not a server of the lab; allowed: fixed"),
        (LOADS + 'routes = ["/x"]\n', "load.routes=/x is not a route of the servers; allowed: /,"),
        (LOADS + 'modes = ["both", "up"]\n', "load.modes=up is not allowed; allowed: open, closed"),
        (LOADS + 'modes = "open"\n', "load.modes='open' is not allowed; allowed: a list of texts"),
        (LOADS + "rate = 0\n", "load.rate=0 is not a rate; allowed: auto, or 1.."),
        (LOADS + "rate = 1.5\n", 'load.rate=1.5 is not allowed; allowed: "auto" or a whole number'),
        (LOADS + 'rate = 5\nmodes = ["closed"]\n', "load.rate=5 is not allowed: a closed load has"),
        (LOADS + "duration = 15\n", 'duration=15 is not allowed; allowed: a duration, as "15s"'),
        (LOADS + 'duration = "0s"\n', "load.duration=0s is not a duration; allowed: 1s..24h"),
        (LOADS + 'warmup = "x"\n', "load.warmup=x is not a duration; allowed: 0s..24h"),
        (LOADS + 'engines = ["ab"]\n', "load.engines=ab is not allowed; allowed: wrk2, pacer"),
        (LOADS + 'modes = ["open"]\nroutes = ["/file"]\n', "/file does not wait now"),
        (LOADS + "[repeat]\nlaunches = 101\n", "repeat.launches=101 is not allowed; allowed: 0..1"),
        (LOADS + '[repeat]\narms = ["a", "b"]\n', "repeat.arms=a,b needs fresh JVMs"),
        (LOADS + '[repeat]\nlaunches = 1\narms = ["A"]\n', "repeat.arms=A is not allowed"),
        (LOADS + '[repeat]\nlaunches = 1\narms = ["FRONTS=x"]\n', "repeat.arms=FRONTS=x is not"),
        (
            LOADS + '[repeat]\nlaunches = 1\narms = ["FRONTS=1", "LOOPS=1"]\n',
            "repeat.arms=FRONTS=1,LOOPS=1 has two arms of one value",
        ),
        (STRESS.replace("first = 100\n", ""), "stress.first is missing"),
        (STRESS.replace("first = 100", "first = 0"), "stress.first=0 is not allowed; allowed: 1.."),
        (STRESS.replace("100\n", "6000\n", 1), "stress.most=5000 is less than stress.first=6000"),
        (STRESS.replace("p95<500ms", "p95<0ms"), "stress.objective=p95<0ms limits no latency"),
        (STRESS + "width = 1\n", "stress.width=1 is not allowed; allowed: 0.005..0.5"),
        (STRESS + "width = true\n", "stress.width=True is not allowed; allowed: a"),
        (STRESS + '[load]\nmodes = ["both"]\n', "load.modes=both is more than one"),
        (STRESS + '[load]\nroutes = ["/", "/file"]\n', "load.routes=/,/file is more than one"),
        (SPIKE.replace("[1000]", "[1, 2]"), "load.concurrency=1,2 is more than one"),
        (SPIKE.replace('"60s"', '"4s"'), "spike.calm=4s is shorter than spike.steady"),
        (SPIKE.replace("repeats = 3", "repeats = 0"), "spike.repeats=0 is not allowed; allowed: 1"),
        (SPIKE.replace("1000]", '1]\nengines = ["wrk2"]'), "load.engines=wrk2 is not exact to"),
        (SPIKE.replace("0.25", '"some"'), "spike.tolerance='some' is not allowed; allowed: a num"),
        (ENDURANCE.replace('"5m"', '"0s"'), "endurance.leg=0s is not a duration"),
        (ENDURANCE.replace("concurrency = [5000]\n", ""), "load.concurrency is missing"),
        (DENSITY, "load.concurrency is missing"),
        (DENSITY.replace("idle", "slow"), "density.hold=slow is not allowed; allowed: idle, in-f"),
        (HEAD + "[load\n", "is not TOML: "),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(files: Files, text: str, says: str) -> None:
    refusal = files.refusal(text)
    assert refusal.startswith(("experiments/x.toml: ", "RATE=auto"))
    assert says in refusal


def test_an_unknown_experiment_is_told_those_there_are(files: Files) -> None:
    (files.folder / "y.toml").write_text(LOADS)
    files.read(LOADS)
    for words in ({}, {"EXP": "nosuch"}, {"EXP": "../x"}, {"EXP": ""}):
        said = refusal(of_file, words, Here(SERVERS, LIMIT), files.folder)
        assert re.search("EXP.*; allowed: x, y", said)


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        (
            EXPLAIN,
            {"SUSPECT": "disk"},
            "run: SUSPECT=disk is not allowed; allowed: accept queue, c",
        ),
        (EXPLAIN, {"PAIRS": "0"}, "run: PAIRS=0 is not allowed; allowed: 1..100"),
        (EXPLAIN, {"STEPS": "21"}, "run: STEPS=21 is not allowed; allowed: 1..20"),
        (EXPLAIN, {"LAUNCHES": "6"}, "run: LAUNCHES does not apply to experiments/x.toml (kind ex"),
        (EXPLAIN, {"CONC": "5,6"}, "run: CONC=5,6 is more than one; allowed: one in this kind"),
        (EXPLAIN, {"MODE": "both"}, "run: MODE=both is more than one; allowed: one in this kind"),
        (EXPLAIN, {"ENGINE": "pacer,wrk2"}, "run: ENGINE=pacer,wrk2 is more than one"),
        (LOADS, {"PAIRS": "6"}, "run: PAIRS does not apply to experiments/x.toml (kind loads)"),
        (HEAD + 'kind = "explain"\n', {}, "experiments/x.toml: load.concurrency is missing"),
        (LOADS, {"SPEED": "1"}, "run: SPEED is not a word of experiments/x.toml (kind loads); al"),
        (LOADS, {"HOLD": "idle"}, "run: HOLD does not apply to experiments/x.toml (kind loads)"),
        (STRESS, {"CONC": "5"}, "run: CONC does not apply to experiments/x.toml (kind stress)"),
        (STRESS, {"RATE": "5"}, "run: RATE does not apply"),
        (STRESS, {"MODE": "both"}, "run: MODE=both is more than one"),
        (SPIKE, {"MODE": "open"}, "run: MODE does not apply"),
        (SPIKE, {"DURATION": "5s"}, "run: DURATION does not apply"),
        (SPIKE, {"ENGINE": "wrk2"}, "run: ENGINE=wrk2 is not exact to the second"),
        (DENSITY, {"ROUTE": "/"}, "run: ROUTE does not apply to experiments/x.toml (kind dens"),
        (LOADS, {"CONC": "0"}, "run: CONC=0 is not a number of connections"),
        (LOADS, {"SERVER": "c"}, "run: SERVER=c is not a server of the lab"),
        (LOADS, {"NAME": "A"}, "run: NAME=A is not allowed"),
        (LOADS, {"RATE": "5", "MODE": "closed"}, "run: RATE=5 is not allowed: a closed load has"),
    ],
)
def test_a_wrong_word_is_named(files: Files, text: str, words: dict[str, str], says: str) -> None:
    assert says in files.refusal(text, **words)


def test_what_the_machine_does_not_hold_is_left_out_of_a_file_and_said(files: Files) -> None:
    files.limit = 20_000
    found, notes = files.read(HEAD + "[load]\nconcurrency = [100, 9501, 10000]\n")
    assert found.concurrencies == (100,)
    assert notes == (
        "9501, 10000 connections left out: this machine holds 1..9500 on /downstream (20000 open "
        "files per process, two, as each opens a connection to the downstream, per connection)",
    )
    said = files.refusal(HEAD + "[load]\nconcurrency = [9501]\n")
    assert "9501 is more than this machine holds" in said
    # What the user asked for by name is refused, not left out.
    assert "run: CONC=9501 is more than this machine holds" in files.refusal(LOADS, CONC="5,9501")
    # The route that needs most descriptors bounds all.
    files.limit = 20_000
    text = HEAD + '[load]\nroutes = ["/", "/file"]\nconcurrency = [100, 9501]\n'
    assert files.experiment(text).concurrencies == (100,)
    assert files.experiment(text, ROUTE="/").concurrencies == (100, 9501)


def test_a_ramp_and_a_spike_end_where_the_machine_does(files: Files) -> None:
    files.limit = 5_000
    found, notes = files.read(STRESS)
    assert settings_of(Search, found).most == 2000
    assert notes[0].startswith("up to 2000 of 5000 connections: this machine holds 1..2000 on")
    files.limit = 1_150
    assert "does not even hold stress.first=100" in files.refusal(STRESS)
    files.limit = 20_000
    found, notes = files.read(SPIKE + "extra_rate = 4500\n")
    # 9,500 in all, and the rate of each stays what it was.
    assert (settings_of(Spike, found).extra, settings_of(Spike, found).extra_rps) == (8500, 4250)
    assert notes[0].startswith("spikes to 9500 instead of 10000 connections")
    files.limit = 3_000
    assert "more than this machine holds" in files.refusal(SPIKE)
