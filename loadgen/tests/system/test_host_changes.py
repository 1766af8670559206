"""What the host may be asked to change: one list, which bash matches as Python does."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from lab.errors import LabError, Refused
from lab.model import OwnLever
from lab.model.knobs import DIRECT, GENERATOR_CPUS, HOST, IMAGE_NAME, PROXIED, check_host
from lab.system.host_changes import FRESH, OWN, REFUSALS, WITHDRAWN, HostChanges, allowed
from support.repo import matches_in_bash
from support.system import FakeSystem


def test_the_list_has_the_servers_every_setting_and_the_levers_of_a_service() -> None:
    listed = allowed(("fixed-pool", "netty"))
    assert listed["SERVER"] == "fixed-pool|netty|generator"
    assert set(listed) == {"SERVER", *HOST, GENERATOR_CPUS, FRESH}
    assert not any("\n" in pattern for pattern in listed.values())
    levers = (OwnLever("POOL_SIZE", 20), OwnLever(cpus=1))
    with_service = allowed(("fixed-pool", "netty"), own=("my-shop", "other"), levers=levers)
    assert with_service["SERVER"] == "fixed-pool|netty|my-shop|other|generator"
    assert with_service[OWN] == "my-shop|other"
    assert with_service["ENV_POOL_SIZE"] == "[0-9]{1,9}"
    assert {*with_service} - {*listed} == {OWN, "ENV_POOL_SIZE", "OWN_CPUS"}


@pytest.mark.parametrize("value", ["netty", "generator"])
def test_a_server_is_one_of_the_list(value: str) -> None:
    pattern = allowed(("fixed-pool", "netty"))["SERVER"]
    assert matches_in_bash(pattern, value)
    assert not matches_in_bash(pattern, f"{value}x")
    assert not matches_in_bash(pattern, f"x{value}")


@pytest.mark.parametrize(
    ("name", "value", "is_allowed"),
    [
        ("SERVER_CPUS", "0.4", True),
        ("SERVER_JVM_FLAGS", "-Xms1g -Xmx1g -XX:+UseG1GC -XX:+ExitOnOutOfMemoryError", True),
        ("BLOCK_THE_LOOP", "true", True),
        ("SERVER_DOWNSTREAM_URL", PROXIED, True),
        ("SERVER_DOWNSTREAM_URL", DIRECT, True),
        ("SERVER_CPUS", "-1", False),
        ("SERVER_CPUS", "1\n", False),
        ("NOFILE", "300; reboot", False),
        ("SERVER_JVM_FLAGS", "-XX:OnError=reboot", False),
        ("SERVER_JVM_FLAGS", "-Xmx64m -agentpath:/x", False),
        ("SERVER_DOWNSTREAM_URL", "http://elsewhere:8080/", False),
        ("PATH", "/tmp", False),
        (GENERATOR_CPUS, "1", False),
    ],
)
def test_a_setting_is_allowed_or_not(name: str, value: str, is_allowed: bool) -> None:
    with nullcontext() if is_allowed else pytest.raises(ValueError, match=name):
        check_host(name, value)
    assert (name in HOST and matches_in_bash(HOST[name], value)) == is_allowed


IMAGES = ["lab/a:1", "a", "registry:5000/b/a:x@sha256:" + "0" * 64]
NO_IMAGES = ["", "-x", "a b", "a:1;id", 'a"}', "a:1\nb", "$(id)", "A/b"]


@pytest.mark.parametrize("image", IMAGES + NO_IMAGES)
def test_what_is_an_image(image: str) -> None:
    assert matches_in_bash(IMAGE_NAME, image) == (image in IMAGES)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What the driver and the host share."""
    for name in ("requests", "answers"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_a_request_is_a_link_and_an_answer_is_a_code(home: Path, system: FakeSystem) -> None:
    def answer(number: int, code: str) -> None:
        (home / "answers" / str(number)).write_text(f"{code}\n")

    host = HostChanges(home)
    system.at(0.1, lambda: answer(1, "ok"))
    host.change("a", {"SERVER_CPUS": "0.5", "NOFILE": "300"}, system)
    assert str((home / "requests/1").readlink()) == "SERVER=a\nSERVER_CPUS=0.5\nNOFILE=300"
    for number, code in enumerate([*REFUSALS, "something else"], 2):
        system.at(number, lambda number=number, code=code: answer(number, code))
        why = REFUSALS.get(code, REFUSALS["failed"])
        with pytest.raises(Refused) as refused:
            host.change("a", {}, system)
        assert str(refused.value).startswith(f"the host refused a with its defaults: {why} (")


def test_a_request_that_fails_says_why(home: Path, system: FakeSystem) -> None:
    host = HostChanges(home)
    with pytest.raises(LabError, match="the host cannot be asked: File name too long"):
        host.change("a", {"SERVER_JVM_FLAGS": "-Xmx64m " * 1000}, system)
    for number in (2, 3):
        with pytest.raises(LabError, match="did not answer within 90 s: a with NOFILE=300"):
            host.change("a", {"NOFILE": "300"}, system)
        # What the host reads late is no change, and the next request has another number.
        assert str((home / "requests" / str(number)).readlink()) == WITHDRAWN
    with pytest.raises(LabError, match="host settings need `make`: nobody on the host answers"):
        HostChanges(None).change("a", {}, system)
