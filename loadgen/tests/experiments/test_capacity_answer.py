"""`capacity`: what is said: what a server holds, and what gave way first."""

import math
from pathlib import Path
from typing import Any

import pytest

from lab.experiments.kind import Outcome
from lab.experiments.searching.answers import answers
from lab.experiments.searching.findings import findings
from lab.model import NONE, STRONG, UNKNOWN, Standing, TrialPlan, Verdict
from support.altered import When, altered, in_launches, invalid
from support.searched import JIT, alone, found, ran, server

CPU = "host CPU"


def test_what_gave_way_has_its_figures() -> None:
    of, rows = ran({"a": server(1650, name="worker pool")})
    pool = Standing(40, 40, "threads", resource="worker pool")
    verdicts = {
        one.trial: Verdict(one.bottleneck or NONE, STRONG, "excess", None, (pool,)) for one in rows
    }
    told = findings(Outcome(of, rows, Path(), verdicts))
    assert (
        answers(of, told)[0][2]
        == "then: worker pool, 40 of 40 threads (strong, at 1,682 by 3 trials)"
    )


def test_whose_the_cpu_time_is_that_gave_way() -> None:
    parts = {
        "cpu_server_us": 80.0, "cpu_proxy_us": 60.0, "cpu_downstream_us": 30.0,
        "cpu_generator_us": 20.0, "cpu_observation_us": 10.0,
    }  # fmt: skip
    split = altered(server(1650), **parts)
    _, answer, _ = alone(split)
    assert answer.text.endswith(
        "; then: host CPU: of the lab's CPU time server 40%, proxy 30% (strong, at 1,682 by 3 "
        "trials)"
    )
    _, answer, _ = alone(altered(split, cpu_server_us=None))
    assert answer.text.endswith("; then: host CPU (strong, at 1,682 by 3 trials)")


def test_what_a_jvm_held_that_still_compiled_has_no_latency_but_at_most() -> None:
    plain = altered(server(1650), cpu_server_us=80.0, cpu_proxy_us=60.0)
    cold = altered(plain, lambda plan, _: (plan.offered_rps or 0) <= 1650, **invalid(JIT))
    told = found(*ran({"a": cold}))
    assert [one for one in told if "held 1,646 req/s (p99 at most 210 ms; " in one.text]


def test_servers_are_ordered_only_where_intervals_separate() -> None:
    most = {"a": 1000.0, "b": 1650.0, "c": 1645.0}
    servers = {name: server(rate) for name, rate in most.items()}
    six, rows = ran(servers, launches=6)
    told = found(six, rows)
    assert [one.server for one in told[:3]] == ["b", "c", "a"]
    lines = answers(six, told)
    assert lines[-1] == ("Not told apart: b and c.",)
    # Fewer launches rank nothing.
    one, rows = ran(servers)
    told = found(one, rows)
    assert [finding.server for finding in told[:3]] == ["a", "b", "c"]
    assert answers(one, told)[-1] == (
        "[from, to]: up to the first rate every trial of one JVM held, from the second on every "
        "one broke. That orders no servers; LAUNCHES=6 gives a 95 % interval.",
    )


@pytest.mark.parametrize(
    ("quiet", "says"),
    [
        (1700, "[1,646, 1,682]; then: host CPU (strong, at 2,000 by 2 trials)"),
        (math.inf, "then: unknown"),
    ],
)
def test_what_gives_way_is_named_at_the_lowest_rate_with_a_name(quiet: float, says: str) -> None:
    shy: When = lambda plan, _: (plan.offered_rps or 0) < quiet  # noqa: E731
    _, answer, _ = alone(altered(server(1650), shy, bottleneck="unknown", strength=""))
    assert answer.text.endswith(says)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (6 * [CPU], "host CPU (strong, at 1,682 by 6 trials)"),
        (4 * [CPU] + 2 * [UNKNOWN], "host CPU (strong, at 1,682 by 4 of 6 trials)"),
        # The first launch is the only one above that, where it names the same.
        (3 * [CPU] + 3 * ["worker pool"], "host CPU (weak, at 2,000 by 1 trial)"),
        (
            [UNKNOWN, "garbage collection", *4 * [UNKNOWN]],
            "unknown (1 of 7 trials name garbage collection)",
        ),
        # The one trial far above does not speak for those that name nothing.
        ([UNKNOWN, *5 * [CPU]], "host CPU (strong, at 1,682 by 5 of 6 trials)"),
        # At 1,682 five of six name nothing, and the one above it would have answered for them.
        ([CPU, *5 * [UNKNOWN]], "unknown (2 of 7 trials name host CPU)"),
    ],
)
def test_no_minority_names_what_gave_way(names: list[str], says: str) -> None:
    """Six launches hold 1,646, and break with these, one by one."""
    plain = server(1650)

    def one(plan: TrialPlan) -> dict[str, Any]:
        name = names[plan.launch - 1]
        told = {"bottleneck": name, "strength": "" if name == UNKNOWN else STRONG}
        return plain(plan) | ({} if (plan.offered_rps or 0) <= 1650 else told)

    assert found(*ran({"a": one}, launches=6))[0].text.partition("; then: ")[2] == says


def test_what_broke_at_the_rate_that_is_said_to_be_held_gave_way_nowhere() -> None:
    # Two JVMs hold less, and what gave way in them is not what ends the others.
    weak = server(1600, name="garbage collection")
    answer, *_ = found(*ran({"a": in_launches((3, 5), weak, server(1650))}, launches=6))
    assert answer.value == 1646
    assert answer.text.endswith("; then: host CPU (strong, at 1,682 by 4 trials)")
