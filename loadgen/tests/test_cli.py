import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from lab import cli
from lab.campaign.doctor import examine
from lab.cli import VERBS, do
from lab.errors import CannotWrite
from lab.system.lock import claimed
from lab.system.tokens import PAGE, PARTS, token, token_sums
from support.fakes import FakeLab


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "servers").mkdir()
    servers = [{"targets": ["fixed-pool", "virtual-threads"]}]
    (tmp_path / "servers" / "core.json").write_text(json.dumps(servers))
    return {"LAB_HOME": str(tmp_path)}


def refused(argv: list[str], environ: dict[str, str], capsys: pytest.CaptureFixture[str]) -> str:
    assert do(argv, environ) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("lab: ")
    return said.err


@pytest.mark.parametrize("argv", [[], ["bensh"], ["--help"]])
def test_an_unknown_verb_gets_the_list(
    argv: list[str], home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(argv, home, capsys)
    assert all(verb in said for verb in VERBS)


@pytest.mark.parametrize("verb", [["bench"], ["plan", "bench"], ["plan", "explain"]])
@pytest.mark.parametrize("word", ["CONC=no", "CONC=10 SPEED=9", "CONC=10 SERVER=tomcat", "CONC"])
def test_wrong_words_of_bench_are_one_line_and_exit_2(
    verb: list[str], word: str, home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    refused([*verb, *word.split()], home, capsys)
    refused(verb, {**home, "LAB_WORDS": word}, capsys)


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
def test_a_plan_takes_good_words(
    argv: list[str], home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert do(["plan", *argv], home) == 0
    assert capsys.readouterr().out.startswith("profiles \n")


def test_a_plan_tells_the_tokens_that_follow_from_the_secret_and_not_the_secret(
    home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert do(["plan"], {**home, "LAB_SECRET": "abc"}) == 0
    out = capsys.readouterr().out
    told = dict(line[4:].split("=", 1) for line in out.splitlines() if line.startswith("env "))
    parts = (*PARTS, "fixed-pool", "virtual-threads")
    assert told == {
        "LAB_TOKEN_SUMS": token_sums("abc", parts),
        "LAB_PAGE_TOKEN": token("abc", PAGE),
    }
    # The host's script has no other words for its file, and writes them unquoted.
    assert re.fullmatch("[a-z0-9=,-]+", told["LAB_TOKEN_SUMS"])
    assert "abc" not in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        # PLAN is yes, and only where trials follow.
        (["bench", "CONC=10", "PLAN=no"], "PLAN=no is not allowed; allowed: yes"),
        (["plan", "capacity", "PLAN=1"], "PLAN=1 is not allowed; allowed: yes"),
        (["run", "RESUME=x", "PLAN=yes"], "PLAN with RESUME is not allowed"),
        (["report", "PLAN=yes"], "unknown word PLAN"),
        # A plan knows the words of every verb; without one it is that of up.
        (["plan"], "lab: up: unknown word X; allowed: none\n"),
        *(
            (["plan", verb, "X=1"], f"{verb}: unknown word X")
            for verb in ("up", "report", "compare", "explain")
        ),
        *(
            ([verb, "COLOUR=red"], "COLOUR")
            for verb in ("doctor", "agent", "toxics", "toxics-reset")
        ),
    ],
)
def test_a_word_that_a_verb_does_not_take_is_refused(
    argv: list[str], said: str, home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {**home, "LAB_WORDS": "X=1"} if argv == ["plan"] else home
    assert said in refused(argv, environ, capsys)


@pytest.mark.parametrize("argv", [["bench", "CONC=10"], ["explain", "CONC=10"]])
def test_a_second_measurement_is_one_line_and_changes_nothing(
    argv: list[str], home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    lock, results = (Path(home["LAB_HOME"]) / name for name in ("lock", "results"))
    lock.mkdir()
    results.mkdir()
    with claimed(lock):
        assert do(argv, home) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "lab: another measurement is under way; wait for its end\n"
    assert list(results.iterdir()) == []


def test_a_missing_list_of_servers_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert do(["doctor"], {"LAB_HOME": str(tmp_path)}) == 1
    assert "list of servers" in capsys.readouterr().err


def findings(lab: FakeLab, tmp_path: Path, limit: int = 20_000) -> list[tuple[str, str]]:
    found = examine(lab.stack, ("a", "b"), tmp_path, limit, 2, [lab.engine])
    return [(finding.level, finding.text) for finding in found]


def test_doctor_is_content_with_a_healthy_lab(lab: FakeLab, tmp_path: Path) -> None:
    found = findings(lab, tmp_path)
    assert {level for level, _ in found} == {"ok"}
    assert any("prometheus 2.53.3, 1 of 1 targets up" in text for _, text in found)


def test_doctor_names_what_is_down(lab: FakeLab, tmp_path: Path) -> None:
    lab.down.add("b")
    lab.agent_up = False
    lab.targets_down = True
    lab.engine.here = False
    found = findings(lab, tmp_path / "gone", limit=4000)
    failed = " ".join(text for level, text in found if level == "FAIL")
    for part in ("b: http://b:8081", "target server a is down", "no load engine", "results in"):
        assert part in failed
    assert "agent: http://loadgen:9464/health does not answer" in failed
    assert any(level == "warn" and "CONC=1500" in text for level, text in found)


def test_doctor_is_content_with_a_target_whose_turn_has_not_come(
    lab: FakeLab, tmp_path: Path
) -> None:
    """As right after a bench: Prometheus has just been told another interval for it."""
    lab.targets_health = "unknown"
    found = findings(lab, tmp_path)
    assert {level for level, _ in found} == {"ok"}
    assert any("0 of 1 targets up, 1 not scraped yet" in text for _, text in found)


def test_doctor_refuses_another_server_on_the_name(lab: FakeLab, tmp_path: Path) -> None:
    lab.identities["b"] = lab.identities["a"]
    found = findings(lab, tmp_path)
    assert ("FAIL", "b: a answers under this name") in found


def test_wrong_words_of_run_and_what_works_on_runs_are_one_line(
    home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (Path(home["LAB_HOME"]) / "experiments").mkdir()
    (Path(home["LAB_HOME"]) / "results").mkdir()
    assert "EXP=nosuch" in refused(["plan", "run", "EXP=nosuch"], home, capsys)
    assert "RESUME=gone is not a run here" in refused(["run", "RESUME=gone"], home, capsys)
    said = refused(["run", "RESUME=gone", "CONC=5"], home, capsys)
    assert "unknown word CONC" in said
    assert "RUN=gone is not a run here" in refused(["report", "RUN=gone"], home, capsys)
    assert "allowed: A, B" in refused(["compare", "C=1"], home, capsys)


@pytest.mark.parametrize("verb", [["gate"], ["plan", "gate"]])
def test_wrong_words_of_a_gate_are_one_line(
    verb: list[str], home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (Path(home["LAB_HOME"]) / "results").mkdir()
    limits = {**home, "LAB_LIMITS": "[cpu]\nat_most = 1.05"}
    without = {**home, "LAB_WORDS": "BASE=a CANDIDATE=b"}
    assert "lab: gate.toml: there is no limit" in refused(verb, without, capsys)
    runs, images = "BASE=gone CANDIDATE=gone", "BASE=lab/netty:1 CANDIDATE=lab/netty:2 CONC=5"
    assert "BASE=gone is not a run here" in refused(verb, {**limits, "LAB_WORDS": runs}, capsys)
    said = refused(verb, {**limits, "LAB_WORDS": images}, capsys)
    assert "netty is no server of the lab that is up" in said
    wrong = {**limits, "LAB_LIMITS": "[cpu]", "LAB_WORDS": f"{images} LIMITS=own.toml"}
    if verb != ["gate"]:
        assert "own.toml: a limit of cpu is at_most" in refused(verb, wrong, capsys)


def test_a_plan_takes_the_images_of_a_gate(
    home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    limits = {**home, "LAB_LIMITS": "[cpu]\nat_most = 1.05"}
    words = ["BASE=lab/fixed-pool:1", "CANDIDATE=lab/fixed-pool:2", "CONC=5"]
    assert do(["plan", "gate", *words], limits) == 0
    assert "\nSERVER_IMAGE lab/fixed-pool:1|lab/fixed-pool:2\n" in capsys.readouterr().out
    # No other verb may start an image.
    assert do(["plan", "bench", "CONC=5"], home) == 0
    assert "SERVER_IMAGE" not in capsys.readouterr().out


def test_a_plan_says_what_may_be_changed_of_a_service_of_the_users_own(
    home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    subjects = Path(home["LAB_HOME"]) / "subjects"
    subjects.mkdir()
    (subjects / "shop.toml").write_text(
        'url = "http://shop:8080"\n[[request]]\npath = "/"\n[levers]\n"worker pool" = '
        '{variable = "POOL_SIZE", value = 20}\n'
    )
    words = ["TARGET=shop", "CONC=5"]
    assert do(["plan", "explain", *words], {**home, "LAB_OWN": "shop"}) == 0
    said = capsys.readouterr().out
    assert "\nSERVER fixed-pool|virtual-threads|shop|generator\n" in said
    assert "\nOWN_SERVER shop\n" in said
    assert "\nENV_POOL_SIZE [0-9]{1,9}\n" in said
    # No service of that name is a container of the lab.
    assert do(["plan", "explain", *words], home) == 0
    said = capsys.readouterr().out
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
    failure: Exception,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> int:
        raise failure

    monkeypatch.setattr(cli, "VERBS", {"bench": fail})
    assert cli.do(["bench"], {}) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert said in line


def test_no_text_of_others_reaches_the_terminal_as_it_is(
    home: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]52;c;YQ==\x07\x1b[2J\x9b2J\r\u202e"
    shown = "\\x1b]52;c;YQ==\\x07\\x1b[2J\\x9b2J\\r\\u202e"
    assert shown in refused(["bench", f"CONC={evil}"], home, capsys)
    console = cli._console(home)
    console.print(Text(f"{evil}\na", style="red"))
    console.print(f"{evil} a")
    table = Table("name")
    table.add_row(evil)
    console.print(table)
    said = capsys.readouterr().out
    # rich itself leaves out BEL and CR.
    assert said.count("\\x1b]52;c;YQ==") == 3
    assert said.replace("\n", "").isprintable()


def test_a_terminal_gets_the_colours_of_the_lab() -> None:
    out = io.StringIO()
    console = cli._Screen(file=out, force_terminal=True, color_system="standard")
    console.print(Text("a\x1b[2Jb", style="red"))
    assert out.getvalue() == "\x1b[31ma\\x1b[2Jb\x1b[0m\n"


def test_no_verb_waits_for_what_it_seldom_needs() -> None:
    code = "import lab.cli, sys; print({'scipy', 'numpy', 'vl_convert'} & sys.modules.keys())"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "set()\n"
