"""What a lever changes, on conditions derived by hand."""

import copy
import math
import re
from collections.abc import Mapping
from typing import Any

import pytest

from lab.judge.resources import RESOURCES
from lab.kinds.proving.levers import LEVERS, MOST, Change, lever, together
from lab.kinds.proving.present import Present
from lab.model import (
    AS_IT_IS,
    Condition,
    OwnLever,
    Remark,
    SettingChange,
    Snapshot,
    Spread,
    ToxicState,
)
from lab.model.knobs import DIRECT, HOST, PROXIED
from support.drawn_delay import SPREAD
from support.fakes import IDENTITY, snapshot
from support.repo import REPO

SERVERS = REPO / "servers"
FLAGS = (
    "--enable-preview", "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-Dsun.net.httpserver.nodelay=true",
    "-javaagent:/lab/jmx-exporter.jar=9404:/lab/jmx-exporter.yaml",
)  # fmt: skip
SETTINGS = {
    "pool_size": 200, "downstream_connections": 50, "downstream_timeout_ms": 100,
    "virtual_thread_parallelism": 1, "loops": 1, "fronts": 1, "block_the_loop": False,
    "backlog": 1, "downstream_url": PROXIED, "local_ports": "20000 49999",
}  # fmt: skip
LOAD = {
    "cores": 4, "route": "/downstream", "concurrency": 5000, "most_connections": 9500,
    "offered_rps": None,
}  # fmt: skip
SLOW = "downstream/slow latency jitter=20 latency=600 stream=downstream toxicity=1"
NARROW = "downstream/bandwidth bandwidth rate=3 stream=downstream toxicity=1"
CUT = "downstream/cut limit_data bytes=100 stream=downstream toxicity=1"
CARRIERS, CALLS = "virtual_thread_parallelism", "SERVER_DOWNSTREAM_URL"
LOAD_CONNECTIONS = "connections of the load"


def present(
    condition: Condition = AS_IT_IS,
    *,
    settings: Mapping[str, Any] | None = None,
    cpus: int = 2,
    jdk: str = IDENTITY.jdk,
    toxics: tuple[str, ...] = (),
    spread: Spread | None = None,
    **load: Any,
) -> Present:
    identity = copy.replace(IDENTITY, jvm_flags=FLAGS, cpus=cpus, jdk=jdk)
    has, now = {**SETTINGS, **(settings or {})}, ToxicState(in_force=toxics)
    seen = snapshot(settings=has, identity=identity, toxics=now, spread=spread)
    return Present(seen, condition, **{**LOAD, **load})


def pulled(resource: str, *args: Any, **changes: Any) -> Change:
    change = lever(resource, present(*args, **changes))
    assert isinstance(change, Change), change
    return change


def knobs(**values: int) -> Condition:
    return Condition(knobs=values)


def host(**values: str) -> Condition:
    return Condition(host=values)


def of_a_service(levers: dict[str, OwnLever], **changes: Any) -> Present:
    now = present(**changes)
    elsewhere = copy.replace(now.snapshot, identity=None, settings={"url": "http://x:1"})
    return copy.replace(now, snapshot=elsewhere, levers=levers)


# The texts of the step and of the lift, and by how much goodput can rise with the step.
BLOCKED = {"block_the_loop": "spin"}
NINE_THREADS = {"condition": knobs(pool_size=9)}
FLAGS_GC = "-XX:+UseG1GC, SERVER_MEMORY"
PULLED: list[tuple[str, dict[str, Any], str, str, float | None]] = [
    ("worker pool", {}, "pool_size=400", "pool_size=5000", 2),
    # Nothing is lifted to less than its step, nor set beyond the limits.
    ("worker pool", {"concurrency": 10}, "pool_size=400", "pool_size=400", 2),
    ("worker pool", {"concurrency": 90_000}, "pool_size=400", "pool_size=20000", 2),
    ("worker pool", {"condition": knobs(pool_size=15_000)},
     "pool_size=20000", "pool_size=20000", 4 / 3),
    # What is sized for the load is sized for the load of now.
    ("worker pool", {"condition": Condition(connections=8000)},
     "pool_size=400, 8000 connections", "pool_size=8000, 8000 connections", 2),
    # A value that was changed is what is changed next, and the rest stays.
    ("downstream connections",
     {"condition": Condition({"pool_size": 9, "downstream_connections": 100}, host={"LOOPS": "2"})},
     "pool_size=9, downstream_connections=200, LOOPS=2",
     "pool_size=9, downstream_connections=5000, LOOPS=2", 2),
    # Twice 100 ms would be the 200 ms of the delay itself: at least twice that.
    ("downstream timeout", {}, "downstream_timeout_ms=400", "downstream_timeout_ms=10000", None),
    # The longest of drawn delays.
    ("downstream timeout", {"spread": SPREAD},
     f"downstream_timeout_ms={2 * math.ceil(SPREAD.longest_ms)}",
     "downstream_timeout_ms=10000", None),
    ("carrier threads", {}, f"{CARRIERS}=2", f"{CARRIERS}=4", 2),
    # A server can have the CPUs of its set, whatever the driver has.
    ("carrier threads", {"settings": {"cpuset": "8-15"}}, f"{CARRIERS}=2", f"{CARRIERS}=8", 2),
    # What is planted is halved and then taken away.
    ("lock", {"settings": {"lock_ms": 11}}, "lock_ms=5", "lock_ms=0", 2.2),
    ("pinned carriers", {"settings": {"pin_ms": 1}}, "pin_ms=0", "pin_ms=0", None),
    ("pinned carriers", {}, f"{CARRIERS}=2", f"{CARRIERS}=256", 2),
    ("event loop", {}, "LOOPS=2", "LOOPS=4", 2),
    # A blocked loop is freed before there are more.
    ("event loop", {"settings": BLOCKED}, "BLOCK_THE_LOOP=false", "BLOCK_THE_LOOP=false", None),
    ("event loop", {"settings": BLOCKED, "condition": host(BLOCK_THE_LOOP="false")},
     "BLOCK_THE_LOOP=false, LOOPS=2", "BLOCK_THE_LOOP=false, LOOPS=4", 2),
    ("front", {}, "FRONTS=2", "FRONTS=4", 2),
    ("accept queue", {}, "SERVER_BACKLOG=16", "SERVER_BACKLOG=65535", None),
    ("accept queue", {"condition": host(SERVER_BACKLOG="4096")},
     "SERVER_BACKLOG=65535", "SERVER_BACKLOG=65535", None),
    # Twice what there are, or what the load asks for.
    ("file descriptors", {"condition": host(NOFILE="300"), "concurrency": 400},
     "NOFILE=600", "NOFILE=3600", None),
    ("file descriptors", {"concurrency": 400}, "NOFILE=3600", "NOFILE=3600", None),
    ("server CPU", {"condition": host(SERVER_CPUS="0.4")}, "SERVER_CPUS=0.8", "SERVER_CPUS=4", 2),
    ("server CPU", {"condition": host(SERVER_CPUS="3")}, "SERVER_CPUS=4", "SERVER_CPUS=4", 4 / 3),
    # What the JVM says of a limit that the lab was started with; it may be up to one CPU less.
    ("server CPU", {"settings": {"cpu_quota": 1.5}}, "SERVER_CPUS=3", "SERVER_CPUS=4", 2),
    ("server CPU", {"cpus": 1}, "SERVER_CPUS=2", "SERVER_CPUS=4", None),
    ("server CPU", {"settings": {"cpuset": "8-15", "cpu_quota": 3}},
     "SERVER_CPUS=6", "SERVER_CPUS=8", 2),
    # A heap with its container and the other flags of its setting, where that is too small for it.
    ("garbage collection", {},
     f"SERVER_JVM_FLAGS=-Xms2048m -Xmx2048m {FLAGS_GC}=3072m",
     f"SERVER_JVM_FLAGS=-Xms4096m -Xmx4096m {FLAGS_GC}=5120m", None),
    ("garbage collection", {"condition": host(SERVER_JVM_FLAGS="-Xmx48m -XX:+UseSerialGC")},
     "SERVER_JVM_FLAGS=-Xms96m -Xmx96m -XX:+UseSerialGC",
     "SERVER_JVM_FLAGS=-Xms192m -Xmx192m -XX:+UseSerialGC", None),
    ("ports", {"condition": host(SERVER_PORTS="10000 10299")},
     "SERVER_PORTS=10000 10599", "SERVER_PORTS=10000 65535", 2),
    ("ports", {}, "SERVER_PORTS=10000 65535", "SERVER_PORTS=10000 65535", 55_536 / 30_000),
    (LOAD_CONNECTIONS, {"concurrency": 2000}, "4000 connections", "8000 connections", 2),
    (LOAD_CONNECTIONS, {"condition": Condition(connections=4000), "concurrency": 2000},
     "8000 connections", "9500 connections", 2),
    # Calls past Toxiproxy. A toxic whose effect no bound covers goes with it.
    ("Toxiproxy", {"toxics": (CUT,)}, f"{CALLS}={DIRECT}", f"{CALLS}={DIRECT}", None),
    ("connection set-up", NINE_THREADS,
     f"pool_size=9, {CALLS}={DIRECT}", f"pool_size=9, {CALLS}={DIRECT}", None),
    # Some CPUs are taken away, and nothing is left behind.
    ("host CPU", NINE_THREADS, "pool_size=9, 10% of the CPUs taken away", "pool_size=9", None),
]  # fmt: skip


@pytest.mark.parametrize(("resource", "now", "step", "lift", "at_most"), PULLED)
def test_what_a_lever_changes(
    resource: str, now: dict[str, Any], step: str, lift: str, at_most: float | None
) -> None:
    change = pulled(resource, **now)
    assert (change.step.text, change.lift.text, change.at_most) == (step, lift, at_most)
    assert len(change.settings) == 1


def test_a_change_says_its_setting_and_what_it_does_beside() -> None:
    assert pulled("worker pool").settings == (SettingChange("pool_size", 200, 400, 5000),)
    assert pulled("garbage collection").settings == (
        SettingChange("heap", 1024, 2048, 4096, "MiB"),
    )
    assert pulled("lock", settings={"lock_ms": 11}).saves_ms == 6
    assert pulled("Toxiproxy").frees == "Toxiproxy"
    doses = pulled("host CPU")
    assert (doses.takes, doses.less) == (True, Condition(spin=0.06))


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("generator", {}, "no-lever"),
    ("network", {}, "no-lever"),
    ("downstream", {}, "no-lever"),
    ("lock", {}, "lock-in-code"),
    ("lock", {"settings": {"lock_ms": 0}}, "lock-in-code"),
    # An old JDK does not let its carriers be changed.
    ("pinned carriers", {"jdk": "21.0.8"}, "fixed-carriers"),
    ("carrier threads",
     {"jdk": "21.0.8", "route": "/synchronized", "settings": {"pool_size": None, CARRIERS: 2}},
     "fixed-carriers"),
    ("worker pool", {"condition": knobs(pool_size=20_000)}, "at-most"),
    ("file descriptors", {"condition": host(NOFILE="1048576")}, "at-most"),
    ("server CPU", {"cpus": 4}, "at-most"),
    ("server CPU", {"condition": host(SERVER_CPUS="4")}, "at-most"),
    ("server CPU", {"cpus": 8, "settings": {"cpuset": "8-15"}}, "at-most"),
    ("garbage collection", {"condition": host(SERVER_JVM_FLAGS="-Xmx4g")}, "at-most"),
    ("ports", {"settings": {"local_ports": "10000 65535"}}, "at-most"),
    ("connections of the load", {"concurrency": 9500}, "at-most"),
    ("Toxiproxy", {"toxics": (SLOW,)}, "toxics-in-force"),
    ("connection set-up", {"toxics": (NARROW,)}, "toxics-in-force"),
    ("Toxiproxy", {"settings": {"downstream_url": DIRECT}}, "already-direct"),
    ("Toxiproxy", {"condition": host(SERVER_DOWNSTREAM_URL=DIRECT)}, "already-direct"),
    ("Toxiproxy", {"settings": {"downstream_url": None}}, "not-through-proxy"),
    ("Toxiproxy", {"settings": {"downstream_url": "http://elsewhere/"}}, "not-through-proxy"),
    # What a model does not have cannot be changed.
    *((resource, {"settings": dict.fromkeys(SETTINGS)}, "no-setting") for resource in (
        "worker pool", "event loop", "front", "downstream connections", "downstream timeout",
        "carrier threads", "pinned carriers", "accept queue", "ports")),
]  # fmt: skip


@pytest.mark.parametrize(("resource", "now", "code"), REFUSED)
def test_where_there_is_no_lever(resource: str, now: dict[str, Any], code: str) -> None:
    change = lever(resource, present(**now))
    assert isinstance(change, Remark)
    assert change.code == code


def test_every_lever_is_of_a_resource() -> None:
    assert {*LEVERS} <= {*RESOURCES}


def test_the_limits_are_those_of_the_contract() -> None:
    text = "".join(path.read_text() for path in SERVERS.glob("*/src/main/**/*.java"))
    options = {
        name: int(most.replace("_", ""))
        for name, most in re.findall(
            r'new IntOption\(\s*"(\w+)",\s*[\d_]+,\s*[\d_]+,\s*([\d_]+)\)', text
        )
    }
    assert {name: options[name] for name in MOST} == MOST
    for name, least in (("FRONTS", 1), ("LOOPS", 0)):
        allowed = [n for n in range(1000) if re.fullmatch(HOST[name], str(n))]
        assert allowed == list(range(least, MOST[name.lower()] + 1))


@pytest.mark.parametrize(
    ("resources", "condition", "settings", "keeps"),
    [
        # Its JVM made its threads by the CPUs that it had.
        (("server CPU",), host(SERVER_CPUS="1"), {}, {"loops": 1, "fronts": 1, "carriers": 1}),
        (("server CPU",), host(SERVER_CPUS="1"), {"loops": 2, "fronts": 2, CARRIERS: 2}, {}),
        # Those that were raised before, or are raised in the same step, are enough.
        (("server CPU",), host(SERVER_CPUS="1", LOOPS="2", FRONTS="2"), {}, {"carriers": 1}),
        (("server CPU", "carrier threads"), host(SERVER_CPUS="1"), {"fronts": 2}, {"loops": 1}),
        (("carrier threads", "server CPU"), host(SERVER_CPUS="1"), {"fronts": 2}, {"loops": 1}),
        (
            ("worker pool", "server CPU"),
            host(SERVER_CPUS="1"),
            {"fronts": 2, "loops": 2},
            {"carriers": 1},
        ),
    ],
)
def test_threads_that_stay_fewer_than_the_cpus_are_named(
    resources: tuple[str, ...],
    condition: Condition,
    settings: dict[str, int],
    keeps: dict[str, int],
) -> None:
    change = together(resources, present(condition, settings=settings))
    assert isinstance(change, Change)
    assert change.keeps == keeps


def test_cpus_are_shared_unless_the_server_has_a_set_of_another_size() -> None:
    sets = ({}, {"cpuset": "0-1"}, {"cpuset": "8-15"})
    assert [present(cores=2, settings=has).shared_cpus for has in sets] == [2, 2, None]


def test_what_behaves_like_a_pool_may_be_connections_where_only_these_have_the_lever() -> None:
    pool, connections = OwnLever("POOL_SIZE", 20), OwnLever("SOCKETS", 20)
    both = {"worker pool": pool, "downstream connections": connections}
    assert of_a_service(both).lifted_by("worker pool") == "worker pool"
    both.pop("worker pool")
    assert of_a_service(both).lifted_by("worker pool") == "downstream connections"


def test_two_resources_change_together() -> None:
    assert together(("worker pool", "downstream connections"), present()) == Change(
        knobs(pool_size=400, downstream_connections=100),
        knobs(pool_size=5000, downstream_connections=5000),
        (
            SettingChange("pool_size", 200, 400, 5000),
            SettingChange("downstream_connections", 50, 100, 5000),
        ),
        2,
    )
    assert together(("worker pool",), present()) == pulled("worker pool")
    # What a step takes away, that of both takes away.
    planted = present(settings={"lock_ms": 10, "pin_ms": 4})
    assert together(("lock", "pinned carriers"), planted).saves_ms == 7
    for resources in (("worker pool", "Toxiproxy"), ("Toxiproxy", "worker pool")):
        assert together(resources, present()).frees == "Toxiproxy"
        assert together(resources, present(toxics=(SLOW,))).code == "toxics-in-force"


def test_of_a_service_of_the_users_own_only_what_its_subject_names_is_changed() -> None:
    pool, heap = OwnLever("POOL_SIZE", 20), OwnLever("JAVA_OPTS", 256, "-Xmx{}m")
    now = of_a_service({"worker pool": pool, "garbage collection": heap})
    step, lift = host(ENV_POOL_SIZE="40"), host(ENV_POOL_SIZE="5000")
    setting = SettingChange("POOL_SIZE", 20, 40, 5000)
    assert lever("worker pool", now) == Change(step, lift, (setting,), 2, unseen=("POOL_SIZE",))
    beside = lever("garbage collection", copy.replace(now, condition=lift))
    assert beside.step == host(ENV_POOL_SIZE="5000", ENV_JAVA_OPTS="-Xmx512m")
    assert beside.at_most is None
    for resource in {*LEVERS} - {*now.levers, "connections of the load", "host CPU"}:
        assert lever(resource, now) == Remark("no-lever-of-subject", {"resource": resource})
    assert lever("network", now) == Remark("no-lever", {"resource": "network"})
    assert isinstance(lever("connections of the load", now), Change)
    assert isinstance(lever("host CPU", now), Change)
    # Only what is offered is a bound.
    assert now.bounds(AS_IT_IS) == ()
    offered = copy.replace(now, offered_rps=100).bounds(AS_IT_IS)
    assert [bound.resource for bound in offered] == ["offered load"]
    # A limit that the host sets is not unseen.
    cpus = lever("server CPU", of_a_service({"server CPU": OwnLever(cpus=1)}))
    assert (cpus.step, cpus.lift, cpus.unseen) == (host(OWN_CPUS="2"), host(OWN_CPUS="4"), ())


@pytest.mark.parametrize(
    ("condition", "load", "tightest"),
    [
        (AS_IT_IS, {}, ("downstream connections", 250.0)),
        (knobs(downstream_connections=5000), {}, ("worker pool", 1000.0)),
        (Condition(connections=40), {}, ("connections", 200.0)),
        (AS_IT_IS, {"offered_rps": 100}, ("offered load", 100.0)),
        # Two loops, each blocked for the 300 ms that a request waits.
        (host(BLOCK_THE_LOOP="true", LOOPS="2"), {"route": "/block"}, ("event loop", 2 / 0.3)),
    ],
)
def test_the_bounds_of_a_condition_are_predicted(
    condition: Condition, load: dict[str, Any], tightest: tuple[str, float]
) -> None:
    bound = present(**load).bounds(condition)[0]
    assert (bound.resource, bound.rps) == (tightest[0], pytest.approx(tightest[1]))


def test_no_toxic_is_in_the_prediction_of_calls_past_toxiproxy() -> None:
    slow = ToxicState((SLOW,), 600.0, ("downstream/cut",))
    seen: Snapshot = copy.replace(present().snapshot, toxics=slow)
    now = copy.replace(present(), snapshot=seen)
    assert now.bounds(AS_IT_IS) == now.bounds(host(SERVER_DOWNSTREAM_URL=PROXIED)) == ()
    assert now.bounds(host(SERVER_DOWNSTREAM_URL=DIRECT)) == present().bounds(AS_IT_IS) != ()
