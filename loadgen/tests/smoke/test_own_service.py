"""A stock Tomcat and a Node program in the lab, and a stock nginx outside it, as targets
(`.ci/own-service.sh`)."""

import re
from typing import Any

import pytest

from lab.judge.resources.worker_pool import CPUS_LEFT
from lab.judge.trial import HOST_CROWDED
from support.dashboards import lab
from support.stored import Query, Run, Values, is_trusted, offered_routes


@pytest.fixture(scope="module")
def run() -> Run:
    return Run("tomcat")


@pytest.fixture(scope="module")
def tomcat(run: Run) -> dict[str, Any]:
    (trial,) = run.trials
    return trial


def test_a_tomcat_is_measured_under_its_name(run: Run, tomcat: dict[str, Any]) -> None:
    # Three of four requests are GET, one is POST: what Tomcat refuses is an error.
    assert (tomcat["server"], tomcat["route"]) == ("tomcat", "tomcat")
    assert (tomcat["http_errors"], tomcat["ok"] > 400) == (0, True)
    assert tomcat["mode"] == "closed"
    assert is_trusted(tomcat), tomcat["reasons"]
    assert tomcat["raw_p50_ms"] >= 200
    # Which image ran is known.
    host = run.json("manifest.json")["host"]
    container = host["services"]["tomcat"]
    assert container["image"] == host["images"]["concurrency-lab/test-tomcat:local"]["id"]
    assert (container["nano_cpus"], container["memory_bytes"]) == (0, 0)


def test_its_jvm_was_started_for_the_launch_and_proven_warm(
    run: Run, tomcat: dict[str, Any]
) -> None:
    assert tomcat["launch"] == 1
    assert tomcat["jvm_started_ms"] / 1000 > run.manifest.started_at.timestamp()
    assert tomcat["warmth"]["steady"]
    assert tomcat["demand"]["r0_ms"] >= 200
    # The agent recorded it. Few allocations are sampled in 4 s, and whose is left to chance.
    (stacks,) = run.folder.glob("recorded/*-recorded/collapsed.txt")
    assert "java.lang.Thread.run" in stacks.read_text()
    assert "unpack(cpool)" in stacks.with_name("flamegraph.html").read_text()


def test_its_jvm_and_its_container_are_in_the_series(run: Run, tomcat: dict[str, Any]) -> None:
    series = run.series(tomcat["trial"])
    of_jvm = {one["__name__"] for one in series if one.get("server") == "tomcat"}
    assert {"jvm_threads_current", "process_open_fds", "lab_worker_pool_size"} <= of_jvm
    assert any(one.get("service") == "tomcat" for one in series)
    assert any(one["__name__"] == "machine:machine_cpu_cores:max" for one in series)
    assert not {"server", "downstream", "toxiproxy"} & {one.get("job") for one in series}


def test_it_can_be_chosen_on_the_dashboard(query: Query, values: Values) -> None:
    server, _ = lab().questions
    assert {"tomcat", "/downstream"} <= offered_routes(query)
    series = server.query.removeprefix("label_values(").removesuffix(", server)")
    # nginx is no target of Prometheus: the trial's own mark tells of it.
    assert {"tomcat", "host.docker.internal", "fixed-pool"} <= set(values("server", series))


def named(verdict: dict[str, Any]) -> dict[str, Any]:
    [standing] = [one for one in verdict["ranked"] if one["resource"] == verdict["bottleneck"]]
    return standing


def test_its_pool_of_200_threads_limits_400_connections(tomcat: dict[str, Any]) -> None:
    verdict = tomcat["verdict"]
    assert verdict["bottleneck"] == "worker pool", verdict
    assert verdict["missing"] == []
    # What it answers is what its subject expects.
    assert tomcat["unexpected"] == 0


def test_a_planted_lock_is_named_with_its_line() -> None:
    (locked,) = Run("locked").trials
    assert is_trusted(locked), locked["reasons"]
    assert 60 <= locked["achieved_rps"] <= 100
    if locked["usage"]["host_busy"] >= HOST_CROWDED:
        return  # The machine had other work: then whoever holds a lock waits for a CPU.
    verdict = locked["verdict"]
    assert (verdict["bottleneck"], verdict["strength"]) == ("lock", "strong"), verdict
    assert re.fullmatch(r"org\.apache\.jsp\.lock_jsp\._jspService:\d+", named(verdict)["detail"])


def test_a_pool_that_nobody_shows_is_inferred() -> None:
    (shop,) = Run("shop").trials
    assert is_trusted(shop), shop["reasons"]
    # Sixty connections, of which a pool of 20 lets a third through: 20 / 0.2 s.
    assert 80 <= shop["achieved_rps"] <= 101
    if shop["usage"]["host_busy"] >= CPUS_LEFT:
        return  # The machine had other work: then nothing is inferred.
    verdict = shop["verdict"]
    assert (verdict["bottleneck"], verdict["strength"]) == ("worker pool", "weak"), verdict
    assert 17 <= named(verdict)["use"] < 24


def test_its_pool_is_changed_in_a_container_of_its_own_and_wrong_answers_are_counted() -> None:
    # An invalid one was measured again.
    by_arm = {trial["arm"]: trial for trial in Run("lifted").trials}
    before, after = by_arm["1-before"], by_arm["1-after"]
    assert after["condition"]["host"] == {"ENV_SOCKETS": "40"}
    for trial in by_arm.values():
        # Every answer to one of the requests is wrong on purpose, and none to the other.
        assert 0 < trial["unexpected"] == trial["window_http_errors"] < trial["window_ok"]
        wrong = [note for note in trial["notes"] if note["code"] == "not-as-expected"]
        assert any(one["values"].get("without") == "not ok" for one in wrong)
    if is_trusted(before) and is_trusted(after):
        assert after["achieved_rps"] > 1.5 * before["achieved_rps"]


def test_one_outside_the_lab_is_measured_and_what_is_not_known_is_said() -> None:
    closed, opened = Run("nginx").trials
    assert (closed["mode"], opened["mode"]) == ("closed", "open")
    for trial in (closed, opened):
        assert trial["server"] == "host.docker.internal"
        assert is_trusted(trial), trial["reasons"]
        assert trial["jvm_started_ms"] is None
        assert "warmth-unproven" in [note["code"] for note in trial["notes"]]
        missing = {gap["code"] for gap in trial["verdict"]["missing"]}
        assert {"exporter", "container"} <= missing
    assert opened["verdict"]["bottleneck"] == "none" or not opened["valid"]
    assert closed["verdict"]["strength"] != "strong" or closed["verdict"]["bottleneck"] == "none"
