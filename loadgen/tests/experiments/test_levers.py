"""What a lever changes, on conditions derived by hand."""

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any

import pytest

from lab.experiments.proving.levers import (
    _LEVERS,
    _WITHOUT,
    MOST,
    Lever,
    Present,
    lever,
    together,
)
from lab.judge.resources import RESOURCES
from lab.model import AS_IT_IS, Condition, OwnLever, Spread, ToxicState
from lab.model.knobs import DIRECT, HOST, PROXIED
from lab.model.toxic_words import parse_toxic
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
    "virtual_thread_parallelism": 1, "loops": 1, "block_the_loop": False, "backlog": 1,
    "downstream_url": PROXIED,
}  # fmt: skip
LOAD = {
    "cores": 4, "route": "/downstream", "concurrency": 5000, "most_connections": 9500,
    "offered_rps": None,
}  # fmt: skip
NOTHING = {"settings": dict.fromkeys(SETTINGS)}
SLOW = "downstream/slow latency jitter=20 latency=600 stream=downstream toxicity=1"
NARROW = "downstream/bandwidth bandwidth rate=3 stream=downstream toxicity=1"
CUT = "downstream/cut limit_data bytes=100 stream=downstream toxicity=1"
WIDE = "downstream/wide bandwidth rate=500 stream=upstream toxicity=0.5"


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
    identity = dataclasses.replace(IDENTITY, jvm_flags=FLAGS, cpus=cpus, jdk=jdk)
    has, now = {**SETTINGS, **(settings or {})}, ToxicState(in_force=toxics)
    seen = snapshot(settings=has, identity=identity, toxics=now, spread=spread)
    return Present(seen, condition, **{**LOAD, **load})


def pulled(resource: str, *args: Any, **changes: Any) -> Lever:
    found = lever(resource, present(*args, **changes))
    assert isinstance(found, Lever), found
    return found


def refused(resource: str, *args: Any, **changes: Any) -> str:
    found = lever(resource, present(*args, **changes))
    assert isinstance(found, str), found
    return found


def knobs(**values: int) -> Condition:
    return Condition(knobs=values)


def host(**values: str) -> Condition:
    return Condition(host=values)


def of_a_service(levers: dict[str, OwnLever], **changes: Any) -> Present:
    now = present(**changes)
    elsewhere = dataclasses.replace(now.snapshot, identity=None, settings={"url": "http://x:1"})
    return dataclasses.replace(now, snapshot=elsewhere, levers=levers)


def test_of_a_service_of_the_users_own_only_what_its_subject_names_is_changed() -> None:
    pool, heap = OwnLever("POOL_SIZE", 20), OwnLever("JAVA_OPTS", 256, "-Xmx{}m")
    now = of_a_service({"worker pool": pool, "garbage collection": heap})
    step, lift = host(ENV_POOL_SIZE="40"), host(ENV_POOL_SIZE="5000")
    expected = Lever(step, lift, "POOL_SIZE 20 → 40", "POOL_SIZE=5000", 2, unseen="POOL_SIZE")
    assert lever("worker pool", now) == expected
    beside = lever("garbage collection", dataclasses.replace(now, condition=lift))
    assert beside.step == host(ENV_POOL_SIZE="5000", ENV_JAVA_OPTS="-Xmx512m")
    assert beside.at_most is None
    others = {*now.levers, "connections of the load", "host CPU", "generator", "network"}
    others |= {"work outside the lab", "waves of the load"}
    for resource in {*RESOURCES} - others:
        assert lever(resource, now) == f"the service's subject has no [levers] for the {resource}"
    assert isinstance(lever("connections of the load", now), Lever)
    assert isinstance(lever("host CPU", now), Lever)
    assert now.bounds(AS_IT_IS) == ()
    # A limit that the host sets is not unseen.
    cpus = lever("server CPU", of_a_service({"server CPU": OwnLever(cpus=1)}))
    assert (cpus.step, cpus.lift, cpus.unseen) == (host(OWN_CPUS="2"), host(OWN_CPUS="4"), "")


def test_what_behaves_like_a_pool_may_be_connections_where_these_have_the_lever() -> None:
    connections = {"downstream connections": OwnLever("SOCKETS", 20)}
    assert of_a_service(connections).lifted_by("worker pool") == "downstream connections"
    both = {**connections, "worker pool": OwnLever("POOL_SIZE", 20)}
    assert of_a_service(both).lifted_by("worker pool") == "worker pool"
    assert of_a_service({}).lifted_by("worker pool") == "worker pool"
    assert present().lifted_by("worker pool") == "worker pool"


def test_every_resource_has_a_lever_or_a_reason_why_not() -> None:
    assert {*_LEVERS} | {*_WITHOUT} <= {*RESOURCES}
    assert not {*_LEVERS} & {*_WITHOUT}
    assert refused("generator")
    assert refused("network")


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
    ("resource", "name", "value", "step", "lift", "at_most"),
    [
        ("worker pool", "pool_size", 200, 400, 5000, 2),
        ("downstream connections", "downstream_connections", 50, 100, 5000, 2),
        # Twice 100 ms would be the 200 ms of the delay itself: at least twice that.
        ("downstream timeout", "downstream_timeout_ms", 100, 400, 10_000, None),
        ("carrier threads", "virtual_thread_parallelism", 1, 2, 4, 2),
    ],
)
def test_knobs(
    resource: str, name: str, value: int, step: int, lift: int, at_most: float | None
) -> None:
    changed = (knobs(**{name: step}), knobs(**{name: lift}))
    texts = (f"{name} {value} → {step}", f"{name}={lift}")
    assert pulled(resource) == Lever(*changed, *texts, at_most)


@pytest.mark.parametrize(("resource", "name"), [("lock", "lock_ms"), ("pinned carriers", "pin_ms")])
def test_what_is_planted_is_halved_and_then_taken_away(resource: str, name: str) -> None:
    changed = (knobs(pool_size=5, **{name: 5}), knobs(pool_size=5, **{name: 0}))
    expected = Lever(*changed, f"{name} 11 → 5", f"{name}=0", 2.2, saves_ms=6)
    assert pulled(resource, knobs(pool_size=5, **{name: 11})) == expected
    read = pulled(resource, settings={name: 1})
    assert (read.step, read.lift, read.at_most) == (knobs(**{name: 0}), knobs(**{name: 0}), None)
    assert read.saves_ms == 1


def test_what_nobody_planted_takes_other_code_or_more_carriers() -> None:
    assert refused("lock") == "it is in the code: only another version of it can tell"
    assert refused("lock", settings={"lock_ms": 0}) == refused("lock")
    more = pulled("pinned carriers", settings={"pin_ms": 0})
    assert more.step == knobs(virtual_thread_parallelism=2)
    assert more.lift == knobs(virtual_thread_parallelism=256)
    # An old JDK does not let its carriers be changed.
    older = "this JDK does not let the number of its carrier threads be changed"
    assert refused("pinned carriers", jdk="21.0.8") == older
    settings = {"pool_size": None, "virtual_thread_parallelism": 2}
    carriers = {"jdk": "21.0.8", "route": "/synchronized", "settings": settings}
    assert refused("carrier threads", **carriers) == older


def test_a_deadline_is_raised_above_the_longest_of_drawn_delays() -> None:
    found = pulled("downstream timeout", spread=SPREAD)
    assert found.step == knobs(downstream_timeout_ms=2 * math.ceil(SPREAD.longest_ms))


def test_nothing_is_lifted_to_less_than_its_step_or_beyond_the_limits() -> None:
    assert pulled("worker pool", concurrency=10).lift == knobs(pool_size=400)
    assert pulled("worker pool", concurrency=90_000).lift == knobs(pool_size=20_000)
    near = pulled("worker pool", knobs(pool_size=15_000))
    assert (near.step, near.lift) == (knobs(pool_size=20_000), knobs(pool_size=20_000))
    assert near.at_most == 20_000 / 15_000
    full = knobs(pool_size=20_000)
    assert refused("worker pool", full) == "pool_size is 20000 already, the most there is"
    # A value that was changed is what is changed next, and the rest stays.
    now = Condition(knobs={"pool_size": 5000, "downstream_connections": 100}, host={"LOOPS": "2"})
    found = pulled("downstream connections", now)
    assert found.step.knobs == {"pool_size": 5000, "downstream_connections": 200}
    assert found.step.host == {"LOOPS": "2"}


@pytest.mark.parametrize(
    ("resource", "setting"),
    [
        ("worker pool", "pool_size"),
        ("event loop", "loops"),
        ("front", "fronts"),
        ("downstream connections", "downstream_connections"),
        ("downstream timeout", "downstream_timeout_ms"),
        ("carrier threads", "virtual_thread_parallelism"),
        ("pinned carriers", "virtual_thread_parallelism"),
        ("accept queue", "backlog"),
    ],
)
def test_what_a_model_does_not_have_cannot_be_changed(resource: str, setting: str) -> None:
    assert refused(resource, **NOTHING) == f"this server has no setting {setting}"


@pytest.mark.parametrize(("how", "word"), [(True, "true"), ("spin", "spin")])
def test_a_blocked_loop_is_freed_before_there_are_more(how: bool | str, word: str) -> None:
    blocked = pulled("event loop", settings={"block_the_loop": how})
    assert blocked.step == blocked.lift == host(BLOCK_THE_LOOP="false")
    assert f"BLOCK_THE_LOOP {word} → false" in str(blocked)
    more = pulled("event loop", blocked.lift, settings={"block_the_loop": how})
    assert more.step == host(BLOCK_THE_LOOP="false", LOOPS="2")
    assert more.lift == host(BLOCK_THE_LOOP="false", LOOPS="4")


def test_there_are_twice_as_many_fronts() -> None:
    found = pulled("front", settings={"fronts": 1})
    assert (found.step, found.lift, found.at_most) == (host(FRONTS="2"), host(FRONTS="4"), 2)


def test_settings_of_the_host_are_raised() -> None:
    found = pulled("accept queue")
    assert (found.step, found.lift) == (host(SERVER_BACKLOG="16"), host(SERVER_BACKLOG="65535"))
    assert pulled("accept queue", host(SERVER_BACKLOG="4096")).step == host(SERVER_BACKLOG="65535")
    # File descriptors are twice what they were, or what the load asks for.
    known = pulled("file descriptors", host(NOFILE="300"), concurrency=400)
    assert (known.step, known.lift) == (host(NOFILE="600"), host(NOFILE="3600"))
    unknown = pulled("file descriptors", concurrency=400)
    assert unknown.step == host(NOFILE="3600")
    assert "the most there is" in refused("file descriptors", host(NOFILE="1048576"))


def test_a_cpu_limit_is_doubled_and_without_one_it_is_the_machine() -> None:
    found = pulled("server CPU", host(SERVER_CPUS="0.4"))
    assert (found.step, found.lift) == (host(SERVER_CPUS="0.8"), host(SERVER_CPUS="4"))
    assert (found.step_text, found.at_most) == ("SERVER_CPUS 0.4 → 0.8", 2)
    # What the JVM says of a limit that the lab was started with.
    read = pulled("server CPU", settings={"cpu_quota": 1.5})
    assert (read.step_text, read.at_most) == ("SERVER_CPUS 1.5 → 3", 2)
    seen = pulled("server CPU", cpus=1)
    assert (seen.step, seen.at_most) == (host(SERVER_CPUS="2"), None)
    assert pulled("server CPU", host(SERVER_CPUS="3")).step == host(SERVER_CPUS="4")
    # Its JVM made its threads by the CPUs that it had.
    for loops, carriers, kept in ((1, 1, "1 event loop and 1 carrier"), (2, 2, "")):
        settings = {"loops": loops, "virtual_thread_parallelism": carriers}
        few = pulled("server CPU", host(SERVER_CPUS="1"), settings=settings)
        assert few.keeps == kept
    for condition, kept in ((host(), "1 front"), (host(FRONTS="2"), "")):
        settings = {"loops": None, "virtual_thread_parallelism": None, "fronts": 1}
        raised = host(**condition.host, SERVER_CPUS="1")
        assert pulled("server CPU", raised, settings=settings).keeps == kept
    # Those that were raised before, or are raised in the same step, are enough.
    settings = {"loops": 1, "virtual_thread_parallelism": 1, "pool_size": 8}
    for tied, kept in (
        ("carrier threads", "1 event loop"),
        ("event loop", "1 carrier"),
        ("worker pool", "1 event loop and 1 carrier"),
    ):
        for resources in (("server CPU", tied), (tied, "server CPU")):
            both = together(resources, present(host(SERVER_CPUS="1"), settings=settings))
            assert both.keeps == kept
    assert (
        pulled("server CPU", host(SERVER_CPUS="1", LOOPS="2"), settings=settings).keeps
        == "1 carrier"
    )
    for full in ({"cpus": 4}, {"condition": host(SERVER_CPUS="4")}):
        assert refused("server CPU", **full).endswith("4 CPUs: those of the machine or of its set")


def test_a_server_can_have_the_cpus_of_its_set_whatever_the_driver_has() -> None:
    kept = {"cpuset": "8-15", "virtual_thread_parallelism": 2}
    found = pulled("server CPU", settings={**kept, "cpu_quota": 3}, cpus=3)
    assert (found.step, found.lift) == (host(SERVER_CPUS="6"), host(SERVER_CPUS="8"))
    assert pulled("carrier threads", settings=kept).lift.knobs == {"virtual_thread_parallelism": 8}
    told = refused("server CPU", settings=kept, cpus=8)
    assert told == "the server may use all 8 CPUs: those of the machine or of its set"
    # CPUs are shared unless the server has a set of another size than the driver.
    assert present(cores=2).shared_cpus == 2
    assert present(cores=2, settings={"cpuset": "0-1"}).shared_cpus == 2
    assert present(cores=2, settings={"cpuset": "8-15"}).shared_cpus is None


def test_a_heap_is_doubled_with_its_container_and_the_other_flags_of_its_setting() -> None:
    found = pulled("garbage collection")
    flags = "-Xms2048m -Xmx2048m -XX:+UseG1GC"
    assert found.step == host(SERVER_JVM_FLAGS=flags, SERVER_MEMORY="3072m")
    assert found.lift.host["SERVER_MEMORY"] == "5120m"
    assert found.step_text == "heap 1024 → 2048 MiB"
    small = pulled("garbage collection", host(SERVER_JVM_FLAGS="-Xmx48m -XX:+UseSerialGC"))
    # It fits into the container as it is.
    assert small.step == host(SERVER_JVM_FLAGS="-Xms96m -Xmx96m -XX:+UseSerialGC")
    assert "the most the lab gives" in refused("garbage collection", found.lift)
    assert pulled("garbage collection", host(SERVER_JVM_FLAGS="")).step_text.startswith("heap 512")


def test_the_tightest_bandwidth_toxic_is_widened() -> None:
    found = pulled("Toxiproxy", toxics=(WIDE, SLOW, NARROW))
    wide = {"NAME": "bandwidth", "RATE": "1000000"}
    assert found.step.toxics == ({"NAME": "bandwidth", "RATE": "6"},)
    assert found.lift.toxics == (wide,)
    then = pulled("Toxiproxy", found.lift, toxics=(WIDE, SLOW, NARROW))
    assert then.step.toxics == (wide, {"NAME": "wide", "RATE": "1000"})
    for words in then.step.toxics:
        parse_toxic(words)


@pytest.mark.parametrize(
    ("resource", "kept"), [("Toxiproxy", (SLOW,)), ("connection set-up", (SLOW, NARROW))]
)
def test_calls_past_toxiproxy_are_without_its_costs(resource: str, kept: tuple[str, ...]) -> None:
    found = pulled(resource, knobs(pool_size=400))
    assert found.step == Condition({"pool_size": 400}, host={"SERVER_DOWNSTREAM_URL": DIRECT})
    assert (found.lift, found.at_most) == (found.step, None)
    assert found.step_text == "direct, without Toxiproxy, its time and its CPU time"
    assert found.frees == "Toxiproxy"
    # A toxic whose effect no bound covers goes with it; of one with a bound nobody could tell which
    # of the two gave more.
    assert pulled(resource, toxics=(CUT,)).step == host(SERVER_DOWNSTREAM_URL=DIRECT)
    for toxic in kept:
        assert "its toxics would be gone" in refused(resource, toxics=(toxic,))
    for already in ({"condition": found.step}, {"settings": {"downstream_url": DIRECT}}):
        assert "without Toxiproxy already" in refused(resource, **already)
    for elsewhere in (None, "http://elsewhere/"):
        assert "does not call" in refused(resource, settings={"downstream_url": elsewhere})


@pytest.mark.parametrize(
    ("toxic", "proxy"),
    [(SLOW, {}), (SLOW.replace("downstream/", "elsewhere/", 1), {"PROXY": "elsewhere"})],
    ids=["the default proxy", "another proxy"],
)
def test_the_largest_latency_toxic_is_halved(toxic: str, proxy: dict[str, str]) -> None:
    slow = {"NAME": "slow", **proxy}
    found = pulled("downstream", toxics=(toxic,))
    assert found.step.toxics == ({**slow, "LATENCY": "300"},)
    assert (found.lift.toxics, found.saves_ms) == (({**slow, "LATENCY": "0", "JITTER": "0"},), 300)
    again = pulled("downstream", found.step, toxics=(toxic,))
    assert again.step.toxics == ({**slow, "LATENCY": "150"},)
    assert "no latency toxic" in refused("downstream", found.lift, toxics=(toxic,))
    assert "no latency toxic" in refused("downstream")


def test_of_the_host_s_cpus_some_are_taken_away() -> None:
    found = pulled("host CPU", knobs(pool_size=5000))
    assert (found.takes, found.step_text) == (True, "6% and 10% of the CPUs taken away")
    assert found.step == Condition({"pool_size": 5000}, spin=0.1)
    assert found.less == Condition({"pool_size": 5000}, spin=0.06)
    # Nothing is left behind.
    assert found.lift == knobs(pool_size=5000)


def test_the_load_has_twice_its_connections_as_far_as_the_machine_holds_them() -> None:
    found = pulled("connections of the load", concurrency=2000)
    assert (found.step.connections, found.lift.connections) == (4000, 8000)
    assert (found.step_text, found.at_most) == ("connections 2000 → 4000", 2)
    again = pulled("connections of the load", found.step, concurrency=2000)
    assert (again.step.connections, again.lift.connections) == (8000, 9500)
    assert "holds no more" in refused("connections of the load", concurrency=9500)
    # What is sized for the load is sized for the load of now.
    assert pulled("worker pool", found.lift, concurrency=2000).lift.knobs == {"pool_size": 8000}


def test_a_narrow_range_of_ports_is_widened() -> None:
    found = pulled("ports", host(SERVER_PORTS="10000 10299"))
    assert found.step == host(SERVER_PORTS="10000 10599")
    assert found.lift == host(SERVER_PORTS="10000 65535")
    assert (found.step_text, found.at_most) == ("local ports 300 → 600", 2)
    read = pulled("ports", settings={"local_ports": "20000 49999"})
    assert read.step == host(SERVER_PORTS="10000 65535")
    assert "the most there are" in refused("ports", settings={"local_ports": "10000 65535"})
    assert "does not tell" in refused("ports")


def test_two_resources_change_together() -> None:
    found = together(("worker pool", "downstream connections"), present())
    assert found == Lever(
        knobs(pool_size=400, downstream_connections=100),
        knobs(pool_size=5000, downstream_connections=5000),
        "pool_size 200 → 400 and downstream_connections 50 → 100",
        "pool_size=5000 and downstream_connections=5000",
        2,
    )
    assert together(("worker pool",), present()) == pulled("worker pool")
    # What a step takes away, that of both takes away.
    planted = present(settings={"lock_ms": 10, "pin_ms": 4})
    assert together(("lock", "pinned carriers"), planted).saves_ms == 7
    for resources in (("worker pool", "Toxiproxy"), ("Toxiproxy", "worker pool")):
        assert together(resources, present()).frees == "Toxiproxy"
        assert "its toxics" in str(together(resources, present(toxics=(SLOW,))))


def test_the_bounds_of_a_condition_are_predicted() -> None:
    def bounds(condition: Condition, **changes: Any) -> list[tuple[str, float]]:
        of = present(**changes)
        return [(bound.resource, bound.rps) for bound in of.bounds(condition)]

    assert bounds(AS_IT_IS)[:2] == [("downstream connections", 250.0), ("worker pool", 1000.0)]
    assert bounds(knobs(downstream_connections=5000))[0] == ("worker pool", 1000.0)
    assert bounds(Condition(connections=40))[0] == ("connections", 200.0)
    assert bounds(AS_IT_IS, offered_rps=100)[0] == ("offered load", 100.0)
    blocked = host(BLOCK_THE_LOOP="true", LOOPS="2")
    # Two loops, each blocked for the 300 ms that a request waits.
    assert bounds(blocked, route="/block")[0] == ("event loop", pytest.approx(2 / 0.3))
    # Nobody knows what a toxic does before it is in force.
    changed = Condition(toxics=({"NAME": "slow", "LATENCY": "0"},))
    assert bounds(changed) == []
    # But no more is answered than is offered.
    assert bounds(changed, offered_rps=100) == [("offered load", 100.0)]
    elsewhere = of_a_service({}, offered_rps=100)
    assert [bound.resource for bound in elsewhere.bounds(AS_IT_IS)] == ["offered load"]


def test_no_toxic_is_in_the_prediction_of_calls_past_toxiproxy() -> None:
    slow = ToxicState((SLOW,), 600.0, ("downstream/cut",))
    seen = dataclasses.replace(present().snapshot, toxics=slow)
    now = dataclasses.replace(present(), snapshot=seen)
    assert now.bounds(AS_IT_IS) == ()
    assert now.bounds(host(SERVER_DOWNSTREAM_URL=PROXIED)) == ()
    assert now.bounds(host(SERVER_DOWNSTREAM_URL=DIRECT)) == present().bounds(AS_IT_IS) != ()
