"""Both sides of the host's hands know the same settings, and judge values alike."""

import subprocess

import pytest

from lab.model.knobs import CPUS, GENERATOR_CPUS, HOST, check_host
from support.repo import REPO

SCRIPT = (REPO / "images/hands.sh").read_text()
PATTERN_OF = SCRIPT[SCRIPT.index("pattern_of() {") : SCRIPT.index("is_server()")]


def pattern_of(name: str) -> str:
    done = subprocess.run(
        ["bash", "-c", f'{PATTERN_OF}\npattern_of "$1"', "hands", name],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("name", HOST)
def test_the_script_has_the_same_pattern(name: str) -> None:
    assert pattern_of(name) == HOST[name]


def test_the_generators_limit_is_one_of_cpus() -> None:
    assert pattern_of(GENERATOR_CPUS) == CPUS


def test_the_script_knows_no_other() -> None:
    listed = [line.split(")")[0].split(" | ") for line in PATTERN_OF.splitlines() if ";;" in line]
    names = {name.strip() for line in listed for name in line} - {"*"}
    assert names == {*HOST, GENERATOR_CPUS}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SERVER_CPUS", "0.4"),
        ("SERVER_JVM_FLAGS", "-Xms1g -Xmx1g -XX:+UseG1GC -XX:+ExitOnOutOfMemoryError"),
        ("BLOCK_THE_LOOP", "true"),
    ],
)
def test_what_is_allowed(name: str, value: str) -> None:
    check_host(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SERVER_CPUS", "-1"),
        ("SERVER_CPUS", "1\n"),
        ("NOFILE", "300; reboot"),
        ("SERVER_JVM_FLAGS", "-XX:OnError=reboot"),
        ("SERVER_JVM_FLAGS", "-Xmx64m -agentpath:/x"),
        ("PATH", "/tmp"),
        (GENERATOR_CPUS, "1"),
    ],
)
def test_what_is_not(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=name):
        check_host(name, value)
