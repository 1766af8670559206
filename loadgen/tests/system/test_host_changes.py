"""What the host may be asked to change: one list, which bash matches as Python does."""

import pytest

from lab.model import OwnLever
from lab.model.knobs import DIRECT, GENERATOR_CPUS, HOST, IMAGE_NAME, PROXIED, check_host
from lab.system.host_changes import FRESH, OWN, allowed
from support.repo import matches_in_bash


def test_the_list_has_every_setting_the_generators_limit_and_the_servers() -> None:
    listed = allowed(("fixed-pool", "netty"))
    assert listed["SERVER"] == "fixed-pool|netty|generator"
    assert set(listed) == {"SERVER", *HOST, GENERATOR_CPUS, FRESH}
    assert not any("\n" in pattern for pattern in listed.values())


def test_a_service_of_the_users_own_is_listed_with_what_its_levers_name() -> None:
    levers = (OwnLever("POOL_SIZE", 20), OwnLever(cpus=1))
    listed = allowed(("netty",), own=("my-shop", "other"), levers=levers)
    assert listed["SERVER"] == "netty|my-shop|other|generator"
    assert listed[OWN] == "my-shop|other"
    assert listed["ENV_POOL_SIZE"] == "[0-9]{1,9}"
    assert {*listed} - {*allowed(("netty",))} == {OWN, "ENV_POOL_SIZE", "OWN_CPUS"}


@pytest.mark.parametrize("value", ["netty", "generator"])
def test_a_server_is_one_of_the_list(value: str) -> None:
    pattern = allowed(("fixed-pool", "netty"))["SERVER"]
    assert matches_in_bash(pattern, value)
    assert not matches_in_bash(pattern, f"{value}x")
    assert not matches_in_bash(pattern, f"x{value}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SERVER_CPUS", "0.4"),
        ("SERVER_JVM_FLAGS", "-Xms1g -Xmx1g -XX:+UseG1GC -XX:+ExitOnOutOfMemoryError"),
        ("BLOCK_THE_LOOP", "true"),
        ("SERVER_DOWNSTREAM_URL", PROXIED),
        ("SERVER_DOWNSTREAM_URL", DIRECT),
    ],
)
def test_what_is_allowed(name: str, value: str) -> None:
    check_host(name, value)
    assert matches_in_bash(HOST[name], value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SERVER_CPUS", "-1"),
        ("SERVER_CPUS", "1\n"),
        ("NOFILE", "300; reboot"),
        ("SERVER_JVM_FLAGS", "-XX:OnError=reboot"),
        ("SERVER_JVM_FLAGS", "-Xmx64m -agentpath:/x"),
        ("SERVER_DOWNSTREAM_URL", "http://elsewhere:8080/"),
        ("PATH", "/tmp"),
        (GENERATOR_CPUS, "1"),
    ],
)
def test_what_is_not(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=name):
        check_host(name, value)
    assert name not in HOST or not matches_in_bash(HOST[name], value)


@pytest.mark.parametrize("image", ["lab/a:1", "a", "registry:5000/b/a:x@sha256:" + "0" * 64])
def test_what_is_an_image(image: str) -> None:
    assert matches_in_bash(IMAGE_NAME, image)


@pytest.mark.parametrize("image", ["", "-x", "a b", "a:1;id", 'a"}', "a:1\nb", "$(id)", "A/b"])
def test_what_is_none(image: str) -> None:
    assert not matches_in_bash(IMAGE_NAME, image)
