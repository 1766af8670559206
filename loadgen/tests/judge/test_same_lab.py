"""What two labs differ in, and that what was not recorded differs from everything; and what must be
equal for servers of different models."""

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lab.judge.checks import state
from lab.judge.same_lab import LIMITS, PARTS, Difference, between_labs, between_snapshots, fairness
from lab.model import Exported, Json, Snapshot, ToxicState
from lab.report import fairness as report
from lab.report.markdown import markdown
from support.drawn_delay import SPREAD
from support.fakes import IDENTITY, cells, snapshot
from support.runs import HOST, IMAGES, VERSIONS

Names = list[tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class Lab:
    host: Mapping[str, Json]
    limits: Mapping[str, Json]
    versions: Mapping[str, Json]


OPEN_FILES = {"open_files": 20_000}
WHOLE = Lab(HOST, OPEN_FILES, VERSIONS)


def differences(was: Lab, now: Lab, parts: Sequence[str] = PARTS) -> list[Difference]:
    return list(between_labs(was, now, OPEN_FILES, parts))


def named(was: Lab, now: Lab, parts: Sequence[str] = PARTS) -> Names:
    return [(found.kind, found.name) for found in differences(was, now, parts)]


def test_what_neither_recorded_differs_and_what_both_did_does_not() -> None:
    assert differences(WHOLE, WHOLE) == []
    empty = Lab({}, {}, {})
    found = differences(empty, empty)
    assert {one.kind for one in found} == {"host", "limits", "images", "commit"}
    assert {one.name for one in found} >= {"kernel", "open_files", "CPU set of loadgen", "commit"}
    assert all((one.was, one.now) == (None, None) for one in found)


CPUSETS = {"loadgen": "", "toxiproxy": "", "downstream": "0", "observation": ""}
OTHERS = [("limits", f"CPU set of {part}") for part in CPUSETS if part != "loadgen"]
RUNTIME = ("limits", "TOXIPROXY_GOMAXPROCS")
MACHINE = {"roles": "generator", "kernel": "6.1", "engine": {"cores": 4}}
SEVERAL = {"machines": {"load": MACHINE}}


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        *(
            ({}, {name: "other"}, [("host", name)])
            for name in ("cpu_model", "cores", "memory_bytes", "kernel", "docker_version")
        ),
        ({}, {"kernel": None}, [("host", "kernel")]),
        *(
            ({}, {"cpusets": {**CPUSETS, part: "1"}}, [("limits", f"CPU set of {part}")])
            for part in CPUSETS
        ),
        ({}, {"cpusets": None}, [("limits", "CPU set of loadgen"), *OTHERS]),
        ({}, {"cpusets": {"loadgen": ""}}, OTHERS),
        ({}, {"toxiproxy_gomaxprocs": "1"}, [RUNTIME]),
        ({}, {"toxiproxy_gomaxprocs": None}, [RUNTIME]),
        ({}, {"images": {**IMAGES, "x/toxiproxy:2": {"id": "new"}}}, [("images", "toxiproxy")]),
        ({}, {"images": {}}, [("images", part) for part in PARTS]),
        # Each of several machines must be the same, and a lab on one machine is another one.
        (SEVERAL, SEVERAL, []),
        (SEVERAL, {"machines": {"load": {**MACHINE, "kernel": "6.2"}}}, [("host", "machine load")]),
        ({}, SEVERAL, [("host", "machine load")]),
    ],
)
def test_which_machine_it_was(was: dict[str, Json], now: dict[str, Json], expected: Names) -> None:
    one, other = (copy.replace(WHOLE, host={**HOST, **host}) for host in (was, now))
    assert named(one, other) == expected
    # What neither recorded is like nothing.
    unknown = [found for found in differences(one, other) if found.now is None]
    assert named(other, other) == [(found.kind, found.name) for found in unknown]


SERVICE: dict[str, Json] = {**dict.fromkeys(LIMITS, 0), "config": "x", "image": "sha256:1",
                            "binds": ["/jmx", None]}  # fmt: skip
CONFIG = ("limits", "environment or command of shop")
MOUNTED = {"binds": ["/app", None]}


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ({}, {}, []),
        ({}, {"image": "sha256:2"}, [("images", "shop")]),
        *(({}, {name: 1}, [("limits", f"{name} of shop")]) for name in LIMITS),
        ({}, {"config": "y"}, [CONFIG]),
        ({}, {"image": "sha256:2", "config": "y"}, [("images", "shop")]),
        # Its code may be in a folder of the host, so the build is unknown.
        (MOUNTED, MOUNTED, [("images", "shop")]),
        # A run that did not record it is like none, and neither are two.
        (None, {}, [("images", "shop")]),
        (None, None, [("images", "shop")]),
    ],
)
def test_a_service_of_the_users_own_is_its_containers_image_and_limits(
    was: dict[str, Json] | None, now: dict[str, Json] | None, expected: Names
) -> None:
    def running(changed: dict[str, Json] | None) -> Lab:
        services = {} if changed is None else {"services": {"shop": {**SERVICE, **changed}}}
        return copy.replace(WHOLE, host={**HOST, **services})

    assert named(running(was), running(now), (*PARTS, "shop")) == expected


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
def test_which_code_ran(was: Mapping[str, Json], now: Mapping[str, Json], expected: Names) -> None:
    one, other = (copy.replace(WHOLE, versions={**VERSIONS, **of}) for of in (was, now))
    assert named(one, other) == expected


def jvm(**changes: Any) -> Snapshot:
    return snapshot(identity=copy.replace(IDENTITY, **changes))


# No setting is not one that was not read.
NONE = snapshot(settings={"pool_size": None})
WITHOUT = Snapshot(None, {"url": "http://x:1"}, ToxicState(), 200.0)
SILENT = copy.replace(WITHOUT, exported=Exported(1, None, None, None, True))
SLOWER = copy.replace(SPREAD, sd_ms=SPREAD.sd_ms + 0.001)
DELAY = "delay the downstream's delay"


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        (snapshot(), snapshot(settings={"pool_size": 200}), "settings downstream_connections"),
        (snapshot(), jvm(jdk="26"), "build jdk"),
        (snapshot(), jvm(gc=()), "jvm gc"),
        (snapshot(), jvm(start_time_ms=9, pid=9), ""),
        (snapshot(), snapshot(toxics=ToxicState(("latency",), 5.0)), "toxics toxics"),
        (snapshot(), snapshot(downstream_delay_ms=1.0), DELAY),
        (snapshot(), snapshot(spread=SPREAD), DELAY),
        (snapshot(spread=SPREAD), snapshot(spread=SLOWER), DELAY),
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


# --- Servers of different models. -----------------------------------------------------------------

SHARED: dict[str, Json] = {"backlog": 4096, "downstream_timeout_ms": 10_000}
OF_MODELS = dict.fromkeys(("pool_size", "queue_bound", "loops", "block_the_loop"))
POOL = {"pool_size": 200, "queue_bound": 0}
LOOP = {"loops": 1, "block_the_loop": False}
FRONTS = {"fronts": 1, "pool_order": "fifo", "connection_threads": None, "netty_transport": None}


def server(model: str, settings: Mapping[str, Json] = {}, **identity: Any) -> Snapshot:
    of = copy.replace(IDENTITY, model=model, **identity)
    return snapshot(identity=of, settings={**SHARED, **OF_MODELS, **settings})


@pytest.mark.parametrize(
    ("pool", "loop", "identity", "unequal"),
    [
        (POOL, LOOP, {}, None),
        # The process itself may differ.
        (POOL, LOOP, {"pid": 77, "start_time_ms": 5}, None),
        (FRONTS, dict.fromkeys(FRONTS), {}, None),
        (FRONTS, {**FRONTS, "fronts": 2}, {}, "fronts servers=pool=1 loop=2"),
        # A model may have no limit where others have one.
        ({"downstream_keep_idle_s": 60}, {"downstream_keep_idle_s": None}, {}, None),
        ({"downstream_keep_idle_s": 60}, {"downstream_keep_idle_s": 30}, {},
         "downstream_keep_idle_s servers=pool=60 loop=30"),
        # … another number of loops, and what a framework brings.
        ({"loops": 2, "framework": {"http2": False}}, {"loops": 1, "framework": {}}, {}, None),
        (POOL, {**LOOP, "backlog": 50}, {}, "backlog servers=pool=4096 loop=50"),
        # A queue of 0 is one without a bound: not the same as a bound of 10.
        (POOL, {**LOOP, "queue_bound": 10}, {}, "queue_bound servers=pool=0 loop=10"),
        # Not listed as any model's own: fails closed.
        (POOL, {**LOOP, "new_limit": 5}, {}, "new_limit servers=pool=missing loop=5"),
        (POOL, LOOP, {"jdk": "26"}, "jdk servers=pool=25 loop=26"),
        (POOL, LOOP, {"cpus": 1}, "cpus servers=pool=2 loop=1"),
        (POOL, LOOP, {"max_heap_bytes": 2**30},
         "max_heap_bytes servers=pool=536870912 loop=1073741824"),
        (POOL, LOOP, {"gc": ("ZGC",)}, "gc servers=pool=G1 Young Generation loop=ZGC"),
        (POOL, LOOP, {"jvm_flags": ("-Xmx512m", "-Xss8m")},
         "jvm_flags servers=pool=none loop=-Xss8m"),
        (POOL, LOOP, {"version": "2"}, "version servers=pool=1 loop=2"),
    ],
)  # fmt: skip
def test_an_unequal_setting_is_named_with_values(
    pool: dict[str, Json], loop: dict[str, Json], identity: dict[str, Any], unequal: str | None
) -> None:
    found = state.unequal(
        fairness({"pool": server("pool", pool), "loop": server("loop", loop, **identity)})
    )
    assert cells(found) == ([f"unequal-limits limit={unequal}"] if unequal else [])


def test_models_that_differ_in_what_they_are_make_a_fair_comparison() -> None:
    fair = fairness({"pool": server("pool", POOL), "loop": server("loop", LOOP)})
    assert fair.own["pool_size"] == {"pool": 200, "loop": None}
    assert fair.own["loops"] == {"pool": None, "loop": 1}
    assert fair.equal["backlog"] == 4096
    assert {"jdk", "cpus", "max_heap_bytes", "gc", "jvm_flags", "version"} <= set(fair.equal)
    assert state.unequal(fairness({"a": server("a")})) == ()


def test_the_section_has_what_is_unequal_first_and_then_what_is_the_models_own_and_equal() -> None:
    loop = {**LOOP, "backlog": 50, "framework": {"transport": "nio", "http2": False}}
    servers = {"pool": server("pool", {**POOL, "framework": None}), "loop": server("loop", loop)}
    written = markdown(report.blocks(fairness(servers)))
    parts = (
        "no comparison is fair",
        "| backlog | 4096 | 50 |",
        "| pool_size | 200 | – |",
        "| framework | – | (transport nio; http2 false) |",
        "| max_heap_bytes | 512 MiB |",
    )
    places = [written.index(part) for part in parts]
    assert places == sorted(places)
