"""What must be equal is, or the comparison says what is not."""

import copy

import pytest

from lab.judge.fairness import compare, reasons
from lab.model import Json, Snapshot
from lab.report import fairness as report
from lab.report.markdown import markdown
from support.fakes import IDENTITY, cells, snapshot

LIMITS: dict[str, Json] = {"backlog": 4096, "downstream_timeout_ms": 10_000}
NONE: dict[str, Json] = dict.fromkeys(("pool_size", "queue_bound", "loops", "block_the_loop"))


def server(model: str, /, **changes: Json) -> Snapshot:
    identity = copy.replace(IDENTITY, model=model)
    return snapshot(identity=identity, settings={**LIMITS, **NONE, **changes})


def pair(**changes: Json) -> dict[str, Snapshot]:
    """A pool and an event loop; the changes are the loop's."""
    return {
        "pool": server("pool", pool_size=200, queue_bound=0),
        "loop": server("loop", loops=1, block_the_loop=False, **changes),
    }


def test_models_that_differ_in_what_they_are_make_a_fair_comparison() -> None:
    fair = compare(pair())
    assert reasons(fair) == reasons(compare({"a": server("a")})) == ()
    assert fair.own["pool_size"] == {"pool": 200, "loop": None}
    assert fair.own["loops"] == {"pool": None, "loop": 1}
    assert fair.equal["backlog"] == 4096
    assert {"jdk", "cpus", "max_heap_bytes", "gc", "jvm_flags", "version"} <= set(fair.equal)


def test_models_without_fronts_or_a_pool_differ_in_nothing_else() -> None:
    own = {"fronts": 1, "pool_order": "fifo", "connection_threads": None, "netty_transport": None}
    servers = {"a": server("a", **own), "b": server("b", **dict.fromkeys(own))}
    assert reasons(compare(servers)) == ()
    servers["b"] = server("b", **{**own, "fronts": 2})
    assert cells(reasons(compare(servers))) == ["unequal-limits limit=fronts servers=a=1 b=2"]


def test_a_model_may_have_no_limit_where_others_have_one() -> None:
    limits = {"downstream_keep_idle_s": 60}
    none = dict.fromkeys(limits)
    servers = {"lab": server("lab", **limits), "helidon": server("helidon", **none)}
    assert reasons(compare(servers)) == ()
    servers["other"] = server("other", **{**limits, "downstream_keep_idle_s": 30})
    assert len(reasons(compare(servers))) == 1


def test_models_may_have_another_number_of_loops_and_what_a_framework_brings() -> None:
    servers = {
        "a": server("a", loops=1, framework={"transport": "nio", "http2": False}),
        "b": server("b", loops=2, framework={"transport": "native", "longest_head": 8192}),
        "plain": server("plain", framework=None),
    }
    fair = compare(servers)
    assert reasons(fair) == ()
    written = markdown(report.blocks(fair))
    own = "(transport nio; http2 false) | (transport native; longest_head 8192) | –"
    assert f"| framework | {own} |" in written


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"backlog": 50}, "backlog servers=pool=4096 loop=50"),
        ({"downstream_timeout_ms": 5}, "downstream_timeout_ms servers=pool=10000 loop=5"),
        # A queue of 0 is one without a bound: not the same as a bound of 10.
        ({"queue_bound": 10}, "queue_bound servers=pool=0 loop=10"),
        # Not listed as any model's own: fails closed.
        ({"new_limit": 5}, "new_limit servers=pool=missing loop=5"),
    ],
)
def test_an_unequal_setting_is_named_with_values(changes: dict[str, Json], says: str) -> None:
    assert cells(reasons(compare(pair(**changes)))) == [f"unequal-limits limit={says}"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        # The process itself may differ.
        ({"pid": 77, "start_time_ms": 5}, None),
        ({"jdk": "26"}, "jdk servers=pool=25 loop=26"),
        ({"cpus": 1}, "cpus servers=pool=2 loop=1"),
        ({"max_heap_bytes": 2**30}, "max_heap_bytes servers=pool=536870912 loop=1073741824"),
        ({"gc": ("ZGC",)}, "gc servers=pool=G1 Young Generation loop=ZGC"),
        ({"jvm_flags": ("-Xmx512m", "-Xss8m")}, "jvm_flags servers=pool=none loop=-Xss8m"),
        ({"version": "2"}, "version servers=pool=1 loop=2"),
    ],
)
def test_another_jvm_is_named(changes: dict[str, object], says: str | None) -> None:
    servers = pair()
    identity = copy.replace(servers["loop"].identity, **changes)
    servers["loop"] = copy.replace(servers["loop"], identity=identity)
    found = [f"unequal-limits limit={says}"] if says else []
    assert cells(reasons(compare(servers))) == found


def test_the_section_has_what_is_unequal_first_and_then_what_is_the_models_own_and_equal() -> None:
    written = markdown(report.blocks(compare(pair(backlog=50))))
    parts = (
        "no comparison is fair",
        "| backlog | 4096 | 50 |",
        "| pool_size | 200 | – |",
        "| max_heap_bytes | 512 MiB |",
    )
    places = [written.index(part) for part in parts]
    assert places == sorted(places)
