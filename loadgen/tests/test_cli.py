"""The verbs of the command line: their words, their exit codes, what they load and print."""

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from unittest.mock import Mock, patch

import pytest
from rich.table import Table
from rich.text import Text

from lab.app import verbs
from lab.app.tools import Screen, screen
from lab.cli import VERBS, do
from lab.errors import CannotWrite
from lab.kinds import plans
from lab.system.lock import claimed
from lab.system.tokens import PAGE, PARTS, token, token_sums

# Libraries that take most of a second to load, and those that are not needed without a lab, or for
# the list of verbs.
HEAVY = {"scipy", "numpy", "vl_convert"}
WITHOUT_LAB = HEAVY | {"httpx", "rich", "uvicorn", "starlette", "prometheus_client"}
WITHOUT_VERBS = WITHOUT_LAB | {"msgspec"}

# Of words and settings, what is printed.
type Verb = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    for folder in ("servers", "results", "experiments"):
        (tmp_path / folder).mkdir()
    servers = [{"targets": ["fixed-pool", "virtual-threads"]}]
    (tmp_path / "servers" / "core.json").write_text(json.dumps(servers))
    return {"LAB_HOME": str(tmp_path)}


@pytest.fixture
def refused(home: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Verb:
    """Words that are refused, with these settings: the line that is printed."""

    def verb(*argv: str, **environ: str) -> str:
        assert do([*argv], {**home, **environ}) == 2
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n"), said.err[:5]) == ("", 1, "lab: ")
        return said.err

    return verb


@pytest.fixture
def planned(home: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Verb:
    def verb(*argv: str, **environ: str) -> str:
        assert do(["plan", *argv], {**home, **environ}) == 0
        return capsys.readouterr().out

    return verb


@pytest.mark.parametrize(
    ("verb", "most", "unwanted"),
    [
        ("['help']", 100, WITHOUT_VERBS),
        ("['plan', 'bench', 'CONC=10']", 320, WITHOUT_LAB),
        ("['plan', 'capacity', 'OBJECTIVE=p99<1s']", 320, WITHOUT_LAB),
        ("['report', 'RUN=gone']", 760, HEAVY),
        ("['compare', 'A=gone']", 760, HEAVY),
    ],
)
def test_a_verb_loads_no_more_than_it_needs(
    verb: str, most: int, unwanted: set[str], home: dict[str, str]
) -> None:
    code = f"import sys; from lab.cli import do; do({verb}, {home})"
    shown = f"{code}\nprint('modules', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    loaded = done.stdout.rpartition("modules ")[2].split()
    assert {name.partition(".")[0] for name in loaded} & unwanted == set()
    assert len(loaded) <= most


def test_every_verb_leads_to_a_function() -> None:
    assert plans.verbs().keys() <= VERBS.keys()
    for module, name, _ in VERBS.values():
        assert not module or callable(getattr(import_module(f"lab.app.{module}"), name))


@pytest.mark.parametrize("argv", [[], ["bensh"], ["--help"]])
def test_an_unknown_verb_gets_the_list(argv: list[str], refused: Verb) -> None:
    assert all(verb in refused(*argv) for verb in VERBS)


@pytest.mark.parametrize("verb", [["bench"], ["plan", "bench"], ["plan", "explain"]])
@pytest.mark.parametrize("word", ["CONC=no", "CONC=10 SPEED=9", "CONC=10 SERVER=tomcat", "CONC"])
def test_wrong_words_of_bench_are_one_line(verb: list[str], word: str, refused: Verb) -> None:
    refused(*verb, *word.split())
    refused(*verb, LAB_WORDS=word)


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["up"],
        ["bench", "CONC=10", "SERVER=fixed-pool"],
        ["explain", "CONC=10", "SUSPECT=worker pool"],
        ["capacity", "OBJECTIVE=p99 < 1 s, errors<1%", "PLAN=yes"],
    ],
)
def test_a_plan_takes_good_words(argv: list[str], planned: Verb) -> None:
    assert planned(*argv).startswith("profiles \n")


CPU = {"LAB_LIMITS": "[cpu]\nat_most = 1.05"}
IMAGES = "BASE=lab/netty:1 CANDIDATE=lab/netty:2 CONC=5"


@pytest.mark.parametrize(
    ("argv", "environ", "said"),
    [
        # PLAN is yes, and only where trials follow.
        ("bench CONC=10 PLAN=no", {}, "PLAN=no"),
        ("plan capacity PLAN=1", {}, "PLAN=1"),
        ("run RESUME=x PLAN=yes", {}, "PLAN"),
        ("report PLAN=yes", {}, "PLAN"),
        # A plan knows the words of every verb; without one it is that of up.
        ("plan", {"LAB_WORDS": "X=1"}, "lab: up: unknown word X; allowed: none\n"),
        *((f"plan {verb} X=1", {}, f"{verb}: ") for verb in ("up", "report", "compare", "explain")),
        *((f"{verb} COLOUR=red", {}, "COLOUR") for verb in ("doctor", "agent", "ref", "toxics")),
        # What works on runs.
        ("plan run EXP=nosuch", {}, "EXP=nosuch"),
        ("run RESUME=gone", {}, "RESUME=gone"),
        ("run RESUME=gone CONC=5", {}, "CONC"),
        ("report RUN=gone", {}, "RUN=gone"),
        ("compare C=1", {}, "allowed: A, B"),
        ("plan compare A=gone", {}, "A=gone"),
        *(
            (verb, {"LAB_WORDS": words, **environ}, said)
            for verb in ("gate", "plan gate")
            for words, environ, said in (
                ("BASE=a CANDIDATE=b", {}, "gate.toml: nothing is no limit"),
                ("BASE=gone CANDIDATE=gone", CPU, "BASE=gone"),
                ("A=gone", CPU, "allowed: BASE, CANDIDATE, LIMITS"),
                (IMAGES, CPU, "netty is no server"),
                (f"{IMAGES} LIMITS=own.toml", {"LAB_LIMITS": "[cpu]"}, "own.toml: cpu is no limit"),
            )
        ),
    ],
)
def test_a_word_that_a_verb_does_not_take_is_refused(
    argv: str, environ: dict[str, str], said: str, refused: Verb
) -> None:
    assert said in refused(*argv.split(), **environ)


@pytest.mark.parametrize("verb", ["bench", "explain"])
def test_a_second_measurement_is_one_line_and_changes_nothing(
    verb: str, home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    lock, results = (Path(home["LAB_HOME"]) / name for name in ("lock", "results"))
    lock.mkdir()
    with claimed(lock):
        assert do([verb, "CONC=10"], home) == 1
    said = ("", "lab: another measurement is under way; wait for its end\n")
    assert capsys.readouterr() == said
    assert list(results.iterdir()) == []


def test_a_plan_tells_the_tokens_and_not_the_secret(planned: Verb) -> None:
    out = planned(LAB_SECRET="abc")
    told = dict(line[4:].split("=", 1) for line in out.splitlines() if line.startswith("env "))
    sums = token_sums("abc", (*PARTS, "fixed-pool", "virtual-threads"))
    assert told == {"LAB_TOKEN_SUMS": sums, "LAB_PAGE_TOKEN": token("abc", PAGE)}
    # The host's script has no other words for its file, and writes them unquoted.
    assert re.fullmatch("[a-z0-9=,-]+", told["LAB_TOKEN_SUMS"])
    assert "abc" not in out


def test_a_plan_takes_the_images_of_a_gate(planned: Verb) -> None:
    words = ["BASE=lab/fixed-pool:1", "CANDIDATE=lab/fixed-pool:2", "CONC=5"]
    line = "\nSERVER_IMAGE lab/fixed-pool:1|lab/fixed-pool:2\n"
    assert line in planned("gate", *words, **CPU)
    # No other verb may start an image.
    assert "SERVER_IMAGE" not in planned("bench", "CONC=5")


def test_a_plan_says_what_a_users_service_allows(home: dict[str, str], planned: Verb) -> None:
    subjects = Path(home["LAB_HOME"]) / "subjects"
    subjects.mkdir()
    (subjects / "shop.toml").write_text(
        'url = "http://shop:8080"\n[[request]]\npath = "/"\n[levers]\n"worker pool" = '
        '{variable = "POOL_SIZE", value = 20}\n'
    )
    words = ["explain", "TARGET=shop", "CONC=5"]
    said = planned(*words, LAB_OWN="shop")
    assert "\nSERVER fixed-pool|virtual-threads|shop|generator\n" in said
    assert "\nOWN_SERVER shop\n" in said
    assert "\nENV_POOL_SIZE [0-9]{1,9}\n" in said
    # No service of that name is a container of the lab.
    said = planned(*words)
    assert "shop" not in said
    assert "ENV_" not in said


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (OSError(28, "No space left on device", "/lab/results/x"), "/lab/results/x: No space left"),
        (OSError(30, "Read-only file system"), "lab: Read-only file system"),
        (CannotWrite("x", OSError(30, "Read-only file system")), "cannot write x: Read-only file"),
    ],
)
def test_a_disk_that_refuses_is_one_line(
    failure: Exception, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with patch.object(verbs, "measure", Mock(side_effect=failure)):
        assert do(["bench"], {}) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert said in line


def test_no_text_of_others_reaches_the_terminal_as_it_is(
    home: dict[str, str], refused: Verb, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]52;c;YQ==\x07\x1b[2J\x9b2J\r\u202e"
    shown = "\\x1b]52;c;YQ==\\x07\\x1b[2J\\x9b2J\\r\\u202e"
    assert shown in refused("bench", f"CONC={evil}")
    console, table = screen(home), Table("name")
    table.add_row(evil)
    for text in (Text(f"{evil}\na", style="red"), f"{evil} a", table):
        console.print(text)
    said = capsys.readouterr().out
    # rich itself leaves out BEL and CR.
    assert said.count("\\x1b]52;c;YQ==") == 3
    assert said.replace("\n", "").isprintable()
    # The lab's own colours do.
    out = io.StringIO()
    colours = Screen(file=out, force_terminal=True, color_system="standard")
    colours.print(Text("a\x1b[2Jb", style="red"))
    assert out.getvalue() == "\x1b[31ma\\x1b[2Jb\x1b[0m\n"
