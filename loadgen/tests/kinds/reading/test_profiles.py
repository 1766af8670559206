"""Profiles of compose: whose servers must be up for these words."""

import json
import shutil
from pathlib import Path

import pytest

from kinds.conftest import refusal
from lab.kinds.reading import needed_profiles
from support.repo import REPO

BOTH = ("frameworks",)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    shutil.copytree(REPO / "prometheus" / "servers", tmp_path / "servers")
    shutil.copytree(REPO / "experiments", tmp_path / "experiments")
    for name, manifest in (
        ("measured", {"experiment": {}, "servers": {"vertx": {}}}),
        ("begun", {"experiment": {"servers": ["netty", "vertx"]}, "servers": {}}),
        ("of-core", {"experiment": {"servers": ["netty"]}, "servers": {"netty": {}}}),
    ):
        (tmp_path / "results" / name).mkdir(parents=True)
        (tmp_path / "results" / name / "manifest.json").write_text(json.dumps(manifest))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, ()),
        ({"SERVER": "fixed-pool,vertx"}, BOTH),
        ({"SERVER": "fixed-pool,thread-per-connection"}, ()),
        ({"SERVER": "fixed-pool,jdk-pool"}, ("more",)),
        ({"SERVER": "vertx,jdk-pool"}, ("frameworks", "more")),
        ({"EXP": "frameworks"}, BOTH),
        ({"EXP": "sweep"}, ()),
        ({"EXP": "frameworks", "SERVER": "netty"}, ()),
        ({"RESUME": "measured"}, BOTH),
        ({"RESUME": "begun"}, BOTH),
        ({"RESUME": "of-core"}, ()),
        ({"EXP": "nosuch", "RESUME": "../nosuch"}, ()),
    ],
)
def test_profiles_of_the_servers_named(
    words: dict[str, str], expected: tuple[str, ...], home: Path
) -> None:
    assert needed_profiles(words, (), (), home) == expected


@pytest.mark.parametrize(
    "text", ["servers = 3", "[load]\nservers = 3", 'servers = "vertx"', "x = ["]
)
def test_a_wrong_file_names_no_server(text: str, home: Path) -> None:
    (home / "experiments/wrong.toml").write_text(text)
    assert needed_profiles({"EXP": "wrong"}, (), (), home) == ()


def test_a_profile_is_asked_for_by_name_or_stays_up(home: Path) -> None:
    assert needed_profiles({}, ("frameworks",), (), home) == BOTH
    assert needed_profiles({}, (), ("loadgen", "helidon"), home) == BOTH


@pytest.mark.parametrize("name", ["framework", "frameworks.*", "core"])
def test_a_wrong_profile_is_one_line_with_what_is_allowed(name: str, home: Path) -> None:
    said = refusal(needed_profiles, {}, (name,), (), home)
    assert said == f"PROFILE={name} is not a profile; allowed: frameworks, more"
