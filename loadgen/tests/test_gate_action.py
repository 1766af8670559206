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
    action = yaml.safe_load((REPO / ".github/actions/gate/action.yml").read_text())
    [step] = action["runs"]["steps"]
    folder = tmp_path / "results/r/gates/g"
    folder.mkdir(parents=True)
    (folder / "gate.md").write_text("**a page**\n")
    said = LINE if status != 2 else "lab: no"
    (tmp_path / "lab").write_text(
        f'#!/usr/bin/env bash\nprintf "%s\\n" "$@" >words\necho "{said}"\nexit {status}\n'
    )
    (tmp_path / "lab").chmod(0o755)
    env = {
        "PATH": os.environ["PATH"],
        "BASE": "a/b:1",
        "CANDIDATE": "a/b:2",
        "WORDS": "CONC=5  RATE=7",
        "CANNOT_TELL": "pass" if pass_untold else "fail",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    assert set(step["env"]) == {"BASE", "CANDIDATE", "WORDS", "CANNOT_TELL"}
    # As GitHub runs it.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == ended, done.stderr
    words = (tmp_path / "words").read_text().splitlines()
    assert words == ["gate", "BASE=a/b:1", "CANDIDATE=a/b:2", "CONC=5", "RATE=7"]
    told = (tmp_path / "output").read_text().splitlines()
    assert told == [f"answer={answer}", f"folder={'results/r/gates/g' if status != 2 else ''}"]
    summary = tmp_path / "summary"
    assert summary.exists() == (said == LINE)
    assert not summary.exists() or summary.read_text() == "**a page**\n"
