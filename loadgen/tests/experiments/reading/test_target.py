"""The words of a bench of a service that is not the lab's."""

import dataclasses
from pathlib import Path

import pytest

from lab.errors import WordError
from lab.experiments.plans import of_file, of_verb
from lab.experiments.reading import Here
from lab.model import (
    Experiment,
)
from support.foreign import URL


def bench(**words: str) -> Experiment:
    given = {"TARGET": f"{URL}/x?a=1&b=2", "CONC": "200", **words}
    found, _ = of_verb("bench", given, Here(("fixed-pool",), 20_000))
    assert isinstance(found, Experiment)
    return found


def notes(target: str) -> tuple[str, ...]:
    return of_verb("bench", {"TARGET": target, "CONC": "5"}, Here(("fixed-pool",), 20_000))[1]


def test_a_target_is_the_only_server_and_its_load_is_closed() -> None:
    experiment = bench()
    assert (experiment.servers, experiment.routes) == (("my-service",), ("/x?a=1&b=2",))
    assert experiment.target == URL
    assert experiment.modes == ("closed",)
    # The generator holds one descriptor per connection; the service's are its own affair.
    assert bench(CONC="19000").concurrencies == (19_000,)


def test_a_service_that_speaks_tls_is_one_too() -> None:
    assert bench(TARGET="https://my-service/x").target == "https://my-service:443"
    local = bench(TARGET="https://localhost:8443/x")
    assert local.target == "https://host.docker.internal:8443"
    assert notes("https://localhost:8443/x")[0].endswith("https://host.docker.internal:8443")


def test_a_rate_of_ones_own_makes_it_both() -> None:
    assert bench(RATE="500").modes == ("closed", "open")
    assert bench(RATE="500", MODE="open").modes == ("open",)


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
        ({"LAUNCHES": "2"}, "bench: LAUNCHES with TARGET is not allowed"),
        ({"RECORD": "cpu"}, "bench: RECORD with TARGET is not allowed"),
        ({"RATE": "auto"}, "RATE=auto is not allowed with TARGET: the lab does not know what"),
        ({"MODE": "both"}, "MODE=both without RATE is not allowed with TARGET"),
        ({"MODE": "open"}, "MODE=open without RATE is not allowed with TARGET"),
        ({"MODE": "up"}, "MODE=up is not allowed; allowed: open, closed, both"),
        ({"TARGET": "ftp://x/"}, "TARGET=ftp://x/ is not an address; allowed: http(s)://host"),
        ({"TARGET": "my-service:8080"}, "TARGET=my-service:8080 is not an address; allowed: http"),
        ({"TARGET": "http://a b/"}, "is not an address"),
        ({"TARGET": 'http://a/"'}, "is not an address"),
        ({"TARGET": "http://u:p@a/"}, "is not an address"),
        ({"TARGET": "http://a:0/"}, "port 0 is not allowed; allowed: 1..65535"),
        ({"TARGET": "http://[fe80::1]/"}, "allowed: a host name or an IPv4 address"),
        ({"TARGET": "http://a/$(x)"}, "is not an address"),
        ({"TARGET": "http://a/" + "x" * 200}, "212 characters as it is asked (http://a:80/…)"),
        # What is asked is longer than what was given.
        ({"TARGET": "http://localhost/" + "x" * 180}, "asked (http://host.docker.internal:80/…)"),
        ({"CONC": "19001"}, "19001 is more than this machine holds"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(words: dict[str, str], says: str) -> None:
    with pytest.raises(WordError) as refused:
        bench(**words)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_only_a_bench_takes_a_target(tmp_path: Path) -> None:
    words = {"TARGET": f"{URL}/", "CONC": "5"}
    with pytest.raises(WordError, match="explain: TARGET is not allowed; allowed: make bench"):
        of_verb("explain", words, Here(("a",), 20_000))
    with pytest.raises(WordError, match="run: TARGET is not allowed; allowed: make bench"):
        of_file({**words, "EXP": "x"}, Here(("a",), 20_000), tmp_path)


def test_a_target_has_no_fresh_jvms() -> None:
    with pytest.raises(ValueError, match="the JVM of a target"):
        dataclasses.replace(bench(), launches=1)
