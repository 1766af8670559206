"""A bench on two machines by two generators (`.ci/several.sh`)."""

import pytest

from support.stored import Run, assert_answered

LABELS = {"load": {"lab.generator", "lab.downstream"}, "tested": {"lab.server"}}


@pytest.fixture(scope="module")
def run() -> Run:
    return Run("several")


def test_each_generator_put_on_its_share_of_the_load(run: Run) -> None:
    assert sorted(row["mode"] for row in run.rows) == ["closed", "open"]
    for row in run.rows:
        assert_answered(row)
        files = (f"pacer-{name}.jsonl.gz" for name in ("here", "second-9465"))
        sent = [run.lines(row["trial"], file)[-1]["sent"] for file in files]
        assert sum(sent) == int(row["sent"]), row
        assert min(sent) > max(sent) / 2, sent


def test_each_machine_is_recorded(run: Run) -> None:
    machines = run.json("manifest.json")["host"]["machines"]
    assert {name: set(machine["labels"]) for name, machine in machines.items()} == LABELS
    for machine in machines.values():
        assert machine["engine"]
        assert machine["nano_cpus"] >= 1e9


def test_the_network_and_the_clocks_of_each_trial_are_recorded(run: Run) -> None:
    for row in run.rows:
        record = run.record(row["trial"])
        ways = {way["between"]: way for way in record["before"]["ways"]}
        assert sorted(ways) == ["generator and server", "server and downstream"]
        assert 0 < ways["generator and server"]["ms"] < 1000, ways
        # A difference of two times, which on one kernel can be too small to tell.
        assert 0 <= ways["server and downstream"]["ms"] < 1000, ways
        # VXLAN's headers are 50 bytes of the bridge's 1,500.
        assert ways["generator and server"]["mtu"] == 1450
        of = [clock["of"] for clock in record["clocks"]]
        assert of == 2 * ["Prometheus", "the server", "the downstream"]
        assert record["usage"]["window_resent"] is not None


def test_every_machine_is_in_the_series_and_none_is_taken_for_all(run: Run) -> None:
    for trial in run.trials:
        seen = run.series(trial["trial"])
        for name in ("machine:machine_cpu_cores:each", "host_cpu_usage_seconds_total"):
            assert {one["machine"] for one in seen if one["__name__"] == name} == set(LABELS), name
        assert any("host-cpu" in str(note) for note in trial["notes"]), trial["notes"]
        [cpus] = [one for one in trial["verdict"]["ranked"] if one["resource"] == "host CPU"]
        assert cpus["detail"] in ("load", "tested"), cpus
