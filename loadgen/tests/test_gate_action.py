"""The script of the GitHub action, with a `./lab` that only pretends."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from support.repo import REPO

LINE = "results/r/gates/g/{gate.md,gate.xml,gate.json}"


@pytest.mark.parametrize(
    ("status", "pass_untold", "ended", "answer"),
    [
        (0, False, 0, "not worse"),
        (1, False, 1, "worse"),
        (3, False, 3, "cannot tell"),
        (3, True, 0, "cannot tell"),
        (2, True, 2, ""),
    ],
)
def test_a_step_ends_as_the_gate_does_and_shows_what_it_says(
    status: int, pass_untold: bool, ended: int, answer: str, tmp_path: Path
) -> None:
    folder = tmp_path / "results/r/gates/g"
    folder.mkdir(parents=True)
    (folder / "gate.md").write_text("**a page**\n")
    line = LINE if status != 2 else "lab: no"
    program(tmp_path / "lab", f'printf "%s\\n" "$@" >words\necho "{line}"\nexit {status}')
    done = run_step(tmp_path, cannot_tell="pass" if pass_untold else "fail")
    assert done.returncode == ended, done.stderr
    words = (tmp_path / "words").read_text().splitlines()
    assert words == ["gate", "BASE=a/b:1", "CANDIDATE=a/b:2", "CONC=5", "RATE=7"]
    output = (tmp_path / "output").read_text().splitlines()
    assert output == [f"answer={answer}", f"folder={'results/r/gates/g' if status != 2 else ''}"]
    summary = tmp_path / "summary"
    assert summary.exists() == (line == LINE)
    assert not summary.exists() or summary.read_text() == "**a page**\n"


def run_step(
    folder: Path, words: str = "CONC=5  \nRATE=7", cannot_tell: str = "fail"
) -> subprocess.CompletedProcess[str]:
    """The step as GitHub runs it, in a checkout of the lab."""
    action = yaml.safe_load((REPO / ".github/actions/gate/action.yml").read_text())
    [step] = action["runs"]["steps"]
    env = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "BASE": "a/b:1",
        "CANDIDATE": "a/b:2",
        "WORDS": words,
        "CANNOT_TELL": cannot_tell,
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
    }
    assert set(step["env"]) == {"BASE", "CANDIDATE", "WORDS", "CANNOT_TELL"}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True)


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/usr/bin/env bash\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("words", ["CONC=5 -f/tmp/x", "-C/tmp", "--eval=x:", "up", "conc=5"])
def test_words_are_no_options_of_make(words: str, tmp_path: Path) -> None:
    (tmp_path / "lab").write_bytes((REPO / "lab").read_bytes())
    (tmp_path / "lab").chmod(0o755)
    program(tmp_path / "make", f"touch {tmp_path}/made")
    done = run_step(tmp_path, words)
    assert done.returncode == 2
    assert done.stderr.endswith(": ./lab takes a verb, then words as NAME=VALUE\n")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "made").exists()


def test_a_link_in_the_place_of_the_page_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "results/r/gates/g"
    folder.mkdir(parents=True)
    (tmp_path / "secret").write_text("of this machine")
    (folder / "gate.md").symlink_to(tmp_path / "secret")
    program(tmp_path / "lab", f'echo "{LINE}"')
    assert run_step(tmp_path).returncode != 0
    assert (tmp_path / "summary").read_text() == ""
