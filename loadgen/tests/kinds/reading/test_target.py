"""The words of a bench of a service that is not the lab's."""

import copy
import re
from pathlib import Path

import pytest

from kinds.conftest import refusal
from lab.kinds.plans import of_file, of_verb
from lab.kinds.reading import Here
from lab.model import Experiment, OwnLever
from lab.store.records import from_json, to_json
from support.foreign import URL
from support.repo import REPO

LONG = "212 characters as it is asked (http://a:80/…)"
# What is asked is longer than what was given.
LONGER = "asked (http://host.docker.internal:80/…)"
OWN = Here(("fixed-pool",), 20_000, own=("my-service",))
ELSEWHERE = Here(("fixed-pool",), 20_000, own=("another",))


def bench(**words: str) -> Experiment:
    given = {"TARGET": f"{URL}/x?a=1&b=2", "CONC": "200", **words}
    found, _ = of_verb("bench", given, Here(("fixed-pool",), 20_000))
    return found


def notes(target: str) -> tuple[str, ...]:
    return of_verb("bench", {"TARGET": target, "CONC": "5"}, Here(("fixed-pool",), 20_000))[1]


def test_a_target_is_the_only_server_and_its_load_is_closed() -> None:
    experiment = bench()
    assert (experiment.servers, experiment.routes) == (("my-service",), ("/x?a=1&b=2",))
    assert (experiment.target, experiment.modes) == (URL, ("closed",))
    # The generator holds one descriptor per connection; the service's are its own affair.
    assert bench(CONC="19000").concurrencies == (19_000,)
    # A rate of one's own makes it both.
    assert bench(RATE="500").modes == ("closed", "open")
    assert bench(RATE="500", MODE="open").modes == ("open",)


def test_a_service_that_speaks_tls_is_one_too() -> None:
    assert bench(TARGET="https://my-service/x").target == "https://my-service:443"
    local = bench(TARGET="https://localhost:8443/x")
    assert local.target == "https://host.docker.internal:8443"
    assert notes("https://localhost:8443/x")[0].endswith("https://host.docker.internal:8443")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "0.0.0.0", "[::1]"]
)
def test_this_machine_is_reached_by_its_name_in_a_container_and_a_note_says_so(host: str) -> None:
    experiment = bench(TARGET=f"http://{host}:3000/x")
    assert experiment.target == "http://host.docker.internal:3000"
    assert experiment.servers == ("host.docker.internal",)
    (note,) = notes(f"http://{host}:3000/x")
    assert "loaded as http://host.docker.internal:3000" in note
    without = of_verb("bench", {"CONC": "5"}, Here(("fixed-pool",), 20_000))
    assert notes(f"{URL}/") == without[1] == ()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"SERVER": "fixed-pool"}, "bench: SERVER with TARGET is not allowed"),
        ({"ROUTE": "/"}, "bench: ROUTE with TARGET is not allowed"),
        ({"LAUNCHES": "2"}, "LAUNCHES=2 with TARGET is not allowed: my-service is no contai"),
        ({"RECORD": "cpu"}, "RECORD=cpu with TARGET is not allowed: my-service is no container"),
        ({"RATE": "auto"}, "an open load of a TARGET needs a rate"),
        ({"MODE": "both"}, "an open load of a TARGET needs a rate"),
        ({"MODE": "open"}, "allowed: RATE=n requests per second, or MODE=closed"),
        ({"TARGET": "ftp://x/"}, "TARGET=ftp://x/ is not an address; allowed: http(s)://host"),
        ({"TARGET": "my-service:8080"}, "TARGET=my-service:8080 is not an address; allowed: http"),
        ({"TARGET": "http://a b/"}, "is not an address"),
        ({"TARGET": 'http://a/"'}, "is not an address"),
        ({"TARGET": "http://u:p@a/"}, "is not an address"),
        ({"TARGET": "http://a:0/"}, "port '0' is not allowed; allowed: 1..65535"),
        ({"TARGET": "http://[fe80::1]/"}, "allowed: a host name or an IPv4 address"),
        ({"TARGET": "http://a/$(x)"}, "is not an address"),
        ({"TARGET": "http://a/" + "x" * 200}, LONG),
        ({"TARGET": "http://localhost/" + "x" * 180}, LONGER),
        ({"CONC": "19001"}, "CONC=19001 is more than this machine holds"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(words: dict[str, str], says: str) -> None:
    said = refusal(bench, **words)
    assert said.startswith("bench: ")
    assert says in said


def run(here: Here = OWN, files: Path = REPO / "experiments", **words: str) -> Experiment:
    found, _ = of_file({"TARGET": f"{URL}/x", **words}, here, files)
    return found


@pytest.mark.parametrize(
    ("words", "modes"),
    [
        ({"EXP": "sweep"}, ("closed",)),
        ({"EXP": "sweep", "RATE": "500"}, ("closed", "open")),
        ({"EXP": "spike", "RATE": "500"}, ("open",)),
        ({"EXP": "faults", "RATE": "500"}, ("open",)),
        ({"EXP": "endurance", "RATE": "500"}, ("open",)),
        ({"EXP": "endurance", "MODE": "closed"}, ("closed",)),
        # These find the rate themselves.
        ({"EXP": "stress"}, ("open",)),
        ({"EXP": "capacity"}, ("open",)),
    ],
)
def test_a_target_replaces_the_servers_of_a_file(
    words: dict[str, str], modes: tuple[str, ...]
) -> None:
    experiment = run(**words)
    assert (experiment.target, experiment.servers) == (URL, ("my-service",))
    assert (experiment.routes, experiment.modes) == (("/x",), modes)
    if "RATE" in words:
        assert experiment.rate_rps == 500


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"EXP": "spike", "RATE": "auto"}, "an open load of a TARGET needs a rate"),
        ({"EXP": "sweep", "MODE": "open"}, "an open load of a TARGET needs a rate"),
        ({"EXP": "truth"}, "^run: TARGET does not apply to experiments/truth"),
        # Only a server of the lab has bottlenecks planted.
        ({"EXP": "density"}, "TARGET does not apply"),
        ({"EXP": "sweep", "SERVER": "a"}, "^run: SERVER with TARGET is not allowed"),
    ],
)
def test_a_target_that_an_experiment_cannot_have_is_refused(
    words: dict[str, str], says: str
) -> None:
    assert re.search(says, refusal(run, **words))


def mine(folder: Path, *lines: str) -> Path:
    """A folder with an experiment of the user's own."""
    head = 'question = "?"\nhypothesis = "!"\n[load]\nconcurrency = [5]\n'
    (folder / "mine.toml").write_text(head + "\n".join(lines))
    return folder


def test_a_file_without_a_rate_needs_one_where_its_load_is_open(tmp_path: Path) -> None:
    files = mine(tmp_path, 'modes = ["open"]')
    said = refusal(run, files=files, EXP="mine")
    assert "mine.toml: an open load of a TARGET needs a rate" in said
    assert run(files=files, EXP="mine", RATE="50").rate_rps == 50


def test_a_file_that_records_needs_a_target_that_the_lab_can_replace(tmp_path: Path) -> None:
    files = mine(tmp_path, "[loads]", 'record = "cpu"')
    said = refusal(run, ELSEWHERE, files, EXP="mine")
    assert "mine.toml: loads.record=cpu with TARGET is not allowed" in said
    experiment, [*_, note] = of_file({"EXP": "mine", "TARGET": f"{URL}/x"}, OWN, files)
    assert experiment.own == {"record": "cpu"}
    assert note.endswith("then it gets a fresh container")


def test_an_inquiry_changes_the_levers_of_its_subject_in_a_container_of_the_lab(
    tmp_path: Path,
) -> None:
    (tmp_path / "shop.toml").write_text(
        f'url = "{URL}"\n[[request]]\npath = "/x"\n[levers]\n"worker pool" = '
        '{variable = "POOL_SIZE", value = 20}\n"server CPU" = {cpus = 1}\n'
    )
    words = {"TARGET": "shop", "CONC": "5"}
    found, notes = of_verb("explain", words, copy.replace(OWN, subjects=tmp_path))
    assert (found.servers, found.routes, found.launches) == (("my-service",), ("/x",), 0)
    assert found.levers == {
        "worker pool": OwnLever(variable="POOL_SIZE", value=20),
        "server CPU": OwnLever(cpus=1),
    }
    assert notes == ()
    assert from_json(Experiment, to_json(found)) == found
    # Any other service stays as it is.
    found, _ = of_verb("explain", words, copy.replace(ELSEWHERE, subjects=tmp_path))
    assert found.levers == {}


def test_a_container_of_the_lab_is_made_anew_and_no_other_service() -> None:
    words = {"TARGET": f"{URL}/", "CONC": "5", "LAUNCHES": "6"}
    found, _ = of_verb("bench", words, OWN)
    assert found.launches == 6
    said = refusal(of_verb, "bench", words, ELSEWHERE)
    assert "allowed: a service of compose.override.yaml" in said
    # A file's launches are done where they can be.
    assert (run(EXP="capacity").launches, run(ELSEWHERE, EXP="capacity").launches) == (6, 0)
