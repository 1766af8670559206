"""What two labs differ in, and that what was not recorded differs from everything."""

import copy
import dataclasses
from collections.abc import Mapping, Sequence

import pytest

from lab.judge.same_lab import PARTS, Difference, between_labs, between_snapshots
from lab.model import Exported, Json, Snapshot, ToxicState
from support.drawn_delay import SPREAD
from support.fakes import IDENTITY, snapshot
from support.runs import HOST, IMAGES, VERSIONS


@dataclasses.dataclass(frozen=True)
class Lab:
    host: Mapping[str, Json]
    limits: Mapping[str, Json]
    versions: Mapping[str, Json]


LIMITS = {"open_files": 20_000}
WHOLE = Lab(HOST, LIMITS, VERSIONS)


def differences(was: Lab, now: Lab, parts: Sequence[str] = PARTS) -> list[Difference]:
    return list(between_labs(was, now, LIMITS, parts))


def named(was: Lab, now: Lab, parts: Sequence[str] = PARTS) -> list[tuple[str, str]]:
    """The kind and the name of each difference."""
    return [(found.kind, found.name) for found in differences(was, now, parts)]


def test_what_neither_recorded_differs_and_what_both_did_does_not() -> None:
    assert differences(WHOLE, WHOLE) == []
    empty = Lab({}, {}, {})
    found = differences(empty, empty)
    kinds = {one.kind for one in found}
    assert kinds == {"host", "limits", "images", "commit"}
    assert {one.name for one in found} >= {"kernel", "open_files", "CPU set of loadgen", "commit"}
    assert all((one.was, one.now) == (None, None) for one in found)


CPUSETS = {"loadgen": "", "toxiproxy": "", "downstream": "0", "observation": ""}
OTHERS = [("limits", f"CPU set of {part}") for part in CPUSETS if part != "loadgen"]
RUNTIME = ("limits", "TOXIPROXY_GOMAXPROCS")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *(
            ({name: "other"}, [("host", name)])
            for name in ("cpu_model", "cores", "memory_bytes", "kernel", "docker_version")
        ),
        ({"kernel": None}, [("host", "kernel")]),
        *(
            ({"cpusets": {**CPUSETS, part: "1"}}, [("limits", f"CPU set of {part}")])
            for part in CPUSETS
        ),
        ({"cpusets": None}, [("limits", "CPU set of loadgen"), *OTHERS]),
        ({"cpusets": {"loadgen": ""}}, OTHERS),
        ({"toxiproxy_gomaxprocs": "1"}, [RUNTIME]),
        ({"toxiproxy_gomaxprocs": None}, [RUNTIME]),
        ({"images": {**IMAGES, "x/toxiproxy:2": {"id": "new"}}}, [("images", "toxiproxy")]),
        ({"images": {}}, [("images", part) for part in PARTS]),
    ],
)
def test_which_machine_it_was(host: dict[str, Json], expected: list[tuple[str, str]]) -> None:
    other = copy.replace(WHOLE, host={**HOST, **host})
    assert named(WHOLE, other) == expected
    # What neither recorded is like nothing.
    unknown = [found for found in differences(WHOLE, other) if found.now is None]
    assert named(other, other) == [(found.kind, found.name) for found in unknown]


def test_a_service_of_the_users_own_is_its_containers_image_and_limits() -> None:
    limits = ("nano_cpus", "cpu_quota", "cpu_period", "memory_bytes", "containers", "cpuset")
    whole: dict[str, Json] = {**dict.fromkeys(limits, 0), "config": "x", "binds": ["/jmx", None]}

    def running(image: str, **changed: Json) -> Lab:
        shop = {"image": image, **whole, **changed}
        return Lab({**HOST, "services": {"shop": shop}}, LIMITS, VERSIONS)

    def of_shop(was: Lab, now: Lab) -> list[tuple[str, str]]:
        return named(was, now, (*PARTS, "shop"))

    one = running("sha256:1")
    assert of_shop(one, one) == []
    assert of_shop(one, running("sha256:2")) == [("images", "shop")]
    for name in limits:
        assert of_shop(one, running("sha256:1", **{name: 1})) == [("limits", f"{name} of shop")]
    said = ("limits", "environment or command of shop")
    assert of_shop(one, running("sha256:1", config="y")) == [said]
    assert of_shop(one, running("sha256:2", config="y")) == [("images", "shop")]
    # Its code may be in a folder of the host, so nobody knows the build.
    mounted = running("sha256:1", binds=["/app", None])
    assert of_shop(mounted, mounted) == [("images", "shop")]
    # A run that did not record it is like none, and neither are two.
    assert of_shop(WHOLE, one) == of_shop(WHOLE, WHOLE) == [("images", "shop")]


def test_each_of_several_machines_must_be_the_same() -> None:
    load = {"roles": "generator", "kernel": "6.1", "engine": {"cores": 4}}
    several = Lab({**HOST, "machines": {"load": load}}, LIMITS, VERSIONS)
    other = Lab({**HOST, "machines": {"load": {**load, "kernel": "6.2"}}}, LIMITS, VERSIONS)
    assert differences(several, several) == []
    assert named(several, other) == [("host", "machine load")]
    # A lab on one machine is another one.
    assert [one.was for one in differences(WHOLE, several)] == ["missing"]


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ({"commit": "beef"}, {}, [("commit", "commit")]),
        ({"commit": None}, {"commit": None}, [("commit", "commit")]),
        ({"commit": "unknown"}, {}, [("commit", "commit")]),
        ({"commit": "unknown"}, {"commit": "unknown"}, [("uncommitted", "commit")]),
        ({"commit_dirty": True}, {}, [("commit", "commit_dirty")]),
        ({"commit_dirty": True}, {"commit_dirty": True}, [("uncommitted", "commit_dirty")]),
        ({"commit_dirty": None}, {"commit_dirty": None}, [("commit", "commit_dirty")]),
        ({"engine": "other"}, {}, [("engine", "engine")]),
    ],
)
def test_which_code_ran(
    was: Mapping[str, Json], now: Mapping[str, Json], expected: list[tuple[str, str]]
) -> None:
    one, other = (copy.replace(WHOLE, versions={**VERSIONS, **of}) for of in (was, now))
    assert named(one, other) == expected


# No setting is not one that was not read.
NONE = snapshot(settings={"pool_size": None})
WITHOUT = Snapshot(None, {"url": "http://x:1"}, ToxicState(), 200.0)
# It told nothing.
SILENT = copy.replace(WITHOUT, exported=Exported(1, None, None, None, True))
SLOWER = copy.replace(SPREAD, sd_ms=SPREAD.sd_ms + 0.001)


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        (snapshot(), snapshot(settings={"pool_size": 200}), "settings downstream_connections"),
        (snapshot(), snapshot(identity=copy.replace(IDENTITY, jdk="26")), "build jdk"),
        (snapshot(), snapshot(identity=copy.replace(IDENTITY, gc=())), "jvm gc"),
        (snapshot(), snapshot(identity=copy.replace(IDENTITY, start_time_ms=9, pid=9)), ""),
        (snapshot(), snapshot(toxics=ToxicState(("latency",), 5.0)), "toxics toxics"),
        (snapshot(), snapshot(downstream_delay_ms=1.0), "delay the downstream's delay in ms"),
        (snapshot(), snapshot(spread=SPREAD), "delay the downstream's delay"),
        (snapshot(spread=SPREAD), snapshot(spread=SLOWER), "delay the downstream's delay"),
        (NONE, NONE, ""),
        (NONE, snapshot(settings={}), "settings pool_size"),
        (SILENT, WITHOUT, "jvm whether a JMX exporter answers"),
    ],
)
def test_two_servers_differ(was: Snapshot, now: Snapshot, expected: str) -> None:
    found = list(between_snapshots(was, now))
    assert [f"{each.kind} {each.name}" for each in found] == ([expected] if expected else [])
    if was is NONE and found:
        assert (found[0].was, found[0].now) == (None, "missing")
