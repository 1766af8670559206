"""What the host may be asked to change: one list, which bash matches as Python does."""

from contextlib import nullcontext

import pytest

from lab.model import OwnLever
from lab.model.knobs import DIRECT, GENERATOR_CPUS, HOST, IMAGE_NAME, PROXIED, check_host
from lab.system.host_changes import FRESH, OWN, allowed
from support.repo import matches_in_bash


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
