"""A bench on two machines by two generators (`.ci/several.sh`)."""

import gzip
import json

from support.stored import assert_answered, rows_of, run_of, series_of, trials_of

LABELS = {"load": {"lab.generator", "lab.downstream"}, "tested": {"lab.server"}}


def test_closed_and_open_load_were_measured() -> None:
    rows = rows_of("several")
    assert sorted(row["mode"] for row in rows) == ["closed", "open"]
    for row in rows:
        assert_answered(row)


def test_each_generator_put_on_its_share_of_the_load() -> None:
    for row in rows_of("several"):
        raw, sent = run_of("several") / "raw" / row["trial"], {}
        for name in ("here", "second-9465"):
            with gzip.open(raw / f"pacer-{name}.jsonl.gz", "rt") as lines:
                sent[name] = json.loads(lines.readlines()[-1])["sent"]
        assert sum(sent.values()) == int(row["sent"]), row
        assert min(sent.values()) > max(sent.values()) / 2, sent


def test_each_machine_is_recorded() -> None:
    machines = json.loads((run_of("several") / "manifest.json").read_text())["host"]["machines"]
    assert {name: set(machine["labels"]) for name, machine in machines.items()} == LABELS
    for machine in machines.values():
        assert machine["engine"]
        assert machine["nano_cpus"] >= 1e9


def test_the_network_and_the_clocks_of_each_trial_are_recorded() -> None:
    for row in rows_of("several"):
        record = json.loads((run_of("several") / "raw" / row["trial"] / "trial.json").read_text())
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


def test_every_machine_is_in_the_series_and_none_is_taken_for_all() -> None:
    for trial in trials_of("several"):
        seen = series_of(trial)
        for name in ("machine:machine_cpu_cores:each", "host_cpu_usage_seconds_total"):
            assert {one["machine"] for one in seen if one["__name__"] == name} == set(LABELS), name
        assert any("host-cpu" in str(note) for note in trial["notes"]), trial["notes"]
        [cpus] = [one for one in trial["verdict"]["ranked"] if one["resource"] == "host CPU"]
        assert cpus["detail"] in ("load", "tested"), cpus
