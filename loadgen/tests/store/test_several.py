"""What make and the driver's image hand over of a lab on several machines."""

import json
from pathlib import Path

import pytest

from lab.cli import do
from model.test_hosts import GOOD, MEMBERS, NODES, info

SERVICES = {
    "netty": {"image": "netty:local", "networks": {"lab": None}},
    "driver": {
        "image": "loadgen:local",
        "networks": {"lab": None},
        "environment": {"LAB_HOME": "/lab"},
        "volumes": [
            {
                "type": "bind",
                "source": "/somewhere/lab/experiments",
                "target": "/lab/experiments",
                "read_only": True,
            }
        ],
    },
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in ("several", "servers", "repo/experiments/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "servers/core.json").write_text('[{"targets": ["netty"]}]')
    (tmp_path / "repo/experiments/deep/a.toml").write_text("a")
    folder = tmp_path / "several"
    (folder / "hosts.toml").write_text(GOOD)
    (folder / "checkout").write_text("/somewhere/lab\n")
    (folder / "image-ids").write_text("netty:local sha256:1\nloadgen:local sha256:2\n")
    config = {"name": "mine", "services": SERVICES, "networks": {"lab": {"name": "mine_lab"}}}
    (folder / "config.json").write_text(json.dumps(config))
    return tmp_path


def test_nodes_are_told_and_once_engines_have_told_with_their_names_in_the_swarm(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert do(["hosts"], {"LAB_HOME": str(home)}) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0] == "load ssh://lab@192.0.2.11 generator"
    assert not (home / "several/nodes").exists()

    (home / "several/engines").mkdir()
    for node in NODES:
        (home / "several/engines" / node.name).write_text(info(node.name))
    (home / "several/architecture").write_text("x86_64\n")
    (home / "several/members").write_text(MEMBERS)
    assert do(["hosts"], {"LAB_HOME": str(home)}) == 0
    lines = (home / "several/nodes").read_text().splitlines()
    assert lines[2] == "called unix:///var/run/docker.sock id-called downstream,monitor"

    (home / "several/engines/tested").write_text("Cannot connect\n")
    assert do(["hosts"], {"LAB_HOME": str(home)}) == 2
    said = capsys.readouterr().err
    assert said.startswith("lab: hosts.toml: node tested is not reachable")
    assert said.count("\n") == 1


def test_the_stack_is_written_with_its_files(home: Path) -> None:
    environ = {"LAB_HOME": str(home), "LAB_PROJECT": "mine"}
    assert do(["stack"], environ) == 0
    folder = home / "several"
    stack = json.loads((folder / "stack.json").read_text())
    assert stack["services"]["netty"]["image"] == "sha256:1"
    assert json.loads((folder / "driver.json").read_text())["name"] == "mine"
    assert (folder / "home/experiments/deep/a.toml").read_text() == "a"
    assert (folder / "images").read_text() == "load loadgen:local\ntested netty:local\n"

    # What is gone from the checkout is gone from there, too.
    (home / "repo/experiments/deep/a.toml").unlink()
    assert do(["stack"], environ) == 0
    assert not (folder / "home/experiments/deep/a.toml").exists()


@pytest.mark.parametrize("lost", ["hosts.toml", "config.json", "image-ids", "checkout"])
def test_what_is_not_there_is_said(
    home: Path, lost: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "several" / lost).unlink()
    assert do(["stack"], {"LAB_HOME": str(home)}) == 2
    assert f"cannot read {lost}" in capsys.readouterr().err
